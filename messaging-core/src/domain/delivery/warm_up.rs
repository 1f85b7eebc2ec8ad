//! Warm-up: the number of messages a path may send on a day while a site does not know the source yet.
//!
//! A level allows 50 × 1.4ⁿ messages a day, for large sites a multiple of it, and at most an eighth of that in one
//! hour. A fifth of each day is kept for transactional mail, which waits for neither hours nor gaps. A healthy day of
//! which half was used is a step up. Days are those of UTC.

pub mod campaign;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Allowance at level 0, in messages a day, to a site that no rule names.
pub const FIRST_DAY: u32 = 50;

/// Allowance at which the warm-up is done, in messages a day.
pub const WARM_ALLOWANCE: u32 = 100_000;

/// Days with mail, none of which needed all that it was allowed, after which the warm-up is done.
pub const QUIET_DAYS: u8 = 14;

/// Time without mail after which a site has forgotten a source.
pub const FORGOTTEN_AFTER: Duration = Duration::from_hours(24 * 30);

/// Divisor of a day's allowance for the part that may be used in one hour.
const HOURS: u32 = 8;

/// Divisor of an allowance for the part that only transactional mail may use.
const RESERVE: u32 = 5;

/// Maximum level, which no path reaches: its allowance is beyond all that is sent.
const MAX_LEVEL: u16 = 40;

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;

/// Returns the messages a day that a level allows, at a site that takes `factor` times the allowance of an unknown one.
pub fn allowance(level: u16, factor: u32) -> u32 {
    let mut millionths = u64::from(FIRST_DAY) * 1_000_000;
    for _ in 0..level.min(MAX_LEVEL) {
        millionths = millionths * 7 / 5;
    }
    let messages = (millionths * u64::from(factor.clamp(1, 1000)) + 500_000) / 1_000_000;
    u32::try_from(messages).unwrap_or(u32::MAX)
}

/// Progress of the warm-up of a path, with the messages sent today.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WarmUp {
    stage: Stage,
    level: u16,
    /// Days since the epoch.
    day: i64,
    sent: u32,
    /// Hours since the epoch.
    hour: i64,
    sent_in_hour: u32,
    /// True once an hour or the day had all messages that it may have: perhaps more were wanted.
    is_pressed: bool,
    /// True if the site or its readers complained today.
    is_spoiled: bool,
    quiet_days: u8,
    last_used: Option<Timestamp>,
}

/// State of a warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A level bounds each day.
    #[default]
    Warming,
    /// Days are not bounded, until the site has forgotten the source.
    Warm,
    /// Days are not bounded, because the operator says that the site knows the source.
    Known,
}

impl WarmUp {
    /// Returns the warm-up of a path whose source the operator says is warm.
    pub fn known() -> Self {
        Self { stage: Stage::Known, ..Self::default() }
    }

    /// Returns the state of the warm-up.
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns the level, from 0.
    pub const fn level(&self) -> u16 {
        self.level
    }

    /// Returns the time of the latest message.
    pub const fn last_used(&self) -> Option<Timestamp> {
        self.last_used
    }

    /// Returns true while a level bounds each day.
    pub fn is_warming(&self) -> bool {
        self.stage == Stage::Warming
    }

    /// Returns the number of messages sent on the day of the latest change.
    pub const fn sent_today(&self) -> u32 {
        self.sent
    }

    /// Returns the number of messages that the day may have; `None` when it is not bounded.
    pub fn allowed_today(&self, factor: u32) -> Option<u32> {
        self.is_warming().then(|| allowance(self.level, factor))
    }

    /// Returns the warm-up at a later time: past days are judged, and a new day has no messages. A path that is braked
    /// does not step up. A clock that was set back ends no day; messages counted while it was ahead by days count for
    /// today.
    pub fn at(mut self, now: Timestamp, factor: u32, is_braked: bool) -> Self {
        let (day, hour) = (now.as_millis().div_euclid(DAY_MILLIS), now.as_millis().div_euclid(HOUR_MILLIS));
        self.come_back(now, day, hour);
        if self.last_used.is_some_and(|last| now.since(last) >= FORGOTTEN_AFTER) && self.stage != Stage::Known {
            return Self { day, hour, last_used: self.last_used, ..Self::default() };
        }
        if day > self.day {
            self.end_day(factor, is_braked);
            (self.day, self.sent) = (day, 0);
            (self.is_pressed, self.is_spoiled) = (false, false);
        }
        if hour > self.hour {
            (self.hour, self.sent_in_hour) = (hour, 0);
        }
        self
    }

    /// Returns from future days and hours, which a clock that was ahead has begun: otherwise nothing would be sent
    /// until then. For the next midnight or hour the path can wait.
    fn come_back(&mut self, now: Timestamp, day: i64, hour: i64) {
        if self.day > day + 1 {
            self.day = day;
        }
        if self.hour > hour + 1 {
            self.hour = hour;
        }
        let latest = now + Duration::from_millis(DAY_MILLIS.unsigned_abs());
        self.last_used = self.last_used.map(|last| if last > latest { now } else { last });
    }

    fn end_day(&mut self, factor: u32, is_braked: bool) {
        let Some(allowed) = self.allowed_today(factor) else { return };
        if self.sent == 0 {
            return;
        }
        let is_quiet = self.sent < allowed && !self.is_pressed;
        self.quiet_days = if is_quiet { self.quiet_days.saturating_add(1) } else { 0 };
        if self.sent >= allowed.div_ceil(2) && !self.is_spoiled && !is_braked {
            self.level = (self.level + 1).min(MAX_LEVEL);
        }
        if allowance(self.level, factor) >= WARM_ALLOWANCE || self.quiet_days >= QUIET_DAYS {
            self.stage = Stage::Warm;
        }
    }

    /// Returns the time at which a message may be sent, if it may not at once. The state must be that at `now`
    /// ([`at`](Self::at)).
    pub fn wait(&self, now: Timestamp, factor: u32, is_transactional: bool) -> Option<Timestamp> {
        let allowed = self.allowed_today(factor)?;
        let for_all = if is_transactional { allowed } else { allowed - allowed / RESERVE };
        if self.sent >= for_all {
            return Some(Timestamp::from_millis((self.day + 1) * DAY_MILLIS));
        }
        if is_transactional {
            return None;
        }
        if self.sent_in_hour >= hourly(allowed) {
            return Some(Timestamp::from_millis((self.hour + 1) * HOUR_MILLIS));
        }
        self.last_used.map(|last| last + gap(allowed)).filter(|next| *next > now && *next <= now + gap(allowed))
    }

    /// Returns the thousandths of the day's allowance that marketing mail may still use; 1000 when days are not
    /// bounded.
    pub fn left(&self, factor: u32) -> u32 {
        let Some(allowed) = self.allowed_today(factor) else { return 1000 };
        let left = (allowed - allowed / RESERVE).saturating_sub(self.sent);
        let thousandths = u64::from(left) * 1000 / u64::from(allowed.max(1));
        u32::try_from(thousandths).unwrap_or(1000)
    }

    /// Counts a message. The state must be that at `now`.
    pub fn count(&mut self, now: Timestamp, factor: u32) {
        self.sent = self.sent.saturating_add(1);
        self.sent_in_hour = self.sent_in_hour.saturating_add(1);
        self.last_used = self.last_used.max(Some(now));
        if let Some(allowed) = self.allowed_today(factor) {
            self.is_pressed |= self.sent_in_hour >= hourly(allowed) || self.sent >= allowed - allowed / RESERVE;
        }
    }

    /// Takes back a message that was counted and did not leave.
    pub fn uncount(&mut self) {
        self.sent = self.sent.saturating_sub(1);
        self.sent_in_hour = self.sent_in_hour.saturating_sub(1);
    }

    /// Returns the time between two messages of marketing mail; `None` when days are not bounded.
    pub fn spacing(&self, factor: u32) -> Option<Duration> {
        self.allowed_today(factor).map(gap)
    }

    /// Sets whether the site knows the source. Level and counts stay as they are.
    pub fn set_known(&mut self, is_known: bool) {
        self.stage = if is_known { Stage::Known } else { Stage::Warming };
    }

    /// Records that the site or its readers complained: today is no step up.
    pub fn spoil(&mut self) {
        self.is_spoiled = true;
    }
}

/// Returns the number of messages in one hour, of marketing and transactional mail together, after which marketing mail
/// waits.
fn hourly(allowed: u32) -> u32 {
    allowed.div_ceil(HOURS)
}

/// Returns the time between two messages of marketing mail: an hour's share is spread over half an hour.
fn gap(allowed: u32) -> Duration {
    Duration::from_millis(HOUR_MILLIS.unsigned_abs() / 2 / u64::from(hourly(allowed).max(1)))
}
