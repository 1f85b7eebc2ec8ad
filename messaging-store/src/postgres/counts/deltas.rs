//! By how much a transaction changes how many contacts and members there are.

use std::collections::BTreeMap;

use messaging_core::ids::{ListId, WorkspaceId};

/// By how much counts change.
#[derive(Debug, Default)]
pub(in super::super) struct CountDeltas {
    pub(super) contacts: BTreeMap<WorkspaceId, i64>,
    pub(super) members: BTreeMap<(WorkspaceId, ListId), i64>,
}

impl CountDeltas {
    /// Counts contacts of a workspace, or fewer of them.
    pub(in super::super) fn add_contacts(&mut self, workspace: WorkspaceId, number: i64) {
        *self.contacts.entry(workspace).or_default() += number;
    }

    /// Counts members of a list, or fewer of them.
    pub(in super::super) fn add_members(&mut self, workspace: WorkspaceId, list: ListId, number: i64) {
        *self.members.entry((workspace, list)).or_default() += number;
    }
}
