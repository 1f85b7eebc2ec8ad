//! Choice of the source that a transaction leaves from, among those of a pool: a weighted round robin for each site.
//!
//! A warm source weighs 1, one that warms up the unused part of its day's allowance, and one that may not send is
//! skipped, so that messages beyond a warm-up go to a warm source.

use crate::domain::delivery::path::{PathState, Permission, Priority, Wait};
use crate::domain::delivery::site::SiteLimits;
use crate::time::Timestamp;

/// A source of a pool, as the choice sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Permission of its path.
    pub permission: Permission,
    /// Thousandths of a warm source's share, at least 1.
    pub weight: u32,
}

impl Candidate {
    /// Returns the candidate for a source by the state of its path to the site.
    pub fn of(path: &PathState, limits: &SiteLimits, now: Timestamp, priority: Priority) -> Self {
        let permission = path.may_send(limits, now, priority);
        Self { permission, weight: path.warm_up(limits, now).left(limits.warm_up).max(1) }
    }
}

/// Result of the choice of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The candidate at this index.
    Source(usize),
    /// All candidates wait; with the shortest wait.
    Wait(Wait),
    /// There is no candidate at all.
    NoSource,
}

/// Turns of the candidates for one site and pool: a credit for each, in their order.
///
/// May be forgotten at any time: the turn then begins anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    credits: Vec<i64>,
}

/// Chooses the next candidate. Those that may send go before those that only may because the message would expire.
pub fn choose(candidates: &[Candidate], turns: &mut Turns) -> Choice {
    turns.credits.resize(candidates.len(), 0);
    for wanted in [Permission::Allowed, Permission::Overdue] {
        if let Some(place) = turns.next(candidates, wanted) {
            return Choice::Source(place);
        }
    }
    let waits = candidates.iter().filter_map(|candidate| match candidate.permission {
        Permission::Wait(wait) => Some(wait),
        _ => None,
    });
    let shortest = waits.min_by_key(|wait| (wait.until.is_none(), wait.until));
    shortest.map_or(Choice::NoSource, Choice::Wait)
}

impl Turns {
    /// Gives each candidate credit by its weight; the one with the most is chosen and pays for all.
    fn next(&mut self, candidates: &[Candidate], wanted: Permission) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for (place, candidate) in candidates.iter().enumerate().filter(|(_, one)| one.permission == wanted) {
            let weight = i64::from(candidate.weight.max(1));
            total += weight;
            self.credits[place] += weight;
            if best.is_none_or(|best| self.credits[place] > self.credits[best]) {
                best = Some(place);
            }
        }
        self.credits[best?] -= total;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delivery::path::WaitReason;

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const fn may(weight: u32) -> Candidate {
        Candidate { permission: Permission::Allowed, weight }
    }

    const fn waits(until: Option<Timestamp>) -> Candidate {
        Candidate { permission: Permission::Wait(Wait { until, reason: WaitReason::Pace }), weight: 1000 }
    }

    const fn overdue() -> Candidate {
        Candidate { permission: Permission::Overdue, weight: 1000 }
    }

    /// Checks how often each candidate is chosen.
    #[track_caller]
    fn check(candidates: &[Candidate], rounds: usize, expected: &[usize]) {
        let mut turns = Turns::default();
        let mut taken = vec![0; candidates.len()];
        for _ in 0..rounds {
            match choose(candidates, &mut turns) {
                Choice::Source(place) => taken[place] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(taken, expected);
    }

    #[test]
    fn sources_are_taken_by_their_weights() {
        check(&[may(1000)], 7, &[7]);
        check(&[may(1000), may(1000)], 100, &[50, 50]);
        check(&[may(1000), may(500)], 300, &[200, 100]);
        check(&[may(1000), may(1000), may(1)], 2001, &[1000, 1000, 1]);
        // A weight of zero counts as the least one.
        check(&[may(0), may(0)], 10, &[5, 5]);
    }

    #[test]
    fn a_source_that_waits_is_passed_over() {
        check(&[waits(Some(at(5))), may(10), waits(None)], 10, &[0, 10, 0]);
        check(&[overdue(), may(1)], 10, &[0, 10]);
        check(&[overdue(), waits(Some(at(5))), overdue()], 10, &[5, 0, 5]);
    }

    #[test]
    fn turns_alternate_and_do_not_come_in_blocks() {
        let mut turns = Turns::default();
        let candidates = [may(1000), may(500)];
        let taken: Vec<_> = (0..6).map(|_| choose(&candidates, &mut turns)).collect();
        assert_eq!(taken, [0, 1, 0, 0, 1, 0].map(Choice::Source));
    }

    #[test]
    fn the_shortest_wait_is_told() {
        let wait = |candidates: &[Candidate]| choose(candidates, &mut Turns::default());
        let until = |until| Choice::Wait(Wait { until, reason: WaitReason::Pace });
        assert_eq!(wait(&[waits(Some(at(9))), waits(Some(at(5))), waits(None)]), until(Some(at(5))));
        assert_eq!(wait(&[waits(None)]), until(None));
        assert_eq!(wait(&[]), Choice::NoSource);
    }

    #[test]
    fn what_a_warming_source_may_not_take_goes_to_a_warm_one() {
        let limits = SiteLimits::default();
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let (mut new, warm) = (PathState::default(), PathState::known());
        let mut turns = Turns::default();
        let mut by_new = 0;
        for _ in 0..100 {
            let candidates = [&new, &warm].map(|path| Candidate::of(path, &limits, now, Priority::Marketing));
            match choose(&candidates, &mut turns) {
                Choice::Source(0) => {
                    new.sent(&limits, now);
                    by_new += 1;
                }
                Choice::Source(1) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(by_new, 1, "the gap");
        assert_eq!(Candidate::of(&new, &limits, now, Priority::Marketing).weight, 780);
    }
}
