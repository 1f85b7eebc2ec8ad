//! Changes that a transaction makes to the counts of contacts and list members.

use std::collections::BTreeMap;

use messaging_core::ids::{ListId, WorkspaceId};

/// Collected changes, to be added to the stored counts.
#[derive(Debug, Default)]
pub(in super::super) struct CountDeltas {
    pub(super) contacts: BTreeMap<WorkspaceId, i64>,
    pub(super) members: BTreeMap<(WorkspaceId, ListId), i64>,
}

impl CountDeltas {
    /// Adds to the contacts of a workspace; negative for contacts that were deleted.
    pub(in super::super) fn add_contacts(&mut self, workspace: WorkspaceId, number: i64) {
        *self.contacts.entry(workspace).or_default() += number;
    }

    /// Adds to the members of a list; negative for members that left.
    pub(in super::super) fn add_members(&mut self, workspace: WorkspaceId, list: ListId, number: i64) {
        *self.members.entry((workspace, list)).or_default() += number;
    }
}
