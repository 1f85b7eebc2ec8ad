//! Automations, contacts and runs that a transaction has looked up.

use std::collections::HashMap;

use messaging_core::ids::{AutomationId, ContactId, RunId, WorkspaceId};

use crate::tables::automations::PriorRun;

/// Numbers and runs that a transaction has looked up.
#[derive(Debug, Default)]
pub(in super::super) struct LookupCache {
    pub(super) automations: HashMap<(WorkspaceId, AutomationId), i64>,
    pub(super) contacts: HashMap<(WorkspaceId, ContactId), i64>,
    pub(super) nodes: HashMap<i64, HashMap<String, i64>>,
    /// Runs of automations at revisions.
    pub(super) runs: HashMap<(i64, RunId, u32), PriorRun>,
}

impl LookupCache {
    /// Drops the number of an automation that is being removed.
    pub(super) fn forget(&mut self, workspace: WorkspaceId, automation: AutomationId) {
        self.automations.remove(&(workspace, automation));
    }
}
