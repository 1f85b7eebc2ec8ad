//! Bytes of attachments in files, and what the database notes about them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ids::{BlobId, Id as _, WorkspaceId};
use messaging_core::ports::BlobStore;
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::blob_files::{BlobFiles, first_id};
use super::fault::Fault;
use super::health::Health;
use super::off_thread::off_thread;
use super::query::one;
use super::row::sql_limit;
use crate::files::{remove_file, write_synced};

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
        Ok(off_thread(move || write_synced(&path, &bytes)).await?)
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
        Ok(off_thread(move || files.read_blob(workspace, id)).await?)
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
}

/// A conflict when the blob was abandoned.
pub(super) fn name(connection: &Connection, blob: MessageBlob) -> Result<(), Fault> {
    let sql = "SELECT 1 FROM abandoned_blobs WHERE blob = ?1 AND workspace = ?2";
    let key = [blob.id.to_bytes(), blob.workspace_id.to_bytes()];
    if connection.prepare_cached(sql)?.exists(key)? { Err(Fault::Conflict) } else { Ok(()) }
}

/// Abandons a blob, unless its message is there.
pub(super) fn abandon(connection: &Connection, blob: MessageBlob) -> Result<(), Fault> {
    let message = "SELECT 1 FROM messages WHERE workspace = ?1 AND id = ?2";
    if one(connection, message, [blob.workspace_id.to_bytes(), blob.message_id.to_bytes()], |_| Ok(()))?.is_some() {
        return Err(Fault::Conflict);
    }
    connection
        .prepare_cached("INSERT OR IGNORE INTO abandoned_blobs (blob, workspace) VALUES (?1, ?2)")?
        .execute([blob.id.to_bytes(), blob.workspace_id.to_bytes()])?;
    Ok(())
}

#[async_trait]
impl Blobs for SqliteStore {
    async fn forget_abandoned_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const OLD: &str = "SELECT 1 FROM abandoned_blobs WHERE blob < ?1";
        const SQL: &str = "DELETE FROM abandoned_blobs WHERE (blob, workspace) IN
            (SELECT blob, workspace FROM abandoned_blobs WHERE blob < ?1 LIMIT ?2)";
        let bound = first_id(before).to_bytes();
        if self.readers.point_read(move |connection| one(connection, OLD, [bound], |_| Ok(()))).await?.is_none() {
            return Ok(0);
        }
        let forget = move |connection: &Connection| {
            Ok(connection.prepare_cached(SQL)?.execute(params![bound, sql_limit(limit)])? as u64)
        };
        self.writer.undurably(forget).await
    }
}
