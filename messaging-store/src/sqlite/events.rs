//! The log of events on SQLite: a position in it is a number.

use async_trait::async_trait;
use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{LogPosition, StoreCursor, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::params;

use super::Sqlite;
use super::query::many;
use crate::pages::sql_limit;
use crate::tables::event_log::LogRows;
use crate::tables::messages::{MESSAGE_COLUMNS, event_columns, with_event};

/// Count of numbers for each millisecond, see [`log`](crate::tables::event_log::log).
const A_MILLISECOND: i64 = 1024;

fn first_number(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(A_MILLISECOND)
}

fn position(number: i64) -> LogPosition {
    StoreCursor::from_bytes(u128::from(number.max(0).unsigned_abs()).to_be_bytes())
}

fn number(position: LogPosition) -> i64 {
    i64::try_from(u128::from_be_bytes(position.to_bytes())).unwrap_or(i64::MAX)
}

#[async_trait]
impl LogRows for Sqlite {
    async fn entries_after(
        &self,
        workspace: WorkspaceId,
        after: Option<LogPosition>,
        limit: usize,
    ) -> Result<Vec<(LogPosition, MessageEvent, Message)>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            event_columns!(),
            ", l.n FROM event_log l
               CROSS JOIN message_events e ON e.workspace = ?1 AND e.message = l.message AND e.at = l.at AND e.id = l.event
               CROSS JOIN messages m ON m.workspace = ?1 AND m.id = l.message
               WHERE l.workspace = ?1 AND l.n > ?2 ORDER BY l.n LIMIT ?3"
        );
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), after.map_or(-1, number), sql_limit(limit)];
                many(connection, SQL, bounds, |row| {
                    let (event, message) = with_event(workspace, row)?;
                    Ok((position(row.get(MESSAGE_COLUMNS + 4)?), event, message))
                })
            })
            .await
    }

    async fn position_at(&self, _workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError> {
        Ok(position(first_number(time).saturating_sub(1)))
    }
}
