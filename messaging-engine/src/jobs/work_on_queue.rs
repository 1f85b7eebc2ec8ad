//! Immediate action on waiting messages: at the request of an operator, or to look for an address that they may leave
//! from.

use std::time::Duration;

use messaging_core::changes::JobWrite;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::QueueScope;
use messaging_core::ids::{JobId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that goes through the waiting messages of a part of the queue, a page at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkOnQueue {
    pub(crate) scope: QueueScope,
    pub(crate) action: QueueAction,
    /// Time of the request; later messages are left alone.
    pub(crate) asked_at: Timestamp,
    /// Lane, due time and id of the last job that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<(Lane, Timestamp, JobId)>,
}

/// Action on each message of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QueueAction {
    /// A message that was put off is tried at once.
    Retry,
    /// The message is cancelled.
    Cancel,
    /// A message that waits for an address to leave from looks for one at once.
    FindSource,
}

/// Time after which all processes know the addresses of a changed pool.
const KNOWN_AFTER: Duration = Duration::from_secs(2);

impl WorkOnQueue {
    /// Returns the job of a request.
    pub(crate) const fn new(scope: QueueScope, action: QueueAction, asked_at: Timestamp) -> Self {
        Self { scope, action, asked_at, after: None }
    }

    /// Returns the job after a change of the addresses that mail of a workspace, or of all workspaces, leaves from; one
    /// at a time for each.
    pub(crate) fn find_source(workspace_id: Option<WorkspaceId>, id: JobId, now: Timestamp) -> JobWrite {
        let scope = QueueScope { workspace_id, ..QueueScope::default() };
        let at = now + KNOWN_AFTER;
        JobWrite::EnqueueOnce(Self::new(scope, QueueAction::FindSource, at).enqueue(id, at))
    }
}

impl JobData for WorkOnQueue {
    const KIND: &'static str = "work_on_queue";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        match (self.action, self.scope.workspace_id) {
            (QueueAction::FindSource, Some(id)) => Lane::of_installation(&format!("{}{id}", lanes::NEW_SOURCES)),
            (QueueAction::FindSource, None) => Lane::of_installation(lanes::NEW_SOURCES),
            (QueueAction::Retry | QueueAction::Cancel, _) => Lane::of_installation(lanes::QUEUE),
        }
    }
}
