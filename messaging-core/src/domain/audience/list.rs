//! A list: contacts that somebody put together by name.
//!
//! Contract section 7.

use crate::ids::{ListId, WorkspaceId};
use crate::time::Timestamp;

/// A list of contacts. Names may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactList {
    /// Its id.
    pub id: ListId,
    /// Workspace that owns the list.
    pub workspace_id: WorkspaceId,
    /// 1 to 200 characters.
    pub name: String,
    /// How many members it has. Storing a list leaves it alone: joining and leaving counts.
    pub contact_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name last changed.
    pub updated_at: Timestamp,
}
