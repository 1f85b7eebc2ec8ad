//! Storing and reading uploaded files.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ids::{BlobId, ImportId, WorkspaceId};
use messaging_core::ports::store::{StoreError, UploadFile, Uploads};

use super::SqliteStore;
use super::off_thread::off_thread;

#[async_trait]
impl Uploads for SqliteStore {
    async fn append_upload(&self, file: UploadFile, at: u64, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let files = self.uploads.clone();
        Ok(off_thread(move || files.append(file, at, &bytes)).await?)
    }

    async fn keep_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        let files = self.uploads.clone();
        Ok(off_thread(move || files.keep(file)).await?)
    }

    async fn read_upload(&self, file: UploadFile, at: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        let files = self.uploads.clone();
        Ok(off_thread(move || files.read(file, at, length)).await?)
    }

    async fn uploads(&self, workspace: WorkspaceId, import: ImportId) -> Result<Vec<BlobId>, StoreError> {
        let files = self.uploads.clone();
        Ok(off_thread(move || files.list(workspace, import)).await?)
    }

    async fn remove_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        let files = self.uploads.clone();
        Ok(off_thread(move || files.remove(file)).await?)
    }
}
