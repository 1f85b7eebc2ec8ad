//! Turns of the messages that wait for a path.
//!
//! A path says when its next message may leave, and says the same to all who ask. Marketing mail gets turns one after
//! the other from then on: however many messages wait, each asks again about once, and they leave in the order in which
//! they asked. Transactional mail is told the very moment, and marketing mail leaves it the path until it has gone.

use std::time::Duration;

use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::delivery::path::{Permission, Priority, Wait, WaitReason};
use messaging_core::domain::delivery::site::SiteLimits;
use messaging_core::domain::delivery::source_choice::Candidate;
use messaging_core::time::Timestamp;

use super::{KeptPath, LONGEST_SPREAD, LONGEST_WAIT, PathKeeper, SHORTEST_WAIT, UNTIL_SOMEBODY_ACTS};

/// Time that mail which somebody waits for has to come back, from the moment that it was told.
const GRACE: Duration = Duration::from_secs(5);

/// Time between two turns of marketing mail while nobody knows when a path is open again: all of it looks now and then.
const SPACING_WHILE_STOPPED: Duration = Duration::from_millis(20);

/// No turn is given further ahead; one that is belongs to a clock that was ahead.
const FURTHEST: Duration = Duration::from_hours(2);

impl KeptPath {
    /// The path as the choice sees it: marketing mail lets mail go first that somebody waits for.
    pub(super) fn candidate(&self, limits: &SiteLimits, now: Timestamp, priority: Priority) -> Candidate {
        let candidate = Candidate::of(&self.state, limits, now, priority);
        let may_leave = candidate.permission == Permission::Allowed && priority == Priority::Marketing;
        match self.kept_free(now) {
            Some(until) if may_leave => {
                let wait = Wait { until: Some(until), reason: WaitReason::Pace };
                Candidate { permission: Permission::Wait(wait), ..candidate }
            }
            _ => candidate,
        }
    }

    /// Until when the path is kept free of marketing mail, if it is.
    fn kept_free(&self, now: Timestamp) -> Option<Timestamp> {
        self.kept_free_until.filter(|until| *until > now && *until <= now + FURTHEST)
    }

    /// The next turn of marketing mail of which the path takes nothing before a time; `None` if that is too far ahead.
    fn next_turn(&mut self, until: Timestamp, spacing: Duration, now: Timestamp) -> Option<Timestamp> {
        let free = self.next_turn.filter(|next| *next <= now + FURTHEST);
        let turn = free.map_or(until, |free| free.max(until));
        if turn > now + LONGEST_WAIT {
            return None;
        }
        self.next_turn = Some(turn + spacing);
        Some(turn)
    }
}

impl PathKeeper {
    /// Wait of a message until it asks again for a path that takes nothing before a time.
    pub(super) fn turn_of(
        &self,
        path: Option<&mut KeptPath>,
        until: Option<Timestamp>,
        limits: &SiteLimits,
        now: Timestamp,
        class: JobClass,
    ) -> Duration {
        let Some(path) = path else { return self.wait(until, now, class) };
        let soon = until.filter(|until| *until <= now + LONGEST_WAIT);
        let turn = match (class, until) {
            (JobClass::Transactional, _) => {
                path.kept_free_until = path.kept_free(now).max(soon.map(|until| until + GRACE));
                None
            }
            (JobClass::Bulk, Some(_)) => soon.zip(path.state.spacing(limits, now)),
            (JobClass::Bulk, None) => Some((now + UNTIL_SOMEBODY_ACTS, SPACING_WHILE_STOPPED)),
        };
        let Some((until, spacing)) = turn else { return self.wait(until, now, class) };
        match path.next_turn(until, spacing, now) {
            Some(turn) => turn.since(now).max(SHORTEST_WAIT),
            // It comes back before the turns that were given are over.
            None => LONGEST_WAIT - LONGEST_SPREAD.mul_f64(self.chance()),
        }
    }
}
