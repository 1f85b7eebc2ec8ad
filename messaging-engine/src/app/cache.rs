//! Look-ups of the hot path, kept for a moment.
//!
//! An entry is dropped when this process changes what it shows, or the store tells that another has. It expires soon, so
//! that what another process changed (the command line beside a server, another node) is seen even where the store's news
//! is late, and later while the store knows that it is not: a database may be far away.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use messaging_core::ports::Store;
use messaging_core::time::Timestamp;

/// How long an entry is believed where news may be late. Short, because one read a second costs nothing.
const LIFETIME: Duration = Duration::from_secs(1);

/// How long an entry is believed while the store hears all.
const LONGEST_LIFETIME: Duration = Duration::from_secs(10);

/// Beyond this many entries the cache starts anew; an entry is a few hundred bytes.
const CAPACITY: usize = 10_000;

/// A small cache in front of one kind of read.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    store: Arc<dyn Store>,
    state: RwLock<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    /// Each with when it was read.
    entries: HashMap<K, (V, Timestamp)>,
    /// Counts invalidations: a read that began before one must not fill the cache after it.
    generation: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// A cache of what this store answers.
    pub(crate) fn new(store: &Arc<dyn Store>) -> Self {
        Self { store: Arc::clone(store), state: RwLock::new(State { entries: HashMap::new(), generation: 0 }) }
    }

    /// The entry, or what `load` answers. `None` is not kept: what is not there must not fill the cache.
    pub(crate) async fn get<E>(
        &self,
        key: &K,
        now: Timestamp,
        load: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<V>, E> {
        let generation = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if let Some((value, read_at)) = state.entries.get(key)
                && *read_at <= now
                && now < *read_at + self.lifetime()
            {
                return Ok(Some(value.clone()));
            }
            state.generation
        };
        let Some(value) = load.await? else { return Ok(None) };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.generation == generation {
            if state.entries.len() >= CAPACITY {
                state.entries.clear();
            }
            state.entries.insert(key.clone(), (value.clone(), now));
        }
        Ok(Some(value))
    }

    fn lifetime(&self) -> Duration {
        if self.store.hears_all() { LONGEST_LIFETIME } else { LIFETIME }
    }

    /// Forgets everything. Changes of what is cached are rare, and this cannot miss one.
    pub(crate) fn clear(&self) {
        self.forget(|_| true);
    }

    /// Forgets the entries that may not be true any more.
    pub(crate) fn forget(&self, is_doubtful: impl Fn(&V) -> bool) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.entries.retain(|_, (value, _)| !is_doubtful(value));
        state.generation += 1;
    }
}
