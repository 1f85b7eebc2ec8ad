use super::campaign::{MAX_DAYS, SiteDemand, days};
use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Sends marketing mail as fast as a day allows, and returns how many messages left.
fn full_day(warm_up: &mut WarmUp, midnight: Timestamp, factor: u32) -> u32 {
    let mut now = midnight;
    let end = midnight + Duration::from_hours(24);
    let mut sent = 0;
    while now < end {
        *warm_up = warm_up.at(now, factor, false);
        if let Some(until) = warm_up.wait(now, factor, false) {
            assert!(until > now);
            now = until;
            continue;
        }
        warm_up.count(now, factor);
        sent += 1;
        if warm_up.allowed_today(factor).is_none() {
            break;
        }
    }
    sent
}

#[test]
fn levels_allow_more_each_day() {
    for (level, factor, messages) in [
        (0, 1, 50),
        (1, 1, 70),
        (2, 1, 98),
        (3, 1, 137),
        (10, 1, 1446),
        (22, 1, 81_995),
        (23, 1, 114_793),
        (0, 2, 100),
        (0, 4, 200),
        (3, 4, 549),
        (0, 0, 50),
    ] {
        assert_eq!(allowance(level, factor), messages, "{level} {factor}");
    }
    assert_eq!(allowance(u16::MAX, 1), allowance(MAX_LEVEL, 1));
}

#[test]
fn a_day_is_spread_over_its_hours() {
    let mut warm_up = WarmUp::default();
    let midnight = at("2026-03-01T00:00:00Z");
    let mut by_hour = [0; 24];
    let mut now = midnight;
    while now < midnight + Duration::from_hours(24) {
        warm_up = warm_up.at(now, 4, false);
        if let Some(until) = warm_up.wait(now, 4, false) {
            now = until;
            continue;
        }
        warm_up.count(now, 4);
        by_hour[usize::try_from(now.since(midnight).as_secs() / 3600).unwrap()] += 1;
    }
    // An eighth of 200 in an hour, and a fifth of them is kept for transactional mail.
    assert_eq!(by_hour[..8], [25, 25, 25, 25, 25, 25, 10, 0]);
    assert_eq!(by_hour.iter().sum::<u32>(), 160);
}

#[test]
fn there_is_no_burst_at_midnight() {
    let mut warm_up = WarmUp::default();
    let midnight = at("2026-03-01T00:00:00Z");
    warm_up = warm_up.at(midnight, 1, false);
    assert_eq!(warm_up.wait(midnight, 1, false), None);
    warm_up.count(midnight, 1);
    // Seven an hour, in half an hour.
    assert_eq!(warm_up.wait(midnight, 1, false), Some(midnight + Duration::from_millis(257_142)));
    assert_eq!(warm_up.wait(midnight, 1, true), None);
}

#[test]
fn transactional_mail_has_what_is_kept_for_it() {
    let mut warm_up = WarmUp::default();
    let midnight = at("2026-03-01T00:00:00Z");
    assert_eq!(full_day(&mut warm_up, midnight, 1), 40);
    let evening = midnight + Duration::from_hours(23);
    warm_up = warm_up.at(evening, 1, false);
    for _ in 0..10 {
        assert_eq!(warm_up.wait(evening, 1, true), None);
        warm_up.count(evening, 1);
    }
    let tomorrow = midnight + Duration::from_hours(24);
    assert_eq!(warm_up.wait(evening, 1, true), Some(tomorrow));
    assert_eq!(warm_up.wait(evening, 1, false), Some(tomorrow));
    assert_eq!((warm_up.sent_today(), warm_up.allowed_today(1)), (50, Some(50)));
    assert_eq!(warm_up.left(1), 0);
}

#[test]
fn a_healthy_day_that_was_half_used_is_a_step_up() {
    let day = at("2026-03-01T12:00:00Z");
    for (sent, is_spoiled, is_braked, level) in [
        (25, false, false, 1),
        (24, false, false, 0),
        (50, false, false, 1),
        (50, true, false, 0),
        (50, false, true, 0),
    ] {
        let mut warm_up = WarmUp::default().at(day, 1, false);
        for _ in 0..sent {
            warm_up.count(day, 1);
        }
        if is_spoiled {
            warm_up.spoil();
        }
        let next = warm_up.at(day + Duration::from_hours(24), 1, is_braked);
        assert_eq!(next.level(), level, "{sent} {is_spoiled} {is_braked}");
        assert_eq!(next.sent_today(), 0);
        // Days without mail change nothing.
        assert_eq!(next.at(day + Duration::from_hours(24 * 20), 1, false).level(), level);
    }
}

#[test]
fn the_warm_up_is_done_at_100_000_a_day() {
    let mut warm_up = WarmUp::default();
    let first = at("2026-03-01T00:00:00Z");
    let mut day = 0;
    while warm_up.is_warming() {
        let midnight = first + Duration::from_hours(24 * day);
        let sent = full_day(&mut warm_up, midnight, 1);
        day += 1;
        assert!(sent > 0 && day < 40);
    }
    // 23 steps; the last day began as a warm one.
    assert_eq!((day, warm_up.level(), warm_up.stage()), (24, 23, Stage::Warm));
    assert_eq!(warm_up.left(1), 1000);
}

#[test]
fn the_warm_up_is_done_when_no_day_needs_more() {
    let mut warm_up = WarmUp::default();
    let first = at("2026-03-01T12:00:00Z");
    for day in 0..14 {
        let noon = first + Duration::from_hours(24 * day);
        warm_up = warm_up.at(noon, 1, false);
        assert!(warm_up.is_warming(), "{day}");
        (0..5).for_each(|_| warm_up.count(noon, 1));
    }
    let after = first + Duration::from_hours(24 * 14);
    assert_eq!(warm_up.at(after, 1, false).stage(), Stage::Warm);
    // One day in which an hour had all that it may have begins the count anew.
    let mut pressed = warm_up.at(first + Duration::from_hours(24 * 13), 1, false);
    (0..7).for_each(|_| pressed.count(first + Duration::from_hours(24 * 13), 1));
    assert!(pressed.at(after, 1, false).is_warming());
}

#[test]
fn a_source_is_forgotten_after_a_month() {
    let noon = at("2026-03-01T12:00:00Z");
    let mut warm = WarmUp { stage: Stage::Warm, level: 23, ..WarmUp::default() }.at(noon, 1, false);
    warm.count(noon, 1);
    let almost = noon + FORGOTTEN_AFTER - Duration::from_millis(1);
    assert_eq!(warm.at(almost, 1, false).stage(), Stage::Warm);
    let cold = warm.at(noon + FORGOTTEN_AFTER, 1, false);
    assert_eq!((cold.stage(), cold.level()), (Stage::Warming, 0));
    let mut known = WarmUp::known().at(noon, 1, false);
    known.count(noon, 1);
    assert_eq!(known.at(noon + FORGOTTEN_AFTER, 1, false).stage(), Stage::Known);
}

#[test]
fn a_clock_that_is_set_back_changes_nothing() {
    let noon = at("2026-03-02T12:00:00Z");
    let mut warm_up = WarmUp::default().at(noon, 1, false);
    (0..30).for_each(|_| warm_up.count(noon, 1));
    let before = warm_up.at(noon - Duration::from_hours(48), 1, false);
    assert_eq!((before.sent_today(), before.level()), (30, 0));
    // The gap is not awaited from a time that may never have been.
    let mut early = WarmUp::default().at(noon, 1, false);
    early.count(noon, 1);
    assert_eq!(early.at(noon - Duration::from_hours(1), 1, false).wait(noon - Duration::from_hours(1), 1, false), None);
}

#[test]
fn days_that_a_clock_was_ahead_of_are_not_waited_for() {
    let ahead = at("2036-01-01T10:00:00Z");
    let mut warm_up = WarmUp::default().at(ahead, 1, false);
    (0..40).for_each(|_| warm_up.count(ahead, 1));
    // The clock is right again. The messages sent count for today, and tomorrow has room.
    let noon = at("2026-03-02T12:00:00Z");
    let midnight = at("2026-03-03T00:00:00Z");
    let mut today = warm_up.at(noon, 1, false);
    assert_eq!((today.sent_today(), today.last_used()), (40, Some(noon)));
    assert_eq!(today.wait(noon, 1, false), Some(midnight));
    today.count(noon, 1);
    let tomorrow = today.at(midnight, 1, false);
    assert_eq!((tomorrow.sent_today(), tomorrow.level()), (0, 1));
    assert_eq!(tomorrow.wait(midnight, 1, false), None);
    // And a month without mail is one.
    assert_eq!(tomorrow.at(noon + FORGOTTEN_AFTER, 1, false).level(), 0);
}

#[test]
fn a_clock_that_goes_back_over_midnight_ends_the_day_once() {
    let midnight = at("2026-03-02T00:00:00Z");
    let second = Duration::from_secs(1);
    let mut warm_up = WarmUp::default().at(midnight - second, 1, false);
    (0..50).for_each(|_| warm_up.count(midnight - second, 1));
    warm_up = warm_up.at(midnight + second, 1, false);
    assert_eq!((warm_up.level(), warm_up.sent_today()), (1, 0));
    warm_up = warm_up.at(midnight - second, 1, false).at(midnight + second * 2, 1, false);
    assert_eq!((warm_up.level(), warm_up.sent_today()), (1, 0));
}

#[test]
fn what_did_not_leave_is_taken_back() {
    let noon = at("2026-03-02T12:00:00Z");
    let mut warm_up = WarmUp::default().at(noon, 1, false);
    (0..7).for_each(|_| warm_up.count(noon, 1));
    let later = noon + Duration::from_mins(30);
    assert!(warm_up.wait(later, 1, false).is_some(), "the hour is full");
    warm_up.uncount();
    assert_eq!((warm_up.sent_today(), warm_up.wait(later, 1, false)), (6, None));
    (0..10).for_each(|_| warm_up.uncount());
    assert_eq!(warm_up.sent_today(), 0);
}

#[test]
fn the_state_is_kept_as_json() {
    let noon = at("2026-03-02T12:00:00Z");
    let mut warm_up = WarmUp::default().at(noon, 1, false);
    warm_up.count(noon, 1);
    let text = serde_json::to_string(&warm_up).unwrap();
    assert_eq!(serde_json::from_str::<WarmUp>(&text).unwrap(), warm_up);
    assert_eq!(serde_json::from_str::<WarmUp>("{}").unwrap(), WarmUp::default());
}

#[test]
fn a_campaign_takes_as_many_days_as_the_schedule_says() {
    let midnight = at("2026-03-01T00:00:00Z");
    let check = |recipients: u64, factor: u32, sources: &[WarmUp], expected: u32| {
        let demand = SiteDemand { recipients, factor, sources };
        assert_eq!(days(midnight, &[demand]), expected, "{recipients} {factor}");
    };
    let new = WarmUp::default();
    check(0, 1, &[new], 1);
    check(40, 1, &[new], 1);
    // 40, 56, 79 a day and so on.
    check(41, 1, &[new], 2);
    check(96, 1, &[new], 2);
    check(97, 1, &[new], 3);
    check(96, 1, &[new, new], 2);
    check(80, 1, &[new, new], 1);
    check(160, 4, &[new], 1);
    check(1_000_000, 1, &[new, WarmUp::known()], 1);
    check(1_000_000, 1, &[new], 24);
    check(1, 1, &[], MAX_DAYS);
    let slow = SiteDemand { recipients: 97, factor: 1, sources: &[new] };
    let quick = SiteDemand { recipients: 1_000_000, factor: 4, sources: &[WarmUp::known()] };
    assert_eq!(days(midnight, &[slow, quick]), 3);
    assert_eq!(days(midnight, &[]), 1);
    // In the last hour of a day there is room for seven.
    let evening = midnight + Duration::from_hours(23);
    let late = SiteDemand { recipients: 40, factor: 1, sources: &[new] };
    assert_eq!(days(evening, &[late]), 2);
}
