use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;

use super::*;
use crate::domain::automation::graph::DelayUnit::{Days, Hours, Months, Seconds, Weeks};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn named(name: &str) -> TimeZone {
    zone(name).unwrap().0
}

#[track_caller]
fn check_later(from: &str, value: u32, unit: DelayUnit, zone: &str, expected: &str) {
    assert_eq!(later(at(from), Delay { value, unit }, &named(zone)), at(expected), "{from} + {value} {unit:?} {zone}");
}

#[test]
fn hours_are_exact_and_days_are_those_of_the_calendar() {
    check_later("2026-01-31T09:15:00.123Z", 90, Seconds, "UTC", "2026-01-31T09:16:30.123Z");
    // The night in which clocks go forward, and the one in which they go back.
    check_later("2026-03-28T12:00:00Z", 24, Hours, "Europe/Berlin", "2026-03-29T12:00:00Z");
    check_later("2026-03-28T12:00:00Z", 1, Days, "Europe/Berlin", "2026-03-29T11:00:00Z");
    check_later("2026-10-24T12:00:00Z", 1, Weeks, "Europe/Berlin", "2026-10-31T13:00:00Z");
    check_later("2026-01-31T09:00:00Z", 1, Months, "UTC", "2026-02-28T09:00:00Z");
    check_later("2028-01-31T09:00:00Z", 1, Months, "UTC", "2028-02-29T09:00:00Z");
    // The day is the contact's: in Kiritimati it is February already.
    check_later("2026-01-31T12:00:00Z", 1, Months, "Pacific/Kiritimati", "2026-02-28T12:00:00Z");
}

#[test]
fn a_time_in_a_gap_moves_forward_and_one_in_a_fold_is_the_earlier() {
    check_later("2026-03-28T01:30:00Z", 1, Days, "Europe/Berlin", "2026-03-29T01:30:00Z");
    check_later("2026-10-24T00:30:00Z", 1, Days, "Europe/Berlin", "2026-10-25T00:30:00Z");
    check_later("2011-12-29T20:00:00Z", 1, Days, "Pacific/Apia", "2011-12-30T20:00:00Z");
}

#[test]
fn nothing_lies_beyond_the_calendar() {
    for unit in [Seconds, Hours, Days, Weeks, Months] {
        let far = later(at("2026-01-01T00:00:00Z"), Delay { value: u32::MAX, unit }, &named("Asia/Kolkata"));
        let past = earlier(at("2026-01-01T00:00:00Z"), Delay { value: u32::MAX, unit }, &named("Asia/Kolkata"));
        assert!(far > at("2026-01-01T00:00:00Z") && past < at("2026-01-01T00:00:00Z"), "{unit:?}");
    }
    // A wait from there ends there.
    let end = clamped(i64::MAX);
    assert!(later(end, Delay { value: 1, unit: Months }, &named("Pacific/Kiritimati")) <= end);
    assert!(next_wall_time(end, Time::midnight(), &[], &TimeZone::UTC) >= end);
}

#[track_caller]
fn check_until(from: &str, time: &str, weekdays: &[i8], zone: &str, expected: &str) {
    let found = next_wall_time(at(from), time.parse().unwrap(), weekdays, &named(zone));
    assert_eq!(found, at(expected), "{from} {time} {weekdays:?} {zone}");
}

#[test]
fn until_is_the_next_such_moment_strictly_after_now() {
    // 31 January 2026 is a Saturday.
    check_until("2026-01-31T07:59:59.999Z", "08:00", &[], "UTC", "2026-01-31T08:00:00Z");
    check_until("2026-01-31T08:00:00Z", "08:00", &[], "UTC", "2026-02-01T08:00:00Z");
    check_until("2026-01-31T08:00:00Z", "09:00", &[1], "UTC", "2026-02-02T09:00:00Z");
    check_until("2026-01-31T08:00:00Z", "09:00", &[5, 7], "UTC", "2026-02-01T09:00:00Z");
    check_until("2026-01-31T08:00:00Z", "08:00", &[6], "UTC", "2026-02-07T08:00:00Z");
    check_until("2026-01-31T08:00:00Z", "09:00", &[], "America/New_York", "2026-01-31T14:00:00Z");
    // Saturday evening in New York is Sunday in UTC.
    check_until("2026-02-01T01:00:00Z", "21:00", &[6], "America/New_York", "2026-02-01T02:00:00Z");
    check_until("2026-03-28T12:00:00Z", "02:30", &[], "Europe/Berlin", "2026-03-29T01:30:00Z");
    check_until("2026-10-24T12:00:00Z", "02:30", &[], "Europe/Berlin", "2026-10-25T00:30:00Z");
    // The second half hour past two comes after the earlier one, which is the one that counts.
    check_until("2026-10-25T00:30:00Z", "02:30", &[], "Europe/Berlin", "2026-10-26T01:30:00Z");
}

fn wait(value: serde_json::Value, key: &str, offset: Option<Delay>, is_before: bool, from: &str) -> WaitEnd {
    let wait = Wait::UntilAttribute { key: key.split('.').map(ToOwned::to_owned).collect(), offset, is_before };
    wait.end(at(from), value.as_object().unwrap(), Zones { contact: &named("Europe/Berlin") })
}

#[test]
fn until_attribute_is_read_once_and_ends_at_once_where_there_is_nothing_to_wait_for() {
    let contact = json!({"renews": "2026-05-01", "call": {"at": "2026-05-01T10:00:00+02:00"}, "bad": "soon", "n": 5});
    let wait = |key, offset, is_before, from| wait(contact.clone(), key, offset, is_before, from);
    let (now, days) = ("2026-04-01T00:00:00Z", |value| Some(Delay { value, unit: Days }));
    assert_eq!(wait("renews", None, false, now), WaitEnd::At(at("2026-04-30T22:00:00Z")));
    assert_eq!(wait("renews", days(3), true, now), WaitEnd::At(at("2026-04-27T22:00:00Z")));
    assert_eq!(wait("renews", days(1), false, now), WaitEnd::At(at("2026-05-01T22:00:00Z")));
    assert_eq!(wait("call.at", None, false, now), WaitEnd::At(at("2026-05-01T08:00:00Z")));
    assert_eq!(wait("renews", None, false, "2026-04-30T22:00:00Z"), WaitEnd::Past);
    // Thirty-three days before, clocks had not gone forward yet.
    assert_eq!(wait("renews", days(33), true, "2026-03-01T00:00:00Z"), WaitEnd::At(at("2026-03-28T23:00:00Z")));
    for missing in ["bad", "n", "none", "call", "renews.x"] {
        assert_eq!(wait(missing, None, false, now), WaitEnd::Missing, "{missing}");
    }
}

fn trigger(offset_days: i32, repeats: Repeat) -> DateTrigger {
    DateTrigger { attribute: vec!["birthday".into()], offset_days, time: "09:00".parse().unwrap(), repeats }
}

#[track_caller]
fn check_moments(trigger: &DateTrigger, date: &str, after: &str, until: &str, expected: &[&str]) {
    let found = trigger.moments(read_when(date).unwrap(), &named("Europe/Berlin"), at(after), at(until));
    assert_eq!(found, expected.iter().map(|text| at(text)).collect::<Vec<_>>(), "{date}");
}

#[test]
fn a_date_comes_every_year_from_its_own_on() {
    let yearly = trigger(0, Repeat::Yearly);
    let (from, to) = ("2026-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
    check_moments(&yearly, "1990-05-01", from, to, &["2026-05-01T07:00:00Z", "2027-05-01T07:00:00Z"]);
    check_moments(&yearly, "2027-05-01", from, to, &["2027-05-01T07:00:00Z"]);
    check_moments(&yearly, "2029-05-01", from, to, &[]);
    check_moments(&trigger(0, Repeat::Once), "1990-05-01", from, to, &[]);
    check_moments(&trigger(-7, Repeat::Once), "2026-05-01", from, to, &["2026-04-24T07:00:00Z"]);
    // Later than the beginning, not later than the end.
    check_moments(&yearly, "1990-05-01", "2026-05-01T07:00:00Z", "2027-05-01T07:00:00Z", &["2027-05-01T07:00:00Z"]);
    check_moments(
        &trigger(365, Repeat::Yearly),
        "2025-12-31",
        from,
        to,
        &["2026-12-31T08:00:00Z", "2027-12-31T08:00:00Z"],
    );
    check_moments(&trigger(-365, Repeat::Yearly), "2028-06-01", from, to, &["2027-06-02T07:00:00Z"]);
    // The day is the one that the moment has in the contact's zone.
    check_moments(&yearly, "1990-04-30T23:00:00Z", from, "2027-01-01T00:00:00Z", &["2026-05-01T07:00:00Z"]);
}

#[test]
fn a_leap_day_falls_on_the_28th_in_other_years_before_the_offset() {
    let (from, to) = ("2027-01-01T00:00:00Z", "2029-01-01T00:00:00Z");
    let yearly = trigger(0, Repeat::Yearly);
    check_moments(&yearly, "1992-02-29", from, to, &["2027-02-28T08:00:00Z", "2028-02-29T08:00:00Z"]);
    check_moments(
        &trigger(1, Repeat::Yearly),
        "1992-02-29",
        from,
        to,
        &["2027-03-01T08:00:00Z", "2028-03-01T08:00:00Z"],
    );
    check_moments(
        &trigger(-1, Repeat::Yearly),
        "1992-02-29",
        from,
        to,
        &["2027-02-27T08:00:00Z", "2028-02-28T08:00:00Z"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(14), ..ProptestConfig::default() })]

    /// In every zone, later is later, and the clock shows the requested time unless that time was skipped.
    #[test]
    fn times_lie_ahead_in_every_zone(place in 0_usize..10_000, minute in 0_i64..4_000_000, hour in 0_i8..24, value in 1_u32..40) {
        let zones: Vec<_> = jiff::tz::TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
        let Some((zone, _)) = zone(&zones[place % zones.len()]) else { return Ok(()) };
        let from = Timestamp::from_millis(1_700_000_000_000 + minute * 60_000);
        for unit in [Seconds, DelayUnit::Minutes, Hours, Days, Weeks, Months] {
            let then = later(from, Delay { value, unit }, &zone);
            let before = earlier(from, Delay { value, unit }, &zone);
            prop_assert!(then > from && before < from);
        }
        let time = Time::constant(hour, 30, 0, 0);
        let next = next_wall_time(from, time, &[], &zone);
        prop_assert!(next > from && next.since(from) <= std::time::Duration::from_hours(50));
        let shown = zone.to_datetime(next.to_jiff()).time();
        let is_skipped = zone.to_ambiguous_timestamp(zone.to_datetime(next.to_jiff()).date().to_datetime(time)).is_ambiguous();
        prop_assert!(shown == time || is_skipped, "{shown} {time}");
    }
}
