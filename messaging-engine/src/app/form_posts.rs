//! Limits on submissions of forms: strangers make them, without credentials.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::time::Monotonic;

/// Largest number of submissions of a caller, and for an address, in a window (contract section 23).
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_hours(1);

/// Number of callers and addresses that are remembered.
const MAX_KNOWN: usize = 100_000;

/// Counts of submissions in this process, by digests of callers and addresses.
#[derive(Debug, Default)]
pub(crate) struct FormPosts {
    known: Mutex<HashMap<u64, (Monotonic, u32)>>,
    digests: RandomState,
}

impl FormPosts {
    /// Counts a submission of a caller; the error is the time to wait if there were too many. Callers of one IPv6
    /// network of 64 bits are one.
    pub(crate) fn admit_caller(&self, ip: IpAddr, now: Monotonic) -> Result<(), Duration> {
        let network = match ip.to_canonical() {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip) >> 64 << 64 | 1 << 63,
        };
        self.admit(self.digests.hash_one(("caller", network)), now)
    }

    /// Counts a submission by the normalized address in it. Fails with the time to wait if there were too many.
    pub(crate) fn admit_address(&self, address: &str, now: Monotonic) -> Result<(), Duration> {
        self.admit(self.digests.hash_one(("address", address)), now)
    }

    fn admit(&self, key: u64, now: Monotonic) -> Result<(), Duration> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN && !known.contains_key(&key) {
            known.retain(|_, (began, _)| now.since(*began) < WINDOW);
            // So many within an hour are a distributed attack; all counts begin again.
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
        }
        let (began, count) = known.entry(key).or_insert((now, 0));
        if now.since(*began) >= WINDOW {
            (*began, *count) = (now, 0);
        }
        if *count >= MOST {
            return Err(WINDOW.saturating_sub(now.since(*began)));
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Monotonic {
        Monotonic::new(Duration::from_mins(minutes))
    }

    #[test]
    fn a_caller_posts_ten_times_an_hour() {
        let posts = FormPosts::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..10 {
            assert_eq!(posts.admit_caller(ip(&format!("2001:db8::{n}")), at(n)), Ok(()));
        }
        assert_eq!(posts.admit_caller(ip("2001:db8::ff"), at(20)), Err(Duration::from_mins(40)));
        assert_eq!(posts.admit_caller(ip("2001:db8:0:1::1"), at(20)), Ok(()));
        assert_eq!(posts.admit_caller(ip("192.0.2.1"), at(20)), Ok(()));
        assert_eq!(posts.admit_caller(ip("2001:db8::ff"), at(60)), Ok(()));
    }

    #[test]
    fn an_address_is_posted_ten_times_an_hour_whoever_does() {
        let posts = FormPosts::default();
        assert_eq!((0..20).filter(|_| posts.admit_address("ann@example.com", at(0)).is_ok()).count(), 10);
        assert_eq!(posts.admit_address("bob@example.com", at(0)), Ok(()));
    }
}
