//! Buckets of time: quarters of an hour, in which messages are counted, and hours and days of a zone, which are shown.
//!
//! Zones are offset from UTC by whole quarters of an hour, so that the hours and days of each are sums of quarters.

use std::time::Duration;

use jiff::ToSpan;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

/// Seconds of a quarter of an hour.
const QUARTER: i64 = 900;

/// Seconds of an hour.
const HOUR: i64 = 3600;

/// The longest span of a series.
pub const MAX_SPAN: Duration = Duration::from_hours(366 * 24);

/// Span of a series if none is given.
pub const DEFAULT_SPAN: Duration = Duration::from_hours(30 * 24);

/// A quarter of an hour, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Quarter(pub i32);

impl Quarter {
    /// Returns the quarter that contains an instant; after the year 60,000 the last quarter.
    pub fn of(at: Timestamp) -> Self {
        Self(i32::try_from(at.as_seconds().div_euclid(QUARTER)).unwrap_or(i32::MAX))
    }

    /// Returns its first instant.
    pub fn start(self) -> Timestamp {
        Timestamp::from_millis(i64::from(self.0) * QUARTER * 1000)
    }
}

/// Length of the buckets of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SeriesInterval")]
pub enum Interval {
    /// Hours, beginning where the zone's offset puts them.
    Hour,
    /// Days.
    #[default]
    Day,
}

/// Adds the violations of a span: it begins after its end, or is longer than 366 days. An empty one is fine.
pub fn check_span(from: Timestamp, to: Timestamp, violations: &mut Violations) {
    if from > to || to.since(from) > MAX_SPAN {
        violations.add_parameter("from", FieldCode::OutOfRange, "must be before to, by at most 366 days");
    }
}

/// The buckets of a span, all of which are in a series. The first may begin before the span, the last end after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    starts: Vec<Timestamp>,
    quarters: (Quarter, Quarter),
}

impl Buckets {
    /// Returns the buckets from `from` to before `to` by the clock of a zone. A span that [`check_span`] refuses has
    /// none.
    pub fn new(from: Timestamp, to: Timestamp, interval: Interval, zone: &TimeZone) -> Self {
        let mut found = Self { starts: Vec::new(), quarters: (Quarter::of(from), Quarter::of(from)) };
        if from >= to || to.since(from) > MAX_SPAN {
            return found;
        }
        // The end is exclusive: a quarter that begins there is not included.
        let last = Quarter::of(to - Duration::from_millis(1));
        found.quarters.1 = Quarter(last.0.saturating_add(1));
        let mut start = bucket_start(from, interval, zone);
        while start < to {
            found.starts.push(start);
            start = next_start(start, interval, zone);
        }
        found
    }

    /// Returns the beginning of each bucket.
    pub fn starts(&self) -> &[Timestamp] {
        &self.starts
    }

    /// Returns the quarters that the span touches: from the first, to before the second.
    pub const fn quarters(&self) -> (Quarter, Quarter) {
        self.quarters
    }

    /// Returns the index of the bucket that contains a quarter; `None` outside of the span.
    pub fn place_of(&self, quarter: Quarter) -> Option<usize> {
        let is_within = quarter >= self.quarters.0 && quarter < self.quarters.1;
        let after = self.starts.partition_point(|start| *start <= quarter.start());
        // A bucket that begins within a quarter contains that quarter.
        (is_within && !self.starts.is_empty()).then(|| after.saturating_sub(1))
    }

    /// Sums quarters to buckets, in their order.
    pub fn sum<T: Default + std::ops::AddAssign>(&self, quarters: impl IntoIterator<Item = (Quarter, T)>) -> Vec<T> {
        let mut sums: Vec<T> = self.starts.iter().map(|_| T::default()).collect();
        for (quarter, counts) in quarters {
            if let Some(place) = self.place_of(quarter) {
                sums[place] += counts;
            }
        }
        sums
    }
}

/// Returns the beginning of the bucket that contains an instant.
fn bucket_start(at: Timestamp, interval: Interval, zone: &TimeZone) -> Timestamp {
    match interval {
        Interval::Hour => {
            let seconds = i64::from(zone.to_offset(at.to_jiff()).seconds());
            let start = at.as_seconds() - (at.as_seconds() + seconds).rem_euclid(HOUR);
            let start = Timestamp::from_millis(start * 1000);
            // Where the offset changes by half an hour, an hour of the clock begins with the change.
            let changed = zone.preceding(at.to_jiff() + 1.nanosecond()).next();
            changed.map_or(start, |change| start.max(change.timestamp().into()))
        }
        Interval::Day => {
            let today = at.to_jiff().to_zoned(zone.clone()).start_of_day();
            today.map_or(at, |today| today.timestamp().into())
        }
    }
}

/// Returns the beginning of the next bucket.
fn next_start(start: Timestamp, interval: Interval, zone: &TimeZone) -> Timestamp {
    match interval {
        Interval::Hour => {
            let seconds = i64::from(zone.to_offset(start.to_jiff()).seconds());
            let left = HOUR - (start.as_seconds() + seconds).rem_euclid(HOUR);
            let next = Timestamp::from_millis((start.as_seconds() + left) * 1000);
            let change = zone.following(start.to_jiff()).next().map(|change| Timestamp::from(change.timestamp()));
            // A change by whole hours leaves the hours where they are.
            change.filter(|change| *change < next).unwrap_or(next)
        }
        Interval::Day => {
            let tomorrow = start.to_jiff().to_zoned(zone.clone()).tomorrow();
            let tomorrow = tomorrow.and_then(|tomorrow| tomorrow.start_of_day());
            tomorrow.map_or(start + Duration::from_hours(24), |tomorrow| tomorrow.timestamp().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::zone;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn buckets(from: &str, to: &str, interval: Interval, name: &str) -> Buckets {
        Buckets::new(time(from), time(to), interval, &zone(name).unwrap().0)
    }

    #[track_caller]
    fn check(buckets: &Buckets, expected: &[&str]) {
        let starts: Vec<_> = buckets.starts().iter().map(ToString::to_string).collect();
        let expected: Vec<_> = expected.iter().map(|text| format!("{text}:00.000Z")).collect();
        assert_eq!(starts, expected);
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let three = buckets("2026-03-28T10:00:00Z", "2026-03-30T00:00:00Z", Interval::Day, "Europe/Berlin");
        check(&three, &["2026-03-27T23:00", "2026-03-28T23:00", "2026-03-29T22:00"]);
        // Midnight does not happen on the day of the change.
        let gap = buckets("2026-03-29T03:00:00Z", "2026-03-29T10:00:00Z", Interval::Day, "Asia/Beirut");
        check(&gap, &["2026-03-28T22:00"]);
        // A whole day is missing.
        let leap = buckets("2011-12-30T09:00:00Z", "2011-12-31T11:00:00Z", Interval::Day, "Pacific/Apia");
        check(&leap, &["2011-12-29T10:00", "2011-12-30T10:00", "2011-12-31T10:00"]);
        check(&buckets("2026-05-01T00:00:00Z", "2026-05-01T00:00:00Z", Interval::Day, "UTC"), &[]);
    }

    #[test]
    fn hours_begin_where_the_offset_puts_them() {
        let kathmandu = buckets("2026-05-01T00:00:00Z", "2026-05-01T02:15:00Z", Interval::Hour, "Asia/Kathmandu");
        check(&kathmandu, &["2026-04-30T23:15", "2026-05-01T00:15", "2026-05-01T01:15"]);
        // The hour that comes twice is two.
        let fold = buckets("2026-10-25T00:00:00Z", "2026-10-25T02:00:01Z", Interval::Hour, "Europe/Berlin");
        check(&fold, &["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"]);
        // Half an hour back: the clock shows half of an hour again.
        let half = buckets("2026-04-04T14:10:00Z", "2026-04-04T16:00:00Z", Interval::Hour, "Australia/Lord_Howe");
        check(&half, &["2026-04-04T14:00", "2026-04-04T15:00", "2026-04-04T15:30"]);
        // Half an hour forward: the hour of the clock has only its second half.
        let rest = buckets("2026-10-03T15:40:00Z", "2026-10-03T16:30:00Z", Interval::Hour, "Australia/Lord_Howe");
        check(&rest, &["2026-10-03T15:30", "2026-10-03T16:00"]);
        // The change comes in the middle of an hour.
        let middle = buckets("2018-05-04T14:30:00Z", "2018-05-04T16:10:00Z", Interval::Hour, "Asia/Pyongyang");
        check(&middle, &["2018-05-04T14:30", "2018-05-04T15:00", "2018-05-04T16:00"]);
    }

    #[test]
    fn every_quarter_of_the_span_has_one_bucket() {
        for name in
            ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns"]
        {
            for interval in [Interval::Hour, Interval::Day] {
                for (from, to) in [
                    ("2026-03-20T00:00:00Z", "2026-04-10T00:00:00Z"),
                    ("2026-10-01T12:34:56Z", "2026-11-05T01:02:03.004Z"),
                    ("2011-12-25T00:00:00Z", "2012-01-02T00:00:00Z"),
                ] {
                    let buckets = buckets(from, to, interval, name);
                    let starts = buckets.starts();
                    assert!(starts.is_sorted_by(|one, next| one < next), "{name} {interval:?}");
                    assert!(starts[0] <= time(from) && starts.last().is_some_and(|last| *last < time(to)));
                    let (first, end) = buckets.quarters();
                    assert_eq!(
                        (first, Quarter(end.0 - 1)),
                        (Quarter::of(time(from)), Quarter::of(time(to) - Duration::from_millis(1)))
                    );
                    let all: Vec<_> = (first.0..end.0).map(|quarter| (Quarter(quarter), 1_u32)).collect();
                    let sums = buckets.sum(all.clone());
                    assert_eq!(sums.iter().sum::<u32>() as usize, all.len());
                    assert!(sums.iter().all(|sum| *sum > 0), "{name} {interval:?} {sums:?}");
                    assert_eq!(buckets.place_of(Quarter(first.0 - 1)), None);
                    assert_eq!(buckets.place_of(end), None);
                    for (place, start) in starts.iter().enumerate().skip(1) {
                        assert_eq!(buckets.place_of(Quarter::of(*start)), Some(place));
                    }
                }
            }
        }
    }

    #[test]
    fn spans_have_an_end() {
        let faults = |from: &str, to: &str| {
            let mut violations = Violations::new();
            check_span(time(from), time(to), &mut violations);
            violations.as_slice().len()
        };
        assert_eq!(faults("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), 0);
        assert_eq!(faults("2026-01-01T00:00:00Z", "2027-01-02T00:00:00Z"), 0);
        assert_eq!(faults("2026-01-01T00:00:00Z", "2027-01-02T00:00:00.001Z"), 1);
        assert_eq!(faults("2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00Z"), 1);
        check(&buckets("2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", Interval::Hour, "UTC"), &[]);
    }

    #[test]
    fn quarters_have_a_start() {
        let at = time("2026-05-01T10:29:59.999Z");
        assert_eq!(Quarter::of(at).start(), time("2026-05-01T10:15:00Z"));
        assert_eq!(Quarter::of(Timestamp::from_millis(-1)), Quarter(-1));
    }
}
