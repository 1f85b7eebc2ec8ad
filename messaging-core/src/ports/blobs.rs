//! The port to bytes too large for a row: attachments.
//!
//! A blob store knows nothing of transactions, so that it may be a directory, tables of a database, or an object store
//! that somebody else runs. What holds the two together is said here. A blob is put before the commit that inserts its
//! message and kept after it; that commit names it ([`Write::KeepBlob`](crate::changes::Write::KeepBlob)). What a crash
//! leaves pending in between is decided by [`settle_blobs`](super::settle_blobs): a commit
//! ([`Write::AbandonBlob`](crate::changes::Write::AbandonBlob)) that no message and no later commit agrees with comes
//! before the removal, so neither a slow commit nor a clock that jumps loses the file of a message.

use async_trait::async_trait;
use bytes::Bytes;

use super::store::StoreError;
use crate::domain::attachment::MessageBlob;
use crate::ids::{BlobId, WorkspaceId};
use crate::time::Timestamp;

/// Stored bytes, written once and read whole.
///
/// Ids begin with their time, and "put before a time" means that of the id. Another workspace's blob is not there.
#[async_trait]
pub trait BlobStore: std::fmt::Debug + Send + Sync + 'static {
    /// Stores bytes under a new id, pending. Durable when it returns; leaves nothing when it fails.
    /// [`StoreError::Unavailable`] when there is no room at the moment.
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError>;
    /// Makes pending blobs kept; those that are kept already stay so. A failure when one is not there. It need not be
    /// durable: a blob that is pending again is settled again.
    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError>;
    /// Removes a pending blob; no error when there is none.
    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError>;
    /// Removes blobs, pending or kept; no error when one is gone already.
    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError>;
    /// The bytes, pending or kept.
    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError>;
    /// Pending blobs that were put before a time, at most `limit`.
    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError>;
    /// Kept blobs that were put before a time, oldest first, at most `limit`; for the sweep.
    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError>;
}
