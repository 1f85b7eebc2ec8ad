//! Notes of an operation for its entry in audit logs.

use messaging_core::domain::security::audit::Actor;
use messaging_core::ids::{UserId, WorkspaceId};
use serde_json::Value;

/// Data for an operation's audit log entry that neither its path nor its answer shows.
#[derive(Debug, Default)]
pub(super) struct AuditNotes {
    /// The resource before the operation.
    pub(super) before: Option<Value>,
    /// Person who signed in.
    pub(super) user: Option<(UserId, Actor)>,
    /// Workspace whose log the entry belongs to, if the call itself is about none.
    pub(super) workspace: Option<WorkspaceId>,
}

impl AuditNotes {
    /// Adds the resource as it was read, unless the operation has noted it.
    pub(super) fn or_before(self, before: Option<Value>) -> Self {
        Self { before: self.before.or(before), ..self }
    }
}
