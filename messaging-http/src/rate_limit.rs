//! Requests a minute, per credential: token buckets (contract section 1.6).
//!
//! All arithmetic is in whole numbers: a token is [`TOKEN`] drops, and a bucket of `limit` tokens gains
//! `limit` drops a millisecond, so that an empty one is full after 60 seconds exactly.
//!
//! A request that is worth more tokens than a bucket holds passes when the bucket is full and leaves a debt: however few
//! tokens a key has, it can send, and in the long run no more than its limit.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use messaging_core::time::Monotonic;
use messaging_engine::Error;
use messaging_engine::ops::Quota;

/// Drops in a token: as many as there are milliseconds in the window.
const TOKEN: i64 = 60_000;

/// Separate locks, so that credentials rarely wait for one another.
const SHARDS: usize = 16;

/// Buckets kept in a shard. A bucket untouched for a minute is full and need not be kept at all.
const SHARD_CAPACITY: usize = 4096;

/// The buckets.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    shards: [Mutex<HashMap<[u8; 16], Bucket>>; SHARDS],
}

#[derive(Debug)]
struct Bucket {
    /// Below zero where there is a debt.
    drops: i64,
    at: Monotonic,
    limit: u32,
    /// The header that tells the limit; the same on every answer.
    policy: HeaderValue,
}

/// How a credential stands after a request.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Whether there was a token.
    pub(crate) granted: bool,
    /// Whole tokens left.
    pub(crate) left: u64,
    /// Whole seconds until the bucket is full, or until the next token when none is left.
    pub(crate) seconds: u64,
    /// `RateLimit-Policy`.
    pub(crate) policy: HeaderValue,
}

impl Standing {
    /// `RateLimit`.
    pub(crate) fn state(&self) -> HeaderValue {
        let text = format!("\"default\";r={};t={}", self.left, self.seconds);
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).expect("digits and ASCII signs")
    }
}

impl RateLimiter {
    /// Takes a token from a credential's bucket if there is one.
    pub(crate) fn take(&self, credential: [u8; 16], limit: u32, now: Monotonic) -> Standing {
        let mut buckets = self.shard(credential).lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= SHARD_CAPACITY && !buckets.contains_key(&credential) {
            make_room(&mut buckets, now);
        }
        buckets.entry(credential).or_insert_with(|| Bucket::full(limit, now)).take(limit, 0..1, now)
    }

    /// Takes the tokens of a request that is worth several: it has those before `tokens.start`, and takes those up to the
    /// end if enough are there.
    pub(crate) fn take_more(&self, credential: [u8; 16], limit: u32, tokens: Range<u32>, now: Monotonic) -> Standing {
        let mut buckets = self.shard(credential).lock().unwrap_or_else(PoisonError::into_inner);
        buckets.entry(credential).or_insert_with(|| Bucket::full(limit, now)).take(limit, tokens, now)
    }

    fn shard(&self, credential: [u8; 16]) -> &Mutex<HashMap<[u8; 16], Bucket>> {
        // The last byte of an id is random.
        &self.shards[usize::from(credential[15]) % SHARDS]
    }
}

/// The tokens of one request.
#[derive(Debug)]
pub(crate) struct RequestTokens<'a> {
    limiter: &'a RateLimiter,
    credential: [u8; 16],
    limit: u32,
    now: Monotonic,
    taken: Mutex<(u32, Standing)>,
}

impl<'a> RequestTokens<'a> {
    /// Takes the one token that every request costs.
    pub(crate) fn take(limiter: &'a RateLimiter, credential: [u8; 16], limit: u32, now: Monotonic) -> Self {
        let standing = limiter.take(credential, limit, now);
        Self { limiter, credential, limit, now, taken: Mutex::new((1, standing)) }
    }

    /// How the credential stands by now.
    pub(crate) fn standing(&self) -> Standing {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

impl Quota for RequestTokens<'_> {
    fn raise_to(&self, tokens: u32) -> Result<(), Error> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens <= taken.0 {
            return Ok(());
        }
        let standing = self.limiter.take_more(self.credential, self.limit, taken.0..tokens, self.now);
        let (granted, retry_after) = (standing.granted, standing.seconds);
        taken.1 = standing;
        if !granted {
            return Err(Error::RateLimited { retry_after });
        }
        taken.0 = tokens;
        Ok(())
    }
}

/// Forgets buckets that are full by now, and if there are none, an arbitrary one.
fn make_room(buckets: &mut HashMap<[u8; 16], Bucket>, now: Monotonic) {
    buckets.retain(|_, bucket| bucket.level(now) < i64::from(bucket.limit) * TOKEN);
    if buckets.len() >= SHARD_CAPACITY
        && let Some(any) = buckets.keys().next().copied()
    {
        buckets.remove(&any);
    }
}

impl Bucket {
    fn full(limit: u32, now: Monotonic) -> Self {
        Self { drops: i64::from(limit) * TOKEN, at: now, limit, policy: policy(limit) }
    }

    fn level(&self, now: Monotonic) -> i64 {
        let millis = i64::try_from(now.since(self.at).as_millis()).unwrap_or(i64::MAX);
        let gained = millis.saturating_mul(i64::from(self.limit));
        self.drops.saturating_add(gained).min(i64::from(self.limit) * TOKEN)
    }

    /// Takes a request's tokens of a range, whose start it has already.
    fn take(&mut self, limit: u32, tokens: Range<u32>, now: Monotonic) -> Standing {
        let mut drops = self.level(now);
        let full = i64::from(limit) * TOKEN;
        if self.limit != limit {
            self.limit = limit;
            self.policy = policy(limit);
            drops = drops.min(full);
        }
        self.at = self.at.max(now);
        let needed = i64::from(tokens.end.min(limit).saturating_sub(tokens.start)) * TOKEN;
        let granted = drops >= needed;
        if granted {
            drops -= i64::from(tokens.end.saturating_sub(tokens.start)) * TOKEN;
        }
        self.drops = drops;
        let wanted = match granted {
            true if drops >= TOKEN => full,
            true => TOKEN,
            false => needed.max(TOKEN),
        };
        let seconds = |wanted: i64| {
            let millis = (wanted - drops).max(0).unsigned_abs().div_ceil(u64::from(limit.max(1)));
            millis.div_ceil(1000).max(1)
        };
        let left = drops.max(0).unsigned_abs() / TOKEN.unsigned_abs();
        Standing { granted, left, seconds: seconds(wanted), policy: self.policy.clone() }
    }
}

fn policy(limit: u32) -> HeaderValue {
    HeaderValue::try_from(format!("\"default\";q={limit};w=60")).expect("digits and ASCII signs")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[track_caller]
    fn check(limiter: &RateLimiter, limit: u32, now: u64, expected: &str) {
        let standing = limiter.take([1; 16], limit, at(now));
        let verdict = if standing.granted { "ok" } else { "no" };
        assert_eq!(format!("{verdict} {}", standing.state().to_str().unwrap()), expected);
    }

    #[test]
    fn the_first_request_leaves_all_but_one() {
        let limiter = RateLimiter::default();
        check(&limiter, 600, 0, "ok \"default\";r=599;t=1");
        assert_eq!(limiter.take([2; 16], 600, at(0)).policy, "\"default\";q=600;w=60");
    }

    #[test]
    fn an_empty_bucket_tells_when_the_next_token_comes() {
        let limiter = RateLimiter::default();
        check(&limiter, 2, 0, "ok \"default\";r=1;t=30");
        check(&limiter, 2, 0, "ok \"default\";r=0;t=30");
        check(&limiter, 2, 0, "no \"default\";r=0;t=30");
        check(&limiter, 2, 29_001, "no \"default\";r=0;t=1");
        check(&limiter, 2, 30_000, "ok \"default\";r=0;t=30");
        // A minute later it is full again, not fuller.
        check(&limiter, 2, 600_000, "ok \"default\";r=1;t=30");
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let limiter = RateLimiter::default();
        check(&limiter, 1, 100_000, "ok \"default\";r=0;t=60");
        check(&limiter, 1, 0, "no \"default\";r=0;t=60");
        check(&limiter, 1, 100_000, "no \"default\";r=0;t=60");
        check(&limiter, 1, 160_000, "ok \"default\";r=0;t=60");
    }

    #[test]
    fn a_lowered_limit_counts_at_once() {
        let limiter = RateLimiter::default();
        check(&limiter, 600, 0, "ok \"default\";r=599;t=1");
        check(&limiter, 10, 0, "ok \"default\";r=9;t=6");
    }

    #[track_caller]
    fn check_more(limiter: &RateLimiter, limit: u32, total: u32, now: u64, expected: &str) {
        let standing = limiter.take_more([1; 16], limit, 1..total, at(now));
        let verdict = if standing.granted { "ok" } else { "no" };
        assert_eq!(format!("{verdict} {}", standing.state().to_str().unwrap()), expected);
    }

    #[test]
    fn a_request_may_be_worth_many_tokens() {
        let limiter = RateLimiter::default();
        check(&limiter, 600, 0, "ok \"default\";r=599;t=1");
        check_more(&limiter, 600, 100, 0, "ok \"default\";r=500;t=10");
        check_more(&limiter, 600, 500, 0, "ok \"default\";r=1;t=60");
        // Refused, it takes nothing and tells when there will be enough: ten tokens a second.
        check_more(&limiter, 600, 22, 0, "no \"default\";r=1;t=2");
        check_more(&limiter, 600, 22, 2_000, "ok \"default\";r=0;t=1");
    }

    #[test]
    fn a_request_worth_more_than_the_limit_passes_a_full_bucket_and_leaves_a_debt() {
        let limiter = RateLimiter::default();
        check(&limiter, 10, 0, "ok \"default\";r=9;t=6");
        check_more(&limiter, 10, 100, 0, "ok \"default\";r=0;t=546");
        check(&limiter, 10, 545_999, "no \"default\";r=0;t=1");
        check(&limiter, 10, 546_000, "ok \"default\";r=0;t=6");
        // Not full: the whole bucket is asked for.
        check_more(&limiter, 10, 100, 546_000, "no \"default\";r=0;t=54");
    }

    #[test]
    fn credentials_beyond_the_capacity_do_not_grow_the_table() {
        let limiter = RateLimiter::default();
        for number in 0..2 * SHARD_CAPACITY as u128 {
            limiter.take((number << 8).to_be_bytes(), 1, at(0));
        }
        assert_eq!(limiter.shards[0].lock().unwrap().len(), SHARD_CAPACITY);
    }
}
