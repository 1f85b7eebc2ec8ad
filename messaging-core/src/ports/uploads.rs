//! The port to files that are uploaded for imports, until they are read.

use async_trait::async_trait;
use bytes::Bytes;

use super::store::StoreError;
use crate::ids::{BlobId, ImportId, WorkspaceId};

/// Names a file.
///
/// Several may be on their way for one import; each has a name of its own, and the commit that makes the
/// import go on says which one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadFile {
    /// Workspace that owns the import.
    pub workspace_id: WorkspaceId,
    /// The import that the file is for.
    pub import_id: ImportId,
    /// Id of the upload; each upload for an import has a file of its own.
    pub upload_id: BlobId,
}

/// Uploaded files.
///
/// They are written a piece at a time, and no piece passes through a transaction. None of this is a part of
/// [`Changes`](crate::changes::Changes): a file without an import that counts on it is removed by the job
/// that ends the import, so that a crash leaves none for good.
#[async_trait]
pub trait Uploads: std::fmt::Debug + Send + Sync + 'static {
    /// Adds bytes at the end, which is at `at`; the first piece makes the file.
    async fn append_upload(&self, file: UploadFile, at: u64, bytes: Bytes) -> Result<(), StoreError>;
    /// Makes the file durable: a power cut changes nothing after. Only then it can be read.
    async fn keep_upload(&self, file: UploadFile) -> Result<(), StoreError>;
    /// Up to `length` bytes from `at` on, fewer only at the end; `None` when there is no such file.
    async fn read_upload(&self, file: UploadFile, at: u64, length: usize) -> Result<Option<Bytes>, StoreError>;
    /// The files of an import, kept or not.
    async fn uploads(&self, workspace: WorkspaceId, import: ImportId) -> Result<Vec<BlobId>, StoreError>;
    /// The files of a workspace, kept or not, at most `limit`; for its removal.
    async fn uploads_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<UploadFile>, StoreError>;
    /// Removes a file, kept or not; no error when there is none.
    async fn remove_upload(&self, file: UploadFile) -> Result<(), StoreError>;
}
