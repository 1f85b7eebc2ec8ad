//! Send rates of provider accounts: never more than the account's `max_rate`, and as many messages as it takes.
//!
//! Slots are handed out by a generic cell rate algorithm (ITU-T I.371) with a burst of one. A message takes its slot
//! before its content is read, a little ahead, and leaves when the slot has come. A message that comes late takes
//! another slot: messages that were held up together do not leave together.
//!
//! The rate that an account takes is found by additive increase and multiplicative decrease (RFC 5681): a throttling
//! answer halves the rate, though not below what the account was seen to take, and every message that is taken raises
//! it by a small step. An account that never throttled is not slowed down. Messages that wait for a slot stay in the
//! queue, so a lower rate is also a lower number of messages in work.
//!
//! The rates are memory of the process that sends: each process on one database keeps its own.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{MAX_RATE, ROUTES};
use messaging_core::domain::delivery::consequence::AccountState;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Monotonic;
use serde_json::Value;

use crate::app::account_pauses::Account;
use crate::app::caches::Provider;

/// Time before its slot at which a message is taken in work and its content is read.
pub(crate) const AHEAD: Duration = Duration::from_millis(500);

/// Longest wait for a slot: for one further away the message is put off.
const MAX_IN_PLACE: Duration = Duration::from_secs(2);

/// Longest time that a message is put off at once.
const MAX_PUT_OFF: Duration = Duration::from_mins(1);

/// Delay with which a missed slot still counts: timers are hardly finer.
const GRAIN: Duration = Duration::from_millis(20);

/// Time that an account is shown as throttling after its last throttling answer.
const SHOWN: Duration = Duration::from_mins(1);

/// Window over which the messages that an account gets and takes are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Rate after a throttle, as a part of the rate that the account was seen to take.
const GOOD: f64 = 0.95;

/// Steps by which each message that is taken raises the rate, in messages a second: near the rate at which the account
/// throttled, and away from it.
const SMALL_STEP: f64 = 0.005;
const STEP: f64 = 0.25;

/// Lowest rate in messages a second, and the rate from which on none is enforced.
const LOWEST: f64 = 0.05;
const HIGHEST: f64 = 10_000.0;

/// Time that an observed rate is remembered after the last message.
const USED: Duration = Duration::from_hours(1);

/// Number of accounts beyond which those that are not in use are forgotten.
const REMEMBERED: usize = 1024;

/// Start of the monotonic clock, long ago.
const BEGINNING: Monotonic = Monotonic::new(Duration::ZERO);

/// Time when a message may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendSlot(pub(crate) Monotonic);

/// Room for more messages in work for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Number of further messages.
    Left(usize),
    /// No message before this time.
    NotBefore(Monotonic),
}

/// Rates of the accounts that are in use.
#[derive(Debug, Default)]
pub(crate) struct AccountRates(Mutex<HashMap<Account, AccountRate>>);

#[derive(Debug)]
struct AccountRate {
    /// Provider and settings that the rate is for.
    provider: Provider,
    /// `max_rate` of the settings.
    most: Option<f64>,
    observed: Option<ObservedRate>,
    /// Time when the next message may leave.
    next: Monotonic,
    /// Time to which the next message is put off at the earliest.
    promised: Monotonic,
    left: Meter,
    taken: Meter,
    /// Time and text of the last throttling answer.
    throttled: Option<(Monotonic, String)>,
}

/// Rate of an account, as its throttling answers have shown it.
#[derive(Debug, Clone, Copy)]
struct ObservedRate {
    /// Messages a second.
    rate: f64,
    /// Rate at which the account throttled, in messages a second; `HIGHEST` while unknown.
    limit: f64,
    /// Time when the rate was last lowered.
    lowered: Monotonic,
}

/// Counts over a sliding window.
#[derive(Debug, Clone, Copy)]
struct Meter {
    began: Monotonic,
    before: u32,
    now: u32,
}

impl Meter {
    const NEW: Self = Self { began: BEGINNING, before: 0, now: 0 };

    fn count(&mut self, now: Monotonic) {
        let passed = now.since(self.began);
        if passed >= WINDOW {
            self.before = if passed < WINDOW * 2 { self.now } else { 0 };
            (self.began, self.now) = (if passed < WINDOW * 2 { self.began + WINDOW } else { now }, 0);
        }
        self.now = self.now.saturating_add(1);
    }

    fn per_second(&self, now: Monotonic) -> f64 {
        let passed = now.since(self.began).as_secs_f64() / WINDOW.as_secs_f64();
        if passed >= 2.0 {
            0.0
        } else if passed >= 1.0 {
            f64::from(self.now) * (2.0 - passed)
        } else {
            f64::from(self.before).mul_add(1.0 - passed, f64::from(self.now))
        }
    }
}

impl AccountRate {
    fn new(provider: &Provider, name: Option<&str>) -> Self {
        Self {
            provider: provider.clone(),
            most: max_rate(provider, name),
            observed: None,
            next: BEGINNING,
            promised: BEGINNING,
            left: Meter::NEW,
            taken: Meter::NEW,
            throttled: None,
        }
    }

    /// Returns the time between two messages, if there is a limit.
    fn interval(&self) -> Option<Duration> {
        let observed = self.observed.map(|observed| observed.rate);
        let rate = observed.into_iter().chain(self.most).min_by(f64::total_cmp)?;
        // Rounded up: a little slower, and never faster.
        let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        Some(interval.saturating_add(Duration::from_nanos(1)))
    }

    /// Returns the time and text of the last throttling answer under these settings, if it is recent.
    fn throttled_lately(&self, provider: &Provider, now: Monotonic) -> Option<&(Monotonic, String)> {
        let throttled = self.throttled.as_ref().filter(|_| self.provider.is_same(provider));
        throttled.filter(|(at, _)| now.since(*at) < SHOWN)
    }

    fn is_needed(&self, now: Monotonic) -> bool {
        self.next > now || (self.observed.is_some() && now.since(self.left.began) < USED)
    }

    fn throttle(&mut self, began: Monotonic, now: Monotonic, words: &str) {
        self.throttled = Some((now, words.to_owned()));
        // Messages that were on their way at the old rate say nothing about the new one, and the account may count over
        // a whole second.
        if self.observed.is_some_and(|observed| began < observed.lowered + WINDOW) {
            return;
        }
        let taken = self.taken.per_second(now);
        let known = self.observed.map(|observed| observed.rate).into_iter().chain(self.most).min_by(f64::total_cmp);
        let rate = known.unwrap_or_else(|| self.left.per_second(now));
        let (half, good) = (rate / 2.0, (taken * GOOD).min(rate));
        let (lower, limit) = match known {
            _ if good > half => (good, taken.min(rate)),
            Some(_) => (half, rate),
            // A few messages in a while do not show where the limit lies.
            None => (half, HIGHEST),
        };
        self.observed = Some(ObservedRate { rate: lower.max(LOWEST), limit, lowered: now });
    }

    fn take(&mut self, now: Monotonic) {
        self.taken.count(now);
        // Only a rate that is fully used has proved not to be too high.
        let Some(observed) = self.observed.as_mut().filter(|_| self.next > now) else { return };
        let is_near = observed.rate > observed.limit * 0.9 && observed.rate < observed.limit * 1.1;
        observed.rate += if is_near { SMALL_STEP } else { STEP };
        if observed.rate >= self.most.unwrap_or(HIGHEST) {
            self.observed = None;
        }
    }
}

/// The `max_rate` in the settings of an account.
fn max_rate(provider: &Provider, name: Option<&str>) -> Option<f64> {
    let own = &provider.settings;
    let route = name.filter(|name| *name != provider.name);
    let setting = match route {
        Some(name) => own.get(ROUTES).and_then(|routes| routes.get(name)?.get(MAX_RATE)),
        None => own.get(MAX_RATE),
    };
    setting.and_then(Value::as_f64).filter(|rate| *rate > 0.0)
}

impl AccountRates {
    /// Returns the slot of a message that is about to be attempted; `None` if the account has no limit. The error is
    /// the time for which the message is put off, because its slot is too far away.
    pub(crate) fn admit(
        &self,
        account: Account,
        provider: &Provider,
        now: Monotonic,
    ) -> Result<Option<SendSlot>, Duration> {
        self.with(account, provider, now, |rate| {
            let Some(interval) = rate.interval() else { return Ok(None) };
            let begin = rate.next.max(now);
            if begin.since(now) > MAX_IN_PLACE {
                // Messages that are put off come back one by one.
                let back = begin.max(rate.promised);
                if back.since(now) < MAX_PUT_OFF {
                    rate.promised = back + interval;
                }
                return Err(back.since(now).min(MAX_PUT_OFF));
            }
            rate.next = begin + interval;
            Ok(Some(SendSlot(begin)))
        })
    }

    /// Decides whether a message that is ready to leave may do so now: `None` in its slot, and the slot to wait for if
    /// that has not come or is over. The error is the wait for another slot that is too far away.
    pub(crate) fn depart(
        &self,
        account: Account,
        provider: &Provider,
        slot: Option<SendSlot>,
        now: Monotonic,
    ) -> Result<Option<SendSlot>, Duration> {
        self.with(account, provider, now, |rate| {
            let interval = rate.interval();
            let slot = match (interval, slot.filter(|slot| now.since(slot.0) <= GRAIN)) {
                (None, _) => SendSlot(now),
                (_, Some(slot)) => slot,
                (Some(interval), None) => {
                    let begin = rate.next.max(now);
                    if begin.since(now) > MAX_IN_PLACE {
                        return Err(begin.since(now));
                    }
                    rate.next = begin + interval;
                    SendSlot(begin)
                }
            };
            if slot.0 > now {
                return Ok(Some(slot));
            }
            rate.left.count(now);
            Ok(None)
        })
    }

    /// Learns from the answers of an attempt, which began at a time, about its account.
    pub(crate) fn report(
        &self,
        account: Account,
        provider: &Provider,
        state: &AccountState,
        (began, now): (Monotonic, Monotonic),
    ) {
        match state {
            AccountState::Works => self.with(account, provider, now, |rate| rate.take(now)),
            AccountState::Rests(_, words) => {
                self.with(account, provider, now, |rate| rate.throttle(began, now, words));
            }
            AccountState::Unknown | AccountState::Stopped(_) => {}
        }
    }

    /// Returns true if messages over an account are put off under its current settings, because their slots are too far
    /// away.
    pub(crate) fn puts_off(&self, account: Account, provider: &Provider, now: Monotonic) -> bool {
        let rates = self.lock();
        let rate = rates.get(&account).filter(|rate| rate.provider.is_same(provider) && rate.interval().is_some());
        rate.is_some_and(|rate| rate.next.max(rate.promised).since(now) > MAX_IN_PLACE)
    }

    /// Returns the text with which an account recently throttled.
    pub(crate) fn words_of(&self, account: Account, provider: &Provider, now: Monotonic) -> Option<String> {
        let rates = self.lock();
        rates.get(&account)?.throttled_lately(provider, now).map(|(_, words)| words.clone())
    }

    /// Returns the text with which an account of a channel recently throttled.
    pub(crate) fn trouble(
        &self,
        (workspace, channel): (WorkspaceId, Channel),
        provider: &Provider,
        now: Monotonic,
    ) -> Option<String> {
        let rates = self.lock();
        let of_channel = rates.iter().filter(|(account, _)| account.is_of(workspace, channel));
        let found = of_channel.filter_map(|(_, rate)| rate.throttled_lately(provider, now));
        found.max().map(|(_, words)| words.clone())
    }

    /// Returns the accounts that have a limit, with the room for more messages of each.
    pub(crate) fn rooms(&self, now: Monotonic) -> Vec<(Account, Provider, Room)> {
        let room = |rate: &AccountRate| {
            let interval = rate.interval()?;
            let ahead = rate.next.since(now);
            Some(if ahead > AHEAD {
                // Early enough for the next.
                Room::NotBefore(now + (ahead - AHEAD))
            } else {
                let more = (AHEAD - ahead).as_nanos() / interval.as_nanos();
                Room::Left(usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1))
            })
        };
        let rates = self.lock();
        rates.iter().filter_map(|(account, rate)| Some((*account, rate.provider.clone(), room(rate)?))).collect()
    }

    /// Forgets the accounts of channels whose settings are new.
    pub(crate) fn forget(&self, channels: &[(WorkspaceId, Channel)]) {
        if !channels.is_empty() {
            let is_meant =
                |account: &Account| channels.iter().any(|(workspace, channel)| account.is_of(*workspace, *channel));
            self.lock().retain(|account, _| !is_meant(account));
        }
    }

    fn with<T>(
        &self,
        account: Account,
        provider: &Provider,
        now: Monotonic,
        change: impl FnOnce(&mut AccountRate) -> T,
    ) -> T {
        let mut rates = self.lock();
        if rates.len() >= REMEMBERED && !rates.contains_key(&account) {
            rates.retain(|_, rate| rate.is_needed(now));
        }
        let rate = rates.entry(account).or_insert_with(|| AccountRate::new(provider, account.name));
        if !rate.provider.is_same(provider) {
            *rate = AccountRate::new(provider, account.name);
        }
        change(rate)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, AccountRate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
