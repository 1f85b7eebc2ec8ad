//! Bytes of attachments, in files.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::BlobStore;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::blob_files::{BlobFiles, first_id};
use super::health::Health;
use super::off_thread::off_thread;
use crate::files::{naming, remove_file, write_synced};

/// A directory of blobs, on the disk of the database.
#[derive(Debug)]
pub(super) struct FileBlobs {
    files: BlobFiles,
    health: Arc<Health>,
}

impl FileBlobs {
    pub(super) const fn new(files: BlobFiles, health: Arc<Health>) -> Self {
        Self { files, health }
    }
}

#[async_trait]
impl BlobStore for FileBlobs {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let path = self.files.pending_path(blob);
        Ok(off_thread(move || naming(&path, write_synced(&path, &bytes))).await?)
    }

    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
        Ok(self.files.keep(blobs.to_vec()).await?)
    }

    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        let path = self.files.pending_path(blob);
        Ok(off_thread(move || remove_file(&path)).await?)
    }

    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        Ok(self.files.delete(blobs.to_vec()).await?)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || naming(&files.blob_path(workspace, id), files.read_blob(workspace, id))).await?)
    }

    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError> {
        let (files, bound) = (self.files.clone(), first_id(before));
        let pending = off_thread(move || {
            let mut old: Vec<_> = files.pending()?.filter(|blob| blob.id < bound).collect();
            old.truncate(limit);
            Ok(old)
        });
        Ok(pending.await?)
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || files.list_before(before, limit)).await?)
    }

    async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || files.list_of(workspace, limit)).await?)
    }
}
