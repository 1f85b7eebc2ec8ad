//! Updating of segments after changes of contacts.

use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// A contact changed.
    Announced,
    /// A contact may have changed without a job being added.
    Later,
    /// The job works through the changes that were noted.
    Working,
}

/// Job that follows the changes of the contacts of a workspace.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct FollowChanges {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) stage: Stage,
    /// Number of failures in a row.
    pub(crate) failures: u32,
}

impl FollowChanges {
    /// Returns the job of a change; a workspace needs it once.
    pub(crate) const fn announced(workspace_id: WorkspaceId) -> Self {
        Self { workspace_id, stage: Stage::Announced, failures: 0 }
    }

    /// Returns the job for changes made by a process that did not know of a segment yet; a workspace needs it once.
    pub(crate) const fn later(workspace_id: WorkspaceId) -> Self {
        Self { workspace_id, stage: Stage::Later, failures: 0 }
    }
}

impl JobData for FollowChanges {
    const KIND: &'static str = "follow_changes";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        let resource = match self.stage {
            Stage::Announced => lanes::SEGMENT_CHANGES,
            Stage::Later => lanes::SEGMENT_CHANGES_LATER,
            Stage::Working => lanes::SEGMENTS,
        };
        Lane::new(JobClass::Transactional, self.workspace_id, resource)
    }
}
