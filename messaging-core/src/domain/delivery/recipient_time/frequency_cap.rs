//! Frequency caps: maximum numbers of marketing messages for a contact on a channel in any 24 and in any 168 hours.

use std::time::Duration;

use crate::domain::campaign::settings::{DeferHours, FrequencyCap, WhenReached};
use crate::time::Timestamp;

/// The shorter window.
const DAY: Duration = Duration::from_hours(24);

/// The longer window; older sends count for no cap.
pub const WEEK: Duration = Duration::from_hours(168);

/// Verdict of a cap on one more message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapLook {
    /// The message may be sent.
    Free,
    /// The cap is reached, and the message does not wait.
    Reached,
    /// The cap is reached until this time.
    FreeAt(Timestamp),
    /// The longest wait of the message ends at this time, and the cap is reached until a later one.
    GivesUpAt(Timestamp),
}

impl FrequencyCap {
    /// Returns the verdict on one more message at `now`. `sends` are the times at which attempts began, in any order.
    /// `since` is the time at which the cap first held this message; a time in the future, given before the clock was
    /// set back, counts as now.
    pub fn look(&self, sends: &[Timestamp], since: Option<Timestamp>, now: Timestamp) -> CapLook {
        let Some(free) = self.free_at(sends, now) else { return CapLook::Free };
        if self.when_reached == WhenReached::Suppress {
            return CapLook::Reached;
        }
        let end = since.map_or(now, |since| since.min(now)) + self.defer_hours.span();
        match () {
            () if now >= end => CapLook::Reached,
            () if free > end => CapLook::GivesUpAt(end),
            () => CapLook::FreeAt(free),
        }
    }

    /// Returns `cap` with at most one message a week, for a recipient who wishes that.
    #[must_use]
    pub fn at_most_weekly(cap: Option<Self>) -> Self {
        let weekly = Self {
            per_day: None,
            per_week: Some(1),
            when_reached: WhenReached::default(),
            defer_hours: DeferHours::default(),
        };
        cap.map_or(weekly, |cap| Self { per_week: Some(1), ..cap })
    }

    /// Returns the time at which the cap allows one more message; `None` if it does at `now`.
    pub fn free_at(&self, sends: &[Timestamp], now: Timestamp) -> Option<Timestamp> {
        let windows = [(self.per_day, DAY), (self.per_week, WEEK)];
        // A window that has room keeps it until something is sent, so both have room at the later of the two times.
        windows.into_iter().filter_map(|(most, window)| free_in(sends, most?, window, now)).max()
    }
}

/// Returns the time at which fewer than `most` sends (0 counts as 1) lie in the window that ends at that time; `None`
/// if that is so at `now`.
fn free_in(sends: &[Timestamp], most: u32, window: Duration, now: Timestamp) -> Option<Timestamp> {
    // A send is in the window from its own instant until just before `window` has passed.
    let mut ends: Vec<_> = sends.iter().map(|sent| *sent + window).filter(|end| *end > now).collect();
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let surplus = ends.len().checked_sub(most)?;
    ends.sort_unstable();
    ends.get(surplus).copied()
}

/// Returns the sends that still count, those within the longer window, oldest first.
pub fn remembered(sends: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    let mut kept: Vec<_> = sends.iter().copied().filter(|sent| *sent + WEEK > now).collect();
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn cap(members: serde_json::Value) -> FrequencyCap {
        serde_json::from_value(members).unwrap()
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * HOUR)
    }

    #[test]
    fn windows_roll() {
        let daily = cap(json!({"per_day": 1}));
        assert_eq!(daily.free_at(&[], at(0)), None);
        assert_eq!(daily.free_at(&[at(0)], at(0)), Some(at(24)));
        assert_eq!(daily.free_at(&[at(0)], at(24) - Duration::from_millis(1)), Some(at(24)));
        assert_eq!(daily.free_at(&[at(0)], at(24)), None);
        let both = cap(json!({"per_day": 2, "per_week": 3}));
        assert_eq!(both.free_at(&[at(5), at(0)], at(6)), Some(at(24)));
        assert_eq!(both.free_at(&[at(0), at(30), at(40)], at(41)), Some(at(168)));
        assert_eq!(both.free_at(&[at(0), at(150), at(160)], at(161)), Some(at(174)));
        // More sends than allowed, as when the cap was lowered.
        assert_eq!(daily.free_at(&[at(0), at(1), at(2)], at(3)), Some(at(26)));
    }

    #[test]
    fn what_becomes_of_a_message_beyond_it() {
        let sends = [at(0)];
        assert_eq!(cap(json!({"per_day": 1})).look(&sends, None, at(1)), CapLook::Reached);
        let patient = cap(json!({"per_day": 1, "when_reached": "defer"}));
        assert_eq!(patient.look(&sends, None, at(1)), CapLook::FreeAt(at(24)));
        assert_eq!(patient.look(&sends, Some(at(1)), at(24)), CapLook::Free);
        let hasty = cap(json!({"per_day": 1, "when_reached": "defer", "defer_hours": 5}));
        assert_eq!(hasty.look(&sends, None, at(1)), CapLook::GivesUpAt(at(6)));
        assert_eq!(hasty.look(&sends, Some(at(1)), at(5)), CapLook::GivesUpAt(at(6)));
        assert_eq!(hasty.look(&sends, Some(at(1)), at(6)), CapLook::Reached);
        // The clock was set back: a message does not wait for a date that is far ahead.
        assert_eq!(hasty.look(&sends, Some(at(100)), at(1)), CapLook::GivesUpAt(at(6)));
        // A message that was cancelled does not count.
        assert_eq!(hasty.look(&[], Some(at(1)), at(6)), CapLook::Free);
        assert_eq!(hasty.look(&sends, None, at(19)), CapLook::FreeAt(at(24)));
    }

    #[test]
    fn a_reader_s_wish_makes_a_cap_stricter() {
        let weekly = FrequencyCap::at_most_weekly(None);
        assert_eq!(weekly.look(&[at(0)], None, at(167)), CapLook::Reached);
        assert_eq!(weekly.look(&[at(0)], None, at(168)), CapLook::Free);
        let patient = cap(json!({"per_day": 2, "per_week": 5, "when_reached": "defer", "defer_hours": 168}));
        let both = FrequencyCap::at_most_weekly(Some(patient));
        assert_eq!(both, cap(json!({"per_day": 2, "per_week": 1, "when_reached": "defer", "defer_hours": 168})));
        assert_eq!(both.look(&[at(0)], None, at(1)), CapLook::FreeAt(at(168)));
    }

    #[test]
    fn a_week_is_remembered() {
        assert_eq!(remembered(&[at(3), at(0), at(1)], at(168)), [at(1), at(3)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares `free_at` with a count for each hour: it returns the first hour at which neither window is full.
        #[test]
        fn a_place_comes_free_when_counting_says_so(
            sends in prop::collection::vec(0_i64..400, 0..12), now in 0_i64..400, day in 1_u32..4, week in 1_u32..6,
        ) {
            let times: Vec<_> = sends.iter().map(|hours| at(*hours)).collect();
            let cap = cap(json!({"per_day": day, "per_week": week}));
            let is_free = |hour: i64| {
                let within = |span: i64| u32::try_from(sends.iter().filter(|sent| **sent > hour - span).count()).unwrap();
                within(24) < day && within(168) < week
            };
            let expected = (now..1000).find(|hour| is_free(*hour)).unwrap();
            let found = cap.free_at(&times, at(now));
            prop_assert_eq!(found, (expected > now).then(|| at(expected)));
        }
    }
}
