//! The workspaces under deletion, as this process knows them: a set that every call and every claim is held against.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::cache::Cache;

/// What is known of them.
#[derive(Debug)]
pub(crate) struct EndingWorkspaces {
    looked_up: Cache<(), Arc<HashSet<WorkspaceId>>>,
    /// Result of the last look, for whoever is about to let something out and does not wait.
    latest: RwLock<Arc<HashSet<WorkspaceId>>>,
}

impl EndingWorkspaces {
    pub(crate) fn new() -> Self {
        Self { looked_up: Cache::new(), latest: RwLock::default() }
    }

    /// The set, at most a second old.
    pub(crate) async fn look(
        &self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Arc<HashSet<WorkspaceId>>, StoreError> {
        let load = async {
            let found: Arc<HashSet<_>> = Arc::new(store.ending_workspaces().await?.into_iter().collect());
            *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&found);
            Ok::<_, StoreError>(Some(found))
        };
        Ok(self.looked_up.get(&(), now, load).await?.unwrap_or_default())
    }

    /// Whether a workspace was in the set at the last look.
    pub(crate) fn contains(&self, workspace: WorkspaceId) -> bool {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).contains(&workspace)
    }

    /// Looks again at the next question.
    pub(crate) fn forget(&self) {
        self.looked_up.clear();
    }
}
