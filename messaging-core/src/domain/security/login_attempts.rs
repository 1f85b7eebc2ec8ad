//! Failed sign-ins, counted so that guessing is slow.
//!
//! Contract section 2.3: 10 failures in 15 minutes per email and caller, 100 an hour per caller, where a caller is a
//! [`CallerNetwork`], 1,000 an hour per /48 of IPv6, and 50 an hour per email from anywhere, after which each further
//! try waits twice as long as the one before it. The counts are rows of the store, so that they hold over all nodes and
//! restarts. Every attempt is counted as failed when it begins, so that simultaneous guesses are counted too; a success
//! removes it.

use std::net::IpAddr;
use std::time::Duration;

use crate::domain::security::caller_network::CallerNetwork;
use crate::domain::security::digest::Digest;
use crate::time::Timestamp;

/// A limit of failed sign-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Failures within the window after which further attempts are refused.
    pub failures: usize,
    /// Time for which a failure counts after it happened.
    pub window: Duration,
}

/// Failures of one email from one network.
pub const PER_EMAIL: Limit = Limit { failures: 10, window: Duration::from_mins(15) };

/// Failures of one network, with any email.
pub const PER_NETWORK: Limit = Limit { failures: 100, window: Duration::from_hours(1) };

/// Failures of all networks of one /48.
pub const PER_SITE: Limit = Limit { failures: 1000, window: Duration::from_hours(1) };

/// Failures of one email from anywhere, before tries have to wait for one another.
pub const PER_ACCOUNT: Limit = Limit { failures: 50, window: Duration::from_hours(1) };

/// The shortest wait between tries of an email whose failures use up [`PER_ACCOUNT`]; it doubles with each of them.
const SHORTEST_WAIT: Duration = Duration::from_mins(1);

/// The longest wait between such tries.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Time after its last try for which an email is remembered as being guessed at: longer than the longest wait, so that
/// a caller who tries as often as is allowed never begins anew.
pub const SLOWED_FOR: Duration = Duration::from_hours(2);

/// Time for which failures are kept.
pub const KEPT_FOR: Duration = SLOWED_FOR;

/// Failures dated more than this after the present do not count: their clock was wrong. Clocks of nodes may differ by
/// less.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

impl Limit {
    /// Returns the times between which failures count at `now`: after the first, up to the second.
    pub fn counted(self, now: Timestamp) -> (Timestamp, Timestamp) {
        (now - self.window, latest_counted(now))
    }

    /// Returns the seconds until the next attempt may be made, at least 1. `earliest` is the oldest of the failures
    /// that use up the limit.
    fn wait(self, earliest: Timestamp, now: Timestamp) -> u64 {
        // Rounded up, so that an attempt after this wait is allowed.
        seconds_until(earliest + self.window, now)
    }
}

/// Returns the latest time of a failure that counts at `now`.
pub fn latest_counted(now: Timestamp) -> Timestamp {
    now + CLOCK_SKEW
}

fn seconds_until(end: Timestamp, now: Timestamp) -> u64 {
    end.since(now).as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

/// An attempt to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInAttempt {
    /// Time at which the attempt began.
    pub at: Timestamp,
    /// Network of the caller; all zeros if it is not known.
    pub network: [u8; 16],
    /// The /48 that the network is in; an IPv4 address itself.
    pub site: [u8; 16],
    /// Digest of email and network together, so that no address is stored with it.
    pub email: [u8; 32],
    /// Digest of the email alone.
    pub account: [u8; 32],
    /// Number of tries of the email, this one included, that had to wait for the one before; 0 while none had to.
    pub slowed: u32,
}

impl SignInAttempt {
    /// Returns an attempt with an email, lower case, from an address.
    pub fn new(email: &str, address: Option<IpAddr>, at: Timestamp) -> Self {
        let network = address.map(|address| CallerNetwork::of(address).to_bytes()).unwrap_or_default();
        let site = address.map(|address| CallerNetwork::site_of(address).to_bytes()).unwrap_or_default();
        let digest = Digest::of(&format!("{} {email}", u128::from_be_bytes(network)));
        let account = Digest::of(&format!("account {email}"));
        Self { at, network, site, email: *digest.as_bytes(), account: *account.as_bytes(), slowed: 0 }
    }

    /// Returns the attempt with its `slowed` count, by the blocks that were found.
    #[must_use]
    pub fn after(self, blocks: SignInBlocks) -> Self {
        Self { slowed: blocks.account.map_or(0, |last| last.slowed.saturating_add(1)), ..self }
    }
}

/// The latest failure of an email that is guessed at from many places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowedAccount {
    /// Time of the failure.
    pub at: Timestamp,
    /// Value of [`slowed`](SignInAttempt::slowed) of that failure.
    pub slowed: u32,
}

impl SlowedAccount {
    /// Returns the time at which the next try may be made.
    fn next_at(self) -> Timestamp {
        let factor = 1_u32.checked_shl(self.slowed).unwrap_or(u32::MAX);
        self.at + SHORTEST_WAIT.saturating_mul(factor).min(LONGEST_WAIT)
    }
}

/// Blocks of an attempt: for each limit that is used up, the oldest of the failures that use it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignInBlocks {
    /// Oldest failure that uses up [`PER_EMAIL`].
    pub email: Option<Timestamp>,
    /// Oldest failure that uses up [`PER_NETWORK`].
    pub network: Option<Timestamp>,
    /// Oldest failure that uses up [`PER_SITE`].
    pub site: Option<Timestamp>,
    /// The latest failure of the email, if it is being guessed at: [`PER_ACCOUNT`] is used up, or the latest failure
    /// had to wait itself, at most [`SLOWED_FOR`] ago.
    pub account: Option<SlowedAccount>,
}

impl SignInBlocks {
    /// Returns the seconds until the next attempt may be made; `None` if it may be made now.
    pub fn wait(self, now: Timestamp) -> Option<u64> {
        let email = self.email.map(|earliest| PER_EMAIL.wait(earliest, now));
        let network = self.network.map(|earliest| PER_NETWORK.wait(earliest, now));
        let site = self.site.map(|earliest| PER_SITE.wait(earliest, now));
        let account = self.account.map(SlowedAccount::next_at).filter(|next| *next > now);
        email.max(network).max(site).max(account.map(|next| seconds_until(next, now)))
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
        let blocks = |email: Option<i64>, network: Option<i64>| SignInBlocks {
            email: email.map(at),
            network: network.map(at),
            ..SignInBlocks::default()
        };
        assert_eq!(blocks(None, None).wait(at(0)), None);
        assert_eq!(blocks(Some(0), None).wait(at(10_000)), Some(890));
        assert_eq!(blocks(Some(0), None).wait(at(10_001)), Some(890));
        assert_eq!(blocks(Some(0), None).wait(at(899_999)), Some(1));
        assert_eq!(blocks(Some(0), None).wait(at(900_000)), Some(1));
        assert_eq!(blocks(Some(0), Some(0)).wait(at(0)), Some(3600));
    }

    #[test]
    fn waits_of_an_email_double_from_a_minute_to_an_hour() {
        let wait = |slowed, now| {
            let account = Some(SlowedAccount { at: at(0), slowed });
            SignInBlocks { account, ..SignInBlocks::default() }.wait(at(now))
        };
        let waits = [0, 1, 2, 5, 6, 31, 32, u32::MAX].map(|slowed| wait(slowed, 0).unwrap());
        assert_eq!(waits, [60, 120, 240, 1920, 3600, 3600, 3600, 3600]);
        assert_eq!((wait(0, 59_999), wait(0, 60_000)), (Some(1), None));
        let attempt = SignInAttempt::new("a@b.co", None, at(0));
        let after = |account| attempt.after(SignInBlocks { account, ..SignInBlocks::default() }).slowed;
        assert_eq!((after(None), after(Some(SlowedAccount { at: at(0), slowed: 3 }))), (0, 4));
    }

    #[test]
    fn an_attempt_names_its_email_and_network_and_nobody() {
        let attempt = |email: &str, address: &str| SignInAttempt::new(email, Some(address.parse().unwrap()), at(0));
        assert_eq!(attempt("a@b.co", "2001:db8::1"), attempt("a@b.co", "2001:db8::2"));
        assert_ne!(attempt("a@b.co", "192.0.2.1").email, attempt("a@b.co", "192.0.2.2").email);
        assert_eq!(attempt("a@b.co", "192.0.2.1").account, attempt("a@b.co", "2001:db8::1").account);
        assert_ne!(attempt("a@b.co", "192.0.2.1").account, attempt("b@b.co", "192.0.2.1").account);
        assert_eq!(attempt("a@b.co", "2001:db8:0:1::1").site, attempt("b@b.co", "2001:db8:0:2::1").site);
        assert_ne!(attempt("a@b.co", "2001:db8:0:1::1").site, attempt("a@b.co", "2001:db8:1:1::1").site);
        assert_ne!(attempt("a@b.co", "192.0.2.1").email, attempt("b@b.co", "192.0.2.1").email);
        assert_eq!(attempt("a@b.co", "192.0.2.1").network, attempt("b@b.co", "192.0.2.1").network);
        assert_eq!(SignInAttempt::new("a@b.co", None, at(0)).network, [0; 16]);
    }
}
