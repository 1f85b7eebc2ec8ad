//! Choosing the source that a transaction leaves from, among those of a pool: a weighted round robin for each site.
//!
//! A warm source weighs 1, one that warms up what its schedule leaves of the day, and one that may not send is passed
//! over, so that what a warming source may not take goes to a warm one.

use crate::domain::delivery::path::{PathState, Permission, Priority, Wait};
use crate::domain::delivery::site::SiteLimits;
use crate::time::Timestamp;

/// A source of a pool, as the choice sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Whether its path may send.
    pub permission: Permission,
    /// Thousandths of a warm source's share, at least 1.
    pub weight: u32,
}

impl Candidate {
    /// A source by the state of its path to the site.
    pub fn of(path: &PathState, limits: &SiteLimits, now: Timestamp, priority: Priority) -> Self {
        let permission = path.may_send(limits, now, priority);
        Self { permission, weight: path.warm_up(limits, now).left(limits.warm_up).max(1) }
    }
}

/// The source to take, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The candidate at this place.
    Source(usize),
    /// All of them wait; this is the shortest wait.
    Wait(Wait),
    /// There is no candidate at all.
    NoSource,
}

/// Whose turn it is, for one site and pool: a credit for each candidate, in their order.
///
/// May be forgotten at any time: the turn then begins anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    credits: Vec<i64>,
}

/// Takes the next candidate. Those that may send go before those that only may because the message would expire.
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
    /// Each gets credit by its weight; the one with the most pays for all.
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
