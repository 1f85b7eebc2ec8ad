//! What an operator asks for by hand of the messages that wait.

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::QueueScope;
use messaging_core::ids::JobId;
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
}

impl WorkOnQueue {
    /// The job of a request.
    pub(crate) const fn new(scope: QueueScope, action: QueueAction, asked_at: Timestamp) -> Self {
        Self { scope, action, asked_at, after: None }
    }
}

impl JobData for WorkOnQueue {
    const KIND: &'static str = "work_on_queue";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::of_installation(lanes::QUEUE)
    }
}
