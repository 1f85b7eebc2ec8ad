//! Rate limit of a campaign, in messages a minute; any 6 seconds have at most a tenth of it (at least one message).

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The shorter window.
const SPURT: Duration = Duration::from_secs(6);

/// The longer window.
const MINUTE: Duration = Duration::from_mins(1);

/// Messages that a campaign began recently, as far as they count for its rate limit.
///
/// Exact to the millisecond. Stores one entry for each millisecond in which messages began: at most 6,000, or fewer
/// than ten for limits below ten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    limit: u32,
    begun: VecDeque<(Timestamp, u32)>,
}

impl Pacing {
    /// Returns the state before the first message, for a limit in messages a minute; 0 counts as 1.
    pub fn new(limit: u32) -> Self {
        Self { limit: limit.max(1), begun: VecDeque::new() }
    }

    /// Returns the state for unknown earlier messages: as if as many as the limit allows began at `now`.
    pub fn used_up(limit: u32, now: Timestamp) -> Self {
        let pacing = Self::new(limit);
        let most = pacing.windows().map(|(_, most)| most).max().unwrap_or(1);
        Self { begun: VecDeque::from([(now, most)]), ..pacing }
    }

    /// Returns the number of messages that may begin within 6 seconds.
    pub fn per_spurt(&self) -> u32 {
        (self.limit / 10).max(1)
    }

    /// Returns the windows to check, each with its limit. For limits of ten or more, the 6-second window implies the
    /// minute's.
    fn windows(&self) -> impl Iterator<Item = (Duration, u32)> {
        let minute = (self.limit < 10).then_some((MINUTE, self.limit));
        std::iter::once((SPURT, self.per_spurt())).chain(minute)
    }

    /// Returns the number of messages that may begin at `now`.
    pub fn free(&self, now: Timestamp) -> u32 {
        let left = |(window, most): (Duration, u32)| most.saturating_sub(self.within(window, now));
        self.windows().map(left).min().unwrap_or(0)
    }

    /// Returns the time at which the next message may begin; `None` for `now`.
    pub fn next_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.windows().filter_map(|(window, most)| self.free_in(window, most, now)).max()
    }

    /// Admits up to `wanted` messages at `now`, counts them and returns how many; the others must not begin.
    pub fn take(&mut self, wanted: u32, now: Timestamp) -> u32 {
        let longest = if self.limit < 10 { MINUTE } else { SPURT };
        while self.begun.front().is_some_and(|(begun, _)| *begun + longest <= now) {
            self.begun.pop_front();
        }
        // The clock was set back by more than the window: times that it gave before were wrong.
        while self.begun.back().is_some_and(|(begun, _)| *begun > now + longest) {
            self.begun.pop_back();
        }
        let taken = wanted.min(self.free(now));
        if taken > 0 {
            // If the clock was set back by less, the messages count at the latest time: dropping their entry too early
            // would exceed the limit.
            let at = self.begun.back().map_or(now, |(begun, _)| (*begun).max(now));
            match self.begun.back_mut() {
                Some((begun, count)) if *begun == at => *count += taken,
                _ => self.begun.push_back((at, taken)),
            }
        }
        taken
    }

    fn counts(&self, window: Duration, now: Timestamp) -> impl DoubleEndedIterator<Item = (Timestamp, u32)> + '_ {
        let counts = move |(begun, _): &(Timestamp, u32)| *begun + window > now && *begun <= now + window;
        self.begun.iter().copied().filter(counts)
    }

    fn within(&self, window: Duration, now: Timestamp) -> u32 {
        self.counts(window, now).map(|(_, count)| count).sum()
    }

    fn free_in(&self, window: Duration, most: u32, now: Timestamp) -> Option<Timestamp> {
        let mut left = self.within(window, now).checked_sub(most)? + 1;
        // Finds the oldest entry whose expiry leaves room for one message.
        self.counts(window, now).find_map(|(begun, count)| {
            let is_last = count >= left;
            left = left.saturating_sub(count);
            is_last.then(|| begun + window)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_tenth_in_six_seconds() {
        let mut pacing = Pacing::new(100);
        assert_eq!((pacing.free(at(0)), pacing.next_at(at(0))), (10, None));
        assert_eq!(pacing.take(4, at(0)), 4);
        assert_eq!(pacing.take(9, at(1000)), 6);
        assert_eq!((pacing.take(1, at(5999)), pacing.next_at(at(5999))), (0, Some(at(6000))));
        assert_eq!((pacing.take(5, at(6000)), pacing.next_at(at(6000))), (4, Some(at(7000))));
    }

    #[test]
    fn small_limits_hold_for_the_minute_too() {
        let mut pacing = Pacing::new(2);
        assert_eq!(pacing.take(2, at(0)), 1);
        assert_eq!(pacing.next_at(at(0)), Some(at(6000)));
        assert_eq!(pacing.take(1, at(6000)), 1);
        assert_eq!(pacing.next_at(at(6000)), Some(at(60_000)));
        assert_eq!(pacing.take(1, at(60_000)), 1);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_it() {
        let mut pacing = Pacing::new(10);
        assert_eq!(pacing.take(1, at(1_000_000)), 1);
        assert_eq!(pacing.take(1, at(500_000)), 1);
        // A clock set back by less than the window only delays the next message.
        assert_eq!(pacing.take(1, at(499_000)), 0);
        assert_eq!(pacing.next_at(at(499_000)), Some(at(506_000)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut pacing = Pacing::new(1_000_000);
        let begun: u32 = (0..8000).map(|millis| pacing.take(15, at(millis))).sum();
        assert!(pacing.begun.len() <= 6000, "{}", pacing.begun.len());
        assert_eq!(begun, 15 * 8000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_window_holds_more(limit in 1_u32..60, steps in prop::collection::vec((0_i64..9000, 0_u32..8), 1..60)) {
            let mut pacing = Pacing::new(limit);
            let (mut now, mut begun) = (0, Vec::new());
            for (pause, wanted) in steps {
                now += pause;
                let free = pacing.free(at(now));
                let next = pacing.next_at(at(now));
                prop_assert_eq!(free == 0, next.is_some());
                if let Some(next) = next {
                    prop_assert!(pacing.free(next) > 0 && pacing.free(next - Duration::from_millis(1)) == 0);
                }
                let taken = pacing.take(wanted, at(now));
                prop_assert_eq!(taken, wanted.min(free));
                begun.extend(std::iter::repeat_n(now, usize::try_from(taken).unwrap()));
            }
            for start in &begun {
                let within = |span: i64| begun.iter().filter(|one| (*start..*start + span).contains(one)).count();
                prop_assert!(within(6000) <= usize::try_from((limit / 10).max(1)).unwrap());
                prop_assert!(within(60_000) <= usize::try_from(limit).unwrap());
            }
        }
    }
}
