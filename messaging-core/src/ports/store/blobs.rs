//! A store's records of abandoned blobs; the bytes of blobs are in a [`BlobStore`](crate::ports::BlobStore).

use async_trait::async_trait;

use super::StoreError;
use crate::time::Timestamp;

/// Upkeep of these records.
#[async_trait]
pub trait Blobs {
    /// Deletes the records of up to `limit` abandoned blobs
    /// ([`Write::AbandonBlob`](crate::changes::Write::AbandonBlob)) that were put before a time; returns how many. A
    /// commit that marks one of them as used is no conflict from then on.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_abandoned_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
