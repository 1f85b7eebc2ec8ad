//! Turns at the members of segments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use messaging_core::ids::WorkspaceId;

/// One turn per workspace: members are calculated and changes followed one after the other, because each
/// overwrites what the other found.
#[derive(Debug, Default)]
pub(crate) struct SegmentTurns(Mutex<HashMap<WorkspaceId, Weak<tokio::sync::Mutex<()>>>>);

impl SegmentTurns {
    pub(crate) fn of(&self, workspace: WorkspaceId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&workspace).and_then(Weak::upgrade) {
            return turn;
        }
        // Whoever waits or works holds the turn, so that this keeps no more than there is work.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(workspace, Arc::downgrade(&turn));
        turn
    }
}
