use std::time::Duration;

use super::*;
use crate::domain::delivery::outcome::{Acceptance, AddressFault, Answer, OutcomeClass, Response, Scope, SoftCause};
use crate::domain::delivery::site::{Meaning, SiteName, SiteRules, Verdict};

const MINUTE: Duration = Duration::from_mins(1);

fn noon() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn unlimited() -> SiteLimits {
    SiteLimits::default()
}

fn accepted() -> PathReply {
    PathReply { kind: ReplyKind::Accepted, verdict: None, evidence: String::new() }
}

fn hard() -> PathReply {
    PathReply { kind: ReplyKind::HardBounced, verdict: None, evidence: "550 5.1.1 no".to_owned() }
}

fn deferred(meaning: impl Into<Option<Meaning>>) -> PathReply {
    let verdict = meaning.into().map(|meaning| Verdict::new(meaning, false));
    PathReply { kind: ReplyKind::Deferred, verdict, evidence: "451 later".to_owned() }
}

fn refused(meaning: Meaning) -> PathReply {
    PathReply { kind: ReplyKind::Refused, verdict: Some(Verdict::new(meaning, true)), evidence: "554 no".to_owned() }
}

/// A warm path that sent a number of messages in the minute before noon.
fn busy(messages: u32) -> PathState {
    let mut path = PathState::known();
    (0..messages).for_each(|_| path.sent(&unlimited(), noon() - MINUTE));
    path
}

fn rate(path: &PathState, now: Timestamp) -> Option<u32> {
    path.report(&unlimited(), now).rate_per_minute
}

#[test]
fn a_rate_is_kept_with_bursts_of_a_tenth() {
    let limits = SiteLimits { messages_per_minute: Some(60), ..unlimited() };
    let mut path = PathState::known();
    let mut sent = 0;
    let mut now = noon();
    while now < noon() + MINUTE {
        match path.may_send(&limits, now, Priority::Marketing) {
            Permission::Allowed => {
                path.sent(&limits, now);
                sent += 1;
            }
            Permission::Wait(Wait { until: Some(until), reason: WaitReason::Pace }) if until > now => {
                assert!(sent >= 6, "a burst of six");
                now = until;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, 65);
}

#[test]
fn a_slow_rate_has_no_bursts_and_a_clock_that_is_set_back_no_effect() {
    let limits = SiteLimits { messages_per_minute: Some(1), ..unlimited() };
    let mut path = PathState::known();
    path.sent(&limits, noon());
    let wait = path.may_send(&limits, noon(), Priority::Marketing);
    assert_eq!(wait, Permission::Wait(Wait { until: Some(noon() + MINUTE), reason: WaitReason::Pace }));
    let hour_before = noon() - Duration::from_hours(1);
    let wait = path.may_send(&limits, hour_before, Priority::Marketing);
    assert_eq!(wait, Permission::Wait(Wait { until: Some(hour_before + MINUTE), reason: WaitReason::Pace }));
}

#[test]
fn a_reply_about_the_rate_halves_it_once_a_minute_and_to_one_at_least() {
    let mut path = busy(100);
    let change = path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)).unwrap();
    assert_eq!((change.action, change.reason, change.until), (PathAction::SlowDown, BrakeReason::Rate, None));
    assert_eq!(change.evidence, "451 later");
    assert_eq!((path.status(noon()), rate(&path, noon())), (PathStatus::Slowed, Some(50)));
    // Late answers to messages sent before.
    assert_eq!(path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)), None);
    assert_eq!(rate(&path, noon()), Some(50));
    let mut now = noon();
    for expected in [25, 12, 6, 3, 1, 1] {
        now = now + MINUTE;
        path.answered(&unlimited(), now, &deferred(Meaning::Rate)).unwrap();
        assert_eq!(rate(&path, now), Some(expected));
    }
}

#[test]
fn a_path_that_sends_little_is_slowed_down_as_well() {
    let mut path = PathState::known();
    path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)).unwrap();
    assert_eq!(rate(&path, noon()), Some(10));
    let limits = SiteLimits { messages_per_minute: Some(4), ..unlimited() };
    assert_eq!(path.report(&limits, noon()).rate_per_minute, Some(4));
}

#[test]
fn the_rate_grows_by_a_quarter_for_each_quarter_of_an_hour_without_a_bad_answer() {
    let mut path = busy(100);
    path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)).unwrap();
    for (minutes, expected) in [(14, Some(50)), (15, Some(62)), (30, Some(77)), (45, Some(96)), (60, None)] {
        assert_eq!(rate(&path, noon() + MINUTE * minutes), expected, "{minutes}");
    }
    assert_eq!(path.status(noon() + MINUTE * 60), PathStatus::Ok);
    let report = path.report(&unlimited(), noon() + MINUTE * 60);
    assert_eq!((report.reason, report.evidence), (None, None));
    // A bad answer begins the quarter of an hour anew.
    path.answered(&unlimited(), noon() + MINUTE * 20, &deferred(Meaning::Rate)).unwrap();
    assert_eq!(rate(&path, noon() + MINUTE * 20), Some(31));
    assert_eq!(rate(&path, noon() + MINUTE * 34), Some(31));
    assert_eq!(rate(&path, noon() + MINUTE * 35), Some(38));
}

#[test]
fn rests_are_twice_as_long_each_time_up_to_twelve_hours() {
    let mut path = busy(100);
    let mut now = noon();
    for minutes in [15, 30, 60, 120, 240, 480, 720, 720] {
        let change = path.answered(&unlimited(), now, &deferred(Meaning::Reputation)).unwrap();
        let until = now + MINUTE * minutes;
        assert_eq!((change.action, change.until), (PathAction::Rest, Some(until)), "{minutes}");
        assert_eq!(path.status(now), PathStatus::Resting);
        assert_eq!(path.report(&unlimited(), now).rate_per_minute, Some(0));
        let wait = Wait { until: Some(until), reason: WaitReason::Braked(Some(BrakeReason::Reputation)) };
        assert_eq!(path.may_send(&unlimited(), now, Priority::Marketing), Permission::Wait(wait));
        // Late answers to messages sent before add nothing.
        assert_eq!(path.answered(&unlimited(), now, &deferred(Meaning::Reputation)), None);
        assert_eq!(path.status(until), PathStatus::Slowed);
        now = until;
    }
    // Once it has recovered, the first rest is a short one again.
    let later = now + Duration::from_hours(24);
    assert_eq!(path.status(later), PathStatus::Ok);
    let change = path.answered(&unlimited(), later, &deferred(Meaning::Reputation)).unwrap();
    assert_eq!(change.until, Some(later + FIRST_REST));
}

#[test]
fn a_brake_of_a_clock_that_was_ahead_is_over() {
    let ahead = noon() + Duration::from_hours(24 * 365);
    let mut path = busy(100);
    path.sent(&unlimited(), ahead);
    path.answered(&unlimited(), ahead, &deferred(Meaning::Reputation)).unwrap();
    assert_eq!(path.status(ahead), PathStatus::Resting);
    assert_eq!((path.status(noon()), rate(&path, noon())), (PathStatus::Ok, None));
    // The sending rate is measured by the right clock again: half of it is less.
    (0..1000).for_each(|minute| path.sent(&unlimited(), noon() + MINUTE * minute));
    path.answered(&unlimited(), noon() + MINUTE * 1000, &deferred(Meaning::Rate)).unwrap();
    assert_eq!(rate(&path, noon() + MINUTE * 1000), Some(10));
    // A few hours are no reason to forget it.
    let mut path = busy(100);
    path.answered(&unlimited(), noon(), &deferred(Meaning::Reputation)).unwrap();
    assert_eq!(path.status(noon() - MINUTE * 180), PathStatus::Resting);
}

#[test]
fn a_transaction_that_did_not_begin_takes_no_part_of_the_rate() {
    let limits = SiteLimits { messages_per_minute: Some(1), ..unlimited() };
    let mut path = PathState::known();
    path.sent(&limits, noon());
    assert!(matches!(path.may_send(&limits, noon(), Priority::Marketing), Permission::Wait(_)));
    path.unsent(&limits, noon());
    assert_eq!(path.may_send(&limits, noon(), Priority::Marketing), Permission::Allowed);
    assert_eq!(path.report(&limits, noon()).sent_today, 0);
}

#[test]
fn what_bounds_marketing_mail_spaces_it() {
    let limited = SiteLimits { messages_per_minute: Some(30), ..unlimited() };
    assert_eq!(PathState::known().spacing(&unlimited(), noon()), None);
    assert_eq!(PathState::known().spacing(&limited, noon()), Some(Duration::from_secs(2)));
    // Seven an hour, in half an hour.
    assert_eq!(PathState::default().spacing(&limited, noon()), Some(Duration::from_millis(257_142)));
}

#[test]
fn orders_are_counted_and_a_repeated_one_is_none() {
    let mut path = busy(1);
    assert_eq!(path.orders(), 0);
    path.stop();
    path.stop();
    assert_eq!(path.orders(), 1);
    path.release();
    assert_eq!(path.orders(), 2);
    let text = serde_json::to_string(&path).unwrap();
    assert_eq!(serde_json::from_str::<PathState>(&text).unwrap().orders(), 2);
}

#[test]
fn a_warm_up_goes_on_from_where_it_was_when_the_source_was_known_meanwhile() {
    let mut path = PathState::default();
    let mut now = noon();
    for _ in 0..3 {
        (0..200).for_each(|_| path.sent(&unlimited(), now));
        now = now + Duration::from_hours(24);
    }
    path.set_known(true);
    path.sent(&unlimited(), now);
    assert_eq!(path.report(&unlimited(), now).allowed_today, None);
    path.set_known(false);
    let report = path.report(&unlimited(), now);
    assert_eq!((report.sent_today, report.allowed_today), (1, Some(98)));
    assert_eq!(path.last_used(), Some(now));
}

#[test]
fn a_block_stops_the_path_until_a_person_looks() {
    let mut path = busy(1);
    let change = path.answered(&unlimited(), noon(), &refused(Meaning::BlockedIp)).unwrap();
    assert_eq!((change.action, change.reason, change.until), (PathAction::Stop, BrakeReason::BlockedIp, None));
    let much_later = noon() + Duration::from_hours(999);
    assert_eq!(path.status(much_later), PathStatus::Stopped);
    let wait = Wait { until: None, reason: WaitReason::Braked(Some(BrakeReason::BlockedIp)) };
    let urgent = Priority::Transactional { expires_at: noon() };
    assert_eq!(path.may_send(&unlimited(), much_later, urgent), Permission::Wait(wait));
    assert_eq!(path.answered(&unlimited(), noon(), &refused(Meaning::BlockedIp)), None);
    assert_eq!(path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)), None);
    path.release();
    assert_eq!(path.may_send(&unlimited(), noon(), Priority::Marketing), Permission::Allowed);
    assert_eq!(path.status(noon()), PathStatus::Ok);
}

#[test]
fn a_person_stops_a_path_without_a_reason() {
    let mut path = busy(1);
    path.stop();
    let report = path.report(&unlimited(), noon());
    assert_eq!((report.status, report.reason), (PathStatus::Stopped, None));
    assert_eq!(report.evidence.as_deref(), Some("stopped by the operator"));
    path.answered(&unlimited(), noon(), &refused(Meaning::Reputation));
    assert_eq!(path.status(noon()), PathStatus::Stopped);
}

#[test]
fn what_is_not_the_fault_of_the_path_brakes_nothing() {
    for meaning in [Meaning::Authentication, Meaning::Content, Meaning::User] {
        let mut path = busy(100);
        for _ in 0..200 {
            assert_eq!(path.answered(&unlimited(), noon(), &deferred(meaning)), None);
            assert_eq!(path.answered(&unlimited(), noon(), &refused(meaning)), None);
        }
        assert_eq!(path.status(noon()), PathStatus::Ok, "{meaning:?}");
    }
}

#[test]
fn more_than_twenty_deferrals_in_a_hundred_slow_a_path_down() {
    let mut path = busy(100);
    for turn in 0..500 {
        let reply = if turn % 5 == 0 { deferred(None) } else { accepted() };
        assert_eq!(path.answered(&unlimited(), noon(), &reply), None, "{turn}");
    }
    let change = path.answered(&unlimited(), noon(), &deferred(None));
    assert_eq!(change, None, "the twentieth of the last hundred");
    let change = path.answered(&unlimited(), noon(), &deferred(None)).unwrap();
    assert_eq!((change.action, change.reason), (PathAction::SlowDown, BrakeReason::Rate));
    assert_eq!(change.evidence, "21 of the last 100 transactions were deferred; the last reply: 451 later");
    // The replies that led to it are counted once.
    assert_eq!(path.answered(&unlimited(), noon() + MINUTE, &deferred(None)), None);
}

#[test]
fn too_many_hard_bounces_slow_a_path_down() {
    let mut path = busy(100);
    // A few bad addresses at the beginning are no rate.
    for _ in 0..5 {
        assert_eq!(path.answered(&unlimited(), noon(), &hard()), None);
    }
    let change = path.answered(&unlimited(), noon(), &hard()).unwrap();
    assert_eq!((change.action, change.reason), (PathAction::SlowDown, BrakeReason::Bounces));
    let mut path = busy(100);
    for turn in 0..5000 {
        let reply = if turn % 20 == 19 { hard() } else { accepted() };
        assert_eq!(path.answered(&unlimited(), noon(), &reply), None, "five in a hundred: {turn}");
    }
}

#[test]
fn complaints_warn_and_then_let_a_path_rest() {
    let mut path = busy(100);
    (0..3000).for_each(|_| assert_eq!(path.answered(&unlimited(), noon(), &accepted()), None));
    for _ in 0..3 {
        assert_eq!(path.complained(&unlimited(), noon()), None);
    }
    let warning = path.complained(&unlimited(), noon()).unwrap();
    assert_eq!((warning.action, warning.reason), (PathAction::None, BrakeReason::Complaints));
    assert_eq!(warning.evidence, "4 complaints about the last 3000 messages");
    assert_eq!(path.status(noon()), PathStatus::Ok);
    for _ in 5..=9 {
        assert_eq!(path.complained(&unlimited(), noon()), None, "warned once a day");
    }
    let change = path.complained(&unlimited(), noon()).unwrap();
    assert_eq!((change.action, change.until), (PathAction::Rest, Some(noon() + FIRST_REST)));
    assert_eq!(path.complained(&unlimited(), noon()), None);
}

#[test]
fn complaints_that_another_node_was_told_of_are_counted_once() {
    let mut path = busy(100);
    let mut stored = path.clone();
    for _ in 0..5 {
        stored.complained_elsewhere(&unlimited(), noon());
    }
    assert_eq!(stored.status(noon()), PathStatus::Resting, "whoever takes the path over knows");
    let changes = path.hear_complaints(&stored, &unlimited(), noon());
    assert_eq!(
        changes.last().map(|change| (change.action, change.reason)),
        Some((PathAction::Rest, BrakeReason::Complaints))
    );
    assert_eq!(path.status(noon()), PathStatus::Resting);
    path.release();
    assert_eq!(path.hear_complaints(&stored, &unlimited(), noon()), []);
    // Complaints that were counted are stored, and not counted once more.
    let text = serde_json::to_string(&path).unwrap();
    let mut read: PathState = serde_json::from_str(&text).unwrap();
    assert_eq!(read.hear_complaints(&stored, &unlimited(), noon()), []);
}

#[test]
fn a_new_path_warms_up_and_says_so() {
    let mut path = PathState::default();
    let limits = SiteLimits { warm_up: 4, ..unlimited() };
    assert_eq!(path.may_send(&limits, noon(), Priority::Marketing), Permission::Allowed);
    path.sent(&limits, noon());
    let Permission::Wait(wait) = path.may_send(&limits, noon(), Priority::Marketing) else { panic!("no wait") };
    assert_eq!(wait.reason, WaitReason::WarmingUp { sent: 1, allowed: 200 });
    assert_eq!(wait.until, Some(noon() + Duration::from_secs(72)));
    assert_eq!(
        wait.reason.sentence("192.0.2.7", "gmail"),
        "192.0.2.7 is warming up at gmail: 1 of the 200 messages of today were sent."
    );
    let urgent = Priority::Transactional { expires_at: noon() + Duration::from_hours(1) };
    assert_eq!(path.may_send(&limits, noon(), urgent), Permission::Allowed);
    let report = path.report(&limits, noon());
    assert_eq!((report.sent_today, report.allowed_today), (1, Some(200)));
    path.set_known(true);
    assert_eq!(path.may_send(&limits, noon(), Priority::Marketing), Permission::Allowed);
    path.set_known(false);
    assert_eq!(path.warm_up(&limits, noon()).level(), 0);
}

#[test]
fn transactional_mail_that_would_expire_goes_anyway_and_counts() {
    let mut path = PathState::default();
    let urgent = |hours: u64| Priority::Transactional { expires_at: noon() + Duration::from_hours(hours) };
    for _ in 0..50 {
        assert_eq!(path.may_send(&unlimited(), noon(), urgent(1)), Permission::Allowed);
        path.sent(&unlimited(), noon());
    }
    assert_eq!(path.may_send(&unlimited(), noon(), urgent(11)), Permission::Overdue);
    assert!(matches!(path.may_send(&unlimited(), noon(), urgent(13)), Permission::Wait(_)));
    path.sent(&unlimited(), noon());
    assert_eq!(path.report(&unlimited(), noon()).sent_today, 51);
    // A rest is as a warm-up; a stop is not.
    path.answered(&unlimited(), noon(), &deferred(Meaning::Reputation)).unwrap();
    let soon = Priority::Transactional { expires_at: noon() + MINUTE };
    assert_eq!(path.may_send(&unlimited(), noon(), soon), Permission::Overdue);
    assert!(matches!(path.may_send(&unlimited(), noon(), Priority::Marketing), Permission::Wait(_)));
}

#[test]
fn a_day_with_a_bad_answer_is_no_step_up() {
    for (is_bad, level) in [(false, 1), (true, 0)] {
        let mut path = PathState::default();
        (0..40).for_each(|_| path.sent(&unlimited(), noon()));
        if is_bad {
            path.answered(&unlimited(), noon(), &deferred(Meaning::Rate)).unwrap();
        }
        assert_eq!(path.warm_up(&unlimited(), noon() + Duration::from_hours(24)).level(), level);
    }
}

#[test]
fn answers_are_read() {
    let rules = SiteRules::default();
    let site = SiteName::parse("example.com").unwrap();
    let of = |class: OutcomeClass, code: Option<u16>| {
        let response = Response { code, text: "said\n so".to_owned(), ..Response::default() };
        PathReply::of(&rules, &site, &Answer::new(class, response))
    };
    let kind = |class, code| of(class, code).map(|reply| reply.kind);
    assert_eq!(kind(OutcomeClass::Accepted(Acceptance::Delivered), Some(250)), Some(ReplyKind::Accepted));
    assert_eq!(kind(OutcomeClass::Retry(Scope::Recipient), Some(451)), Some(ReplyKind::Deferred));
    assert_eq!(kind(OutcomeClass::Address(AddressFault::Recipient), Some(550)), Some(ReplyKind::HardBounced));
    assert_eq!(kind(OutcomeClass::Soft(SoftCause::Policy), Some(550)), Some(ReplyKind::Refused));
    // Nobody answered.
    assert_eq!(kind(OutcomeClass::Retry(Scope::Recipient), None), None);
    assert_eq!(kind(OutcomeClass::Ambiguous, None), None);
    assert_eq!(of(OutcomeClass::Retry(Scope::Recipient), Some(451)).unwrap().evidence, "451 said so");
}

#[test]
fn the_state_is_small_and_is_kept_as_json() {
    let mut path = busy(100);
    assert_eq!(serde_json::from_str::<PathState>("{}").unwrap(), PathState::default());
    path.answered(&unlimited(), noon(), &deferred(Meaning::Reputation)).unwrap();
    (0..200).for_each(|_| {
        path.answered(&unlimited(), noon(), &deferred(None));
    });
    let text = serde_json::to_string(&path).unwrap();
    assert!(text.len() < 1200, "{}: {text}", text.len());
    assert_eq!(serde_json::from_str::<PathState>(&text).unwrap(), path);
}

#[test]
fn names_are_those_of_the_contract() {
    for status in PathStatus::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    for meaning in [
        Meaning::Rate,
        Meaning::Reputation,
        Meaning::BlockedIp,
        Meaning::BlockedDomain,
        Meaning::Authentication,
        Meaning::Content,
    ] {
        let reason = BrakeReason::of(meaning).unwrap();
        assert_eq!(serde_json::to_value(reason).unwrap(), serde_json::to_value(meaning).unwrap());
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
    }
    assert_eq!(BrakeReason::of(Meaning::User), None);
}
