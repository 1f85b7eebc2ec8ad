//! Comparing what is kept with what it is counted from.

use async_trait::async_trait;

use super::{StoreCursor, StoreError};
use crate::domain::message::MessageContent;
use crate::ids::{MessageId, WorkspaceId};

/// Something that is kept otherwise than it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The counter, row or file, in words for people.
    pub what: String,
    /// The number that is kept.
    pub stored: i64,
    /// The number that follows from the rows.
    pub counted: i64,
}

/// Result of comparing kept numbers with those that follow from the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of comparisons that were made.
    pub checked: u64,
    /// Those that differ; the first thousand.
    pub differences: Vec<Difference>,
}

/// Differences that one comparison tells, at most.
pub const MAX_DIFFERENCES: usize = 1000;

impl Verified {
    /// Compares a number.
    pub fn compare(&mut self, what: impl FnOnce() -> String, stored: i64, counted: i64) {
        self.checked += 1;
        if stored != counted && self.differences.len() < MAX_DIFFERENCES {
            self.differences.push(Difference { what: what(), stored, counted });
        }
    }

    /// Adds another comparison.
    pub fn add(&mut self, other: Self) {
        self.checked += other.checked;
        let room = MAX_DIFFERENCES.saturating_sub(self.differences.len());
        self.differences.extend(other.differences.into_iter().take(room));
    }
}

/// Reads the message that a job delivers from the payload of the job.
pub type MessageOfJob = fn(&[u8]) -> Option<(WorkspaceId, MessageId)>;

/// The content of a message, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedContent {
    /// Cursor at which reading continues after this content.
    pub place: StoreCursor,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The content of the message as it was accepted.
    pub content: MessageContent,
}

/// Reads that look at everything. Each is of one moment, also while others write; what it holds in memory does not grow
/// with the messages. They take as long as it takes, and meanwhile the log of a database may grow.
#[async_trait]
pub trait Verification {
    /// The first workspace after one, in the order of their ids.
    async fn workspace_after(&self, after: Option<WorkspaceId>) -> Result<Option<WorkspaceId>, StoreError>;
    /// Compares every counter of a workspace with a recount: contacts; members of lists and segments; product events;
    /// totals, series and links of messages; what was seen of campaigns' messages. Also that waiting rows name messages
    /// that wait.
    async fn verify_workspace(&self, workspace: WorkspaceId) -> Result<Verified, StoreError>;
    /// Compares jobs of a kind, whose payloads `message_of` reads, with the messages: each message that is not settled has a
    /// job or waits to be released, and each job names a message that is there.
    async fn verify_message_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError>;
    /// Contents of messages of all workspaces after a place, in the order in which they were accepted, at most `limit`.
    async fn contents_after(&self, after: Option<StoreCursor>, limit: usize) -> Result<Vec<PlacedContent>, StoreError>;
}
