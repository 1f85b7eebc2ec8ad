//! The workspaces under deletion, as this process knows them: a set that every call and every claim is held against.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::cache::Cache;

/// Workspaces under deletion, as they were read last.
#[derive(Debug)]
pub(crate) struct EndingWorkspaces {
    looked_up: Cache<(), Arc<HashSet<WorkspaceId>>>,
    /// Number of the last look that began.
    begun: AtomicU64,
    /// Result of the last look, for whoever is about to let something out and does not wait.
    latest: RwLock<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    /// Number of the look.
    look: u64,
    found: Arc<HashSet<WorkspaceId>>,
}

impl Latest {
    /// Takes what a look has found, unless one that began later has ended before.
    fn take(&mut self, look: u64, found: &Arc<HashSet<WorkspaceId>>) {
        if look > self.look {
            *self = Self { look, found: Arc::clone(found) };
        }
    }
}

impl EndingWorkspaces {
    pub(crate) fn new() -> Self {
        Self { looked_up: Cache::new(), begun: AtomicU64::default(), latest: RwLock::default() }
    }

    /// The set, at most a second old.
    pub(crate) async fn look(
        &self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Arc<HashSet<WorkspaceId>>, StoreError> {
        let load = async {
            let look = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            let found: Arc<HashSet<_>> = Arc::new(store.ending_workspaces().await?.into_iter().collect());
            self.latest.write().unwrap_or_else(PoisonError::into_inner).take(look, &found);
            Ok::<_, StoreError>(Some(found))
        };
        Ok(self.looked_up.get(&(), now, load).await?.unwrap_or_default())
    }

    /// Whether a workspace was in the set at the last look.
    pub(crate) fn contains(&self, workspace: WorkspaceId) -> bool {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).found.contains(&workspace)
    }

    /// Looks again at the next question.
    pub(crate) fn forget(&self) {
        self.looked_up.clear();
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn a_slow_look_does_not_replace_what_a_later_one_found() {
        let nobody = Arc::<HashSet<WorkspaceId>>::default();
        let somebody = Arc::new(HashSet::from([WorkspaceId::from_bytes([1; 16])]));
        let mut latest = Latest::default();
        latest.take(2, &somebody);
        latest.take(1, &nobody);
        assert_eq!(latest.found, somebody);
        latest.take(3, &nobody);
        assert_eq!(latest.found, nobody);
    }
}
