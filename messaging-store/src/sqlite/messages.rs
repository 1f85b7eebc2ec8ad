//! Removal of old contents of messages.

use async_trait::async_trait;
use messaging_core::domain::message::MessageStatus;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::due_rows::{Dated, DueRows};
use super::fault::Fault;
use super::query::many;
use crate::pages::sql_limit;
use crate::row::{numbered, time};
use crate::tables::messages::ContentRows;

/// Number of rows that a sweep changes in one transaction.
const SLICE: usize = 200;

/// Number of contents that a sweep examines: each costs looking up its message.
const CONTENTS: usize = 2_000;

#[async_trait]
impl ContentRows for Sqlite {
    async fn forget_old_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let rows = self.due.of("message_contents");
        let found = self.readers.read(move |connection| forgettable(connection, &rows, before, limit)).await?;
        let mut forgotten = 0;
        for slice in found.chunks(SLICE) {
            let slice = slice.to_vec();
            forgotten += self.writer.undurably(move |connection| forget(connection, &slice)).await?;
        }
        Ok(forgotten)
    }
}

/// A stored content: its row, its workspace and its message.
type ContentKey = (i64, [u8; 16], [u8; 16]);

/// The oldest contents of settled messages. Contents are in the order of acceptance.
fn forgettable(
    connection: &Connection,
    rows: &DueRows,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<ContentKey>, Fault> {
    // The content of a message that a provider accepted (2) and that has a fallback ages from its last change on: the
    // fallback needs it, should this message not arrive.
    const ROWS: &str = "SELECT message_contents.n, message_contents.workspace, message_contents.message,
             CASE WHEN messages.status = 2 AND messages.has_fallback THEN max(messages.created_at, messages.updated_at)
                 ELSE messages.created_at END,
             messages.status
         FROM message_contents CROSS JOIN messages
             ON messages.workspace = message_contents.workspace AND messages.id = message_contents.message
         WHERE message_contents.n > ?1 ORDER BY message_contents.n LIMIT ?2";
    rows.find(CONTENTS, limit, |after| {
        many(connection, ROWS, params![after, sql_limit(CONTENTS)], |row| {
            let is_due = time(row, 3)? < before && numbered(&MessageStatus::ALL, row.get(4)?)?.is_settled();
            let n = row.get(0)?;
            Ok(Dated { n, due: if is_due { Some((n, row.get(1)?, row.get(2)?)) } else { None } })
        })
    })
}

fn forget(connection: &Connection, contents: &[ContentKey]) -> Result<u64, Fault> {
    let mut unlink = connection
        .prepare_cached("UPDATE messages SET content = NULL WHERE workspace = ?2 AND id = ?3 AND content = ?1")?;
    let mut delete = connection.prepare_cached("DELETE FROM message_contents WHERE n = ?1")?;
    let mut forgotten = 0;
    for (n, workspace, message) in contents {
        if unlink.execute(params![n, workspace, message])? == 1 {
            delete.execute([n])?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}
