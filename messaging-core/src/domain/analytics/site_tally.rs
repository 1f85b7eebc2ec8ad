//! Counters of email by site: how the operators of recipients' mailboxes handled it.
//!
//! Recipients are counted, not messages: a site judges each copy. Counts follow events, in the commit of the event, and
//! are sums, so that they conflict with nothing. The times of deliveries are kept as a histogram of fixed buckets,
//! which has a median.

use std::ops::AddAssign;
use std::time::Duration;

use serde_json::{Map, Value};

use super::tally::rate;
use crate::domain::message::EventKind;

/// A counter of the mail to a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteCounter {
    /// Recipients with a first attempt at the site.
    Accepted,
    /// Recipients whose message arrived, and did not come back.
    Delivered,
    /// Attempts that the site put off.
    Deferred,
    /// Recipients who cannot be reached, at once or by mail that came back.
    BouncedHard,
    /// Recipients who were refused for another reason.
    BouncedSoft,
    /// Complaints.
    Complaints,
    /// Messages that people opened.
    OpenedHuman,
    /// Messages that the site accepted over TLS.
    OverTls,
}

/// Counters before the buckets of times.
const COUNTERS: usize = 8;

/// Upper bounds of the buckets of times, in seconds; one more bucket follows.
const BOUNDS: [u64; 11] = [1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400];

/// Upper bound that the last bucket is assumed to have, in seconds: the default lifetime of a message.
const LAST_BOUND: u64 = 259_200;

/// Number of counters and buckets of a site.
const NUMBERS: usize = COUNTERS + BOUNDS.len() + 1;

/// A number for each counter and each bucket of times: values, or changes of values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCounts([i64; NUMBERS]);

impl SiteCounts {
    /// Names of the numbers, in their order; the names of buckets contain the upper bound in seconds.
    pub const NAMES: [&str; NUMBERS] = [
        "accepted",
        "delivered",
        "deferred",
        "bounced_hard",
        "bounced_soft",
        "complaints",
        "opened_human",
        "over_tls",
        "within_1",
        "within_2",
        "within_5",
        "within_10",
        "within_30",
        "within_60",
        "within_300",
        "within_900",
        "within_3600",
        "within_14400",
        "within_86400",
        "later",
    ];

    /// Returns counts of these numbers, in the order of [`Self::NAMES`]; further ones are left out.
    pub fn from_numbers(numbers: impl IntoIterator<Item = i64>) -> Self {
        let mut counts = Self::default();
        for (mine, number) in counts.0.iter_mut().zip(numbers) {
            *mine = number;
        }
        counts
    }

    /// Returns the numbers, in the order of [`Self::NAMES`].
    pub const fn numbers(&self) -> &[i64] {
        &self.0
    }

    /// Adds to a counter.
    pub const fn count(&mut self, counter: SiteCounter, number: i64) {
        self.0[counter as usize] += number;
    }

    /// Returns the number of a counter; 0 if it is negative, which only a change may be.
    pub fn total(&self, counter: SiteCounter) -> u64 {
        positive(self.0[counter as usize])
    }

    /// Counts a message that the site accepted this long after the server accepted it, or after it was to be sent.
    pub fn count_taken(&mut self, after: Duration) {
        // A begun second counts as a whole one.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.0[COUNTERS + BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
    }

    /// Returns the messages that the site accepted, including those that came back later.
    pub fn taken(&self) -> u64 {
        self.times().sum()
    }

    /// Returns the part of the accepted messages that came over TLS, rounded to 4 decimals; `None` if there are none.
    pub fn tls_share(&self) -> Option<f64> {
        let taken = self.taken();
        (taken > 0).then(|| rate(self.total(SiteCounter::OverTls).min(taken), taken))
    }

    /// Returns the median of the time to delivery in seconds, as precisely as the buckets allow; `None` if there are
    /// none.
    pub fn median_seconds(&self) -> Option<u64> {
        let taken = self.taken();
        let half = taken.div_ceil(2);
        let (mut below, mut lower) = (0, 0);
        for (number, upper) in self.times().zip(BOUNDS.into_iter().chain([LAST_BOUND])) {
            if number > 0 && below + number >= half {
                // As if the messages of a bucket were spread over it evenly.
                return Some(lower + ((upper - lower) * (half - below)).div_ceil(number));
            }
            (below, lower) = (below + number, upper);
        }
        None
    }

    /// True if all numbers are zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|number| *number == 0)
    }

    fn times(&self) -> impl Iterator<Item = u64> + '_ {
        self.0[COUNTERS..].iter().copied().map(positive)
    }
}

impl AddAssign for SiteCounts {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns the counter of an event about one recipient of an email; `None` if it concerns no site.
pub fn counter_of(kind: EventKind, meta: &Map<String, Value>) -> Option<SiteCounter> {
    match kind {
        EventKind::Delivered => Some(SiteCounter::Delivered),
        EventKind::Deferred => Some(SiteCounter::Deferred),
        EventKind::Bounce if meta.get("bounce_type").and_then(Value::as_str) == Some("hard") => {
            Some(SiteCounter::BouncedHard)
        }
        EventKind::Bounce => Some(SiteCounter::BouncedSoft),
        EventKind::Complaint => Some(SiteCounter::Complaints),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_median_is_found_in_its_bucket() {
        #[track_caller]
        fn check(seconds: &[u64], expected: Option<u64>) {
            let mut counts = SiteCounts::default();
            for after in seconds {
                counts.count_taken(Duration::from_secs(*after));
            }
            assert_eq!(counts.median_seconds(), expected, "{seconds:?}");
            assert_eq!(counts.taken(), seconds.len() as u64);
        }
        check(&[], None);
        check(&[0], Some(1));
        check(&[1, 1, 1], Some(1));
        check(&[3], Some(5));
        check(&[1, 3, 200], Some(5));
        check(&[20, 20, 20, 20], Some(20));
        check(&[1, 400, 400, 400], Some(500));
        check(&[100_000], Some(LAST_BOUND));
        check(&[u64::MAX - 1], Some(LAST_BOUND));
    }

    #[test]
    fn a_part_of_a_second_is_one() {
        let mut counts = SiteCounts::default();
        counts.count_taken(Duration::from_millis(1001));
        assert_eq!(counts.numbers()[COUNTERS..=COUNTERS + 1], [0, 1]);
    }

    #[test]
    fn numbers_come_back_in_their_order() {
        let counts = SiteCounts::from_numbers(1..=20);
        assert_eq!(counts.numbers().len(), SiteCounts::NAMES.len());
        assert_eq!(SiteCounts::from_numbers(counts.numbers().iter().copied()), counts);
        assert_eq!((counts.total(SiteCounter::Accepted), counts.total(SiteCounter::OverTls)), (1, 8));
        for (name, bound) in SiteCounts::NAMES[COUNTERS..].iter().zip(BOUNDS) {
            assert_eq!(*name, format!("within_{bound}"));
        }
        let mut sum = counts;
        sum += SiteCounts::from_numbers([-1]);
        assert_eq!(sum.total(SiteCounter::Accepted), 0);
        sum += SiteCounts::from_numbers([-1]);
        assert_eq!(sum.total(SiteCounter::Accepted), 0, "what is counted is never less than nothing");
    }

    #[test]
    fn shares_are_of_what_the_site_took() {
        let mut counts = SiteCounts::default();
        assert_eq!(counts.tls_share(), None);
        for _ in 0..3 {
            counts.count_taken(Duration::ZERO);
        }
        counts.count(SiteCounter::OverTls, 2);
        assert_eq!(counts.tls_share(), Some(0.6667));
    }

    #[test]
    fn events_are_counted_by_what_they_say_of_the_site() {
        #[track_caller]
        fn check(kind: EventKind, meta: Value, expected: Option<SiteCounter>) {
            let Value::Object(meta) = meta else { unreachable!() };
            assert_eq!(counter_of(kind, &meta), expected, "{kind:?} {meta:?}");
        }
        check(EventKind::Delivered, json!({"mx": "mx.example.org"}), Some(SiteCounter::Delivered));
        check(EventKind::Deferred, json!({}), Some(SiteCounter::Deferred));
        check(EventKind::Bounce, json!({"bounce_type": "hard"}), Some(SiteCounter::BouncedHard));
        check(EventKind::Bounce, json!({"bounce_type": "soft"}), Some(SiteCounter::BouncedSoft));
        check(EventKind::Complaint, json!({}), Some(SiteCounter::Complaints));
        check(EventKind::Sent, json!({}), None);
        check(EventKind::Suppressed, json!({}), None);
    }
}
