//! Comparison of stored numbers with recounts.

use async_trait::async_trait;

use super::{StoreCursor, StoreError};
use crate::domain::message::MessageContent;
use crate::ids::{MessageId, WorkspaceId};

/// A difference between a stored number and its recount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Counter, row or file, in words for people.
    pub what: String,
    /// Stored number.
    pub stored: i64,
    /// Number by the recount.
    pub counted: i64,
}

/// Result of comparing stored numbers with recounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of comparisons that were made.
    pub checked: u64,
    /// Differences; at most the first thousand.
    pub differences: Vec<Difference>,
}

/// Maximum number of differences that one comparison reports.
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

/// Reads that scan everything. Each sees one moment, also while others write; its memory does not grow with the
/// messages. They may take long, and the log of a database may grow meanwhile.
#[async_trait]
pub trait Verification {
    /// Returns the first workspace after one, in the order of their ids.
    async fn workspace_after(&self, after: Option<WorkspaceId>) -> Result<Option<WorkspaceId>, StoreError>;
    /// Compares every counter of a workspace with a recount: contacts; members of lists and segments; product events;
    /// totals, series and links of messages; engagement with campaigns' messages. Also checks that waiting rows name
    /// messages that wait.
    async fn verify_workspace(&self, workspace: WorkspaceId) -> Result<Verified, StoreError>;
    /// Compares jobs of a kind, whose payloads `message_of` reads, with the messages: each message that is not settled
    /// has a job or waits to be released, and each job names an existing message.
    async fn verify_message_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError>;
    /// Returns contents of messages of all workspaces after a position, in the order in which they were accepted, at
    /// most `limit`.
    async fn contents_after(&self, after: Option<StoreCursor>, limit: usize) -> Result<Vec<PlacedContent>, StoreError>;
}
