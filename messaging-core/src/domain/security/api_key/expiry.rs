//! Warnings before a key expires: the due one, and the time of the next.

use std::time::Duration;

use serde_json::{Value, json};

use super::ApiKey;
use crate::time::Timestamp;

/// Days before its end at which a warning about a key is given, the earliest first.
pub const WARN_DAYS: [u8; 2] = [14, 3];

/// Time before the end of a key from which on it is shown as one that ends soon.
pub const SOON: Duration = Duration::from_hours(14 * 24);

/// Returns the end of a key that needs a warning: `None` for a revoked or replaced one.
pub fn end(key: &ApiKey) -> Option<Timestamp> {
    key.expires_at.filter(|_| key.revoked_at.is_none() && key.replaced_by.is_none())
}

/// Returns the warnings still to come, with their times. A key whose whole lifetime is no longer than a warning's days
/// has no such warning: its creator knows.
fn outstanding(key: &ApiKey) -> impl Iterator<Item = (u8, Timestamp)> {
    let (end, created_at, warned) = (end(key), key.created_at, key.warned_days);
    WARN_DAYS.into_iter().filter_map(move |days| {
        let (end, before) = (end?, Duration::from_hours(24 * u64::from(days)));
        let is_outstanding = warned.is_none_or(|warned| days < warned) && end.since(created_at) > before;
        is_outstanding.then_some((days, end - before))
    })
}

/// Returns the time of the next warning; `None` if there is none.
pub fn next_warning(key: &ApiKey) -> Option<Timestamp> {
    outstanding(key).map(|(_, at)| at).next()
}

/// Returns the key after a check, and whether a warning is to be given. Of several due warnings only the last is given.
/// A key that has ended gives no warning.
pub fn look(key: ApiKey, now: Timestamp) -> (ApiKey, bool) {
    let due = outstanding(&key).filter(|(_, at)| *at <= now).last();
    let warns = due.is_some() && key.is_live(now);
    let warned_days = due.map(|(days, _)| days).or(key.warned_days);
    (ApiKey { warned_days, ..key }, warns)
}

/// Returns the whole days until `end`, begun ones counted.
pub fn days_left(end: Timestamp, now: Timestamp) -> u64 {
    end.since(now).as_secs().div_ceil(24 * 3600)
}

/// Returns a sample event, for tests of webhooks.
pub fn sample() -> Value {
    json!({
        "key_id": "key_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
        "name": "backend",
        "prefix": "mk_live_ab12cd34ef56",
        "expires_at": "2026-02-14T09:15:00.000Z",
        "days": 14,
        "last_used_at": "2026-01-31T09:14:00.000Z",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn at(days: u32) -> Timestamp {
        Timestamp::from_millis(0) + DAY * days
    }

    /// A key of so many days.
    fn key(life: u32) -> ApiKey {
        ApiKey { expires_at: Some(at(life)), ..super::super::sample(at(0)) }
    }

    #[test]
    fn each_warning_is_given_once() {
        let mut key = key(90);
        let mut given = Vec::new();
        // Also where the clock is set back.
        for day in (0..=100).chain(70..=100) {
            let (looked_at, warns) = look(key, at(day));
            key = looked_at;
            if warns {
                given.push((day, key.warned_days));
            }
        }
        assert_eq!(given, [(76, Some(14)), (87, Some(3))]);
        assert_eq!(next_warning(&key), None);
    }

    #[test]
    fn the_next_warning_has_a_time() {
        let key = key(90);
        assert_eq!(next_warning(&key), Some(at(76)));
        assert_eq!(next_warning(&look(key.clone(), at(76)).0), Some(at(87)));
        assert_eq!(next_warning(&ApiKey { revoked_at: Some(at(1)), ..key.clone() }), None);
        assert_eq!(next_warning(&ApiKey { replaced_by: Some(key.id), ..key.clone() }), None);
        assert_eq!(next_warning(&ApiKey { expires_at: None, ..key }), None);
    }

    #[test]
    fn a_key_of_few_days_is_not_warned_of_what_was_known() {
        assert_eq!(next_warning(&key(14)), Some(at(11)));
        assert_eq!(next_warning(&key(15)), Some(at(1)));
        assert_eq!(next_warning(&key(3)), None);
        assert_eq!(next_warning(&key(1)), None);
    }

    #[test]
    fn what_comes_late_is_one_warning_and_after_the_end_none() {
        let (late, warns) = look(key(90), at(88));
        assert_eq!((late.warned_days, warns), (Some(3), true));
        let (over, warns) = look(key(90), at(90));
        assert_eq!((over.warned_days, warns), (Some(3), false));
        let (early, warns) = look(key(90), at(75));
        assert_eq!((early.warned_days, warns), (None, false));
    }

    #[test]
    fn days_that_have_begun_count() {
        assert_eq!(days_left(at(14), at(0)), 14);
        assert_eq!(days_left(at(14), at(0) + Duration::from_secs(1)), 14);
        assert_eq!(days_left(at(14), at(13) + Duration::from_secs(1)), 1);
        assert_eq!(days_left(at(14), at(15)), 0);
    }
}
