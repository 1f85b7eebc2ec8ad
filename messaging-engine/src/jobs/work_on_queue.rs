//! What is to happen at once with messages that wait: what an operator asks for by hand, and a look for an address that
//! they may leave from.

use std::time::Duration;

use messaging_core::changes::JobWrite;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::QueueScope;
use messaging_core::ids::{JobId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Goes through the messages that wait in a part of the queue, a page at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkOnQueue {
    pub(crate) scope: QueueScope,
    pub(crate) action: QueueAction,
    /// When it was asked for; what came later is left alone.
    pub(crate) asked_at: Timestamp,
    /// Lane, due time and id of the last job that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<(Lane, Timestamp, JobId)>,
}

/// Action on each message of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QueueAction {
    /// One that was put off is tried at once.
    Retry,
    /// It is cancelled.
    Cancel,
    /// One that waits for an address that it may leave from looks for one at once.
    FindSource,
}

/// Time after which all processes know the addresses of a pool that was changed.
const KNOWN_AFTER: Duration = Duration::from_secs(2);

impl WorkOnQueue {
    /// The job of a request.
    pub(crate) const fn new(scope: QueueScope, action: QueueAction, asked_at: Timestamp) -> Self {
        Self { scope, action, asked_at, after: None }
    }

    /// The job after a change of the addresses that mail of a workspace leaves from, or that of all workspaces; one at a
    /// time for each.
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
