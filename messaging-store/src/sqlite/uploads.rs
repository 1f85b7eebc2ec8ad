//! Storing and reading uploaded files.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ids::{BlobId, ImportId, WorkspaceId};
use messaging_core::ports::Uploads;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::uploads::UploadFile;

use super::health::Health;
use super::off_thread::off_thread;
use super::upload_files::UploadFiles;
use crate::files::naming;

/// A directory of uploaded files, on the disk of the database.
#[derive(Debug)]
pub(super) struct FileUploads {
    files: UploadFiles,
    health: Arc<Health>,
}

impl FileUploads {
    pub(super) const fn new(files: UploadFiles, health: Arc<Health>) -> Self {
        Self { files, health }
    }
}

#[async_trait]
impl Uploads for FileUploads {
    async fn append_upload(&self, file: UploadFile, at: u64, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let files = self.files.clone();
        Ok(off_thread(move || naming(&files.path(file), files.append(file, at, &bytes))).await?)
    }

    async fn keep_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || naming(&files.path(file), files.keep(file))).await?)
    }

    async fn read_upload(&self, file: UploadFile, at: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || naming(&files.path(file), files.read(file, at, length))).await?)
    }

    async fn uploads(&self, workspace: WorkspaceId, import: ImportId) -> Result<Vec<BlobId>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || files.list(workspace, import)).await?)
    }

    async fn uploads_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<UploadFile>, StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || files.list_of(workspace, limit)).await?)
    }

    async fn remove_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        let files = self.files.clone();
        Ok(off_thread(move || files.remove(file)).await?)
    }
}
