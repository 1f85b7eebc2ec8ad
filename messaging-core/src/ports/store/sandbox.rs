//! Reads of messages that the sandbox captured instead of sending them.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::message::Capture;
use crate::ids::{MessageId, WorkspaceId};

/// Reads of the sandbox inbox.
#[async_trait]
pub trait Sandbox {
    /// A capture with its source.
    async fn capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Capture>, StoreError>;
    /// The captures of the workspace, newest message first, their `source` left empty.
    async fn captures(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Capture>, StoreError>;
    /// Removes, in every workspace, captures beyond the newest `keep`, at most `limit` in all; answers how many.
    async fn trim_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError>;
}
