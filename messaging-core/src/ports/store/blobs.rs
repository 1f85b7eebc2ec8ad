//! Bytes too large for a row: attachments.

use async_trait::async_trait;
use bytes::Bytes;

use super::StoreError;
use crate::ids::{BlobId, WorkspaceId};
use crate::time::Timestamp;

/// Stored bytes.
///
/// They are written before the commit that refers to them, so that no large value passes through a
/// transaction. What a crash leaves without a reference is found by [`Blobs::blobs_before`] and swept.
#[async_trait]
pub trait Blobs {
    /// Stores bytes under a new id. Durable when it returns.
    async fn put_blob(&self, workspace: WorkspaceId, id: BlobId, bytes: Bytes) -> Result<(), StoreError>;
    /// Removes bytes that no commit refers to, because the one that should have failed; no error when there are
    /// none.
    async fn discard_blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<(), StoreError>;
    /// The bytes.
    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError>;
    /// Blobs stored before a time, oldest first, at most `limit`; for the sweep.
    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError>;
}
