//! Uploaded files, in rows.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ids::{BlobId, ImportId, WorkspaceId};
use messaging_core::ports::Uploads;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::uploads::UploadFile;
use tokio_postgres::Row;

use super::fault::Fault;
use super::pieces::{SENT_AT_A_TIME, pieces};
use super::reads::Reads;
use super::sweep::{begin_undurably, end};
use super::transaction::Transaction;
use super::writes::Writes;
use crate::pages::sql_limit;
use crate::row::{get, id};
use crate::sql::{Params, key, params};

/// The most bytes that one call reads.
const MOST: i64 = 1 << 30;

/// The uploaded files of a database. They are written outside of commits.
#[derive(Debug)]
pub(super) struct RowUploads {
    reads: Reads,
    writes: Writes,
}

impl RowUploads {
    pub(super) const fn new(reads: Reads, writes: Writes) -> Self {
        Self { reads, writes }
    }
}

/// The key of a file, as the first parameters.
fn upload_key(file: UploadFile) -> Params {
    params![key(file.import_id), key(file.workspace_id), key(file.upload_id)]
}

/// The key, and more parameters.
fn key_and(file: UploadFile, more: Params) -> Params {
    let mut params = upload_key(file);
    params.extend(more);
    params
}

async fn append(transaction: &mut Transaction, file: UploadFile, at: i64, bytes: &[u8]) -> Result<(), Fault> {
    let end = at.saturating_add(sql_limit(bytes.len()));
    if at == 0 {
        transaction.run_one(
            "INSERT INTO uploads (import, workspace, id, kept, size) VALUES ($1, $2, $3, false, $4)
             ON CONFLICT (import, workspace, id) DO UPDATE SET size = excluded.size
             WHERE uploads.size = 0 AND NOT uploads.kept",
            key_and(file, params![end]),
        );
    } else {
        transaction.run_one(
            "UPDATE uploads SET size = $4
             WHERE import = $1 AND workspace = $2 AND id = $3 AND size = $5 AND NOT kept",
            key_and(file, params![end, at]),
        );
    }
    for (n, (at, piece)) in pieces(at, bytes).enumerate() {
        transaction.run(
            "INSERT INTO upload_pieces (import, workspace, upload, at, bytes) VALUES ($1, $2, $3, $4, $5)",
            key_and(file, params![at, piece]),
        );
        if (n + 1) % SENT_AT_A_TIME == 0 {
            transaction.flush().await?;
        }
    }
    Ok(())
}

#[async_trait]
impl Uploads for RowUploads {
    async fn append_upload(&self, file: UploadFile, at: u64, bytes: Bytes) -> Result<(), StoreError> {
        let at = i64::try_from(at).map_err(|_| Fault::Malformed("a file is longer than files are"))?;
        let mut transaction = begin_undurably(&self.writes).await?;
        let outcome = append(&mut transaction, file, at, &bytes).await;
        Ok(end(transaction, outcome).await?)
    }

    /// This waits for the disk, and with it for what was written before.
    async fn keep_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        let mut transaction = self.writes.begin().await?;
        transaction.run_one(
            "UPDATE uploads SET kept = true WHERE import = $1 AND workspace = $2 AND id = $3",
            upload_key(file),
        );
        Ok(end(transaction, Ok(())).await?)
    }

    async fn read_upload(&self, file: UploadFile, at: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        // From the piece on that begins at the place or before it, of which a part is read.
        const SQL: &str =
            "SELECT substring(bytes FROM (greatest($4 - at, 0) + 1)::int FOR ($5 - greatest($4, at))::int)
            FROM uploads LEFT JOIN upload_pieces p
                ON p.import = $1 AND p.workspace = $2 AND p.upload = $3 AND at < $5 AND at >= coalesce((
                    SELECT max(q.at) FROM upload_pieces q
                    WHERE q.import = $1 AND q.workspace = $2 AND q.upload = $3 AND q.at <= $4), 0)
            WHERE uploads.import = $1 AND uploads.workspace = $2 AND uploads.id = $3 AND kept ORDER BY at";
        let from = i64::try_from(at).unwrap_or(i64::MAX);
        let to = from.saturating_add(sql_limit(length).min(MOST));
        let rows = self.reads.many(SQL, key_and(file, params![from, to]), |row| get::<Option<Vec<u8>>>(row, 0)).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(rows.into_iter().flatten().flatten().collect()))
    }

    async fn uploads(&self, workspace: WorkspaceId, import: ImportId) -> Result<Vec<BlobId>, StoreError> {
        const SQL: &str = "SELECT id FROM uploads WHERE import = $1 AND workspace = $2 ORDER BY id";
        self.reads.many(SQL, params![key(import), key(workspace)], |row| id(row, 0)).await
    }

    async fn uploads_of(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<UploadFile>, StoreError> {
        const SQL: &str = "SELECT import, id FROM uploads WHERE workspace = $1 LIMIT $2";
        let file =
            |row: &Row| Ok(UploadFile { workspace_id: workspace, import_id: id(row, 0)?, upload_id: id(row, 1)? });
        self.reads.many(SQL, params![key(workspace), sql_limit(limit)], file).await
    }

    /// Its bytes go in a second statement, which also sees those that were added while the first one waited.
    async fn remove_upload(&self, file: UploadFile) -> Result<(), StoreError> {
        const PIECES: &str = "DELETE FROM upload_pieces WHERE import = $1 AND workspace = $2 AND upload = $3";
        let mut transaction = begin_undurably(&self.writes).await?;
        transaction.run("DELETE FROM uploads WHERE import = $1 AND workspace = $2 AND id = $3", upload_key(file));
        let outcome = transaction.execute(PIECES, upload_key(file)).await;
        end(transaction, outcome).await?;
        Ok(())
    }
}
