//! How often messages go to one recipient of an account, where the provider limits that. How many go over the account is
//! the engine's business (`max_rate`).
//!
//! The limit is a generic cell rate algorithm (ITU-T I.371): one time for a recipient, measured by the monotonic clock.
//! So no window of time has more messages than the limit, whatever came before, and what is kept is small: a recipient is
//! forgotten as soon as that changes nothing.
//!
//! A recipient's turn may be far away, and waiting for it would keep a place from messages to others. So a message is put
//! off without an attempt, to a time of its own: of many messages to one recipient each comes back once.

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

/// Who finds no room in the table asks again after this.
const NO_ROOM: Duration = Duration::from_secs(2);

/// The longest that a message is put off at a time.
const MAX_PUT_OFF: Duration = Duration::from_mins(1);

/// What took longer from its turn until it was ready to leave takes another: messages that were held up would leave
/// together.
const STALE: Duration = Duration::from_secs(1);

/// Recipients that are remembered at most. Who finds no room waits: no limit is ever exceeded.
const MAX_REMEMBERED: usize = 100_000;

/// From this on the table is looked through for what can be forgotten.
const SWEEP_FROM: usize = 1024;

/// A recipient that answers again and again that it is too much is left alone for 4, 16, 64 … seconds, up to 4^8.
const MAX_DOUBLINGS: u32 = 8;

/// A limit: so many at once at most, and then one in each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    interval: Duration,
    burst: u32,
}

impl Rate {
    /// One in each interval.
    pub(crate) const fn every(interval: Duration) -> Self {
        Self { interval, burst: 1 }
    }

    /// With so many at once after a silence.
    pub(crate) const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// How far ahead of its interval a message may be.
    fn tolerance(self) -> Duration {
        self.interval * self.burst.saturating_sub(1)
    }
}

/// Names an account or a recipient of one, without holding its address or its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PaceKey([u8; 16]);

impl PaceKey {
    /// The account with this identity at its provider, such as an API's address and a key: whoever uses it shares the
    /// limit.
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

/// One message's claim: over which account, to whom, how often.
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
    /// When all that was sent would have been sent at one message in each interval.
    paid: Monotonic,
    /// The time of the last message that was put off, and one interval.
    promised: Monotonic,
    /// How often in a row it answered that it is too much, and until when that is remembered.
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
    /// What is known of a recipient; `None` without room for one more.
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

/// Long ago.
const BEGINNING: Monotonic = Monotonic::new(Duration::ZERO);

impl Recipient {
    const NEW: Self = Self { paid: BEGINNING, promised: BEGINNING, refusals: 0, refused_until: BEGINNING };

    fn is_needed(&self, now: Monotonic) -> bool {
        self.paid > now || self.promised > now || self.refused_until > now
    }
}

/// When a message may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacePermit(Monotonic);

impl Pace {
    /// With nobody in it.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, recipients: Mutex::default() }
    }

    /// The turn of a message, or after how long it is put off.
    pub(crate) fn reserve(&self, claim: Claim<'_>) -> Reservation {
        match self.take(claim, self.clock.monotonic()) {
            Ok(permit) => Reservation::holding(permit),
            Err(wait) => Reservation::later(wait),
        }
    }

    /// Sends to each recipient in its turn, which may be reserved: as
    /// [`to_each`](crate::provider::to_each) does otherwise.
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

    /// State of the way to a recipient: how long it gets nothing, because it had its share.
    pub(crate) fn state(&self, claim: Claim<'_>) -> RouteState {
        let Claim { account, recipient, rate } = claim;
        let now = self.clock.monotonic();
        let recipients = self.recipients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recipients.entries.get(&account.recipient(recipient));
        let wait = known.map(|known| known.paid.since(now).saturating_sub(rate.tolerance()));
        RouteState { rests_for: wait.filter(|wait| !wait.is_zero()), ..RouteState::default() }
    }

    /// How long a recipient is left alone that answered that it is too much: longer each time in a row.
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
        // The next attempt comes after the wait, and it may wait for a turn itself.
        known.refused_until = now + wait * 2 + MAX_PUT_OFF;
        wait
    }

    /// Takes a turn, or says after how long one may be asked for again.
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

/// What becomes of a message whose turn was not asked for before: it is put off, by an attempt that was none.
fn put_off(wait: Duration) -> Outcome {
    let response = Response::of_text("our own pace: the recipient gets no more messages at a time");
    Answer::new(OutcomeClass::Throttled(Scope::Recipient), response).wait(wait).into()
}

#[cfg(test)]
mod tests;
