//! The port to bytes too large for a row: attachments.
//!
//! A blob store knows nothing of transactions, so that it may be a directory, tables of a database, or an external
//! object store. Blobs and commits are kept consistent as follows. A blob is put before the commit that inserts its
//! message and kept after it; that commit names it ([`Write::KeepBlob`](crate::changes::Write::KeepBlob)). Blobs that a
//! crash leaves pending are settled by [`settle_blobs`](super::settle_blobs): a commit
//! ([`Write::AbandonBlob`](crate::changes::Write::AbandonBlob)) that conflicts with an existing message and with any
//! later commit of one comes before the removal, so neither a slow commit nor a clock that jumps loses the file of a
//! message.

use async_trait::async_trait;
use bytes::Bytes;

use super::store::StoreError;
use crate::domain::message::attachment::MessageBlob;
use crate::ids::{BlobId, WorkspaceId};
use crate::time::Timestamp;

/// Stored bytes, written once and read whole.
///
/// Ids begin with their time, and "put before a time" refers to the time in the id. Another workspace's blob is not
/// there.
///
/// A blob store in memory. `blob_conformance_tests!` of `messaging-conformance` tests an implementation:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
/// use async_trait::async_trait;
/// use bytes::Bytes;
/// use messaging_core::domain::message::attachment::MessageBlob;
/// use messaging_core::ids::{BlobId, Id, IdSource, WorkspaceId};
/// use messaging_core::ports::BlobStore;
/// use messaging_core::ports::clock::SeededEntropy;
/// use messaging_core::ports::store::StoreError;
/// use messaging_core::time::Timestamp;
///
/// /// The bytes of each, and the blob as long as it is pending.
/// #[derive(Debug, Default)]
/// struct InMemory(Mutex<BTreeMap<(BlobId, WorkspaceId), (Bytes, Option<MessageBlob>)>>);
///
/// /// An id begins with its time.
/// fn was_put_before(id: BlobId, time: Timestamp) -> bool {
///     let put = u128::from_be_bytes(id.to_bytes()) >> 80;
///     u128::try_from(time.as_millis()).is_ok_and(|time| put < time)
/// }
///
/// #[async_trait]
/// impl BlobStore for InMemory {
///     async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
///         self.0.lock().unwrap().insert((blob.id, blob.workspace_id), (bytes, Some(blob)));
///         Ok(())
///     }
///
///     async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
///         let mut all = self.0.lock().unwrap();
///         for blob in blobs {
///             let found = all.get_mut(&(blob.id, blob.workspace_id));
///             found.ok_or_else(|| StoreError::Failed("no such blob".into()))?.1 = None;
///         }
///         Ok(())
///     }
///
///     async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
///         self.0.lock().unwrap().retain(|_, (_, pending)| *pending != Some(blob));
///         Ok(())
///     }
///
///     async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
///         self.0.lock().unwrap().retain(|(id, workspace), _| !blobs.contains(&(*workspace, *id)));
///         Ok(())
///     }
///
///     async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
///         Ok(self.0.lock().unwrap().get(&(id, workspace)).map(|(bytes, _)| bytes.clone()))
///     }
///
///     async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError> {
///         let all = self.0.lock().unwrap();
///         let pending = all.values().filter_map(|(_, pending)| *pending);
///         Ok(pending.filter(|blob| was_put_before(blob.id, before)).take(limit).collect())
///     }
///
///     async fn blobs_before(
///         &self,
///         before: Timestamp,
///         limit: usize,
///     ) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
///         let all = self.0.lock().unwrap();
///         let kept = all.iter().filter(|((id, _), (_, pending))| pending.is_none() && was_put_before(*id, before));
///         Ok(kept.map(|((id, workspace), _)| (*workspace, *id)).take(limit).collect())
///     }
///
///     async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError> {
///         let all = self.0.lock().unwrap();
///         Ok(all.keys().filter(|(_, of)| *of == workspace).map(|(id, _)| *id).take(limit).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let (ids, entropy, now) = (IdSource::default(), SeededEntropy::new(1), Timestamp::from_millis(0));
/// let (workspace_id, message_id) = (ids.next(now, &entropy), ids.next(now, &entropy));
/// let blob = MessageBlob { workspace_id, message_id, id: ids.next(now, &entropy) };
/// let store = InMemory::default();
/// store.put_blob(blob, Bytes::from_static(b"%PDF")).await?;
/// // Here is the commit that names it.
/// store.keep_blobs(&[blob]).await?;
/// assert_eq!(store.blob(workspace_id, blob.id).await?.as_deref(), Some(&b"%PDF"[..]));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait BlobStore: std::fmt::Debug + Send + Sync + 'static {
    /// Stores bytes under a new id, pending. Durable on return; leaves nothing on failure. [`StoreError::Unavailable`]
    /// if there is no room at the moment.
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError>;
    /// Makes pending blobs kept; kept ones stay so. Fails if one is not there. It need not be durable: a blob that is
    /// pending again is settled again.
    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError>;
    /// Removes a pending blob; no error if there is none.
    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError>;
    /// Removes blobs, pending or kept; no error if one is gone already.
    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError>;
    /// Returns the bytes, pending or kept.
    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError>;
    /// Returns pending blobs that were put before a time, at most `limit`.
    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError>;
    /// Returns kept blobs that were put before a time, oldest first, at most `limit`; for the sweep.
    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError>;
    /// Returns blobs of a workspace, pending or kept, at most `limit`; for its removal.
    async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError>;
}
