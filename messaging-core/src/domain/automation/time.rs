//! Ends of waits, and moments of date triggers.
//!
//! Contract section 13.4, "Time" and "Date". Seconds, minutes and hours are exact; days, weeks and months are those of
//! the calendar in the contact's zone. [`wall_clock`] has the rule for wall-clock times in gaps and folds.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan as _};
use serde_json::{Map, Value};

use super::graph::{Delay, DelayUnit, Wait};
use super::trigger::{DateTrigger, Repeat};
use crate::domain::delivery::recipient_time::wall_clock;
use crate::domain::segment::filter::When;
use crate::domain::segment::values::read_when;
use crate::time::{Timestamp, zone};

/// Number of days searched for the next of some weekdays: a week, one day that a zone may have skipped, and the days
/// around, whose times a gap may have moved.
const DAYS_AHEAD: usize = 16;
/// Length of a day in milliseconds.
const DAY: i64 = 24 * 3_600_000;
/// Last year whose times are asked of zones; a zone may have no instants in the calendar's last and first year.
const LAST_YEAR: i16 = 9998;

/// Time zone that a wait is calculated in.
#[derive(Debug, Clone, Copy)]
pub struct Zones<'a> {
    /// The contact's; the workspace's where it has none.
    pub contact: &'a TimeZone,
}

/// Outcome of arriving at a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// The wait ends at this moment, later than the arrival.
    At(Timestamp),
    /// The moment has passed already.
    Past,
    /// The contact has no such date.
    Missing,
}

impl Wait {
    /// Returns the end of a wait that begins at `from`, for a contact with these attributes.
    pub fn end(&self, from: Timestamp, attributes: &Map<String, Value>, zones: Zones<'_>) -> WaitEnd {
        match self {
            Self::Duration(delay) => WaitEnd::At(later(from, *delay, zones.contact)),
            Self::Until { time, weekdays, timezone } => {
                let named = timezone.as_deref().and_then(zone).map(|(zone, _)| zone);
                WaitEnd::At(next_wall_time(from, *time, weekdays, named.as_ref().unwrap_or(zones.contact)))
            }
            Self::UntilAttribute { key, offset, is_before } => {
                let Some(date) = date_at(attributes, key) else { return WaitEnd::Missing };
                let first = clamped(date.first(zones.contact));
                let at = match offset {
                    None => first,
                    Some(delay) if *is_before => earlier(first, *delay, zones.contact),
                    Some(delay) => later(first, *delay, zones.contact),
                };
                if at > from { WaitEnd::At(at) } else { WaitEnd::Past }
            }
        }
    }
}

/// Returns the moment a delay after `from`; the last moment of the calendar if it would be later than that.
pub fn later(from: Timestamp, delay: Delay, zone: &TimeZone) -> Timestamp {
    moved(from, delay, 1, zone)
}

/// Returns the moment a delay before `from`; the first moment of the calendar if it would be earlier than that.
pub fn earlier(from: Timestamp, delay: Delay, zone: &TimeZone) -> Timestamp {
    moved(from, delay, -1, zone)
}

fn moved(from: Timestamp, delay: Delay, direction: i64, zone: &TimeZone) -> Timestamp {
    let value = i64::from(delay.value) * direction;
    let exact = |seconds: i64| clamped(from.as_millis().saturating_add(value.saturating_mul(seconds * 1000)));
    let calendar = |span: Result<Span, jiff::Error>| {
        let wall = zone.to_datetime(from.to_jiff());
        let end = if direction < 0 { i64::MIN } else { i64::MAX };
        let found = span.ok().and_then(|span| wall.checked_add(span).ok()).and_then(|wall| instant(wall, zone));
        found.unwrap_or_else(|| clamped(end))
    };
    match delay.unit {
        DelayUnit::Seconds => exact(1),
        DelayUnit::Minutes => exact(60),
        DelayUnit::Hours => exact(3600),
        DelayUnit::Days => calendar(Span::new().try_days(value)),
        DelayUnit::Weeks => calendar(Span::new().try_weeks(value)),
        DelayUnit::Months => calendar(Span::new().try_months(value)),
    }
}

/// Returns the next moment strictly after `from` at which the clock of a zone shows a time, on one of the weekdays
/// (Monday is 1), or on any day when there are none.
pub fn next_wall_time(from: Timestamp, time: Time, weekdays: &[i8], zone: &TimeZone) -> Timestamp {
    let today = zone.to_datetime(from.to_jiff()).date();
    let days = today.yesterday().unwrap_or(today).series(1.day()).take(DAYS_AHEAD);
    let wanted = |day: &Date| weekdays.is_empty() || weekdays.contains(&day.weekday().to_monday_one_offset());
    let moments = days.filter(wanted).filter_map(|day| instant(day.to_datetime(time), zone));
    moments.filter(|at| *at > from).min().unwrap_or_else(|| clamped(i64::MAX))
}

/// Returns the date that attributes hold at a path of keys.
pub fn date_at(attributes: &Map<String, Value>, key: &[String]) -> Option<When> {
    let (first, rest) = key.split_first()?;
    let found = rest.iter().try_fold(attributes.get(first)?, |value, name| value.as_object()?.get(name))?;
    found.as_str().and_then(read_when)
}

impl DateTrigger {
    /// Returns the moments of the trigger for a date, later than `after` and not later than `until`, in order of time.
    ///
    /// A yearly trigger has moments from the date's own year on; 29 February falls on the 28th in other years, and the
    /// offset is counted from there.
    pub fn moments(&self, date: When, zone: &TimeZone, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let day = date.day(zone);
        let year_of = |at: Timestamp| zone.to_datetime(at.to_jiff()).year();
        // An offset is a year at most, a zone's a day.
        let years = match self.repeats {
            Repeat::Once => day.year()..=day.year(),
            Repeat::Yearly => {
                day.year().max(year_of(after).saturating_sub(2))..=year_of(until).saturating_add(2).min(LAST_YEAR)
            }
        };
        let moments = years.filter_map(|year| {
            let its_day = Date::new(year, day.month(), day.day()).or_else(|_| Date::new(year, day.month(), 28)).ok()?;
            let moved = its_day.checked_add(Span::new().try_days(i64::from(self.offset_days)).ok()?).ok()?;
            instant(moved.to_datetime(self.time), zone)
        });
        moments.filter(|at| after < *at && *at <= until).collect()
    }
}

/// Returns the instant at which the clock of a zone shows a date and time; `None` where the calendar ends.
fn instant(wall: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    (-LAST_YEAR..=LAST_YEAR).contains(&wall.year()).then(|| wall_clock::instant(wall, zone))
}

/// Returns the moment, or the first or last one of the calendar if it is beyond.
fn clamped(millis: i64) -> Timestamp {
    let [first, last] = [jiff::Timestamp::MIN, jiff::Timestamp::MAX].map(jiff::Timestamp::as_millisecond);
    // The library's last moment is not one that every zone can show.
    Timestamp::from_millis(millis.clamp(first + 2 * DAY, last - 2 * DAY))
}

#[cfg(test)]
mod tests;
