//! Limits how often messages go to one recipient, for providers that have such limits. The rate of the whole account is
//! limited by the engine (`max_rate`).
//!
//! The limit is a generic cell rate algorithm (ITU-T I.371): one time for each recipient, measured by the monotonic
//! clock. So no window of time has more messages than the limit, whatever came before, and little is kept: a recipient
//! is forgotten as soon as its entry makes no difference.
//!
//! A recipient's turn may be far away, and a message that waited for it would take a place from others. So a message is
//! put off without an attempt, to a time of its own: of many messages to one recipient each comes back once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::outcome::{Answer, OutcomeClass, Response, Scope};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::transport::{Outcome, Outgoing, Reservation, RouteState, Sent};
use messaging_core::time::Monotonic;
use ring::digest;

use crate::provider::refused_by_last_look;

/// Wait after which a message is tried again that found no room in the table.
const NO_ROOM: Duration = Duration::from_secs(2);

/// Maximum time that a message is put off at once.
const MAX_PUT_OFF: Duration = Duration::from_mins(1);

/// Age from which a permit no longer counts: messages that were held up would otherwise leave together.
const STALE: Duration = Duration::from_secs(1);

/// Maximum number of recipients in the table. Messages to further ones wait: no limit is ever exceeded.
const MAX_REMEMBERED: usize = 100_000;

/// Number of entries from which the table is searched for those that can be forgotten.
const SWEEP_FROM: usize = 1024;

/// Maximum exponent of the wait after refusals in a row: a recipient that keeps answering "too much" is left alone for
/// 4, 16, 64 … seconds, up to 4^8.
const MAX_DOUBLINGS: u32 = 8;

/// Limit of a recipient: at most `burst` messages at once, then one in each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    interval: Duration,
    burst: u32,
}

impl Rate {
    /// Returns a limit of one message in each interval.
    pub(crate) const fn every(interval: Duration) -> Self {
        Self { interval, burst: 1 }
    }

    /// Allows so many messages at once after a silence.
    pub(crate) const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Returns how far ahead of its interval a message may be sent.
    fn tolerance(self) -> Duration {
        self.interval * self.burst.saturating_sub(1)
    }
}

/// Digest that names an account, or a recipient of one, without holding its address or its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PaceKey([u8; 16]);

impl PaceKey {
    /// Names the account with this identity at its provider, such as an API's address and a key: all who use it share
    /// the limit.
    pub(crate) fn account(identity: &[&str]) -> Self {
        Self::of(identity.iter().map(|part| part.as_bytes()))
    }

    fn recipient(self, address: &str) -> Self {
        Self::of([&self.0[..], address.as_bytes()].into_iter())
    }

    fn of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&context.finish().as_ref()[..16]);
        Self(key)
    }
}

/// One message's claim to a turn: its account, its recipient, and the recipient's limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// The account.
    pub(crate) account: PaceKey,
    /// The recipient.
    pub(crate) recipient: &'a str,
    /// The recipient's limit.
    pub(crate) rate: Rate,
}

/// The limits of recipients at one provider.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Arc<dyn Clock>,
    recipients: Mutex<Table>,
}

#[derive(Debug, Clone, Copy)]
struct Recipient {
    /// The time at which all messages so far would have been sent at one in each interval.
    paid: Monotonic,
    /// The time that the last put-off message was given, plus one interval.
    promised: Monotonic,
    /// Number of "too much" answers in a row, and the time until which they are remembered.
    refusals: u32,
    refused_until: Monotonic,
}

#[derive(Debug)]
struct Table {
    entries: HashMap<PaceKey, Recipient>,
    sweep_at: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: HashMap::new(), sweep_at: SWEEP_FROM }
    }
}

impl Table {
    /// Returns the entry of a recipient, which is added if it is new; `None` without room for one more.
    fn entry(&mut self, key: PaceKey, now: Monotonic) -> Option<&mut Recipient> {
        if self.entries.len() >= self.sweep_at && !self.entries.contains_key(&key) {
            self.entries.retain(|_, one| one.is_needed(now));
            self.sweep_at = (self.entries.len() * 2).clamp(SWEEP_FROM, MAX_REMEMBERED);
            if self.entries.len() >= MAX_REMEMBERED {
                return None;
            }
        }
        Some(self.entries.entry(key).or_insert(Recipient::NEW))
    }
}

/// A time in the past.
const BEGINNING: Monotonic = Monotonic::new(Duration::ZERO);

impl Recipient {
    const NEW: Self = Self { paid: BEGINNING, promised: BEGINNING, refusals: 0, refused_until: BEGINNING };

    fn is_needed(&self, now: Monotonic) -> bool {
        self.paid > now || self.promised > now || self.refused_until > now
    }
}

/// Permission to send, with the time at which it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacePermit(Monotonic);

impl Pace {
    /// Creates an empty table.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, recipients: Mutex::default() }
    }

    /// Reserves the turn of a message, or says for how long it is put off.
    pub(crate) fn reserve(&self, claim: Claim<'_>) -> Reservation {
        match self.take(claim, self.clock.monotonic()) {
            Ok(permit) => Reservation::holding(permit),
            Err(wait) => Reservation::later(wait),
        }
    }

    /// Sends to each recipient in its turn, which may be reserved; otherwise like
    /// [`to_each`](crate::provider::to_each).
    pub(crate) async fn to_each<F, Answered>(
        &self,
        outgoing: &Outgoing,
        account: PaceKey,
        rate_of: impl Fn(&str) -> Rate + Send + Sync,
        send: F,
    ) -> Sent
    where
        F: Fn(String) -> Answered + Sync + Send,
        Answered: Future<Output = Answer> + Send,
    {
        let mut outcomes = Vec::with_capacity(outgoing.recipients.len());
        for recipient in &outgoing.recipients {
            let claim = Claim { account, recipient, rate: rate_of(recipient) };
            let reserved = outgoing.reservation.take::<PacePermit>();
            let is_fresh = |permit: &PacePermit| self.clock.monotonic().since(permit.0) < STALE;
            let permit = match reserved.filter(is_fresh) {
                Some(permit) => Ok(permit),
                None => self.take(claim, self.clock.monotonic()),
            };
            if let Err(wait) = permit {
                outcomes.push(put_off(wait));
                continue;
            }
            if let Some(refusal) = refused_by_last_look(&outgoing.last_look, recipient).await {
                outcomes.push(refusal);
                continue;
            }
            let outcome = Outcome::from(send(recipient.clone()).await);
            outgoing.last_look.ended(recipient, &outcome);
            outcomes.push(outcome);
        }
        Sent { outcomes, ..Sent::default() }
    }

    /// Returns the state of the route to a recipient: how long it gets nothing, because it had its share.
    pub(crate) fn state(&self, claim: Claim<'_>) -> RouteState {
        let Claim { account, recipient, rate } = claim;
        let now = self.clock.monotonic();
        let recipients = self.recipients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recipients.entries.get(&account.recipient(recipient));
        let wait = known.map(|known| known.paid.since(now).saturating_sub(rate.tolerance()));
        RouteState { rests_for: wait.filter(|wait| !wait.is_zero()), ..RouteState::default() }
    }

    /// Notes that a recipient answered "too much", and returns how long it is left alone: longer each time in a row.
    pub(crate) fn refused(&self, account: PaceKey, recipient: &str) -> Duration {
        let now = self.clock.monotonic();
        let mut recipients = self.recipients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recipients.entry(account.recipient(recipient), now);
        let mut unknown = Recipient::NEW;
        let known = known.unwrap_or(&mut unknown);
        if known.refused_until <= now {
            known.refusals = 0;
        }
        known.refusals = (known.refusals + 1).min(MAX_DOUBLINGS);
        let wait = Duration::from_secs(4_u64.pow(known.refusals));
        // The next attempt comes after the wait, and may itself be put off.
        known.refused_until = now + wait * 2 + MAX_PUT_OFF;
        wait
    }

    /// Takes a turn, or returns the wait after which to ask again.
    fn take(&self, claim: Claim<'_>, now: Monotonic) -> Result<PacePermit, Duration> {
        let Claim { account, recipient, rate } = claim;
        let mut recipients = self.recipients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recipients.entry(account.recipient(recipient), now).ok_or(NO_ROOM)?;
        if known.paid.since(now) > rate.tolerance() {
            let free = now + (known.paid.since(now) - rate.tolerance());
            let back = free.max(known.promised);
            if back.since(now) >= MAX_PUT_OFF {
                return Err(MAX_PUT_OFF);
            }
            known.promised = back + rate.interval;
            return Err(back.since(now));
        }
        known.paid = known.paid.max(now) + rate.interval;
        Ok(PacePermit(now))
    }
}

/// Returns the outcome for a message without a turn: it is put off, and nothing was sent.
fn put_off(wait: Duration) -> Outcome {
    let response = Response::of_text("our own pace: the recipient gets no more messages at a time");
    Answer::new(OutcomeClass::Throttled(Scope::Recipient), response).wait(wait).into()
}

#[cfg(test)]
mod tests;
