//! A list of contacts, kept by name.
//!
//! Contract section 7.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ListId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum number of public lists of a workspace: all of them are on one page for the reader.
pub const MAX_PUBLIC: usize = 100;

/// Visibility of a list: to the workspace alone, or to its readers too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// The workspace alone; members come and go by API and import.
    #[default]
    Private,
    /// Also its readers, who subscribe and leave themselves.
    Public,
}

/// Condition under which somebody who subscribes by a form becomes a confirmed member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptIn {
    /// At once.
    #[default]
    Single,
    /// By pressing a button behind a link that is sent to the address.
    Double,
}

/// A list of contacts. Names may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactList {
    /// Its id.
    pub id: ListId,
    /// Workspace that owns the list.
    pub workspace_id: WorkspaceId,
    /// 1 to 200 characters.
    pub name: String,
    /// Visibility: to the workspace alone, or to its readers too.
    pub visibility: Visibility,
    /// Condition under which readers become confirmed members.
    pub opt_in: OptIn,
    /// Text for its readers, at most 500 characters.
    pub description: Option<String>,
    /// Number of confirmed members. Storing a list does not change it: joining and leaving does.
    pub contact_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or settings last changed.
    pub updated_at: Timestamp,
}

impl ContactList {
    /// True if its readers see it.
    pub fn is_public(&self) -> bool {
        self.visibility == Visibility::Public
    }
}
