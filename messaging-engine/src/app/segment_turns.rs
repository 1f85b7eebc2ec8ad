//! Locks that serialize changes of the members of segments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use messaging_core::ids::WorkspaceId;

/// One lock for each workspace. Calculating members and following changes of contacts exclude each other, because each
/// would overwrite results of the other. The locks of a process do not exclude other processes.
#[derive(Debug, Default)]
pub(crate) struct SegmentTurns(Mutex<HashMap<WorkspaceId, Weak<tokio::sync::Mutex<()>>>>);

impl SegmentTurns {
    /// The lock of a workspace, created if nobody holds or awaits it.
    pub(crate) fn of(&self, workspace: WorkspaceId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&workspace).and_then(Weak::upgrade) {
            return turn;
        }
        // Tasks that hold or await a lock own it, so the map has no more entries than there are such tasks.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(workspace, Arc::downgrade(&turn));
        turn
    }
}
