//! What an operation tells of its entry in audit logs.

use messaging_core::domain::security::audit::Actor;
use messaging_core::ids::{UserId, WorkspaceId};
use serde_json::Value;

/// What an operation knows of its entry that neither its path nor its answer shows.
#[derive(Debug, Default)]
pub(super) struct AuditNotes {
    /// The resource as it was.
    pub(super) before: Option<Value>,
    /// Person who signed in.
    pub(super) user: Option<(UserId, Actor)>,
    /// Workspace whose log it belongs to, where the call is about none.
    pub(super) workspace: Option<WorkspaceId>,
}

impl AuditNotes {
    /// The same with the resource as it was read, unless the operation has told it.
    pub(super) fn or_before(self, before: Option<Value>) -> Self {
        Self { before: self.before.or(before), ..self }
    }
}
