//! Counters of messages that always equal the sum over the rows.
//!
//! [`tally`] returns the counters to which one message contributes, by its status and its opens, clicks and other
//! engagement. A commit that changes a message also adds `tally(after) - tally(before)` to the counters. The revision
//! that guards the row guards the count too, so a counter equals the sum over all rows at any moment, and a recount
//! gives the same. Only repeated opens and clicks are counted by event ([`of_event`]). For series over time,
//! [`activity`] assigns changes to quarters of an hour; [`buckets`] sums quarters to hours and days of any zone.

pub mod buckets;

use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Serialize};

use self::buckets::Quarter;
use crate::domain::delivery::recipient_time::SuppressCause;
use crate::domain::message::milestones::{EngagementFlags, Milestones, Skip};
use crate::domain::message::{EventKind, Message, MessageStatus};
use crate::time::Timestamp;

/// Facts of one message that decide in which counters it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its status.
    pub status: MessageStatus,
    /// Set of what was seen of the message: opens, clicks, a complaint, an unsubscribe.
    pub seen: EngagementFlags,
    /// Reason for which it was suppressed; `None` if it was not.
    pub skip: Option<Skip>,
    /// Time at which it first counted as sent.
    pub sent_at: Option<Timestamp>,
    /// Time at which it was delivered.
    pub delivered_at: Option<Timestamp>,
}

impl From<&Message> for Row {
    fn from(message: &Message) -> Self {
        let Milestones { seen, skip, sent_at, delivered_at, links: _ } = message.milestones;
        Self { status: message.status, seen, skip, sent_at, delivered_at }
    }
}

impl From<SuppressCause> for Skip {
    fn from(cause: SuppressCause) -> Self {
        match cause {
            SuppressCause::Listed(_) => Self::Suppressed,
            SuppressCause::NoConsent => Self::NoConsent,
            SuppressCause::FrequencyCap => Self::FrequencyCap,
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A counter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counter {
            $($(#[$doc])* $name,)*
        }

        impl Counter {
            /// All of them, in the order of their places in [`Counts`].
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

counters! {
    /// Messages whose first attempt has not begun.
    Waiting = "waiting";
    /// Messages with an attempt under way.
    Sending = "sending";
    /// Messages that are tried again.
    Deferred = "deferred";
    /// Messages that were handed to the channel, whatever became of them.
    Sent = "sent";
    /// Messages that arrived, and did not come back.
    Delivered = "delivered";
    /// Messages that were refused or came back.
    Bounces = "bounces";
    /// Messages that were complained of.
    Complaints = "complaints";
    /// Messages that could not be sent.
    Failed = "failed";
    /// Messages that were withdrawn.
    Cancelled = "cancelled";
    /// Messages to addresses that turned out to be suppressed.
    SkippedSuppressed = "skipped_suppressed";
    /// Messages to contacts who no longer agreed.
    SkippedNoConsent = "skipped_no_consent";
    /// Messages beyond the frequency cap.
    SkippedFrequencyCap = "skipped_frequency_cap";
    /// Messages that people opened.
    UniqueOpens = "unique_opens";
    /// Messages of which people followed a link.
    UniqueClicks = "unique_clicks";
    /// Messages by which people unsubscribed.
    Unsubscribes = "unsubscribes";
    /// Messages that machines opened.
    UniqueMachineOpens = "unique_machine_opens";
    /// Times that people opened a message.
    Opens = "opens";
    /// Times that people followed a link.
    Clicks = "clicks";
    /// Times that machines opened a message.
    MachineOpens = "machine_opens";
}

impl Counter {
    /// True if the counter is part of series over time.
    pub const fn is_in_series(self) -> bool {
        matches!(
            self,
            Self::Sent
                | Self::Delivered
                | Self::Bounces
                | Self::Complaints
                | Self::Opens
                | Self::UniqueOpens
                | Self::Clicks
                | Self::UniqueClicks
                | Self::Unsubscribes
        )
    }
}

/// A number for each counter: values, or changes of values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts([i64; Counter::ALL.len()]);

impl Counts {
    /// Returns the number of a counter.
    pub const fn get(&self, counter: Counter) -> i64 {
        self.0[counter as usize]
    }

    /// Returns the value of a counter; 0 if the number is negative, which only a change may be.
    pub fn total(&self, counter: Counter) -> u64 {
        u64::try_from(self.get(counter)).unwrap_or(0)
    }

    /// Adds to a counter.
    pub const fn count(&mut self, counter: Counter, number: i64) {
        self.0[counter as usize] += number;
    }

    /// True if all numbers are zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|number| *number == 0)
    }

    /// Returns the counters that are not zero, each with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, i64)> + '_ {
        Counter::ALL.into_iter().zip(self.0).filter(|(_, number)| *number != 0)
    }

    /// Returns the number of messages: the sum of the counters of which each message is in exactly one.
    pub fn messages(&self) -> u64 {
        [
            Counter::Waiting,
            Counter::Sending,
            Counter::Deferred,
            Counter::Sent,
            Counter::Failed,
            Counter::Cancelled,
            Counter::SkippedSuppressed,
            Counter::SkippedNoConsent,
            Counter::SkippedFrequencyCap,
        ]
        .into_iter()
        .map(|counter| self.total(counter))
        .sum()
    }
}

impl FromIterator<(Counter, i64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (Counter, i64)>>(numbers: I) -> Self {
        let mut counts = Self::default();
        for (counter, number) in numbers {
            counts.count(counter, number);
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

impl Add for Counts {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Neg for Counts {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.map(|number| -number))
    }
}

impl Sub for Counts {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Returns the counters to which one message contributes.
pub fn tally(row: &Row) -> Counts {
    let by_status: &[Counter] = match row.status {
        MessageStatus::Queued => &[Counter::Waiting],
        MessageStatus::Sending => &[Counter::Sending],
        MessageStatus::Deferred => &[Counter::Deferred],
        MessageStatus::Sent => &[Counter::Sent],
        MessageStatus::Delivered | MessageStatus::Complained => &[Counter::Sent, Counter::Delivered],
        MessageStatus::Bounced => &[Counter::Sent, Counter::Bounces],
        MessageStatus::Failed => &[Counter::Failed],
        MessageStatus::Cancelled => &[Counter::Cancelled],
        MessageStatus::Suppressed => match row.skip {
            None | Some(Skip::Suppressed) => &[Counter::SkippedSuppressed],
            Some(Skip::NoConsent) => &[Counter::SkippedNoConsent],
            Some(Skip::FrequencyCap) => &[Counter::SkippedFrequencyCap],
        },
    };
    let has_complained = row.status == MessageStatus::Complained || row.seen.has(EngagementFlags::COMPLAINED);
    let by_seen = [
        (Counter::Complaints, has_complained),
        (Counter::UniqueOpens, row.seen.has(EngagementFlags::OPENED)),
        (Counter::UniqueClicks, row.seen.has(EngagementFlags::CLICKED)),
        (Counter::Unsubscribes, row.seen.has(EngagementFlags::UNSUBSCRIBED)),
        (Counter::UniqueMachineOpens, row.seen.has(EngagementFlags::MACHINE_OPENED)),
    ];
    let seen = by_seen.into_iter().filter(|(_, is_seen)| *is_seen).map(|(counter, _)| counter);
    by_status.iter().copied().chain(seen).map(|counter| (counter, 1)).collect()
}

/// Returns the change of the counters that a change of a message causes.
pub fn change(before: &Row, after: &Row) -> Counts {
    tally(after) - tally(before)
}

/// Returns the counters that an event adds to each time that it happens.
pub fn of_event(kind: EventKind, is_machine: bool) -> Counts {
    let counter = match (kind, is_machine) {
        (EventKind::Open, false) => Some(Counter::Opens),
        (EventKind::Open, true) => Some(Counter::MachineOpens),
        (EventKind::Click, false) => Some(Counter::Clicks),
        _ => None,
    };
    counter.map(|counter| (counter, 1)).into_iter().collect()
}

/// Returns the changes of series over time, by quarter of an hour. An increase is counted `at` the time of the event,
/// and a decrease in the quarter in which it had been counted, so that a series sums to its total. `counts` is the
/// total change.
pub fn activity(before: &Row, counts: Counts, at: Timestamp) -> Vec<(Quarter, Counts)> {
    let mut found: Vec<(Quarter, Counts)> = Vec::new();
    for (counter, number) in counts.iter().filter(|(counter, _)| counter.is_in_series()) {
        let counted = match counter {
            Counter::Sent => before.sent_at,
            Counter::Delivered => before.delivered_at,
            // No other counter decreases.
            _ => None,
        };
        let quarter = Quarter::of(counted.filter(|_| number < 0).unwrap_or(at));
        match found.iter_mut().find(|(known, _)| *known == quarter) {
            Some((_, counts)) => counts.count(counter, number),
            None => found.push((quarter, [(counter, number)].into_iter().collect())),
        }
    }
    found
}

/// Returns `part` divided by `whole`, rounded half up to 4 decimals; 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "a few thousand at most, unless parts are many times the whole")]
pub fn rate(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    ((part * 20_000 + whole) / (2 * whole)) as f64 / 10_000.0
}

#[cfg(test)]
mod tests;
