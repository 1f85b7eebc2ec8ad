use std::collections::HashSet;
use std::env;

use jiff::tz::TimeZoneDatabase;
use serde_json::json;

use super::*;
use crate::time::zone;

fn quiet(start: &str, end: &str) -> QuietHours {
    serde_json::from_value(json!({"start": start, "end": end})).unwrap()
}

#[track_caller]
fn check(quiet: QuietHours, name: &str, from: &str, expected: &str) {
    let (zone, _) = zone(name).unwrap();
    assert_eq!(quiet.next_allowed(&zone, from.parse().unwrap()).to_string(), expected, "{from} {name}");
}

#[test]
fn the_start_belongs_to_them_and_the_end_does_not() {
    let night = quiet("22:00", "08:00");
    check(night, "UTC", "2026-05-01T21:59:59.999Z", "2026-05-01T21:59:59.999Z");
    check(night, "UTC", "2026-05-01T22:00:00Z", "2026-05-02T08:00:00.000Z");
    check(night, "UTC", "2026-05-02T00:00:00.5Z", "2026-05-02T08:00:00.000Z");
    check(night, "UTC", "2026-05-02T08:00:00Z", "2026-05-02T08:00:00.000Z");
    let noon = quiet("12:00", "13:00");
    check(noon, "Asia/Kathmandu", "2026-05-01T06:15:00Z", "2026-05-01T07:15:00.000Z");
    check(noon, "Asia/Kathmandu", "2026-05-01T12:15:00Z", "2026-05-01T12:15:00.000Z");
    check(quiet("00:01", "00:00"), "UTC", "2026-05-01T00:01:00Z", "2026-05-02T00:00:00.000Z");
}

#[test]
fn gaps_and_folds_are_what_the_clock_shows() {
    // The night of the gap is an hour shorter, that of the fold an hour longer.
    let night = quiet("22:00", "08:00");
    check(night, "Europe/Berlin", "2026-03-28T21:00:00Z", "2026-03-29T06:00:00.000Z");
    check(night, "Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T07:00:00.000Z");
    // The end lies in the gap: the clock jumps over it.
    check(quiet("01:00", "02:30"), "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00.000Z");
    // The start too: that night there are none.
    check(quiet("02:10", "02:50"), "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T00:59:59.000Z");
    check(quiet("02:10", "02:50"), "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00.000Z");
    // Both halves of a fold count: in between the clock is outside.
    let fold = quiet("02:00", "02:30");
    check(fold, "Europe/Berlin", "2026-10-25T00:10:00Z", "2026-10-25T00:30:00.000Z");
    check(fold, "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T00:45:00.000Z");
    check(fold, "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00.000Z");
    // The clock goes back into them just as they end.
    check(quiet("02:30", "03:00"), "Europe/Berlin", "2026-10-25T00:40:00Z", "2026-10-25T01:00:00.000Z");
    check(quiet("01:30", "03:00"), "Europe/Berlin", "2026-10-25T00:40:00Z", "2026-10-25T02:00:00.000Z");
    check(quiet("22:00", "12:00"), "Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-30T22:00:00.000Z");
}

/// Local times of a zone in the minutes around a change of its offset.
struct Window {
    start: i64,
    minutes: Vec<i16>,
}

/// Returns the minutes of the day from `before` the change to `after` it.
fn window(zone: &TimeZone, change: jiff::Timestamp, (before, after): (i64, i64)) -> Window {
    let start = change.as_second().div_euclid(60) - before;
    let minute = |minute: i64| {
        let time = zone.to_datetime(jiff::Timestamp::from_second(minute * 60).unwrap()).time();
        i16::from(time.hour()) * 60 + i16::from(time.minute())
    };
    Window { start, minutes: (start..start + before + after).map(minute).collect() }
}

/// Compares `next_allowed` with a search minute by minute, around the changes of the offsets of all zones in ten years.
/// Zones that show the same times in such a window are tested once. `EVERY_MINUTE=1` starts from every minute, with
/// more quiet hours; otherwise from some minutes.
#[test]
fn a_search_by_minutes_finds_the_same() {
    let is_thorough = env::var_os("EVERY_MINUTE").is_some();
    let spans: &[(&str, &str)] = if is_thorough {
        &[
            ("22:00", "08:00"),
            ("01:00", "02:30"),
            ("02:30", "03:00"),
            ("02:00", "03:00"),
            ("23:30", "00:30"),
            ("00:00", "23:59"),
            ("03:00", "02:00"),
            ("12:00", "13:00"),
            ("00:30", "01:30"),
            ("01:45", "01:50"),
        ]
    } else {
        &[("22:00", "08:00"), ("01:00", "02:30"), ("23:30", "01:15"), ("03:00", "02:00")]
    };
    let (first, last): (jiff::Timestamp, jiff::Timestamp) =
        ("2020-01-01T00:00:00Z".parse().unwrap(), "2030-01-01T00:00:00Z".parse().unwrap());
    // Spans are shorter than a day.
    let around = if is_thorough { (30 * 60, 54 * 60) } else { (120, 25 * 60) };
    let mut seen = HashSet::new();
    let (mut asked, mut zones, mut all_changes) = (0_u32, 0_u32, 0_u32);
    for name in TimeZoneDatabase::bundled().available() {
        let Some((zone, _)) = zone(name.as_str()) else { continue };
        zones += 1;
        let changes = zone.following(first).take_while(|change| change.timestamp() < last);
        let changes = changes.inspect(|_| all_changes += 1);
        for change in changes {
            let offset_before = zone.to_offset(change.timestamp() - SignedDuration::from_secs(1));
            if !seen.insert((change.timestamp(), offset_before, change.offset())) {
                continue;
            }
            let Window { start, minutes } = window(&zone, change.timestamp(), around);
            for (from, to) in spans {
                let quiet = quiet(from, to);
                let is_quiet: Vec<bool> = minutes
                    .iter()
                    .map(|minute| {
                        let time =
                            Time::new(i8::try_from(minute / 60).unwrap(), i8::try_from(minute % 60).unwrap(), 0, 0);
                        quiet.contains(time.unwrap())
                    })
                    .collect();
                // From the end on: the first minute that is not quiet.
                let mut next = None;
                for (place, is_quiet) in is_quiet.iter().enumerate().rev() {
                    if !is_quiet {
                        next = Some(place);
                    }
                    let is_asked = is_thorough || place % 37 == 0 || place.abs_diff(120) < 2;
                    if let Some(next) = next.filter(|_| is_asked) {
                        let at =
                            |place: usize| Timestamp::from_millis((start + i64::try_from(place).unwrap()) * 60_000);
                        let found = quiet.next_allowed(&zone, at(place));
                        assert_eq!(found, at(next), "{} {from}-{to} from {}", name.as_str(), at(place));
                        asked += 1;
                    }
                }
            }
        }
    }
    eprintln!("{zones} zones, {all_changes} changes, {} of them different, {asked} questions", seen.len());
    assert!(zones > 400 && all_changes > 2_000 && asked > 10_000, "{zones} {all_changes} {asked}");
}
