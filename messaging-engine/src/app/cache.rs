//! Cache of look-ups that most requests make.
//!
//! An entry is dropped when this process changes its data, and expires soon so that changes by another process (the
//! command line beside a server, another node) are seen too.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use messaging_core::time::Timestamp;

/// Lifetime of an entry. Short, because two reads a second cost nothing.
const LIFETIME: Duration = Duration::from_secs(1);

/// Age from which the first caller reads an entry again, while the others continue to use it. Without this all of them
/// would read it at the moment when it expires.
const REFRESHED_AFTER: Duration = Duration::from_millis(500);

/// Maximum number of entries, of a few hundred bytes each; a full cache is cleared before the next one is stored.
const CAPACITY: usize = 10_000;

/// Cache of one kind of read.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    state: RwLock<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Counts invalidations: a read that began before one must not fill the cache after it.
    generation: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// Time at which the read began.
    read_at: Timestamp,
    /// True once a caller has begun to read it again.
    is_refreshed: AtomicBool,
}

impl<V> Entry<V> {
    /// Returns true if the entry is younger than `age`. An entry from after `now` (the clock was set back) has to be
    /// less than `age` ahead.
    fn is_within(&self, age: Duration, now: Timestamp) -> bool {
        now < self.read_at + age && self.read_at < now + age
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    pub(crate) fn new() -> Self {
        Self { state: RwLock::new(State { entries: HashMap::new(), generation: 0 }) }
    }

    /// Returns the entry, or the result of `load`. An entry that has not expired is also returned if `load` fails.
    /// `None` is not cached: missing records must not fill the cache.
    pub(crate) async fn get<E>(
        &self,
        key: &K,
        now: Timestamp,
        load: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<V>, E> {
        let (known, generation) = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let entry = state.entries.get(key).filter(|entry| entry.is_within(LIFETIME, now));
            if let Some(entry) = entry
                && (entry.is_within(REFRESHED_AFTER, now) || entry.is_refreshed.swap(true, Ordering::Relaxed))
            {
                return Ok(Some(entry.value.clone()));
            }
            (entry.map(|entry| entry.value.clone()), state.generation)
        };
        let loaded = match load.await {
            Err(_) if known.is_some() => return Ok(known),
            loaded => loaded?,
        };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.generation == generation {
            match &loaded {
                Some(value) => {
                    if state.entries.len() >= CAPACITY {
                        state.entries.clear();
                    }
                    let entry = Entry { value: value.clone(), read_at: now, is_refreshed: AtomicBool::new(false) };
                    state.entries.insert(key.clone(), entry);
                }
                None => {
                    state.entries.remove(key);
                }
            }
        }
        Ok(loaded)
    }

    /// Drops all entries. Changes of cached data are rare, so a change need not find the entries that it concerns.
    pub(crate) fn clear(&self) {
        self.retain(|_| false);
    }

    /// Drops the entries that a change may have made untrue: all for which `is_still_true` returns false.
    pub(crate) fn retain(&self, is_still_true: impl Fn(&V) -> bool) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.entries.retain(|_, entry| is_still_true(&entry.value));
        state.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;

    use super::*;

    type Loaded = Result<Option<u32>, &'static str>;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + milliseconds)
    }

    /// Looks up in a cache, without waiting.
    fn get(cache: &Cache<u8, u32>, now: Timestamp, load: impl Future<Output = Loaded>) -> Loaded {
        cache.get(&1, now, load).now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn one_caller_refreshes_while_the_others_go_on() {
        let cache = Cache::new();
        assert_eq!(get(&cache, at(0), ready(Ok(Some(1)))), Ok(Some(1)));
        assert_eq!(get(&cache, at(499), ready(Ok(Some(2)))), Ok(Some(1)), "young");
        let refreshing = cache.get(&1, at(500), pending::<Loaded>()).now_or_never();
        assert!(refreshing.is_none(), "it reads");
        assert_eq!(get(&cache, at(999), ready(Ok(Some(2)))), Ok(Some(1)), "another reads it");
        assert_eq!(
            get(&cache, at(1_000), ready(Ok(Some(2)))),
            Ok(Some(2)),
            "expired, although nobody ended reading it"
        );
    }

    #[test]
    fn a_failed_refresh_keeps_what_is_believed_and_no_longer() {
        let cache = Cache::new();
        assert_eq!(get(&cache, at(0), ready(Ok(Some(1)))), Ok(Some(1)));
        assert_eq!(get(&cache, at(600), ready(Err("down"))), Ok(Some(1)));
        assert_eq!(get(&cache, at(1_000), ready(Err("down"))), Err("down"));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let cache = Cache::new();
        assert_eq!(get(&cache, at(0), ready(Ok(Some(1)))), Ok(Some(1)));
        assert_eq!(get(&cache, at(500), ready(Ok(None))), Ok(None));
        assert_eq!(get(&cache, at(501), ready(Ok(Some(2)))), Ok(Some(2)));
    }

    #[test]
    fn a_read_that_began_before_a_change_is_not_kept() {
        let cache = Cache::new();
        assert_eq!(get(&cache, at(0), ready(Ok(Some(1)))), Ok(Some(1)));
        let changed_meanwhile = async {
            cache.retain(|value| *value == 1);
            Ok(Some(2))
        };
        assert_eq!(get(&cache, at(500), changed_meanwhile), Ok(Some(2)));
        assert_eq!(get(&cache, at(501), ready(Ok(Some(3)))), Ok(Some(1)), "retained, and what was read is not kept");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_prolong_an_entry() {
        let cache = Cache::new();
        assert_eq!(get(&cache, at(5_000), ready(Ok(Some(1)))), Ok(Some(1)));
        assert_eq!(get(&cache, at(4_600), ready(Ok(Some(2)))), Ok(Some(1)), "a little");
        assert_eq!(get(&cache, at(1_000), ready(Ok(Some(2)))), Ok(Some(2)), "too much");
    }
}
