//! Failed sign-ins, counted so that guessing is slow.
//!
//! Contract section 2.3: 10 failures in 15 minutes per email and caller, 100 an hour per caller, where a caller
//! is a [`CallerNetwork`]. The counts are rows of the store, so that they hold over all nodes and restarts.
//! Every attempt is counted as failed when it begins, so that guesses made at the same moment are counted too; a
//! success removes it.

use std::net::IpAddr;
use std::time::Duration;

use crate::domain::caller_network::CallerNetwork;
use crate::domain::digest::Digest;
use crate::time::Timestamp;

/// One of the two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Failures within the window after which further attempts are refused.
    pub failures: usize,
    /// How long a failure counts.
    pub window: Duration,
}

/// Failures of one email from one network.
pub const PER_EMAIL: Limit = Limit { failures: 10, window: Duration::from_mins(15) };

/// Failures of one network, whatever the email.
pub const PER_NETWORK: Limit = Limit { failures: 100, window: Duration::from_hours(1) };

/// Failures that are dated later than this after the present do not count: they were dated by a clock that was
/// wrong. Nodes may differ by less.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

impl Limit {
    /// The times of failures that count at `now`: after the first, up to the second.
    pub fn counted(self, now: Timestamp) -> (Timestamp, Timestamp) {
        (now - self.window, now + CLOCK_SKEW)
    }

    /// Seconds until the next attempt may be made, at least 1. `earliest` is the oldest of the failures that use up
    /// the limit.
    fn wait(self, earliest: Timestamp, now: Timestamp) -> u64 {
        // Rounded up: whoever waits this long is let in.
        (earliest + self.window).since(now).as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
    }
}

/// An attempt to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInAttempt {
    /// When it began.
    pub at: Timestamp,
    /// The caller's network; all zeros where it is not known.
    pub network: [u8; 16],
    /// Names email and network together. A digest, so that nobody's address is kept with it.
    pub email: [u8; 32],
}

impl SignInAttempt {
    /// An attempt with an email, lower case, from an address.
    pub fn new(email: &str, address: Option<IpAddr>, at: Timestamp) -> Self {
        let network = address.map(|address| CallerNetwork::of(address).to_bytes()).unwrap_or_default();
        let digest = Digest::of(&format!("{} {email}", u128::from_be_bytes(network)));
        Self { at, network, email: *digest.as_bytes() }
    }
}

/// What stands in the way of an attempt: for each limit that is used up, the oldest of the failures that use it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignInBlocks {
    /// Of [`PER_EMAIL`].
    pub email: Option<Timestamp>,
    /// Of [`PER_NETWORK`].
    pub network: Option<Timestamp>,
}

impl SignInBlocks {
    /// Seconds until the next attempt may be made; `None` when it may be made now.
    pub fn wait(self, now: Timestamp) -> Option<u64> {
        let email = self.email.map(|earliest| PER_EMAIL.wait(earliest, now));
        email.max(self.network.map(|earliest| PER_NETWORK.wait(earliest, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn the_longer_wait_counts_and_is_rounded_up() {
        let blocks =
            |email: Option<i64>, network: Option<i64>| SignInBlocks { email: email.map(at), network: network.map(at) };
        assert_eq!(blocks(None, None).wait(at(0)), None);
        assert_eq!(blocks(Some(0), None).wait(at(10_000)), Some(890));
        assert_eq!(blocks(Some(0), None).wait(at(10_001)), Some(890));
        assert_eq!(blocks(Some(0), None).wait(at(899_999)), Some(1));
        assert_eq!(blocks(Some(0), None).wait(at(900_000)), Some(1));
        assert_eq!(blocks(Some(0), Some(0)).wait(at(0)), Some(3600));
    }

    #[test]
    fn an_attempt_names_its_email_and_network_and_nobody() {
        let attempt = |email: &str, address: &str| SignInAttempt::new(email, Some(address.parse().unwrap()), at(0));
        assert_eq!(attempt("a@b.co", "2001:db8::1"), attempt("a@b.co", "2001:db8::2"));
        assert_ne!(attempt("a@b.co", "192.0.2.1").email, attempt("a@b.co", "192.0.2.2").email);
        assert_ne!(attempt("a@b.co", "192.0.2.1").email, attempt("b@b.co", "192.0.2.1").email);
        assert_eq!(attempt("a@b.co", "192.0.2.1").network, attempt("b@b.co", "192.0.2.1").network);
        assert_eq!(SignInAttempt::new("a@b.co", None, at(0)).network, [0; 16]);
    }
}
