//! What was said on the wire.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::attempt::{Dialog, KEPT_ATTEMPTS, MessageAttempt};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{Attempts, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::SqliteStore;
use super::due_rows::Dated;
use super::fault::Fault;
use super::query::many;
use super::row::{below, document, id, one_more, record, slice, sql_limit, time};

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;

/// How many rows a sweep looks at: they are long.
const WINDOW: usize = 2_000;

/// An attempt as it stands in its row.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    dialog: &'a Dialog,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
}

/// The same when it is read.
#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    dialog: Dialog,
    #[serde(default)]
    provider: Option<String>,
}

pub(super) fn append(connection: &Connection, attempt: &MessageAttempt) -> Result<(), Fault> {
    let (workspace, message) = (attempt.workspace_id.to_bytes(), attempt.message_id.to_bytes());
    connection
        .prepare_cached(
            "INSERT INTO message_attempts (workspace, message, id, attempt, at, doc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            workspace,
            message,
            attempt.id.to_bytes(),
            attempt.attempt,
            attempt.at.as_millis(),
            document(&Written { dialog: &attempt.dialog, provider: attempt.provider.as_deref() })?
        ])?;
    if let Some(too_old) = attempt.attempt.checked_sub(KEPT_ATTEMPTS)
        && too_old > 0
    {
        connection
            .prepare_cached("DELETE FROM message_attempts WHERE workspace = ?1 AND message = ?2 AND attempt <= ?3")?
            .execute(params![workspace, message, too_old])?;
    }
    Ok(())
}

#[async_trait]
impl Attempts for SqliteStore {
    async fn attempts(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<MessageAttempt>, StoreError> {
        const SQL: &str = "SELECT id, attempt, at, doc FROM message_attempts
            WHERE workspace = ?1 AND message = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), message.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| {
                    let Kept { dialog, provider } = record(row, 3)?;
                    Ok(MessageAttempt {
                        id: id(row, 0)?,
                        workspace_id: workspace,
                        message_id: message,
                        attempt: row.get(1)?,
                        at: time(row, 2)?,
                        provider,
                        dialog,
                    })
                })?;
                Ok(slice(items, page.limit, |attempt: &MessageAttempt| attempt.id.to_bytes()))
            })
            .await
    }

    async fn forget_attempts(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ROWS: &str = "SELECT n, at FROM message_attempts WHERE n > ?1 ORDER BY n LIMIT ?2";
        let rows = Arc::clone(&self.due.attempts);
        let old: Vec<i64> = self
            .readers
            .read(move |connection| {
                rows.find(WINDOW, limit, |after| {
                    many(connection, ROWS, params![after, sql_limit(WINDOW)], |row| {
                        let n = row.get(0)?;
                        Ok(Dated { n, due: (time(row, 1)? < before).then_some(n) })
                    })
                })
            })
            .await?;
        let mut forgotten = 0;
        for slice in old.chunks(SLICE) {
            let rows = slice.to_vec();
            forgotten += self.writer.undurably(move |connection| forget(connection, &rows)).await?;
        }
        Ok(forgotten)
    }
}

fn forget(connection: &Connection, rows: &[i64]) -> Result<u64, Fault> {
    let mut delete = connection.prepare_cached("DELETE FROM message_attempts WHERE n = ?1")?;
    let mut forgotten = 0;
    for n in rows {
        forgotten += delete.execute([n])? as u64;
    }
    Ok(forgotten)
}
