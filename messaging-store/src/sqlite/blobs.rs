//! What the database notes about blobs.

use async_trait::async_trait;
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::ids::Id as _;
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::blob_files::first_id;
use super::fault::Fault;
use super::query::one;
use super::row::sql_limit;

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
