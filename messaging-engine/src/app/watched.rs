//! Small sets of data that calls, claims and attempts are checked against: the workspaces under deletion, the suspended
//! parts of the queue.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::cache::Cache;

/// A value of the store, as it was read last.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    looked_up: Cache<(), Arc<T>>,
    /// Number of the last look that began.
    begun: AtomicU64,
    /// Result of the last look, for whoever is about to let something out and does not wait.
    latest: RwLock<Latest<T>>,
}

#[derive(Debug, Default)]
struct Latest<T> {
    /// Number of the look.
    look: u64,
    found: Arc<T>,
}

impl<T> Latest<T> {
    /// Takes what a look has found, unless one that began later has ended before.
    fn take(&mut self, look: u64, found: &Arc<T>) {
        if look > self.look {
            *self = Self { look, found: Arc::clone(found) };
        }
    }
}

impl<T: Default> Watched<T> {
    pub(crate) fn new() -> Self {
        Self { looked_up: Cache::new(), begun: AtomicU64::default(), latest: RwLock::default() }
    }

    /// The value, at most a second old; `load` reads it.
    pub(crate) async fn look(
        &self,
        now: Timestamp,
        load: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Arc<T>, StoreError> {
        let load = async {
            let look = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            let found = Arc::new(load.await?);
            self.latest.write().unwrap_or_else(PoisonError::into_inner).take(look, &found);
            Ok::<_, StoreError>(Some(found))
        };
        Ok(self.looked_up.get(&(), now, load).await?.unwrap_or_default())
    }

    /// Value that the last read of the store gave.
    pub(crate) fn latest(&self) -> Arc<T> {
        Arc::clone(&self.latest.read().unwrap_or_else(PoisonError::into_inner).found)
    }

    /// Looks again at the next question.
    pub(crate) fn forget(&self) {
        self.looked_up.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_look_does_not_replace_what_a_later_one_found() {
        let (nothing, something) = (Arc::new(0), Arc::new(1));
        let mut latest = Latest::default();
        latest.take(2, &something);
        latest.take(1, &nothing);
        assert_eq!(latest.found, something);
        latest.take(3, &nothing);
        assert_eq!(latest.found, nothing);
    }
}
