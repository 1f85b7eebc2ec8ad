use serde_json::json;

use super::waves::Waves;
use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn night() -> Option<QuietHours> {
    serde_json::from_value(json!({"start": "22:00", "end": "08:00"})).unwrap()
}

fn cap(members: serde_json::Value) -> Option<FrequencyCap> {
    serde_json::from_value(members).unwrap()
}

fn willing(zone: &TimeZone) -> Recipient<'_> {
    Recipient { zone, suppression: None, has_consent: true, sends: &[], cap_since: None }
}

/// Checks the verdict on a recipient in Berlin, as text.
#[track_caller]
fn check(terms: &Terms, change: impl FnOnce(&mut Recipient<'_>), now: &str, expected: &str) {
    let zone = zone_of(Some("Europe/Berlin"), "UTC");
    let mut recipient = willing(&zone);
    change(&mut recipient);
    let told = match look(terms, &recipient, time(now)) {
        Verdict::Go => "go".to_owned(),
        Verdict::Hold { reason, until } => {
            let reason = serde_json::to_value(reason).unwrap();
            format!("{} {}", reason.as_str().unwrap(), until.map_or("null".to_owned(), |until| until.to_string()))
        }
        Verdict::Suppress(cause) => format!("suppress {}", cause.as_str()),
    };
    assert_eq!(told, expected);
}

#[test]
fn each_rule_alone() {
    let all = Terms::default();
    check(&all, |_| {}, "2026-05-01T12:00:00Z", "go");
    check(&Terms { is_paused: true, ..all }, |_| {}, "2026-05-01T12:00:00Z", "paused null");
    let zoned = Terms { wall_time: Some("2026-05-01T09:00:00".parse().unwrap()), ..all };
    check(&zoned, |_| {}, "2026-05-01T06:59:59Z", "by_timezone 2026-05-01T07:00:00.000Z");
    check(&zoned, |_| {}, "2026-05-01T07:00:00Z", "go");
    check(&zoned, |_| {}, "2026-06-01T00:00:00Z", "go");
    let quiet = Terms { quiet_hours: night(), ..all };
    check(&quiet, |_| {}, "2026-05-01T20:00:00Z", "quiet_hours 2026-05-02T06:00:00.000Z");
    check(&quiet, |_| {}, "2026-05-01T19:59:59Z", "go");
    let suppressed = |reason| move |recipient: &mut Recipient<'_>| recipient.suppression = Some(reason);
    check(&all, suppressed(SuppressionReason::Unsubscribe), "2026-05-01T12:00:00Z", "suppress unsubscribe");
    check(&all, |recipient| recipient.has_consent = false, "2026-05-01T12:00:00Z", "suppress no_consent");
    let sends: &[_] = vec![time("2026-05-01T11:00:00Z")].leak();
    let capped = Terms { frequency_cap: cap(json!({"per_day": 1})), ..all };
    check(&capped, |_| {}, "2026-05-01T12:00:00Z", "go");
    check(&capped, |recipient| recipient.sends = sends, "2026-05-01T12:00:00Z", "suppress frequency_cap");
    let patient = Terms { frequency_cap: cap(json!({"per_day": 1, "when_reached": "defer"})), ..all };
    check(
        &patient,
        |recipient| recipient.sends = sends,
        "2026-05-01T12:00:00Z",
        "frequency_cap 2026-05-02T11:00:00.000Z",
    );
    let paced = Terms { pace_free_at: Some(time("2026-05-01T12:00:03Z")), ..all };
    check(&paced, |_| {}, "2026-05-01T12:00:00Z", "domain_pace 2026-05-01T12:00:03.000Z");
    check(&paced, |_| {}, "2026-05-01T12:00:03Z", "go");
}

#[test]
fn all_rules_together() {
    let sends: &[_] = vec![time("2026-05-01T02:00:00Z")].leak();
    let terms = Terms {
        wall_time: Some("2026-05-01T07:00:00".parse().unwrap()),
        quiet_hours: night(),
        frequency_cap: cap(json!({"per_day": 1, "when_reached": "defer", "defer_hours": 48})),
        ..Terms::default()
    };
    // The zone's time falls into the quiet hours: `until` heeds both.
    check(&terms, |_| {}, "2026-04-30T18:00:00Z", "by_timezone 2026-05-01T06:00:00.000Z");
    check(&terms, |_| {}, "2026-05-01T05:30:00Z", "quiet_hours 2026-05-01T06:00:00.000Z");
    // The cap allows one more in the night, so the message waits for the morning.
    check(
        &terms,
        |recipient| recipient.sends = sends,
        "2026-05-01T06:00:00Z",
        "frequency_cap 2026-05-02T06:00:00.000Z",
    );
    // A message that waits for the clock is judged when its time comes.
    let gone = |recipient: &mut Recipient<'_>| recipient.has_consent = false;
    check(&terms, gone, "2026-05-01T05:30:00Z", "quiet_hours 2026-05-01T06:00:00.000Z");
    check(&terms, gone, "2026-05-01T06:00:00Z", "suppress no_consent");
    check(&Terms { is_paused: true, ..terms }, gone, "2026-05-01T06:00:00Z", "paused null");
    // The longest wait for the cap ends also in the night.
    let since = time("2026-04-30T23:00:00Z");
    let hasty =
        Terms { frequency_cap: cap(json!({"per_day": 1, "when_reached": "defer", "defer_hours": 23})), ..terms };
    let waiting = |recipient: &mut Recipient<'_>| {
        recipient.sends = sends;
        recipient.cap_since = Some(since);
    };
    check(&hasty, waiting, "2026-05-01T12:00:00Z", "frequency_cap 2026-05-01T22:00:00.000Z");
    check(&Terms { quiet_hours: None, ..hasty }, waiting, "2026-05-01T22:00:00Z", "suppress frequency_cap");
    let late = Terms { pace_free_at: Some(time("2026-05-01T20:00:02Z")), frequency_cap: None, ..terms };
    check(&late, |_| {}, "2026-05-01T19:59:59Z", "domain_pace 2026-05-02T06:00:00.000Z");
}

#[test]
fn a_hold_ends_where_the_next_look_lets_go() {
    let terms =
        Terms { wall_time: Some("2026-03-29T02:30:00".parse().unwrap()), quiet_hours: night(), ..Terms::default() };
    for name in ["Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Asia/Kathmandu", "Pacific/Pago_Pago"] {
        let zone = zone_of(Some(name), "UTC");
        let Verdict::Hold { until: Some(until), .. } = look(&terms, &willing(&zone), time("2026-03-28T12:00:00Z"))
        else {
            panic!("{name} is not held");
        };
        assert_eq!(look(&terms, &willing(&zone), until), Verdict::Go, "{name}");
        let just_before = until - std::time::Duration::from_millis(1);
        assert_ne!(look(&terms, &willing(&zone), just_before), Verdict::Go, "{name}");
    }
}

#[test]
fn zones_fall_back() {
    let name = |contact: Option<&str>, workspace: &str| zone_of(contact, workspace).iana_name().map(ToOwned::to_owned);
    assert_eq!(name(Some("Asia/Tokyo"), "Europe/Berlin").as_deref(), Some("Asia/Tokyo"));
    assert_eq!(name(None, "Europe/Berlin").as_deref(), Some("Europe/Berlin"));
    assert_eq!(name(Some("Nowhere"), "Europe/Berlin").as_deref(), Some("Europe/Berlin"));
    assert_eq!(zone_of(None, "Nowhere"), TimeZone::UTC);
}

#[test]
fn an_audience_comes_in_waves() {
    let start = time("2026-04-30T19:00:00Z");
    let mut one = Waves::new(Terms::default(), start, "Europe/Berlin");
    assert_eq!([one.due(None), one.due(Some("Asia/Tokyo"))], [start, start]);

    let terms = Terms { wall_time: Some("2026-05-01T09:00:00".parse().unwrap()), ..Terms::default() };
    let mut waves = Waves::new(terms, start, "Europe/Berlin");
    assert_eq!(waves.due(None), time("2026-05-01T07:00:00Z"));
    assert_eq!(waves.due(Some("Nowhere")), time("2026-05-01T07:00:00Z"));
    assert_eq!(waves.due(Some("Asia/Tokyo")), time("2026-05-01T00:00:00Z"));
    assert_eq!(waves.due(Some("Pacific/Kiritimati")), start);
    let zones = jiff::tz::TimeZoneDatabase::bundled();
    let instants: std::collections::BTreeSet<_> =
        zones.available().map(|name| waves.due(Some(name.as_str()))).collect();
    assert!((30..50).contains(&instants.len()), "{}", instants.len());
}
