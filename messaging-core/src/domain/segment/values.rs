//! Meaning of values in a filter: texts without case, dates in a time zone, lengths of time.
//!
//! Every evaluation of a filter uses these functions, in memory as well as inside a database, so that all agree. Dates
//! become ranges of milliseconds, because those can be compared without time zones. Rules where the contract leaves a
//! choice:
//!
//! * A day without a time starts at the beginning of the day in the workspace's time zone, and lasts 23, 24 or 25
//!   hours.
//! * Minutes and hours are exact; days, weeks and months are counted on the zone's calendar, at the same time of day. A
//!   month before 31 March is the last day of February.
//! * A birthday on 29 February is on 28 February in other years.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::filter::{DateTest, Span, SpanUnit, When, Within};
use crate::time::Timestamp;

/// Present time and time zone in which a filter is evaluated.
#[derive(Debug, Clone)]
pub struct Present {
    /// The present.
    pub now: Timestamp,
    /// The workspace's time zone.
    pub zone: TimeZone,
}

/// Moments in milliseconds since the Unix epoch.
pub type Moments = RangeInclusive<i64>;

/// Returns the text in lower case, letter by letter: the result for a letter does not depend on its neighbors, so that
/// a part of a text stays a part of it.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        Cow::Borrowed(text)
    } else if text.is_ascii() {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
    }
}

/// Reads a date: RFC 3339 with an offset, or YYYY-MM-DD.
pub fn read_when(text: &str) -> Option<When> {
    let bytes = text.as_bytes();
    let day = bytes.first_chunk::<10>()?;
    let is_day = day.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if !is_day {
        return None;
    }
    match bytes.get(10) {
        None => text.parse().ok().map(When::Day),
        // The library also accepts offsets and annotations that RFC 3339 does not.
        Some(b'T' | b't' | b' ') if !text.ends_with(']') => text.parse().ok().map(When::Moment),
        Some(_) => None,
    }
}

impl When {
    /// Returns its first moment, in milliseconds since the Unix epoch.
    pub fn first(self, zone: &TimeZone) -> i64 {
        match self {
            Self::Moment(moment) => moment.as_millis(),
            Self::Day(day) => midnight(day, zone),
        }
    }

    /// Returns its last moment, in milliseconds since the Unix epoch.
    pub fn last(self, zone: &TimeZone) -> i64 {
        match self {
            Self::Moment(moment) => moment.as_millis(),
            Self::Day(day) => day.tomorrow().map_or(i64::MAX, |next| midnight(next, zone) - 1),
        }
    }

    /// Returns the day that contains it.
    pub fn day(self, zone: &TimeZone) -> Date {
        match self {
            Self::Moment(moment) => day_of(moment, zone),
            Self::Day(day) => day,
        }
    }
}

/// Dates that pass a test, independent of the present and the time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dates {
    /// Dates whose first moment is in this range.
    Moments(Moments),
    /// Dates whose month and day are the first pair, or the other one, in any year.
    Anniversary((i8, i8), Option<(i8, i8)>),
}

impl Dates {
    /// Returns the dates that pass a test at the time `now` in a zone.
    pub fn of(test: DateTest, now: Timestamp, zone: &TimeZone) -> Self {
        let present = now.as_millis();
        Self::Moments(match test {
            DateTest::Before(when) => before(when, zone),
            DateTest::After(when) => after(when, zone),
            DateTest::On(when) => between(When::Day(when.day(zone)), When::Day(when.day(zone)), zone),
            DateTest::Between(first, last) => between(first, last, zone),
            DateTest::Last(span) => earlier(now, span, zone)..=present,
            DateTest::Next(span) => present..=later(now, span, zone),
            DateTest::OlderThan(span) => i64::MIN..=earlier(now, span, zone).saturating_sub(1),
            DateTest::Anniversary(offset) => return anniversary(day_of(now, zone), offset),
        })
    }

    /// True if the date is one of these.
    pub fn contain(&self, when: When, zone: &TimeZone) -> bool {
        match self {
            Self::Moments(moments) => moments.contains(&when.first(zone)),
            Self::Anniversary(day, other) => {
                let when = when.day(zone);
                let when = (when.month(), when.day());
                when == *day || Some(when) == *other
            }
        }
    }
}

impl Within {
    /// Returns the moments that it spans at a time. `SinceEntry` without an entry spans none.
    #[expect(clippy::reversed_empty_ranges, reason = "there is no moment in it")]
    pub fn moments(self, now: Timestamp, zone: &TimeZone) -> Moments {
        match self {
            Self::Last(span) => earlier(now, span, zone)..=now.as_millis(),
            Self::After(when) => after(when, zone),
            Self::Before(when) => before(when, zone),
            Self::Between(first, last) => between(first, last, zone),
            Self::SinceEntry => i64::MAX..=i64::MIN,
        }
    }
}

fn before(when: When, zone: &TimeZone) -> Moments {
    i64::MIN..=when.first(zone).saturating_sub(1)
}

fn after(when: When, zone: &TimeZone) -> Moments {
    when.last(zone).saturating_add(1)..=i64::MAX
}

fn between(first: When, last: When, zone: &TimeZone) -> Moments {
    first.first(zone)..=last.last(zone)
}

/// Returns the first moment of a day. A day that the clocks skip begins with the first moment after it.
fn midnight(day: Date, zone: &TimeZone) -> i64 {
    match day.to_zoned(zone.clone()) {
        Ok(zoned) => zoned.timestamp().as_millisecond(),
        Err(_) if day.year() < 0 => i64::MIN,
        Err(_) => i64::MAX,
    }
}

fn day_of(moment: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(moment.to_jiff()).date()
}

fn earlier(now: Timestamp, span: Span, zone: &TimeZone) -> i64 {
    moved(now, span, -1, zone).unwrap_or(i64::MIN)
}

fn later(now: Timestamp, span: Span, zone: &TimeZone) -> i64 {
    moved(now, span, 1, zone).unwrap_or(i64::MAX)
}

/// Returns the time moved by a span; `None` beyond the range of the calendar.
fn moved(now: Timestamp, span: Span, direction: i64, zone: &TimeZone) -> Option<i64> {
    const MINUTE: i64 = 60_000;
    let value = i64::from(span.value) * direction;
    let calendar = match span.unit {
        SpanUnit::Minutes => return now.as_millis().checked_add(value * MINUTE),
        SpanUnit::Hours => return now.as_millis().checked_add(value * 60 * MINUTE),
        SpanUnit::Days => 0.days().try_days(value),
        SpanUnit::Weeks => 0.days().try_weeks(value),
        SpanUnit::Months => 0.days().try_months(value),
    };
    let moved = now.to_jiff().to_zoned(zone.clone()).checked_add(calendar.ok()?).ok()?;
    Some(moved.timestamp().as_millisecond())
}

fn anniversary(today: Date, offset: i32) -> Dates {
    let shift = 0.days().try_days(-i64::from(offset));
    let Ok(day) = shift.and_then(|shift| today.checked_add(shift)) else {
        #[expect(clippy::reversed_empty_ranges, reason = "there is no moment in it")]
        return Dates::Moments(i64::MAX..=i64::MIN);
    };
    let leap_day = (day.month() == 2 && day.day() == 28 && !day.in_leap_year()).then_some((2, 29));
    Dates::Anniversary((day.month(), day.day()), leap_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn case_is_folded_letter_by_letter() {
        for (text, folded) in [
            ("", ""),
            ("plain text 1", "plain text 1"),
            ("MiXed@Example.COM", "mixed@example.com"),
            ("ÄÖÜ ÉCOLE", "äöü école"),
            ("ОДИН", "один"),
            // A final sigma would not be found inside a longer word.
            ("ΟΔΟΣ", "οδοσ"),
            ("İ", "i\u{307}"),
        ] {
            assert_eq!(fold(text), folded);
            assert_eq!(fold(&fold(text)), folded, "folding twice changes nothing");
        }
    }

    #[test]
    fn dates_are_days_or_times_with_an_offset() {
        let moment = Some(When::Moment(time("2026-01-31T09:15:00Z")));
        for text in ["2026-01-31T09:15:00Z", "2026-01-31T10:15:00+01:00", "2026-01-31t09:15:00.000z"] {
            assert_eq!(read_when(text), moment, "{text}");
        }
        assert_eq!(read_when("2026-01-31"), Some(When::Day(jiff::civil::date(2026, 1, 31))));
        for text in [
            "",
            "2026",
            "2026-01-31 09:15:00Z",
            "2026-1-31",
            "2026-02-30",
            "20260131",
            "2026-01-31T09:15:00",
            "2026-01-31x",
            "31.01.2026 09:15",
            "2026-01-31T10:15:00+01:00[Europe/Berlin]",
            "-002026-01-31",
            "２０２６-01-31",
        ] {
            assert_eq!(read_when(text), None, "{text}");
        }
    }

    /// Checks which dates pass, at noon of 29 March 2026 in Berlin, the day when summer time begins.
    #[track_caller]
    fn check(test: DateTest, expected: &[(&str, bool)]) {
        let (zone, now) = (zone("Europe/Berlin"), time("2026-03-29T10:00:00Z"));
        let dates = Dates::of(test, now, &zone);
        for (text, holds) in expected {
            assert_eq!(dates.contain(read_when(text).unwrap(), &zone), *holds, "{test:?} {text}");
        }
    }

    fn when(text: &str) -> When {
        read_when(text).unwrap()
    }

    const fn span(value: u32, unit: SpanUnit) -> Span {
        Span { value, unit }
    }

    #[test]
    fn days_begin_and_end_in_the_zone() {
        // The 29th has 23 hours: from 23:00 to 22:00 UTC.
        let day = when("2026-03-29");
        check(
            DateTest::On(day),
            &[
                ("2026-03-28T22:59:59.999Z", false),
                ("2026-03-28T23:00:00Z", true),
                ("2026-03-29T21:59:59.999Z", true),
                ("2026-03-29T22:00:00Z", false),
                ("2026-03-29", true),
                ("2026-03-30", false),
            ],
        );
        check(DateTest::On(when("2026-03-29T21:59:00Z")), &[("2026-03-28T23:00:00Z", true), ("2026-03-29", true)]);
        check(DateTest::Before(day), &[("2026-03-28T22:59:59.999Z", true), ("2026-03-28T23:00:00Z", false)]);
        check(DateTest::After(day), &[("2026-03-29T21:59:59.999Z", false), ("2026-03-29T22:00:00Z", true)]);
        check(DateTest::After(day), &[("2026-03-29", false), ("2026-03-30", true)]);
        check(
            DateTest::Between(when("2026-03-28"), day),
            &[
                ("2026-03-27T22:59:59.999Z", false),
                ("2026-03-27T23:00:00Z", true),
                ("2026-03-29T21:59:59.999Z", true),
                ("2026-03-29T22:00:00Z", false),
            ],
        );
    }

    #[test]
    fn moments_are_compared_to_the_millisecond() {
        let moment = when("2026-03-29T10:00:00Z");
        check(DateTest::Before(moment), &[("2026-03-29T09:59:59.999Z", true), ("2026-03-29T10:00:00Z", false)]);
        check(DateTest::After(moment), &[("2026-03-29T10:00:00Z", false), ("2026-03-29T10:00:00.001Z", true)]);
        check(DateTest::Between(moment, moment), &[("2026-03-29T12:00:00+02:00", true), ("2026-03-29", false)]);
    }

    #[test]
    fn spans_reach_up_to_the_present_or_on_from_it() {
        // A day earlier on the calendar is 23 hours earlier on the clock.
        check(
            DateTest::Last(span(1, SpanUnit::Days)),
            &[
                ("2026-03-28T10:59:59.999Z", false),
                ("2026-03-28T11:00:00Z", true),
                ("2026-03-29T10:00:00Z", true),
                ("2026-03-29T10:00:00.001Z", false),
            ],
        );
        check(DateTest::Last(span(24, SpanUnit::Hours)), &[("2026-03-28T10:00:00Z", true)]);
        check(DateTest::Last(span(2, SpanUnit::Minutes)), &[("2026-03-29T09:58:00Z", true), ("2026-03-29", false)]);
        check(DateTest::Last(span(1, SpanUnit::Months)), &[("2026-02-28T11:00:00Z", true)]);
        check(DateTest::Last(span(1, SpanUnit::Months)), &[("2026-02-28T10:59:59.999Z", false)]);
        check(
            DateTest::Next(span(1, SpanUnit::Weeks)),
            &[
                ("2026-03-29T09:59:59.999Z", false),
                ("2026-03-29T10:00:00Z", true),
                ("2026-04-05T10:00:00Z", true),
                ("2026-04-05T10:00:00.001Z", false),
            ],
        );
        check(
            DateTest::OlderThan(span(1, SpanUnit::Days)),
            &[("2026-03-28T10:59:59.999Z", true), ("2026-03-28T11:00:00Z", false), ("0001-01-01", true)],
        );
        for unit in [SpanUnit::Minutes, SpanUnit::Months] {
            check(DateTest::Last(span(u32::MAX, unit)), &[("0001-01-01", true), ("2026-03-30", false)]);
        }
    }

    #[test]
    fn anniversaries_come_every_year() {
        check(
            DateTest::Anniversary(0),
            &[
                ("1990-03-29", true),
                ("2026-03-29", true),
                ("1990-03-28T23:00:00Z", true),
                ("1990-03-30", false),
                ("1990-02-28", false),
            ],
        );
        check(DateTest::Anniversary(3), &[("1990-03-26", true), ("1990-04-01", false)]);
        check(DateTest::Anniversary(-3), &[("1990-04-01", true), ("1990-03-26", false)]);
        check(DateTest::Anniversary(29), &[("1992-02-28", true), ("1992-02-29", true), ("1992-03-01", false)]);
        let leap = Dates::of(DateTest::Anniversary(0), time("2028-02-28T12:00:00Z"), &TimeZone::UTC);
        assert_eq!(leap, Dates::Anniversary((2, 28), None));
    }

    #[test]
    fn a_time_zone_may_skip_a_day_or_its_first_hour() {
        // Apia had no 30 December 2011; Beirut's clocks go from midnight to one.
        let apia = zone("Pacific/Apia");
        let skipped = when("2011-12-30");
        assert_eq!(skipped.first(&apia), when("2011-12-31").first(&apia));
        let beirut = zone("Asia/Beirut");
        assert_eq!(when("2026-03-29").first(&beirut), time("2026-03-28T22:00:00Z").as_millis());
    }

    #[test]
    fn events_are_counted_within_the_same_bounds() {
        let (zone, now) = (TimeZone::UTC, time("2026-03-29T10:00:00Z"));
        let moments = |within: Within| within.moments(now, &zone);
        let at = |text: &str| time(text).as_millis();
        assert_eq!(
            moments(Within::Last(span(2, SpanUnit::Days))),
            at("2026-03-27T10:00:00Z")..=at("2026-03-29T10:00:00Z")
        );
        assert_eq!(moments(Within::After(when("2026-03-29"))), at("2026-03-30T00:00:00Z")..=i64::MAX);
        assert_eq!(moments(Within::Before(when("2026-03-29"))), i64::MIN..=at("2026-03-28T23:59:59.999Z"));
        let days = Within::Between(when("2026-03-28"), when("2026-03-29"));
        assert_eq!(moments(days), at("2026-03-28T00:00:00Z")..=at("2026-03-29T23:59:59.999Z"));
        assert!(moments(Within::SinceEntry).is_empty());
    }
}
