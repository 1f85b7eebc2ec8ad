//! Windows of lanes: the numbers of jobs of each lane that may be in work at the same time.
//!
//! A lane begins with a small window, which grows with every job that ends quickly and falls back when one takes long:
//! a lane whose peer is dead or slow holds few of the places that all lanes share, and a lane that works well soon gets
//! all the places it can use. Neither bulk work nor one workspace gets all places, so that later work finds some free.

use std::collections::HashMap;
use std::time::Duration;

use messaging_core::domain::delivery::lane::{Flow, JobClass, Lane};
use messaging_core::ports::store::Claim;
use messaging_core::time::{Monotonic, Timestamp};

use crate::jobs::lanes::WEBHOOK;

/// Largest number of jobs in work, all lanes together.
pub(super) const WINDOW: usize = 2048;
/// Largest number of bulk jobs in work: as many as one lane may have.
const BULK_WINDOW: usize = LARGEST;
/// Number of bulk jobs that may be in work however busy the processor is; their window begins with it.
const LEAST_BULK: usize = 32;
/// Wait of a bulk job for a processor, from its claim, above which the window of all bulk jobs shrinks: too many of
/// their kind are in front of it, and all other work would wait behind them as well. Jobs that were claimed together
/// wait for one another some ten milliseconds, as long as the commits that each of them needs.
const LAG: Duration = Duration::from_millis(25);
/// Largest number of jobs of one flow in work, so that slow peers of one workspace do not hold all places.
const FLOW_WINDOW: usize = WINDOW / 4 * 3;
/// Window with which a lane begins, and to which it falls back: as many messages as one mail server takes at a time.
const SMALLEST: usize = 24;
/// Largest window of a lane.
const LARGEST: usize = 512;
/// Largest number of jobs of one lane in one claim: small enough that many busy lanes take turns.
const SHARE: usize = 128;
/// Largest number of deliveries to one webhook in one claim: little work each, and read together.
const WEBHOOK_SHARE: usize = LARGEST;
/// Longest duration of a job that counts as quick.
const QUICK: Duration = Duration::from_secs(1);
/// Time until a full lane is looked at again.
pub(super) const HOLD: Duration = Duration::from_millis(200);
/// Duration of a call from which a webhook receiver counts as hanging.
const HANGING: Duration = Duration::from_secs(5);
/// Window of the lane of a hanging receiver: it hangs for 15 seconds with every request, and there may be many such
/// receivers.
const HUNG: usize = 2;
/// Number of lanes without jobs whose windows are remembered.
const REMEMBERED: usize = 1024;

/// Windows of the lanes; the lanes of all senders to one resource share one.
#[derive(Debug)]
pub(super) struct Lanes {
    windows: HashMap<Lane, LaneWindow>,
    /// Number of jobs in work for each flow that has any.
    flows: HashMap<Flow, usize>,
    /// Number of bulk jobs that may be in work: many while they wait for their peers, few while they wait for a
    /// processor.
    bulk_window: usize,
}

/// Durations of a job that ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// From its claim until a processor was free for it.
    pub(super) lag: Duration,
    /// Time from then to its end.
    pub(super) work: Duration,
}

#[derive(Debug, Clone, Copy)]
struct LaneWindow {
    in_work: usize,
    window: usize,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { windows: HashMap::new(), flows: HashMap::new(), bulk_window: LEAST_BULK }
    }
}

impl Lanes {
    /// Counts a job of the lane that begins.
    pub(super) fn begin(&mut self, lane: &Lane) {
        *self.flows.entry(lane.flow()).or_default() += 1;
        if let Some(known) = self.windows.get_mut(lane.shared()) {
            known.in_work += 1;
            return;
        }
        if self.windows.len() >= REMEMBERED {
            self.windows.retain(|_, lane| lane.in_work > 0);
        }
        self.windows.insert(Lane::parse(lane.shared()), LaneWindow { in_work: 1, window: SMALLEST });
    }

    /// Counts a job of the lane that ended, and adapts the windows to its durations.
    pub(super) fn end(&mut self, lane: &Lane, took: Took) {
        let flow = lane.flow();
        if flow.class == JobClass::Bulk {
            self.bulk_window =
                if took.lag > LAG { self.bulk_window - 1 } else { self.bulk_window + 1 }.clamp(LEAST_BULK, BULK_WINDOW);
        }
        if let Some(in_work) = self.flows.get_mut(&flow) {
            *in_work -= 1;
            if *in_work == 0 {
                self.flows.remove(&flow);
            }
        }
        if let Some(known) = self.windows.get_mut(lane.shared()) {
            known.in_work -= 1;
            known.window = if took.work < QUICK {
                (known.window + 1).min(LARGEST)
            } else if lane.resource().starts_with(WEBHOOK) && took.work >= HANGING {
                HUNG
            } else {
                SMALLEST
            };
        }
    }

    /// Lanes whose windows are known.
    pub(super) fn known(&self) -> impl Iterator<Item = &Lane> {
        self.windows.keys()
    }

    /// Returns the claim to make while `room` more jobs can be taken in work.
    pub(super) fn claim(&self, room: usize, now: Timestamp, monotonic: Monotonic, lease: Duration) -> Claim {
        let bulk = self.flows.iter().filter(|(flow, _)| flow.class == JobClass::Bulk).map(|(_, in_work)| in_work);
        let left_of_flow = |(flow, in_work): (&Flow, &usize)| (*flow, FLOW_WINDOW.saturating_sub(*in_work));
        let busy = self.windows.iter().map(|(name, lane)| (name, lane.window.saturating_sub(lane.in_work)));
        let (full, open): (Vec<_>, Vec<_>) = busy.partition(|(_, left)| *left == 0);
        Claim {
            max: room,
            bulk: self.bulk_window.saturating_sub(bulk.sum()),
            per_flow: FLOW_WINDOW,
            flows: self.flows.iter().map(left_of_flow).collect(),
            per_lane: SMALLEST,
            shares: open.into_iter().map(|(name, left)| (name.clone(), left.min(share(name)))).collect(),
            hold: full.into_iter().map(|(name, _)| (name.clone(), monotonic + HOLD)).collect(),
            ..Claim::new(now, monotonic, lease)
        }
    }
}

/// Returns the largest number of jobs of a lane in one claim.
fn share(lane: &Lane) -> usize {
    if lane.resource().starts_with(WEBHOOK) { WEBHOOK_SHARE } else { SHARE }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    const NOW: Monotonic = Monotonic::new(Duration::ZERO);

    fn claim(lanes: &Lanes) -> Claim {
        lanes.claim(WINDOW, Timestamp::from_millis(0), NOW, Duration::from_mins(1))
    }

    /// Durations of a job that found a processor at once.
    fn took(work: Duration) -> Took {
        Took { lag: Duration::ZERO, work }
    }

    #[test]
    fn bulk_jobs_get_more_while_they_wait_for_peers_and_fewer_while_for_a_processor() {
        let mut lanes = Lanes::default();
        let bulk = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), "email:a");
        let ends = |lanes: &mut Lanes, times, lag| {
            for _ in 0..times {
                lanes.begin(&bulk);
                lanes.end(&bulk, Took { lag, work: Duration::from_millis(200) });
            }
            claim(lanes).bulk
        };
        assert_eq!(claim(&lanes).bulk, LEAST_BULK);
        assert_eq!(ends(&mut lanes, 10, LAG), LEAST_BULK + 10);
        assert_eq!(ends(&mut lanes, 2 * BULK_WINDOW, Duration::ZERO), BULK_WINDOW);
        assert_eq!(ends(&mut lanes, 100, LAG * 2), BULK_WINDOW - 100);
        assert_eq!(ends(&mut lanes, BULK_WINDOW, LAG * 2), LEAST_BULK);
    }

    #[test]
    fn a_lane_that_works_well_gets_more_and_a_slow_one_falls_back() {
        let mut lanes = Lanes::default();
        let quick = Duration::from_millis(5);
        lanes.begin(&"a".into());
        assert_eq!(claim(&lanes).shares["a"], SMALLEST - 1);
        lanes.end(&"a".into(), took(quick));
        assert_eq!(claim(&lanes).shares["a"], SMALLEST + 1);
        for _ in 0..LARGEST {
            lanes.begin(&"a".into());
            lanes.end(&"a".into(), took(quick));
        }
        assert_eq!(claim(&lanes).shares["a"], SHARE);
        for _ in 0..LARGEST {
            assert_eq!(claim(&lanes).hold, []);
            lanes.begin(&"a".into());
        }
        assert_eq!(claim(&lanes).hold, [("a".into(), NOW + HOLD)]);
        lanes.end(&"a".into(), took(QUICK));
        assert_eq!(claim(&lanes).hold.len(), 1, "more are in work than the window that fell back");
    }

    #[test]
    fn a_receiver_that_hangs_keeps_few_places_until_it_answers() {
        let mut lanes = Lanes::default();
        lanes.begin(&"webhook:a".into());
        lanes.end(&"webhook:a".into(), took(HANGING));
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG);
        lanes.begin(&"webhook:a".into());
        lanes.end(&"webhook:a".into(), took(Duration::ZERO));
        assert_eq!(claim(&lanes).shares["webhook:a"], HUNG + 1);
        lanes.begin(&"email:a".into());
        lanes.end(&"email:a".into(), took(HANGING));
        assert_eq!(claim(&lanes).shares["email:a"], SMALLEST);
    }

    #[test]
    fn a_webhook_gets_all_its_places_in_one_claim() {
        let mut lanes = Lanes::default();
        for _ in 0..LARGEST {
            for lane in ["webhook:a", "email:a"] {
                lanes.begin(&lane.into());
                lanes.end(&lane.into(), took(Duration::ZERO));
            }
        }
        let claim = claim(&lanes);
        assert_eq!((claim.shares["webhook:a"], claim.shares["email:a"]), (LARGEST, SHARE));
    }

    #[test]
    fn windows_of_idle_lanes_are_forgotten_when_there_are_many() {
        let mut lanes = Lanes::default();
        lanes.begin(&"busy".into());
        for number in 0..REMEMBERED * 2 {
            let name = Lane::parse(&number.to_string());
            lanes.begin(&name);
            lanes.end(&name, took(Duration::ZERO));
        }
        assert!(lanes.windows.len() <= REMEMBERED && lanes.windows.contains_key("busy"));
    }

    #[test]
    fn neither_bulk_work_nor_one_workspace_gets_all_places() {
        let mut lanes = Lanes { bulk_window: BULK_WINDOW, ..Lanes::default() };
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
        lanes.end(&lane(JobClass::Bulk, 9, 0), took(Duration::ZERO));
        lanes.end(&lane(JobClass::Transactional, 1, 0), took(Duration::ZERO));
        let next = claim(&lanes);
        assert_eq!((next.bulk, next.flows[&flow(1)]), (1, 1));
    }
}
