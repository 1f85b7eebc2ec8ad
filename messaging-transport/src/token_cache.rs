//! Cache of access tokens for providers: one caller makes a token for all that wait, and it is used until it is to be
//! renewed.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::ports::clock::Clock;
use messaging_core::time::{Monotonic, Timestamp};
use ring::digest::{Context, SHA256};

/// Maximum number of tokens that are kept; beyond it the least recently used one is dropped.
const MAX_TOKENS: usize = 1024;

/// Key of a cached token: a digest, so that no secret is kept in clear.
pub(crate) type TokenKey = [u8; 32];

/// Returns the key of a token, from everything that the token depends on.
pub(crate) fn token_key(parts: &[&str]) -> TokenKey {
    let mut digest = Context::new(&SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut key = TokenKey::default();
    key.copy_from_slice(digest.finish().as_ref());
    key
}

/// Cache of tokens, and of the last failure to make each.
pub(crate) struct TokenCache<T, E> {
    clock: Arc<dyn Clock>,
    slots: Mutex<HashMap<TokenKey, Entry<T, E>>>,
}

struct Entry<T, E> {
    slot: Arc<tokio::sync::Mutex<Slot<T, E>>>,
    used_at: Monotonic,
}

/// State of one key. The task that holds its lock makes the token.
struct Slot<T, E> {
    token: Option<Token<T>>,
    /// Last failure and its time; callers that asked before it get this error instead of trying on their own.
    failed: Option<(Monotonic, E)>,
}

struct Token<T> {
    value: T,
    made_at: Timestamp,
    renew_at: Timestamp,
}

impl<T: Clone + PartialEq, E: Clone> TokenCache<T, E> {
    /// Creates an empty cache; `clock` dates the tokens.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, slots: Mutex::default() }
    }

    /// Returns the token for `key`. If there is none, or it is time to renew it, `make` returns a new one and how long
    /// it is used; all other callers for that key wait for the result, and share a failure.
    pub(crate) async fn get(
        &self,
        key: TokenKey,
        make: impl Future<Output = Result<(T, Duration), E>> + Send,
    ) -> Result<T, E> {
        let asked_at = self.clock.monotonic();
        let slot = self.slot(key, asked_at);
        let mut slot = slot.lock().await;
        let now = self.clock.now();
        // If the clock was set back, a token may be from the future: it is not used.
        if let Some(token) = &slot.token
            && (token.made_at..token.renew_at).contains(&now)
        {
            return Ok(token.value.clone());
        }
        if let Some((failed_at, error)) = &slot.failed
            && *failed_at > asked_at
        {
            return Err(error.clone());
        }
        match make.await {
            Ok((value, lifetime)) => {
                let token = Token { value: value.clone(), made_at: now, renew_at: now + lifetime };
                *slot = Slot { token: Some(token), failed: None };
                Ok(value)
            }
            Err(error) => {
                *slot = Slot { token: None, failed: Some((self.clock.monotonic(), error.clone())) };
                Err(error)
            }
        }
    }

    /// Forgets a token that was refused, unless another has replaced it meanwhile.
    pub(crate) async fn discard(&self, key: TokenKey, refused: &T) {
        let slot = self.slot(key, self.clock.monotonic());
        let mut slot = slot.lock().await;
        if slot.token.as_ref().is_some_and(|token| token.value == *refused) {
            slot.token = None;
        }
    }

    fn slot(&self, key: TokenKey, now: Monotonic) -> Arc<tokio::sync::Mutex<Slot<T, E>>> {
        let mut slots = self.lock();
        if slots.len() >= MAX_TOKENS && !slots.contains_key(&key) {
            let oldest = slots.iter().min_by_key(|(_, entry)| entry.used_at).map(|(key, _)| *key);
            oldest.and_then(|oldest| slots.remove(&oldest));
        }
        let empty =
            || Entry { slot: Arc::new(tokio::sync::Mutex::new(Slot { token: None, failed: None })), used_at: now };
        let entry = slots.entry(key).or_insert_with(empty);
        entry.used_at = now;
        Arc::clone(&entry.slot)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenKey, Entry<T, E>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints nothing of the tokens, which are secrets.
impl<T, E> fmt::Debug for TokenCache<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use messaging_core::ports::clock::ManualClock;
    use tokio::sync::Notify;

    use super::*;

    const LIFETIME: Duration = Duration::from_mins(50);

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)))
    }

    /// Gives each new token the next number.
    async fn number(cache: &TokenCache<u32, Infallible>, count: &AtomicU32) -> u32 {
        let make = async { Ok((count.fetch_add(1, Ordering::Relaxed), LIFETIME)) };
        cache.get(token_key(&["a"]), make).await.unwrap()
    }

    #[tokio::test]
    async fn tokens_are_used_until_they_are_to_be_renewed() {
        let (clock, count) = (clock(), AtomicU32::new(0));
        let cache = TokenCache::new(Arc::clone(&clock) as _);
        assert_eq!(number(&cache, &count).await, 0);
        clock.advance(LIFETIME - Duration::from_millis(1));
        assert_eq!(number(&cache, &count).await, 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(number(&cache, &count).await, 1);
        clock.set(Timestamp::from_millis(0));
        assert_eq!(number(&cache, &count).await, 2, "the date was set back");
    }

    #[tokio::test]
    async fn a_refused_token_goes_and_its_successor_stays() {
        let (clock, count) = (clock(), AtomicU32::new(0));
        let cache = TokenCache::new(clock as _);
        let key = token_key(&["a"]);
        assert_eq!(number(&cache, &count).await, 0);
        cache.discard(key, &0).await;
        assert_eq!(number(&cache, &count).await, 1);
        cache.discard(key, &0).await;
        assert_eq!(number(&cache, &count).await, 1, "somebody else was told late that the first one is refused");
    }

    #[tokio::test]
    async fn one_makes_the_token_for_all_who_wait() {
        let (clock, count, open) = (clock(), AtomicU32::new(0), Notify::new());
        let cache = TokenCache::<u32, Infallible>::new(clock as _);
        let slow = || async {
            open.notified().await;
            Ok((count.fetch_add(1, Ordering::Relaxed), LIFETIME))
        };
        let wanted = (0..20).map(|_| cache.get(token_key(&["a"]), slow()));
        let (tokens, ()) = tokio::join!(futures_util::future::join_all(wanted), async { open.notify_one() });
        assert_eq!(tokens, vec![Ok(0); 20]);
    }

    #[tokio::test]
    async fn who_waits_is_told_that_it_failed_and_who_comes_later_tries_anew() {
        let (clock, count, open) = (clock(), AtomicU32::new(0), Notify::new());
        let cache = TokenCache::<u32, &str>::new(Arc::clone(&clock) as _);
        let fails = || async {
            open.notified().await;
            count.fetch_add(1, Ordering::Relaxed);
            Err("down")
        };
        let wanted = (0..20).map(|_| cache.get(token_key(&["a"]), fails()));
        let (tokens, ()) = tokio::join!(futures_util::future::join_all(wanted), async {
            clock.advance(Duration::from_secs(1));
            open.notify_one();
        });
        assert_eq!(tokens, vec![Err("down"); 20]);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        clock.advance(Duration::from_millis(1));
        assert_eq!(cache.get(token_key(&["a"]), async { Ok((7, LIFETIME)) }).await, Ok(7));
    }

    #[tokio::test]
    async fn tokens_are_bounded_and_the_longest_unused_goes_first() {
        let clock = clock();
        let cache = TokenCache::<usize, &str>::new(Arc::clone(&clock) as _);
        for number in 0..MAX_TOKENS + 10 {
            clock.advance(Duration::from_millis(1));
            let _ = cache.get(token_key(&[&number.to_string()]), async { Ok((number, LIFETIME)) }).await;
            let _ = cache.get(token_key(&["0"]), async { Ok((0, LIFETIME)) }).await;
        }
        assert_eq!(cache.lock().len(), MAX_TOKENS);
        let again = |name: &'static str| cache.get(token_key(&[name]), async { Err("made again") });
        assert_eq!(again("0").await, Ok(0));
        assert_eq!(again("1").await, Err("made again"));
    }

    #[test]
    fn keys_tell_their_parts_apart() {
        assert_ne!(token_key(&["ab", "c"]), token_key(&["a", "bc"]));
        assert_eq!(token_key(&["ab", "c"]), token_key(&["ab", "c"]));
    }
}
