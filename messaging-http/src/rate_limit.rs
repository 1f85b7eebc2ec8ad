//! Requests a minute, per credential: token buckets (contract section 1.6).
//!
//! All arithmetic is in whole numbers: a token is [`TOKEN`] drops, and a bucket of `limit` tokens gains `limit` drops a
//! millisecond, so that an empty one is full after exactly 60 seconds.
//!
//! If several processes share a database, each has its own buckets and reports taken tokens to the others
//! ([`SharedLimits`]).
//!
//! A request that is worth more tokens than a bucket holds passes if the bucket is full, and leaves a debt: a key with
//! few tokens can send, and in the long run no more than its limit.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use messaging_core::error::Chain;
use messaging_core::ports::store::{SharedLimits, Taking};
use messaging_core::time::Monotonic;
use messaging_engine::Error;
use messaging_engine::ops::Quota;
use tokio::time::MissedTickBehavior;

/// Drops in a token: as many as there are milliseconds in the window.
const TOKEN: i64 = 60_000;

/// Separate locks, so that credentials rarely wait for one another.
const SHARDS: usize = 16;

/// Buckets kept in a shard. A bucket untouched for a minute is full and need not be kept at all.
const SHARD_CAPACITY: usize = 4096;

/// Interval at which taken tokens are reported to other processes.
const SHARE_EVERY: Duration = Duration::from_millis(500);

/// The buckets.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    shards: [Mutex<HashMap<[u8; 16], Bucket>>; SHARDS],
    /// True if taken tokens are counted, to be reported to other processes.
    is_shared: bool,
}

#[derive(Debug)]
struct Bucket {
    /// Tokens in drops; below zero if there is a debt.
    drops: i64,
    at: Monotonic,
    limit: u32,
    /// Number of tokens taken since the last report to other processes.
    untold: u32,
    /// The header `RateLimit-Policy`; the same in every answer.
    policy: HeaderValue,
}

/// State of a credential's bucket after a request.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// True if the bucket had a token for the request.
    pub(crate) granted: bool,
    /// Whole tokens left.
    pub(crate) left: u64,
    /// Whole seconds until the bucket is full, or until the next token when none is left.
    pub(crate) seconds: u64,
    /// Value of the header `RateLimit-Policy`.
    pub(crate) policy: HeaderValue,
}

impl Standing {
    /// Value of the header `RateLimit`.
    pub(crate) fn state(&self) -> HeaderValue {
        let text = format!("\"default\";r={};t={}", self.left, self.seconds);
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).expect("digits and ASCII signs")
    }
}

impl RateLimiter {
    /// A limiter; `is_shared` if several processes share the database.
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { shards: Default::default(), is_shared }
    }

    /// Exchanges taken tokens with other processes, until it is dropped.
    pub(crate) async fn share(&self, shared: &dyn SharedLimits, now: impl Fn() -> Monotonic + Send + Sync) {
        let mut every = tokio::time::interval(SHARE_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let told = self.untold();
            match shared.exchange(&told).await {
                Ok(taken) => self.take_for_others(&taken, now()),
                Err(error) => {
                    self.tell_again(&told);
                    tracing::debug!(error = %Chain(&error), "other nodes were not told of requests");
                }
            }
        }
    }

    /// Returns the tokens taken since the last call, by bucket.
    fn untold(&self) -> Vec<Taking> {
        let mut told = Vec::new();
        for shard in &self.shards {
            for (bucket, state) in shard.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
                if state.untold > 0 {
                    let tokens = std::mem::take(&mut state.untold);
                    told.push(Taking { bucket: *bucket, limit: state.limit, tokens });
                }
            }
        }
        told
    }

    fn tell_again(&self, told: &[Taking]) {
        for taking in told {
            let mut buckets = self.shard(taking.bucket).lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(bucket) = buckets.get_mut(&taking.bucket) {
                bucket.untold = bucket.untold.saturating_add(taking.tokens);
            }
        }
    }

    /// Takes the tokens that other processes took, even if that leaves a debt.
    fn take_for_others(&self, taken: &[Taking], now: Monotonic) {
        for taking in taken {
            self.with_bucket(taking.bucket, taking.limit, now, |bucket| {
                bucket.drops = bucket.level(now) - i64::from(taking.tokens) * TOKEN;
                bucket.at = bucket.at.max(now);
            });
        }
    }

    fn with_bucket<T>(
        &self,
        credential: [u8; 16],
        limit: u32,
        now: Monotonic,
        work: impl FnOnce(&mut Bucket) -> T,
    ) -> T {
        let mut buckets = self.shard(credential).lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= SHARD_CAPACITY && !buckets.contains_key(&credential) {
            make_room(&mut buckets, now);
        }
        work(buckets.entry(credential).or_insert_with(|| Bucket::full(limit, now)))
    }

    /// Takes a token from a credential's bucket if there is one.
    pub(crate) fn take(&self, credential: [u8; 16], limit: u32, now: Monotonic) -> Standing {
        self.take_more(credential, limit, 0..1, now)
    }

    /// Takes the tokens of a request that is worth several: the ones before `tokens.start` are taken already; the
    /// others are taken if there are enough.
    pub(crate) fn take_more(&self, credential: [u8; 16], limit: u32, tokens: Range<u32>, now: Monotonic) -> Standing {
        self.with_bucket(credential, limit, now, |bucket| {
            let count = tokens.end.saturating_sub(tokens.start);
            let standing = bucket.take(limit, tokens, now);
            if self.is_shared && standing.granted {
                bucket.untold = bucket.untold.saturating_add(count);
            }
            standing
        })
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

    /// State of the credential's bucket after the last taking.
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

/// Removes full buckets, and if there are none, an arbitrary one.
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
        Self { drops: i64::from(limit) * TOKEN, at: now, limit, untold: 0, policy: policy(limit) }
    }

    fn level(&self, now: Monotonic) -> i64 {
        let millis = i64::try_from(now.since(self.at).as_millis()).unwrap_or(i64::MAX);
        let gained = millis.saturating_mul(i64::from(self.limit));
        self.drops.saturating_add(gained).min(i64::from(self.limit) * TOKEN)
    }

    /// Takes a range of a request's tokens; those before its start are taken already.
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
        // A minute later it is full again, and no fuller.
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
        // A refusal takes nothing, and says when there will be enough: ten tokens a second.
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
        // Not full: the request needs the whole bucket.
        check_more(&limiter, 10, 100, 546_000, "no \"default\";r=0;t=54");
    }

    #[test]
    fn what_others_took_is_gone_here_too() {
        let [one, other] = [RateLimiter::new(true), RateLimiter::new(true)];
        check(&one, 10, 0, "ok \"default\";r=9;t=6");
        one.take_more([1; 16], 10, 1..8, at(0));
        other.take_for_others(&one.untold(), at(0));
        assert_eq!(one.untold(), [], "told once");
        check(&other, 10, 0, "ok \"default\";r=1;t=54");
        // Tokens that both processes took at the same moment are a debt, which is paid before another request passes.
        check_more(&other, 10, 2, 0, "ok \"default\";r=0;t=6");
        other.take_for_others(&[Taking { bucket: [1; 16], limit: 10, tokens: 5 }], at(0));
        check(&other, 10, 30_000, "no \"default\";r=0;t=6");
        check(&other, 10, 36_000, "ok \"default\";r=0;t=6");
        // A report that failed is repeated later.
        let told = other.untold();
        assert_eq!(told, [Taking { bucket: [1; 16], limit: 10, tokens: 3 }]);
        other.tell_again(&told);
        assert_eq!(other.untold(), told);
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
