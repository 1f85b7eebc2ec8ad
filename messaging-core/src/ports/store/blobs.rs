//! Bytes too large for a row: attachments.

use async_trait::async_trait;
use bytes::Bytes;

use super::StoreError;
use crate::domain::attachment::MessageBlob;
use crate::ids::{BlobId, WorkspaceId};
use crate::time::Timestamp;

/// Stored bytes.
///
/// They are put before the commit that inserts their message, so that no large value passes through a
/// transaction, and that commit keeps them ([`Write::KeepBlob`](crate::changes::Write::KeepBlob)). What a crash
/// leaves in between is found by [`Blobs::settle_blobs`].
#[async_trait]
pub trait Blobs {
    /// Stores bytes under a new id, to be kept by a commit. Durable when it returns; leaves nothing when it fails.
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError>;
    /// Removes bytes that no commit refers to, because the one that should have failed; no error when there are
    /// none.
    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError>;
    /// Decides about blobs that were put before a time, at most `limit`, and that no commit has kept so far: they
    /// are kept if their message is there, and removed if not. A commit that comes to keep a removed one is a
    /// conflict. Answers how many were decided about.
    async fn settle_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
    /// The bytes.
    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError>;
    /// Kept blobs that were put before a time, oldest first, at most `limit`; for the sweep.
    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError>;
}
