//! How many jobs of each lane may be in work at the same time.
//!
//! A lane begins with a small window, which grows with every job that ends quickly and falls back when
//! one takes long: a lane whose peer is dead or slow holds few of the places that all lanes share, and a
//! lane that works well soon gets all the places it can use. Neither bulk work nor one workspace gets all places: who
//! comes later finds some free.

use std::collections::HashMap;
use std::time::Duration;

use messaging_core::domain::lane::{Flow, JobClass, Lane};
use messaging_core::ports::store::Claim;
use messaging_core::time::{Monotonic, Timestamp};

use crate::jobs::lanes::WEBHOOK;

/// Jobs in work at the same time, all lanes together.
pub(super) const WINDOW: usize = 2048;
/// Bulk jobs in work at the same time: as many as one lane may have. What they do is in the way of everything else.
const BULK_WINDOW: usize = LARGEST;
/// Jobs of one flow in work at the same time, so that slow peers of one workspace do not hold all places.
const FLOW_WINDOW: usize = WINDOW / 4 * 3;
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
pub(super) struct Lanes {
    lanes: HashMap<Lane, LaneWindow>,
    /// How many jobs of each flow are in work; flows without any are not in it.
    flows: HashMap<Flow, usize>,
}

#[derive(Debug, Clone, Copy)]
struct LaneWindow {
    in_work: usize,
    window: usize,
}

impl Lanes {
    /// A job of the lane begins.
    pub(super) fn begin(&mut self, lane: &Lane) {
        *self.flows.entry(lane.flow()).or_default() += 1;
        if let Some(known) = self.lanes.get_mut(lane) {
            known.in_work += 1;
            return;
        }
        if self.lanes.len() >= REMEMBERED {
            self.lanes.retain(|_, lane| lane.in_work > 0);
        }
        self.lanes.insert(lane.clone(), LaneWindow { in_work: 1, window: SMALLEST });
    }

    /// A job of the lane ended after `took`.
    pub(super) fn end(&mut self, lane: &Lane, took: Duration) {
        let flow = lane.flow();
        if let Some(in_work) = self.flows.get_mut(&flow) {
            *in_work -= 1;
            if *in_work == 0 {
                self.flows.remove(&flow);
            }
        }
        if let Some(known) = self.lanes.get_mut(lane) {
            known.in_work -= 1;
            known.window = if took < QUICK {
                (known.window + 1).min(LARGEST)
            } else if lane.resource().starts_with(WEBHOOK) && took >= HANGING {
                HUNG
            } else {
                SMALLEST
            };
        }
    }

    /// The lanes whose windows are known.
    pub(super) fn known(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.keys()
    }

    /// What to claim while `room` more jobs can be taken in work.
    pub(super) fn claim(&self, room: usize, now: Timestamp, monotonic: Monotonic, lease: Duration) -> Claim {
        let bulk = self.flows.iter().filter(|(flow, _)| flow.class == JobClass::Bulk).map(|(_, in_work)| in_work);
        let left_of_flow = |(flow, in_work): (&Flow, &usize)| (*flow, FLOW_WINDOW.saturating_sub(*in_work));
        let busy = self.lanes.iter().map(|(name, lane)| (name, lane.window.saturating_sub(lane.in_work)));
        let (full, open): (Vec<_>, Vec<_>) = busy.partition(|(_, left)| *left == 0);
        Claim {
            max: room,
            bulk: BULK_WINDOW.saturating_sub(bulk.sum()),
            per_flow: FLOW_WINDOW,
            flows: self.flows.iter().map(left_of_flow).collect(),
            per_lane: SMALLEST,
            shares: open.into_iter().map(|(name, left)| (name.clone(), left.min(SHARE))).collect(),
            hold: full.into_iter().map(|(name, _)| (name.clone(), monotonic + HOLD)).collect(),
            ..Claim::new(now, monotonic, lease)
        }
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    const NOW: Monotonic = Monotonic::new(Duration::ZERO);

    fn claim(lanes: &Lanes) -> Claim {
        lanes.claim(WINDOW, Timestamp::from_millis(0), NOW, Duration::from_mins(1))
    }

    #[test]
    fn a_lane_that_works_well_gets_more_and_a_slow_one_falls_back() {
        let mut lanes = Lanes::default();
        let quick = Duration::from_millis(5);
        lanes.begin(&"a".into());
        assert_eq!(claim(&lanes).shares["a"], SMALLEST - 1);
        lanes.end(&"a".into(), quick);
        assert_eq!(claim(&lanes).shares["a"], SMALLEST + 1);
        for _ in 0..LARGEST {
            lanes.begin(&"a".into());
            lanes.end(&"a".into(), quick);
        }
        assert_eq!(claim(&lanes).shares["a"], SHARE);
        for _ in 0..LARGEST {
            assert_eq!(claim(&lanes).hold, []);
            lanes.begin(&"a".into());
        }
        assert_eq!(claim(&lanes).hold, [("a".into(), NOW + HOLD)]);
        lanes.end(&"a".into(), QUICK);
        assert_eq!(claim(&lanes).hold.len(), 1, "more are in work than the window that fell back");
    }

    #[test]
    fn a_receiver_that_hangs_keeps_few_places_until_it_answers() {
        let mut lanes = Lanes::default();
        lanes.begin(&"webhook:a".into());
        lanes.end(&"webhook:a".into(), HANGING);
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG);
        lanes.begin(&"webhook:a".into());
        lanes.end(&"webhook:a".into(), Duration::ZERO);
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG + 1);
        lanes.begin(&"email:a".into());
        lanes.end(&"email:a".into(), HANGING);
        assert_eq!(claim(&lanes).shares["email:a"], SMALLEST);
    }

    #[test]
    fn windows_of_idle_lanes_are_forgotten_when_there_are_many() {
        let mut lanes = Lanes::default();
        lanes.begin(&"busy".into());
        for number in 0..REMEMBERED * 2 {
            let name = Lane::parse(&number.to_string());
            lanes.begin(&name);
            lanes.end(&name, Duration::ZERO);
        }
        assert!(lanes.lanes.len() <= REMEMBERED && lanes.lanes.contains_key("busy"));
    }

    #[test]
    fn neither_bulk_work_nor_one_workspace_gets_all_places() {
        let mut lanes = Lanes::default();
        let workspace = |number| WorkspaceId::from_bytes([number; 16]);
        let lane = |class, owner, number: usize| Lane::new(class, workspace(owner), &number.to_string());
        for number in 0..BULK_WINDOW {
            assert_eq!(claim(&lanes).bulk, BULK_WINDOW - number);
            lanes.begin(&lane(JobClass::Bulk, 9, number));
        }
        assert_eq!(claim(&lanes).bulk, 0);
        for number in 0..FLOW_WINDOW {
            lanes.begin(&lane(JobClass::Transactional, 1, number));
        }
        let flow = |owner| Flow { class: JobClass::Transactional, workspace: Some(workspace(owner)) };
        let full = claim(&lanes);
        assert_eq!((full.flows[&flow(1)], full.flows.get(&flow(2)), full.per_flow), (0, None, FLOW_WINDOW));
        lanes.end(&lane(JobClass::Bulk, 9, 0), Duration::ZERO);
        lanes.end(&lane(JobClass::Transactional, 1, 0), Duration::ZERO);
        let next = claim(&lanes);
        assert_eq!((next.bulk, next.flows[&flow(1)]), (1, 1));
    }
}
