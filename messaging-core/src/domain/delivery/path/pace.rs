//! The rate of a path: a number of messages a minute, evenly spaced, with bursts of a tenth of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

const MINUTE_MILLIS: i64 = 60_000;

/// Time whose messages may be sent in one burst.
const BURST: Duration = Duration::from_secs(6);

/// Messages that a path sent lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pace {
    /// When all messages sent so far would have been sent at the rate of the path: the theoretical arrival time of the
    /// generic cell rate algorithm.
    due: Option<Timestamp>,
    /// Minutes since the epoch.
    minute: i64,
    sent: u32,
    sent_before: u32,
}

impl Pace {
    /// Returns the time at which the next message may begin, if it may not at once.
    pub(super) fn wait(self, rate: Option<u32>, now: Timestamp) -> Option<Timestamp> {
        let interval = interval(rate?);
        let burst = BURST.saturating_sub(interval);
        // A time far ahead is that of a slower rate, or of a clock that was set back.
        let due = self.due?.min(now + interval + burst) - burst;
        (due > now).then_some(due)
    }

    /// Counts a message.
    pub(super) fn count(&mut self, rate: Option<u32>, now: Timestamp) {
        self.turn(now);
        self.sent = self.sent.saturating_add(1);
        self.due = rate.map(|rate| {
            let interval = interval(rate);
            let latest = now + interval + BURST.saturating_sub(interval);
            self.due.map_or(now, |due| due.clamp(now, latest)) + interval
        });
    }

    /// Takes back a message that was counted.
    pub(super) fn uncount(&mut self, rate: Option<u32>) {
        self.sent = self.sent.saturating_sub(1);
        self.due = self.due.zip(rate).map(|(due, rate)| due - interval(rate));
    }

    /// Returns the messages a minute that the path sends: the larger of this minute and the one before.
    pub(super) fn measured(mut self, now: Timestamp) -> u32 {
        self.turn(now);
        self.sent.max(self.sent_before)
    }

    fn turn(&mut self, now: Timestamp) {
        let minute = now.as_millis().div_euclid(MINUTE_MILLIS);
        // A clock that was set back has nothing of the minutes to come.
        if minute != self.minute {
            self.sent_before = if minute <= self.minute + 1 { self.sent } else { 0 };
            (self.minute, self.sent) = (minute, 0);
        }
    }
}

pub(super) fn interval(rate: u32) -> Duration {
    Duration::from_millis(MINUTE_MILLIS.unsigned_abs() / u64::from(rate.max(1)))
}
