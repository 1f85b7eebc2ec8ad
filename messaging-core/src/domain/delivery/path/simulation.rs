//! Thirty days of a source at a site that trusts it more with each good day.

use std::time::Duration;

use super::*;
use crate::domain::delivery::site::{Meaning, Verdict};

/// Messages a day that the load wants to send.
const WANTED: u32 = 50_000;

const DAYS: u64 = 30;

fn beginning() -> Timestamp {
    "2026-03-01T00:00:00Z".parse().unwrap()
}

/// A site that accepts from an address half as much again as on its best day, defers the rest, and blocks an address
/// that continues.
struct Site {
    capacity: u32,
    day: u64,
    taken: u32,
    excess: u32,
}

impl Site {
    const fn new() -> Self {
        Self { capacity: 60, day: 0, taken: 0, excess: 0 }
    }

    fn answer(&mut self, now: Timestamp) -> PathReply {
        let day = now.since(beginning()).as_secs() / 86_400;
        if day > self.day {
            self.capacity = self.capacity.max(self.taken + self.taken / 2);
            (self.day, self.taken) = (day, 0);
        }
        if self.excess > 200 {
            return refusal(ReplyKind::Refused, Meaning::BlockedIp, true);
        }
        if self.taken >= self.capacity {
            self.excess += 1;
            return refusal(ReplyKind::Deferred, Meaning::Rate, false);
        }
        self.taken += 1;
        PathReply { kind: ReplyKind::Accepted, verdict: None, evidence: String::new() }
    }
}

fn refusal(kind: ReplyKind, meaning: Meaning, is_permanent: bool) -> PathReply {
    PathReply { kind, verdict: Some(Verdict::new(meaning, is_permanent)), evidence: "no".to_owned() }
}

#[derive(Default)]
struct Ran {
    sent: u32,
    deferred: u32,
    blocked_on: Option<u64>,
    longest_wait: Duration,
}

/// Marketing mail as fast as the path allows, at most [`WANTED`] a day, and a transactional message every three hours.
fn run(path: &mut PathState) -> Ran {
    let limits = SiteLimits::default();
    let mut site = Site::new();
    let mut ran = Ran::default();
    for day in 0..DAYS {
        let midnight = beginning() + Duration::from_hours(24 * day);
        let end = midnight + Duration::from_hours(24);
        let (mut now, mut left, mut urgent_at) = (midnight, WANTED, midnight);
        while now < end && ran.blocked_on.is_none() {
            let is_urgent = now >= urgent_at;
            let priority = if is_urgent {
                Priority::Transactional { expires_at: urgent_at + Duration::from_hours(72) }
            } else {
                Priority::Marketing
            };
            let until = match path.may_send(&limits, now, priority) {
                Permission::Allowed | Permission::Overdue => None,
                Permission::Wait(Wait { until, .. }) => Some(until.unwrap_or(end)),
            };
            if let Some(until) = until.or((left == 0 && !is_urgent).then_some(end)) {
                assert!(until > now, "a wait has an end that is to come");
                // A transactional message is asked for when its time has come, whatever else waits.
                now = if is_urgent { until } else { until.min(urgent_at.max(now + Duration::from_millis(1))) };
                continue;
            }
            path.sent(&limits, now);
            let reply = site.answer(now);
            ran.sent += 1;
            ran.deferred += u32::from(reply.kind == ReplyKind::Deferred);
            path.answered(&limits, now, &reply);
            if path.status(now) == PathStatus::Stopped {
                ran.blocked_on = Some(day + 1);
            }
            if is_urgent {
                ran.longest_wait = ran.longest_wait.max(now.since(urgent_at));
                urgent_at = urgent_at + Duration::from_hours(3);
            } else {
                left -= 1;
                now = now + Duration::from_millis(1700);
            }
        }
    }
    ran
}

#[test]
fn a_new_source_is_warm_after_a_month_and_is_hardly_deferred() {
    let mut path = PathState::default();
    let ran = run(&mut path);
    let end = beginning() + Duration::from_hours(24 * DAYS);
    assert_eq!(ran.blocked_on, None);
    assert!(ran.deferred * 100 < ran.sent, "{} of {}", ran.deferred, ran.sent);
    assert!(!path.warm_up(&SiteLimits::default(), end).is_warming());
    assert_eq!(path.status(end), PathStatus::Ok);
    assert!(ran.sent > 6 * WANTED, "{}", ran.sent);
    assert!(ran.longest_wait < Duration::from_mins(1), "{:?}", ran.longest_wait);
}

#[test]
fn without_a_warm_up_the_same_load_is_blocked_by_day_two() {
    let ran = run(&mut PathState::known());
    assert!(ran.blocked_on.is_some_and(|day| day <= 2), "{:?}", ran.blocked_on);
}

/// Four bad addresses and half a complaint in a hundred.
#[test]
fn a_bad_list_is_braked_within_a_quarter_of_an_hour() {
    let limits = SiteLimits::default();
    for good_before in [0, 10_000] {
        let mut path = PathState::known();
        let mut now = beginning();
        let accepted = PathReply { kind: ReplyKind::Accepted, verdict: None, evidence: String::new() };
        let hard = PathReply { kind: ReplyKind::HardBounced, verdict: None, evidence: "no such user".to_owned() };
        (0..good_before).for_each(|_| assert_eq!(path.answered(&limits, now, &accepted), None));
        let begun = now;
        // The interval at which a warm source sends 300,000 messages a day.
        for turn in 1.. {
            path.sent(&limits, now);
            path.answered(&limits, now, if turn % 25 == 0 { &hard } else { &accepted });
            if turn % 200 == 0 {
                path.complained(&limits, now);
            }
            if path.status(now) != PathStatus::Ok {
                break;
            }
            now = now + Duration::from_millis(288);
            assert!(now.since(begun) < Duration::from_mins(15), "not braked after {good_before} good messages");
        }
        assert_eq!(path.report(&limits, now).reason, Some(BrakeReason::Complaints));
    }
}
