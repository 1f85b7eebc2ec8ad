//! How many jobs of each lane may be in work at the same time.
//!
//! A lane begins with a small window, which grows with every job that ends quickly and falls back when
//! one takes long: a lane whose peer is dead or slow holds few of the places that all lanes share, and a
//! lane that works well soon gets all the places it can use.

use std::collections::HashMap;
use std::time::Duration;

use messaging_core::ports::store::Claim;
use messaging_core::time::{Monotonic, Timestamp};

use crate::jobs::lanes::WEBHOOK;

/// Jobs in work at the same time, all lanes together.
pub(super) const WINDOW: usize = 2048;
/// Where a lane's window begins, and falls back to: what one mail server takes at a time.
const SMALLEST: usize = 24;
/// A lane's window grows to this.
const LARGEST: usize = 512;
/// Jobs of one lane in one claim: small enough that many busy lanes take turns.
const SHARE: usize = 128;
/// A job that ends within this time is quick.
const QUICK: Duration = Duration::from_secs(1);
/// A lane that is full is looked at again after this.
pub(super) const HOLD: Duration = Duration::from_millis(200);
/// A receiver of webhooks that takes this long hangs.
const HANGING: Duration = Duration::from_secs(5);
/// A hanging receiver's lane keeps this window: whoever hangs does so for 15 seconds with every request, and
/// there may be many of them.
const HUNG: usize = 2;
/// Windows of lanes without jobs are remembered up to this number of lanes.
const REMEMBERED: usize = 1024;

/// The windows of the lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes(HashMap<String, Lane>);

#[derive(Debug, Clone, Copy)]
struct Lane {
    in_work: usize,
    window: usize,
}

impl Lanes {
    /// A job of the lane begins.
    pub(super) fn begin(&mut self, lane: &str) {
        if let Some(known) = self.0.get_mut(lane) {
            known.in_work += 1;
            return;
        }
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, lane| lane.in_work > 0);
        }
        self.0.insert(lane.to_owned(), Lane { in_work: 1, window: SMALLEST });
    }

    /// A job of the lane ended after `took`.
    pub(super) fn end(&mut self, lane: &str, took: Duration) {
        if let Some(known) = self.0.get_mut(lane) {
            known.in_work -= 1;
            known.window = if took < QUICK {
                (known.window + 1).min(LARGEST)
            } else if lane.starts_with(WEBHOOK) && took >= HANGING {
                HUNG
            } else {
                SMALLEST
            };
        }
    }

    /// What to claim while `room` more jobs can be taken in work.
    pub(super) fn claim(&self, room: usize, now: Timestamp, monotonic: Monotonic, lease: Duration) -> Claim {
        let busy = self.0.iter().map(|(name, lane)| (name, lane.window.saturating_sub(lane.in_work)));
        let (full, open): (Vec<_>, Vec<_>) = busy.partition(|(_, left)| *left == 0);
        Claim {
            now,
            monotonic,
            lease,
            max: room,
            per_lane: SMALLEST,
            shares: open.into_iter().map(|(name, left)| (name.clone(), left.min(SHARE))).collect(),
            hold: full.into_iter().map(|(name, _)| (name.clone(), monotonic + HOLD)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Monotonic = Monotonic::new(Duration::ZERO);

    fn claim(lanes: &Lanes) -> Claim {
        lanes.claim(WINDOW, Timestamp::from_millis(0), NOW, Duration::from_mins(1))
    }

    #[test]
    fn a_lane_that_works_well_gets_more_and_a_slow_one_falls_back() {
        let mut lanes = Lanes::default();
        let quick = Duration::from_millis(5);
        lanes.begin("a");
        assert_eq!(claim(&lanes).shares["a"], SMALLEST - 1);
        lanes.end("a", quick);
        assert_eq!(claim(&lanes).shares["a"], SMALLEST + 1);
        for _ in 0..LARGEST {
            lanes.begin("a");
            lanes.end("a", quick);
        }
        assert_eq!(claim(&lanes).shares["a"], SHARE);
        for _ in 0..LARGEST {
            assert_eq!(claim(&lanes).hold, []);
            lanes.begin("a");
        }
        assert_eq!(claim(&lanes).hold, [("a".to_owned(), NOW + HOLD)]);
        lanes.end("a", QUICK);
        assert_eq!(claim(&lanes).hold.len(), 1, "more are in work than the window that fell back");
    }

    #[test]
    fn a_receiver_that_hangs_keeps_few_places_until_it_answers() {
        let mut lanes = Lanes::default();
        lanes.begin("webhook:a");
        lanes.end("webhook:a", HANGING);
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG);
        lanes.begin("webhook:a");
        lanes.end("webhook:a", Duration::ZERO);
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG + 1);
        lanes.begin("email:a");
        lanes.end("email:a", HANGING);
        assert_eq!(claim(&lanes).shares["email:a"], SMALLEST);
    }

    #[test]
    fn windows_of_idle_lanes_are_forgotten_when_there_are_many() {
        let mut lanes = Lanes::default();
        lanes.begin("busy");
        for number in 0..REMEMBERED * 2 {
            let name = number.to_string();
            lanes.begin(&name);
            lanes.end(&name, Duration::ZERO);
        }
        assert!(lanes.0.len() <= REMEMBERED && lanes.0.contains_key("busy"));
    }
}
