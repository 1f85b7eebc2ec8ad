//! Bytes of attachments, in rows.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::BlobStore;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::fault::Fault;
use super::pieces::{SENT_AT_A_TIME, pieces};
use super::query::params;
use super::reads::Reads;
use super::row::{first_id, get, id, small, sql_limit, uuid};
use super::sweep::{end, sweep};
use super::transaction::Transaction;
use super::writes::Writes;

/// The blobs of a database. They are written outside of commits.
#[derive(Debug)]
pub(super) struct RowBlobs {
    reads: Reads,
    writes: Writes,
}

impl RowBlobs {
    pub(super) const fn new(reads: Reads, writes: Writes) -> Self {
        Self { reads, writes }
    }
}

async fn put(transaction: &mut Transaction, blob: MessageBlob, bytes: &[u8]) -> Result<(), Fault> {
    let (id, workspace) = (uuid(blob.id), uuid(blob.workspace_id));
    transaction.run(
        "INSERT INTO blobs (id, workspace, message, pending, size) VALUES ($1, $2, $3, true, $4)",
        params![id, workspace, uuid(blob.message_id), sql_limit(bytes.len())],
    );
    for (n, (at, piece)) in pieces(0, bytes).enumerate() {
        transaction.run(
            "INSERT INTO blob_pieces (blob, workspace, at, bytes) VALUES ($1, $2, $3, $4)",
            params![id, workspace, at, piece],
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
        let outcome = put(&mut transaction, blob, &bytes).await;
        Ok(end(transaction, outcome).await?)
    }

    async fn keep_blobs(&self, blobs: &[MessageBlob]) -> Result<(), StoreError> {
        const SQL: &str = "UPDATE blobs SET pending = false FROM unnest($1::uuid[], $2::uuid[]) AS kept (id, workspace)
            WHERE blobs.id = kept.id AND blobs.workspace = kept.workspace";
        let keys: BTreeSet<_> = blobs.iter().map(|blob| (uuid(blob.id), uuid(blob.workspace_id))).collect();
        let there = keys.len() as u64;
        let (ids, workspaces): (Vec<Uuid>, Vec<Uuid>) = keys.into_iter().unzip();
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
        let key = params![uuid(blob.id), uuid(blob.workspace_id), uuid(blob.message_id)];
        sweep(&self.writes, SQL, key).await.map(drop)
    }

    async fn remove_blobs(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        const SQL: &str = "WITH gone AS (
                DELETE FROM blobs USING unnest($1::uuid[], $2::uuid[]) AS named (id, workspace)
                WHERE blobs.id = named.id AND blobs.workspace = named.workspace
                RETURNING blobs.id, blobs.workspace
            )
            DELETE FROM blob_pieces USING gone WHERE blob = gone.id AND blob_pieces.workspace = gone.workspace";
        let (ids, workspaces): (Vec<Uuid>, Vec<Uuid>) =
            blobs.iter().map(|(workspace, id)| (uuid(*id), uuid(*workspace))).unzip();
        self.reads.many(SQL, params![ids, workspaces], |_| Ok(())).await.map(drop)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        const SQL: &str = "SELECT size, bytes FROM blobs
            LEFT JOIN blob_pieces ON blob = id AND blob_pieces.workspace = blobs.workspace
            WHERE id = $1 AND blobs.workspace = $2 ORDER BY at";
        let rows = self
            .reads
            .many(SQL, params![uuid(id), uuid(workspace)], |row| {
                Ok((small::<usize>(row, 0)?, get::<Option<Vec<u8>>>(row, 1)?))
            })
            .await?;
        let Some((size, _)) = rows.first() else { return Ok(None) };
        let size = *size;
        let mut bytes = Vec::with_capacity(size);
        for (_, piece) in rows {
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
        let blob = |row: &_| Ok(MessageBlob { workspace_id: id(row, 0)?, message_id: id(row, 1)?, id: id(row, 2)? });
        self.reads.many(SQL, params![first_id(before), sql_limit(limit)], blob).await
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        const SQL: &str = "SELECT workspace, id FROM blobs WHERE NOT pending AND id < $1
            ORDER BY id, workspace LIMIT $2";
        let key = params![first_id(before), sql_limit(limit)];
        self.reads.many(SQL, key, |row| Ok((id(row, 0)?, id(row, 1)?))).await
    }
}
