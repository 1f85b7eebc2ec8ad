//! The messages and product events of a merged contact, on their way to the one it became.

use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{ContactId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Product events of one commit.
pub(crate) const EVENTS_AT_A_TIME: usize = 500;

/// Gives all messages and product events of one contact to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MoveMessages {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) from: ContactId,
    pub(crate) to: ContactId,
    /// True for the second pass over the messages.
    pub(crate) again: bool,
}

impl MoveMessages {
    /// The job of a merge.
    pub(crate) const fn new(workspace_id: WorkspaceId, from: ContactId, to: ContactId) -> Self {
        Self { workspace_id, from, to, again: false }
    }
}

impl JobData for MoveMessages {
    const KIND: &'static str = "move_messages";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::CONTACTS)
    }
}
