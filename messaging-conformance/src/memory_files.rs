//! Blobs and uploads in memory: a second implementation of both ports, for tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, Id as _, ImportId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::uploads::UploadFile;
use messaging_core::ports::{BlobStore, Uploads};
use messaging_core::time::Timestamp;

/// Files that are gone when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    blobs: Mutex<BTreeMap<(BlobId, WorkspaceId), Blob>>,
    uploads: Mutex<BTreeMap<(ImportId, WorkspaceId, BlobId), Upload>>,
}

#[derive(Debug)]
struct Blob {
    /// The message that it was put for, until it is kept.
    pending: Option<MessageBlob>,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct Upload {
    is_kept: bool,
    bytes: Vec<u8>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(cause: &str) -> StoreError {
    StoreError::Failed(cause.into())
}

/// The time in an id, which it begins with.
fn was_put_before(id: BlobId, time: Timestamp) -> bool {
    let put = u128::from_be_bytes(id.to_bytes()) >> 80;
    u128::try_from(time.as_millis()).is_ok_and(|time| put < time)
}

const fn key(file: UploadFile) -> (ImportId, WorkspaceId, BlobId) {
    (file.import_id, file.workspace_id, file.upload_id)
}

#[async_trait]
impl BlobStore for MemoryFiles {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        lock(&self.blobs).insert((blob.id, blob.workspace_id), Blob { pending: Some(blob), bytes });
        Ok(())
    }

    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
        let mut held = lock(&self.blobs);
        for blob in blobs {
            held.get_mut(&(blob.id, blob.workspace_id)).ok_or_else(|| failed("no such blob"))?.pending = None;
        }
        Ok(())
    }

    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        let mut held = lock(&self.blobs);
        if held.get(&(blob.id, blob.workspace_id)).is_some_and(|held| held.pending == Some(blob)) {
            held.remove(&(blob.id, blob.workspace_id));
        }
        Ok(())
    }

    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        lock(&self.blobs).retain(|(id, workspace), _| !blobs.contains(&(*workspace, *id)));
        Ok(())
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        Ok(lock(&self.blobs).get(&(id, workspace)).map(|held| held.bytes.clone()))
    }

    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError> {
        let held = lock(&self.blobs);
        let pending = held.values().filter_map(|held| held.pending);
        Ok(pending.filter(|blob| was_put_before(blob.id, before)).take(limit).collect())
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        let held = lock(&self.blobs);
        let kept = held.iter().filter(|((id, _), held)| held.pending.is_none() && was_put_before(*id, before));
        Ok(kept.map(|((id, workspace), _)| (*workspace, *id)).take(limit).collect())
    }

    async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError> {
        let held = lock(&self.blobs);
        Ok(held.keys().filter(|(_, of)| *of == workspace).map(|(id, _)| *id).take(limit).collect())
    }
}

#[async_trait]
impl Uploads for MemoryFiles {
    async fn append_upload(&self, file: UploadFile, at: u64, bytes: Bytes) -> Result<(), StoreError> {
        let mut held = lock(&self.uploads);
        let at = usize::try_from(at).map_err(|_| failed("too long"))?;
        if at == 0 {
            held.insert(key(file), Upload::default());
        }
        let upload = held.get_mut(&key(file)).ok_or_else(|| failed("no such file"))?;
        upload.bytes.truncate(at);
        upload.bytes.extend(bytes);
        Ok(())
    }

    async fn keep_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        lock(&self.uploads).get_mut(&key(file)).ok_or_else(|| failed("no such file"))?.is_kept = true;
        Ok(())
    }

    async fn read_upload(&self, file: UploadFile, at: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        let held = lock(&self.uploads);
        let Some(upload) = held.get(&key(file)).filter(|upload| upload.is_kept) else { return Ok(None) };
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(upload.bytes.len());
        let to = from.saturating_add(length).min(upload.bytes.len());
        Ok(Some(Bytes::copy_from_slice(&upload.bytes[from..to])))
    }

    async fn uploads(&self, workspace: WorkspaceId, import: ImportId) -> Result<Vec<BlobId>, StoreError> {
        let held = lock(&self.uploads);
        Ok(held.keys().filter(|(of, owner, _)| (*of, *owner) == (import, workspace)).map(|(_, _, id)| *id).collect())
    }

    async fn uploads_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<UploadFile>, StoreError> {
        let held = lock(&self.uploads);
        let of_workspace = held.keys().filter(|(_, of, _)| *of == workspace);
        let file = |(import_id, workspace_id, upload_id): &(ImportId, WorkspaceId, BlobId)| UploadFile {
            workspace_id: *workspace_id,
            import_id: *import_id,
            upload_id: *upload_id,
        };
        Ok(of_workspace.map(file).take(limit).collect())
    }

    async fn remove_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        lock(&self.uploads).remove(&key(file));
        Ok(())
    }
}
