//! The removal of a workspace whose end has come.

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Removes all data of a workspace under deletion once its deletion is due; ends without doing anything if it was
/// restored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DeleteWorkspace {
    /// The workspace.
    pub workspace_id: WorkspaceId,
}

impl JobData for DeleteWorkspace {
    const KIND: &'static str = "delete_workspace";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::of_installation(&format!("{}{}", lanes::DELETION, self.workspace_id))
    }
}
