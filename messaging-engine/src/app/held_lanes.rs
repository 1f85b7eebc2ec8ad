//! Lanes that this process leaves alone for a while, because what their jobs make would only wait.
//!
//! When the time of a lane is over, one of its jobs at a time finds out whether there is room, until one has found some.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::store::Claim;
use messaging_core::time::Monotonic;

/// Number of lanes that can be held at a time; the jobs of others wait one by one.
const MAX_HELD: usize = 10_000;

/// Time after which a lane is forgotten whose jobs found no room again: they are gone, or are another process's now.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// Lanes that are held, each until a time.
#[derive(Debug, Default)]
pub(crate) struct HeldLanes {
    held: Mutex<HashMap<Lane, Monotonic>>,
}

impl HeldLanes {
    /// Holds a lane until a time.
    pub(crate) fn hold(&self, lane: Lane, now: Monotonic, until: Monotonic) {
        let mut held = self.lock();
        if held.len() >= MAX_HELD {
            held.retain(|_, until| *until > now);
        }
        if held.len() < MAX_HELD {
            held.insert(lane, until);
        }
    }

    /// Lets all jobs of a lane run: one found room.
    pub(crate) fn release(&self, lane: &Lane) {
        self.lock().remove(lane);
    }

    /// Has a claim leave out the lanes whose time is not over, and take one job of each of the others.
    pub(crate) fn bound(&self, claim: &mut Claim) {
        let mut held = self.lock();
        held.retain(|_, until| claim.monotonic.since(*until) < FORGOTTEN_AFTER);
        for (lane, until) in held.iter() {
            if *until > claim.monotonic {
                claim.shares.remove(lane);
                claim.hold.push((lane.clone(), *until));
            } else {
                claim.shares.insert(lane.clone(), 1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Lane, Monotonic>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::lane::JobClass;
    use messaging_core::ids::{Id as _, WorkspaceId};
    use messaging_core::time::Timestamp;

    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    fn claim(monotonic: Monotonic) -> Claim {
        Claim::new(Timestamp::from_millis(0), monotonic, Duration::from_secs(1))
    }

    #[test]
    fn a_lane_is_held_until_its_time_and_then_tried_until_there_is_room() {
        let lane = |resource| Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), resource);
        let lanes = HeldLanes::default();
        lanes.hold(lane("a"), at(0), at(5));
        lanes.hold(lane("b"), at(0), at(9));
        let mut before = claim(at(4));
        lanes.bound(&mut before);
        assert_eq!((before.hold.len(), before.shares.len()), (2, 0));
        let mut between = claim(at(5));
        lanes.bound(&mut between);
        assert_eq!(between.hold, [(lane("b"), at(9))]);
        assert_eq!(between.shares.get(&lane("a")), Some(&1));
        lanes.release(&lane("a"));
        let mut after = claim(at(9));
        lanes.bound(&mut after);
        assert!(after.hold.is_empty());
        assert_eq!(after.shares.keys().collect::<Vec<_>>(), [&lane("b")]);
        let mut later = claim(at(69));
        lanes.bound(&mut later);
        assert!(later.hold.is_empty() && later.shares.is_empty());
    }

    #[test]
    fn the_number_of_held_lanes_is_bounded() {
        let lanes = HeldLanes::default();
        for n in 0..MAX_HELD + 10 {
            lanes.hold(Lane::parse(&format!("b/wsp_1/{n}")), at(0), at(5));
        }
        let mut all = claim(at(1));
        lanes.bound(&mut all);
        assert_eq!(all.hold.len(), MAX_HELD);
    }
}
