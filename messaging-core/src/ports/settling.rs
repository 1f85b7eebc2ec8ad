//! Settling of blobs that a crash left pending.

use super::blobs::BlobStore;
use super::store::{CommitError, Priority, Store, StoreError};
use crate::changes::{Changes, Write};
use crate::time::Timestamp;

/// Settles pending blobs that were put before a time, at most `limit`: they are kept if their message exists, and
/// removed if not, in which case a later commit that marks one as used is a conflict. Returns how many were settled.
pub async fn settle_blobs(
    store: &dyn Store,
    blobs: &dyn BlobStore,
    before: Timestamp,
    limit: usize,
) -> Result<u64, StoreError> {
    let mut settled = 0;
    for blob in blobs.pending_blobs(before, limit).await? {
        let abandon = Changes::from_iter([Write::AbandonBlob(blob)]);
        match store.commit(abandon, Priority::Background).await {
            Ok(()) => blobs.discard_blob(blob).await?,
            Err(CommitError::Conflict) => blobs.keep_blobs(&[blob]).await?,
            Err(error) => return Err(error.into_store_error()),
        }
        settled += 1;
    }
    Ok(settled)
}
