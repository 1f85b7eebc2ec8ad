//! Look-ups of the hot path, kept for a moment.
//!
//! An entry is dropped when this process changes what it shows, and expires soon so that what another
//! process changed (the command line beside a server, another node) is seen too.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use messaging_core::time::Timestamp;

/// How long an entry is believed. Short, because one read a second costs nothing.
const LIFETIME: Duration = Duration::from_secs(1);

/// Beyond this many entries the cache starts anew; an entry is a few hundred bytes.
const CAPACITY: usize = 10_000;

/// A small cache in front of one kind of read.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    state: RwLock<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    entries: HashMap<K, (V, Timestamp)>,
    /// Counts invalidations: a read that began before one must not fill the cache after it.
    generation: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    pub(crate) fn new() -> Self {
        Self { state: RwLock::new(State { entries: HashMap::new(), generation: 0 }) }
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
            if let Some((value, until)) = state.entries.get(key)
                && now < *until
                && *until <= now + LIFETIME
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
            state.entries.insert(key.clone(), (value.clone(), now + LIFETIME));
        }
        Ok(Some(value))
    }

    /// Forgets everything. Changes of what is cached are rare, and this cannot miss one.
    pub(crate) fn clear(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.entries.clear();
        state.generation += 1;
    }
}
