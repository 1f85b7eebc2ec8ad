//! Failed sign-ins, counted so that guessing is slow.
//!
//! Contract section 2.3: 10 failures in 15 minutes per email and address.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::time::Timestamp;

const MAX_FAILURES: usize = 10;
const WINDOW: Duration = Duration::from_mins(15);
/// A bound on memory; beyond it pairs without a recent failure are dropped, then the rest.
const MAX_PAIRS: usize = 10_000;

/// Recent failures by email and address.
#[derive(Debug, Default)]
pub struct LoginAttempts(HashMap<(String, Option<IpAddr>), VecDeque<Timestamp>>);

impl LoginAttempts {
    /// Seconds until the next attempt may be made; `None` when it may be made now.
    pub fn wait(&mut self, email: &str, address: Option<IpAddr>, now: Timestamp) -> Option<u64> {
        let failures = self.0.get_mut(&(email.to_owned(), address))?;
        while failures.front().is_some_and(|at| now.since(*at) >= WINDOW) {
            failures.pop_front();
        }
        let oldest = failures.front().filter(|_| failures.len() >= MAX_FAILURES)?;
        // Rounded up: whoever waits this long is let in.
        Some((*oldest + WINDOW).since(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX))
    }

    /// Lets an attempt begin, or says how many seconds to wait. A begun attempt counts as failed until
    /// [`LoginAttempts::succeeded`], so that attempts made at the same moment are counted too.
    pub fn begin(&mut self, email: &str, address: Option<IpAddr>, now: Timestamp) -> Result<(), u64> {
        if let Some(seconds) = self.wait(email, address, now) {
            return Err(seconds);
        }
        self.failed(email, address, now);
        Ok(())
    }

    /// Counts a failure.
    pub fn failed(&mut self, email: &str, address: Option<IpAddr>, now: Timestamp) {
        if self.0.len() >= MAX_PAIRS {
            self.0.retain(|_, failures| failures.back().is_some_and(|at| now.since(*at) < WINDOW));
            if self.0.len() >= MAX_PAIRS {
                self.0.clear();
            }
        }
        let failures = self.0.entry((email.to_owned(), address)).or_default();
        if failures.len() >= MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back(now);
    }

    /// Forgets the failures after a success.
    pub fn succeeded(&mut self, email: &str, address: Option<IpAddr>) {
        self.0.remove(&(email.to_owned(), address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_attempt_waits_until_the_first_failure_is_old() {
        let mut attempts = LoginAttempts::default();
        let second = |n: i64| Timestamp::from_millis(n * 1000);
        for n in 0..10 {
            assert_eq!(attempts.wait("a@b.co", None, second(n)), None);
            attempts.failed("a@b.co", None, second(n));
        }
        assert_eq!(attempts.wait("a@b.co", None, second(10)), Some(890));
        assert_eq!(attempts.wait("a@b.co", None, Timestamp::from_millis(10_001)), Some(890));
        assert_eq!(attempts.wait("a@b.co", None, Timestamp::from_millis(899_999)), Some(1));
        assert_eq!(attempts.wait("other@b.co", None, second(10)), None);
        assert_eq!(attempts.wait("a@b.co", None, second(900)), None);
        attempts.succeeded("a@b.co", None);
        assert_eq!(attempts.wait("a@b.co", None, second(11)), None);
    }

    #[test]
    fn attempts_at_the_same_moment_are_counted_before_they_end() {
        let mut attempts = LoginAttempts::default();
        let now = Timestamp::from_millis(0);
        let begun = (0..50).filter(|_| attempts.begin("a@b.co", None, now).is_ok()).count();
        assert_eq!(begun, 10);
        assert_eq!(attempts.begin("a@b.co", None, now), Err(900));
        attempts.succeeded("a@b.co", None);
        assert_eq!(attempts.begin("a@b.co", None, now), Ok(()));
    }
}
