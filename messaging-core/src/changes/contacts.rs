//! Writes of contacts and of their product events.

use std::sync::Arc;

use crate::domain::audience::contact::Contact;
use crate::ids::{ContactId, WorkspaceId};
use crate::revision::Expect;

/// A contact to create or replace.
#[derive(Debug, Clone, PartialEq)]
pub struct PutContact {
    /// The contact.
    pub contact: Arc<Contact>,
    /// Condition of the write: no such contact yet, or the revision that was read.
    pub expect: Expect,
}

/// Moves the product events of a contact that was merged, or deletes those of an erased one. Without events it does
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveProductEvents {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The contact that did it: one that is gone, or goes in the same commit after this write.
    pub from: ContactId,
    /// The contact it was merged into; must be there when `from` is. When it is gone later, the events go the
    /// way of its own: to the contact that it was merged into itself, or away.
    pub to: ContactId,
    /// Maximum number of events that this write moves; the rest is left for later writes.
    pub limit: usize,
}
