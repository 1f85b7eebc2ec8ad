//! Subscriptions and names of events as this process saw them last.
//!
//! The data that segments read and the listening of automations change seldom. A transaction may rely on what was seen
//! last, if it has the database confirm that under the locks that [`subscriptions`](super::subscriptions) takes; if
//! something has changed, the transaction fails, the process drops what it knew, and the transaction is tried again.
//! Names of events never change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;

/// Maximum number of workspaces, and of names, that are cached.
const MOST: usize = 10_000;

/// Subscriptions and names of events as they were seen last.
#[derive(Debug, Default)]
pub(super) struct KnownSubscriptions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Read masks of workspaces in which no automation listens.
    masks: HashMap<WorkspaceId, ReadMask>,
    /// The numbers of names of events.
    names: HashMap<(WorkspaceId, String), i64>,
}

impl KnownSubscriptions {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the read masks of workspaces; `None` unless all are known, and no automation listens in any of them.
    pub(super) fn masks(&self, workspaces: &[WorkspaceId]) -> Option<Vec<ReadMask>> {
        let known = self.lock();
        workspaces.iter().map(|workspace| known.masks.get(workspace).copied()).collect()
    }

    /// Keeps the read mask of a workspace in which no automation listens.
    pub(super) fn remember(&self, workspace: WorkspaceId, mask: ReadMask) {
        let mut known = self.lock();
        if known.masks.len() >= MOST {
            known.masks.clear();
        }
        known.masks.insert(workspace, mask);
    }

    /// Drops the masks of workspaces that have perhaps changed.
    pub(super) fn forget(&self, workspaces: &[WorkspaceId]) {
        let mut known = self.lock();
        for workspace in workspaces {
            known.masks.remove(workspace);
        }
    }

    /// Returns the number of a name of events.
    pub(super) fn name(&self, name: &(WorkspaceId, String)) -> Option<i64> {
        self.lock().names.get(name).copied()
    }

    /// Keeps the number of a name of events, which was committed.
    pub(super) fn remember_name(&self, name: (WorkspaceId, String), number: i64) {
        let mut known = self.lock();
        if known.names.len() >= MOST {
            known.names.clear();
        }
        known.names.insert(name, number);
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn a_workspace_is_known_until_it_is_forgotten() {
        let known = KnownSubscriptions::default();
        let [one, other] = [1, 2].map(|n| WorkspaceId::from_bytes([n; 16]));
        assert_eq!(known.masks(&[]), Some(Vec::new()));
        assert_eq!(known.masks(&[one]), None);
        known.remember(one, ReadMask::EVENTS);
        assert_eq!(known.masks(&[one]), Some(vec![ReadMask::EVENTS]));
        assert_eq!(known.masks(&[one, other]), None);
        known.forget(&[one, other]);
        assert_eq!(known.masks(&[one]), None);
        let name = (one, "order".to_owned());
        assert_eq!(known.name(&name), None);
        known.remember_name(name.clone(), 7);
        assert_eq!(known.name(&name), Some(7));
    }

    #[test]
    fn not_more_is_remembered_than_so_many() {
        let known = KnownSubscriptions::default();
        for n in 0..=u128::try_from(MOST).unwrap() {
            known.remember(WorkspaceId::from_bytes(n.to_be_bytes()), ReadMask::NONE);
        }
        assert_eq!(known.lock().masks.len(), 1);
    }
}
