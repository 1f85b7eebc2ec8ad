//! Sharing of the places of a claim: deficit round robin over flows, one class after the other.
//!
//! Transactional flows come first. While bulk flows have due jobs, one of `BULK_SHARE` places is theirs whatever the
//! others want, and all places that the others leave. Within a class, workspaces take turns by weight: the due jobs of
//! one never change when another is served.

use std::collections::HashMap;

use crate::domain::delivery::lane::{Flow, JobClass};
use crate::ids::WorkspaceId;

/// One of this many places goes to bulk work while both classes have due jobs.
pub(crate) const BULK_SHARE: usize = 8;

/// Places of a claim, and their bounds for classes and flows.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Number of places.
    pub all: usize,
    /// Maximum number of places for bulk work, out of all.
    pub bulk: usize,
    /// Maximum number of places for a flow that is not in `flows`.
    pub per_flow: usize,
    /// Maximum number of places for flows with a bound of their own.
    pub flows: &'a HashMap<Flow, usize>,
    /// Weights of the turns of workspaces, in relation to one another; 1 for a workspace that is not here.
    pub weights: &'a HashMap<WorkspaceId, u32>,
}

impl Places<'_> {
    fn weight(&self, flow: Flow) -> usize {
        let weight = flow.workspace.and_then(|workspace| self.weights.get(&workspace));
        weight.map_or(1, |weight| usize::try_from(*weight).unwrap_or(usize::MAX).max(1))
    }

    fn of_flow(&self, flow: Flow) -> usize {
        self.flows.get(&flow).copied().unwrap_or(self.per_flow)
    }
}

/// The next turns of flows, kept from one claim to the next.
#[derive(Debug, Default)]
pub struct FairTurns {
    transactional: Ring,
    bulk: Ring,
    /// Fractions of a place that bulk work has from earlier claims, in units of 1/[`BULK_SHARE`].
    bulk_credit: usize,
}

/// The turns of one class.
#[derive(Debug, Default)]
struct Ring {
    /// Flow that was served last; `None` before the first claim.
    last: Option<Flow>,
    /// Places that `last` still has of its turn, because the places of a claim ended within it.
    rest: usize,
}

/// A flow with due jobs.
#[derive(Debug, Clone, Copy)]
struct Active {
    flow: Flow,
    /// Places that it may still have.
    left: usize,
}

impl FairTurns {
    /// Gives places to the flows with due jobs, each at most once in `due`. `take` takes up to a number of jobs of a
    /// flow and returns how many it took; fewer mean that the flow has no more now. Ends at the first error.
    pub fn share<E>(
        &mut self,
        places: Places<'_>,
        due: &[Flow],
        mut take: impl FnMut(Flow, usize) -> Result<usize, E>,
    ) -> Result<(), E> {
        let active = |class| {
            let flows = due.iter().filter(|flow| flow.class == class);
            flows.map(|flow| Active { flow: *flow, left: places.of_flow(*flow) }).collect::<Vec<_>>()
        };
        let (mut transactional, mut bulk) = (active(JobClass::Transactional), active(JobClass::Bulk));
        let for_bulk = places.bulk.min(places.all);
        let reserved = if bulk.is_empty() || for_bulk == 0 {
            0
        } else {
            let credit = self.bulk_credit + places.all % BULK_SHARE;
            self.bulk_credit = credit % BULK_SHARE;
            (places.all / BULK_SHARE + credit / BULK_SHARE).min(for_bulk)
        };
        let first = places.all - reserved;
        let mut left = places.all - self.transactional.serve(&mut transactional, first, places, &mut take)?;
        left -= self.bulk.serve(&mut bulk, left.min(for_bulk), places, &mut take)?;
        self.transactional.serve(&mut transactional, left, places, &mut take)?;
        Ok(())
    }
}

impl Ring {
    /// Gives up to `room` places and returns how many it gave. Flows without further jobs are removed from `active`.
    fn serve<E>(
        &mut self,
        active: &mut Vec<Active>,
        room: usize,
        places: Places<'_>,
        take: &mut impl FnMut(Flow, usize) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.begin(active);
        let mut left = room;
        if self.rest > 0 && left > 0 && !active.is_empty() {
            // The rest of an unfinished turn; the next turn of this flow comes after those of the others.
            let mut last = active.remove(0);
            let rest = std::mem::take(&mut self.rest);
            if self.turn(&mut last, rest, &mut left, take)? {
                active.push(last);
            }
        }
        while left > 0 && !active.is_empty() {
            let weights = active.iter().fold(0_usize, |sum, one| sum.saturating_add(places.weight(one.flow)));
            // Few large turns cost less than many small ones and share as well.
            let base = (left / weights).max(1);
            let mut kept = Vec::with_capacity(active.len());
            for mut one in active.drain(..) {
                let quantum = places.weight(one.flow).saturating_mul(base);
                if left == 0 || self.turn(&mut one, quantum, &mut left, take)? {
                    kept.push(one);
                }
            }
            *active = kept;
        }
        Ok(room - left)
    }

    /// Gives a flow its turn, and returns true if it may want another.
    fn turn<E>(
        &mut self,
        one: &mut Active,
        quantum: usize,
        left: &mut usize,
        take: &mut impl FnMut(Flow, usize) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let wanted = quantum.min(one.left).min(*left);
        let taken = if wanted == 0 { 0 } else { take(one.flow, wanted)? };
        self.last = Some(one.flow);
        *left -= taken;
        one.left -= taken;
        let has_more = taken == wanted && one.left > 0;
        self.rest = if has_more && *left == 0 { quantum - taken } else { 0 };
        Ok(has_more)
    }

    /// Sorts the flow whose turn is next to the front.
    fn begin(&mut self, active: &mut [Active]) {
        active.sort_unstable_by_key(|one| one.flow);
        let Some(last) = self.last else { return };
        let is_before = |one: &Active| if self.rest > 0 { one.flow < last } else { one.flow <= last };
        let next = active.partition_point(is_before);
        active.rotate_left(next % active.len().max(1));
        if active.first().is_some_and(|one| one.flow != last) {
            self.rest = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use super::*;
    use crate::ids::Id as _;

    /// Flows by name: `t1` is the transactional work of workspace 1, `b2` the bulk work of workspace 2, `t-` that of
    /// the installation.
    fn flow(name: &str) -> Flow {
        let class = if name.starts_with('t') { JobClass::Transactional } else { JobClass::Bulk };
        Flow { class, workspace: name[1..].parse().ok().map(workspace) }
    }

    fn workspace(number: u8) -> WorkspaceId {
        WorkspaceId::from_bytes([number; 16])
    }

    fn name(flow: Flow) -> String {
        let letter = if flow.class == JobClass::Transactional { 't' } else { 'b' };
        flow.workspace.map_or_else(|| format!("{letter}-"), |id| format!("{letter}{}", id.to_bytes()[0]))
    }

    struct Bed {
        turns: FairTurns,
        backlog: BTreeMap<Flow, usize>,
        bulk: usize,
        per_flow: usize,
        weights: HashMap<WorkspaceId, u32>,
    }

    impl Bed {
        fn new(backlog: &[(&str, usize)]) -> Self {
            Self {
                turns: FairTurns::default(),
                backlog: backlog.iter().map(|(name, count)| (flow(name), *count)).collect(),
                bulk: usize::MAX,
                per_flow: usize::MAX,
                weights: HashMap::new(),
            }
        }

        /// Claims jobs, and returns the flows served with their numbers of jobs, in order.
        fn claim(&mut self, room: usize) -> String {
            let places = Places {
                all: room,
                bulk: self.bulk,
                per_flow: self.per_flow,
                flows: &HashMap::new(),
                weights: &self.weights,
            };
            let due: Vec<_> = self.backlog.iter().filter(|(_, left)| **left > 0).map(|(flow, _)| *flow).collect();
            let mut order: Vec<(Flow, usize)> = Vec::new();
            let backlog = &mut self.backlog;
            let shared = self.turns.share(places, &due, |flow, most| {
                let left = backlog.get_mut(&flow).expect("only what is due is asked for");
                let taken = most.min(*left);
                *left -= taken;
                order.push((flow, taken));
                Ok::<_, Infallible>(taken)
            });
            shared.unwrap();
            assert!(order.iter().map(|(_, taken)| taken).sum::<usize>() <= room);
            let order: Vec<_> = order.iter().map(|(flow, taken)| format!("{}:{taken}", name(*flow))).collect();
            order.join(" ")
        }

        /// Returns the number of jobs of each flow in a number of claims.
        fn claims(&mut self, claims: usize, room: usize) -> BTreeMap<String, usize> {
            let before = self.backlog.clone();
            for _ in 0..claims {
                self.claim(room);
            }
            self.backlog.iter().map(|(flow, left)| (name(*flow), before[flow] - left)).collect()
        }
    }

    #[test]
    fn mixed_backlogs_are_claimed_in_order() {
        /// Backlogs, the room of each claim, and the expected result of each claim.
        type Case = (&'static [(&'static str, usize)], usize, &'static [&'static str]);
        let cases: &[Case] = &[
            (&[], 10, &[""]),
            // A flow alone gets everything.
            (&[("t1", 100)], 10, &["t1:10"]),
            (&[("b1", 100)], 10, &["b1:10"]),
            (&[("t-", 5)], 10, &["t-:5"]),
            // A password reset of one workspace beside the mailing of another, and beside its own.
            (&[("t2", 1), ("b1", 1_000_000)], 64, &["t2:1 b1:63"]),
            (&[("t1", 1), ("b1", 1_000_000)], 64, &["t1:1 b1:63"]),
            // Much of one workspace does not keep another waiting, whatever its class.
            (&[("t1", 1_000_000), ("t2", 1)], 64, &["t1:32 t2:1 t1:31"]),
            (&[("b1", 1_000_000), ("b2", 1)], 64, &["b1:32 b2:1 b1:31"]),
            // Bulk work gets an eighth, and what is left.
            (&[("t1", 1_000), ("b1", 1_000)], 64, &["t1:56 b1:8"]),
            (&[("t1", 1_000), ("b1", 3)], 64, &["t1:56 b1:3 t1:5"]),
            (&[("t1", 20), ("b1", 1_000)], 64, &["t1:20 b1:44"]),
            // Small claims add up to the same.
            (&[("t1", 50), ("b1", 50)], 1, &["t1:1", "t1:1", "t1:1", "t1:1", "t1:1", "t1:1", "t1:1", "b1:1", "t1:1"]),
            // A flow that was left out is next.
            (&[("t1", 9), ("t2", 9), ("t3", 9)], 2, &["t1:1 t2:1", "t3:1 t1:1", "t2:1 t3:1"]),
            (&[("t1", 9), ("t2", 9), ("t3", 9)], 4, &["t1:1 t2:1 t3:1 t1:1", "t2:1 t3:1 t1:1 t2:1"]),
        ];
        for (backlog, room, expected) in cases {
            let mut bed = Bed::new(backlog);
            for (claim, expected) in expected.iter().enumerate() {
                assert_eq!(bed.claim(*room), *expected, "{backlog:?}, claim {claim} of {room}");
            }
        }
    }

    #[test]
    fn workspaces_take_turns_by_weight() {
        for room in [1, 2, 7, 64, 1000] {
            let mut bed = Bed::new(&[("t1", 100_000), ("t2", 100_000), ("t3", 100_000)]);
            bed.weights = [(workspace(1), 3), (workspace(3), 0)].into();
            let claims = 5_000 / room;
            let got = bed.claims(claims, room);
            let part = claims * room / 5;
            for (name, parts) in [("t1", 3), ("t2", 1), ("t3", 1)] {
                assert!(got[name].abs_diff(parts * part) <= part / 10 + 3, "{got:?} in claims of {room}");
            }
        }
    }

    #[test]
    fn limits_of_flows_and_of_bulk_work_hold() {
        let mut bed = Bed::new(&[("t1", 1_000), ("b1", 1_000), ("b2", 1_000)]);
        bed.bulk = 10;
        assert_eq!(bed.claim(800), "t1:790 b1:5 b2:5");
        bed.bulk = 0;
        assert_eq!(bed.claim(8), "t1:8");
        (bed.bulk, bed.per_flow) = (usize::MAX, 20);
        assert_eq!(bed.claim(800), "t1:20 b1:20 b2:20");
    }

    #[test]
    fn bulk_work_never_starves_and_never_takes_more_than_its_share() {
        for room in [1, 3, 8, 100] {
            let mut bed = Bed::new(&[("t1", 100_000), ("t2", 100_000), ("b1", 100_000)]);
            let claims = 8_000 / room;
            let got = bed.claims(claims, room);
            assert!(got["b1"].abs_diff(claims * room / BULK_SHARE) <= 1, "{got:?} in claims of {room}");
        }
    }

    #[test]
    fn an_error_ends_the_sharing() {
        let due = [flow("t1"), flow("t2")];
        let (flows, weights) = (HashMap::new(), HashMap::new());
        let places = Places { all: 10, bulk: 10, per_flow: 10, flows: &flows, weights: &weights };
        let mut asked = 0;
        let outcome = FairTurns::default().share(places, &due, |_, _| {
            asked += 1;
            Err("full")
        });
        assert_eq!((outcome, asked), (Err("full"), 1));
    }
}
