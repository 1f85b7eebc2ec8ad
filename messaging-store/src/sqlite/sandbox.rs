//! Captures on SQLite: large sources are in files.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::fault::Fault;
use super::query::{many, one};
use crate::pages::sql_limit;
use crate::row::id;
use crate::tables::sandbox::CaptureRows;

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 100;

#[async_trait]
impl CaptureRows for Sqlite {
    async fn source_elsewhere(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Bytes>, StoreError> {
        let files = self.blobs.clone();
        self.readers.read(move |_| files.read_capture(workspace, message)).await
    }

    async fn trim_rows_of_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError> {
        let surplus = self.readers.read(move |connection| surplus(connection, keep, limit)).await?;
        let mut trimmed = 0;
        for slice in surplus.chunks(SLICE) {
            let rows = slice.to_vec();
            trimmed += self.writer.undurably(move |connection| remove(connection, &rows)).await?;
            self.blobs.delete_captures(slice.to_vec()).await?;
        }
        Ok(trimmed)
    }
}

/// Captures beyond the newest `keep` of every workspace.
fn surplus(connection: &Connection, keep: usize, limit: usize) -> Result<Vec<(WorkspaceId, MessageId)>, Fault> {
    const NEXT_WORKSPACE: &str = "SELECT workspace FROM captures WHERE workspace > ?1 ORDER BY workspace LIMIT 1";
    const OLD: &str = "SELECT message FROM captures WHERE workspace = ?1 ORDER BY message DESC LIMIT ?2 OFFSET ?3";
    let mut found = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while found.len() < limit
        && let Some(workspace) = one(connection, NEXT_WORKSPACE, [&last[..]], |row| id::<WorkspaceId>(row, 0))?
    {
        let room = sql_limit(limit - found.len());
        let old = params![workspace.to_bytes(), room, sql_limit(keep)];
        found.extend(many(connection, OLD, old, |row| Ok((workspace, id(row, 0)?)))?);
        last = workspace.to_bytes().to_vec();
    }
    Ok(found)
}

fn remove(connection: &Connection, captures: &[(WorkspaceId, MessageId)]) -> Result<u64, Fault> {
    let mut delete = connection.prepare_cached("DELETE FROM captures WHERE workspace = ?1 AND message = ?2")?;
    let mut removed = 0;
    for (workspace, message) in captures {
        removed += delete.execute([workspace.to_bytes(), message.to_bytes()])?;
    }
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}
