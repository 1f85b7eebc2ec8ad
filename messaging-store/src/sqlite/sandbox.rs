//! What the sandbox captured.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Capture;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Sandbox, Slice, StoreError};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::blobs::is_large;
use super::fault::Fault;
use super::query::{many, one};
use super::row::{below, id, number, numbered, one_more, slice, sql_limit, time};

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 100;

/// Stores a capture. A large source has been written to a file before.
pub(super) fn put(connection: &Connection, capture: &Capture) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO captures
                 (workspace, message, channel, captured_at, recipient, sender, subject, source)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            capture.workspace_id.to_bytes(),
            capture.message_id.to_bytes(),
            number(&Channel::ALL, &capture.channel),
            capture.captured_at.as_millis(),
            capture.to,
            capture.from,
            capture.subject,
            if is_large(&capture.source) { None } else { Some(&capture.source[..]) },
        ])?;
    Ok(())
}

/// A capture without its source, from the columns message to subject.
fn capture(workspace: WorkspaceId, row: &Row<'_>) -> Result<Capture, Fault> {
    Ok(Capture {
        workspace_id: workspace,
        message_id: id(row, 0)?,
        channel: numbered(&Channel::ALL, row.get(1)?)?,
        captured_at: time(row, 2)?,
        to: row.get(3)?,
        from: row.get(4)?,
        subject: row.get(5)?,
        source: Bytes::new(),
    })
}

#[async_trait]
impl Sandbox for SqliteStore {
    async fn capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Capture>, StoreError> {
        const SQL: &str = "SELECT message, channel, captured_at, recipient, sender, subject, source FROM captures
            WHERE workspace = ?1 AND message = ?2";
        let files = self.blobs.clone();
        self.readers
            .read(move |connection| {
                let found = one(connection, SQL, [workspace.to_bytes(), message.to_bytes()], |row| {
                    Ok((capture(workspace, row)?, row.get::<_, Option<Vec<u8>>>(6)?))
                })?;
                Ok(match found {
                    Some((capture, Some(source))) => Some(Capture { source: source.into(), ..capture }),
                    Some((capture, None)) => {
                        files.read_capture(workspace, message)?.map(|source| Capture { source, ..capture })
                    }
                    None => None,
                })
            })
            .await
    }

    async fn captures(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Capture>, StoreError> {
        const SQL: &str = "SELECT message, channel, captured_at, recipient, sender, subject FROM captures
            WHERE workspace = ?1 AND message < ?2 ORDER BY message DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| capture(workspace, row))?;
                Ok(slice(items, page.limit, |capture: &Capture| capture.message_id.to_bytes()))
            })
            .await
    }

    async fn trim_captures(&self, keep: usize, limit: usize) -> Result<u64, StoreError> {
        let surplus = self.readers.read(move |connection| surplus(connection, keep, limit)).await?;
        let mut trimmed = 0;
        for slice in surplus.chunks(SLICE) {
            let rows = slice.to_vec();
            trimmed +=
                self.writer.task(move |batch| batch.undurably(|connection, _| remove(connection, &rows))).await?;
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
