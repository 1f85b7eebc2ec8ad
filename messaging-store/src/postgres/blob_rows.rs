//! Attachments: a row for each, and their bytes in further rows or in a bucket.
//!
//! A row says where the bytes of an attachment are, so that a database with bytes of its own may be given a bucket
//! later. A row exists before its object and after it: objects in the bucket are found without listing it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::BlobStore;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use super::fault::Fault;
use super::pieces::{SENT_AT_A_TIME, pieces};
use super::reads::Reads;
use super::sweep::{end, sweep};
use super::transaction::Transaction;
use super::writes::Writes;
use crate::pages::{first_id_of, sql_limit};
use crate::row::{get, id};
use crate::sql::{Value, key, params};

/// Store for the bytes of attachments outside of the database.
#[async_trait]
pub(super) trait Objects: std::fmt::Debug + Send + Sync {
    /// Name of the place of the objects, as in rows.
    fn place(&self) -> &str;
    /// Stores an object. Durable when it returns.
    async fn put(&self, workspace: WorkspaceId, id: BlobId, bytes: Bytes) -> Result<(), StoreError>;
    /// Reads an object that has `size` bytes.
    async fn get(&self, workspace: WorkspaceId, id: BlobId, size: usize) -> Result<Bytes, StoreError>;
    /// Deletes objects; no error if one does not exist.
    async fn delete(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError>;
}

/// The blobs of a database. They are written outside of commits.
#[derive(Debug)]
pub(super) struct RowBlobs {
    reads: Reads,
    writes: Writes,
    /// Store for new bytes, instead of rows.
    objects: Option<Arc<dyn Objects>>,
}

impl RowBlobs {
    pub(super) const fn new(reads: Reads, writes: Writes, objects: Option<Arc<dyn Objects>>) -> Self {
        Self { reads, writes, objects }
    }

    /// Returns the objects at a place; fails if this process has no access to it.
    fn objects_at(&self, place: &str) -> Result<&dyn Objects, StoreError> {
        self.objects.as_deref().filter(|objects| objects.place() == place).ok_or_else(|| {
            StoreError::Failed(format!("an attachment is in {place}; start with --blobs {place} to use it").into())
        })
    }

    /// Deletes the objects of blobs that have one.
    async fn delete_objects(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        const SQL: &str = "SELECT bucket, blobs.workspace, blobs.id FROM blobs
            JOIN unnest($1::uuid[], $2::uuid[]) AS named (id, workspace)
                ON blobs.id = named.id AND blobs.workspace = named.workspace
            WHERE bucket IS NOT NULL";
        let (ids, workspaces) = keys(blobs);
        let placed = self
            .reads
            .many(SQL, params![ids, workspaces], |row| Ok((get::<String>(row, 0)?, id(row, 1)?, id(row, 2)?)))
            .await?;
        let mut places: BTreeMap<String, Vec<(WorkspaceId, BlobId)>> = BTreeMap::new();
        for (place, workspace, id) in placed {
            places.entry(place).or_default().push((workspace, id));
        }
        for (place, blobs) in places {
            self.objects_at(&place)?.delete(&blobs).await?;
        }
        Ok(())
    }
}

/// The keys of blobs as two columns.
fn keys(blobs: &[(WorkspaceId, BlobId)]) -> (Vec<Value>, Vec<Value>) {
    blobs.iter().map(|(workspace, id)| (key(*id), key(*workspace))).unzip()
}

fn add(transaction: &mut Transaction, blob: MessageBlob, size: usize, place: Option<&str>) {
    transaction.run(
        "INSERT INTO blobs (id, workspace, message, pending, size, bucket) VALUES ($1, $2, $3, true, $4, $5)",
        params![key(blob.id), key(blob.workspace_id), key(blob.message_id), sql_limit(size), place.map(str::to_owned)],
    );
}

/// Adds a blob with its bytes.
async fn add_whole(transaction: &mut Transaction, blob: MessageBlob, bytes: &[u8]) -> Result<(), Fault> {
    add(transaction, blob, bytes.len(), None);
    let (id, workspace) = (key(blob.id), key(blob.workspace_id));
    for (n, (at, piece)) in pieces(0, bytes).enumerate() {
        transaction.run(
            "INSERT INTO blob_pieces (blob, workspace, at, bytes) VALUES ($1, $2, $3, $4)",
            params![id.clone(), workspace.clone(), at, piece],
        );
        if (n + 1) % SENT_AT_A_TIME == 0 {
            transaction.flush().await?;
        }
    }
    Ok(())
}

#[async_trait]
impl BlobStore for RowBlobs {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        let mut transaction = self.writes.begin().await?;
        let Some(objects) = &self.objects else {
            let outcome = add_whole(&mut transaction, blob, &bytes).await;
            return Ok(end(transaction, outcome).await?);
        };
        add(&mut transaction, blob, bytes.len(), Some(objects.place()));
        end(transaction, Ok(())).await?;
        let put = objects.put(blob.workspace_id, blob.id, bytes).await;
        if put.is_err() {
            // If the removal fails now, the blob is pending, and settled like those that a crash leaves.
            let _ = self.discard_blob(blob).await;
        }
        put
    }

    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
        const SQL: &str = "UPDATE blobs SET pending = false FROM unnest($1::uuid[], $2::uuid[]) AS kept (id, workspace)
            WHERE blobs.id = kept.id AND blobs.workspace = kept.workspace";
        let keys: BTreeSet<_> = blobs.iter().map(|blob| (blob.id, blob.workspace_id)).collect();
        let there = keys.len() as u64;
        let (ids, workspaces): (Vec<Value>, Vec<Value>) =
            keys.into_iter().map(|(id, workspace)| (key(id), key(workspace))).unzip();
        if sweep(&self.writes, SQL, params![ids, workspaces]).await? < there {
            return Err(StoreError::Failed("a blob is not there".into()));
        }
        Ok(())
    }

    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        const SQL: &str = "WITH gone AS (
                DELETE FROM blobs WHERE id = $1 AND workspace = $2 AND message = $3 AND pending
                RETURNING id, workspace
            )
            DELETE FROM blob_pieces USING gone WHERE blob = gone.id AND blob_pieces.workspace = gone.workspace";
        const BUCKET: &str = "SELECT bucket FROM blobs
            WHERE id = $1 AND workspace = $2 AND message = $3 AND pending AND bucket IS NOT NULL";
        let key = || params![key(blob.id), key(blob.workspace_id), key(blob.message_id)];
        let place = self.reads.one(BUCKET, key(), |row| get::<String>(row, 0)).await?;
        if let Some(place) = place {
            self.objects_at(&place)?.delete(&[(blob.workspace_id, blob.id)]).await?;
        }
        let key = key();
        sweep(&self.writes, SQL, key).await.map(drop)
    }

    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        const SQL: &str = "WITH gone AS (
                DELETE FROM blobs USING unnest($1::uuid[], $2::uuid[]) AS named (id, workspace)
                WHERE blobs.id = named.id AND blobs.workspace = named.workspace
                RETURNING blobs.id, blobs.workspace
            )
            DELETE FROM blob_pieces USING gone WHERE blob = gone.id AND blob_pieces.workspace = gone.workspace";
        self.delete_objects(blobs).await?;
        let (ids, workspaces) = keys(blobs);
        self.reads.many(SQL, params![ids, workspaces], |_| Ok(())).await.map(drop)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        const SQL: &str = "SELECT size, bucket, bytes FROM blobs
            LEFT JOIN blob_pieces ON blob = id AND blob_pieces.workspace = blobs.workspace
            WHERE id = $1 AND blobs.workspace = $2 ORDER BY at";
        let rows = self
            .reads
            .many(SQL, params![key(id), key(workspace)], |row| {
                Ok((get::<usize>(row, 0)?, get::<Option<String>>(row, 1)?, get::<Option<Vec<u8>>>(row, 2)?))
            })
            .await?;
        let Some((size, place, _)) = rows.first() else { return Ok(None) };
        let size = *size;
        if let Some(place) = place {
            return self.objects_at(place)?.get(workspace, id, size).await.map(Some);
        }
        let mut bytes = Vec::with_capacity(size);
        for (_, _, piece) in rows {
            bytes.extend(piece.unwrap_or_default());
        }
        if bytes.len() != size {
            return Err(Fault::Malformed("a blob lacks bytes").into());
        }
        Ok(Some(bytes.into()))
    }

    async fn pending_blobs(&self, before: Timestamp, limit: usize) -> Result<Vec<MessageBlob>, StoreError> {
        const SQL: &str = "SELECT workspace, message, id FROM blobs WHERE pending AND id < $1
            ORDER BY id, workspace LIMIT $2";
        let blob = |row: &Row| Ok(MessageBlob { workspace_id: id(row, 0)?, message_id: id(row, 1)?, id: id(row, 2)? });
        self.reads.many(SQL, params![first_id_of(before), sql_limit(limit)], blob).await
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        const SQL: &str = "SELECT workspace, id FROM blobs WHERE NOT pending AND id < $1
            ORDER BY id, workspace LIMIT $2";
        let key = params![first_id_of(before), sql_limit(limit)];
        self.reads.many(SQL, key, |row| Ok((id(row, 0)?, id(row, 1)?))).await
    }

    async fn blobs_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<BlobId>, StoreError> {
        const SQL: &str = "SELECT id FROM blobs WHERE workspace = $1 LIMIT $2";
        self.reads.many(SQL, params![key(workspace), sql_limit(limit)], |row| id(row, 0)).await
    }
}
