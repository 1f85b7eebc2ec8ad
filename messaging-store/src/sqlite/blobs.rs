//! Storing, keeping and reading blobs.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::SqliteStore;
use super::blob_files::first_id;
use super::off_thread::off_thread;
use crate::files::{remove_file, write_synced};

/// How many pending blobs one transaction decides about: requests wait for the files to be moved or removed.
const SETTLED: usize = 20;
#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let path = self.blobs.pending_path(blob);
        Ok(off_thread(move || write_synced(&path, &bytes)).await?)
    }

    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        let path = self.blobs.pending_path(blob);
        Ok(off_thread(move || remove_file(&path)).await?)
    }

    async fn settle_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let bound = first_id(before);
        let files = self.blobs.clone();
        let pending = off_thread(move || {
            let mut old: Vec<_> = files.pending()?.filter(|blob| blob.id < bound).collect();
            old.truncate(limit);
            Ok(old)
        });
        let mut settled = 0;
        for slice in pending.await?.chunks(SETTLED) {
            let (files, slice) = (self.blobs.clone(), slice.to_vec());
            let settle = move |connection: &Connection| files.settle(connection, &slice);
            settled += self.writer.undurably(settle).await?;
        }
        Ok(settled)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let files = self.blobs.clone();
        Ok(off_thread(move || files.read_blob(workspace, id)).await?)
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        let files = self.blobs.clone();
        Ok(off_thread(move || files.list_before(before, limit)).await?)
    }
}
