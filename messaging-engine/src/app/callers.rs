//! Commits that callers wait for: while there are some, background work commits less at a time, because a store commits
//! what callers wait for together with whole commits of the background.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::time::Monotonic;

/// Time after the commit of a caller for which more are expected.
const EXPECTED: Duration = Duration::from_millis(250);

/// Part of its items that a background commit has while callers wait.
const SHARE: usize = 8;

/// Latest commit that a caller waited for.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    latest: Mutex<Option<Monotonic>>,
}

impl Callers {
    /// Notes that a caller commits.
    pub(crate) fn note(&self, now: Monotonic) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Returns the number of items of the next background commit out of `most`: at least one.
    pub(crate) fn share(&self, most: usize, now: Monotonic) -> usize {
        let latest = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_waiting = latest.is_some_and(|latest| now.since(latest) < EXPECTED);
        if is_waiting { (most / SHARE).max(1) } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_commits_are_small_while_callers_commit() {
        let at = |millis| Monotonic::new(Duration::from_millis(millis));
        let callers = Callers::default();
        assert_eq!(callers.share(1000, at(0)), 1000);
        callers.note(at(10));
        for (most, millis, share) in [(1000, 10, 125), (1000, 259, 125), (3, 20, 1), (1000, 260, 1000)] {
            assert_eq!(callers.share(most, at(millis)), share, "{most} at {millis}");
        }
    }
}
