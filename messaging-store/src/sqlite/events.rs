//! The log of a workspace's events.

use async_trait::async_trait;
use messaging_core::changes::LogEvent;
use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::ids::{EventId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{EventLog, LogPosition, StoreCursor, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::query::{many, one};
use super::row::{sql_limit, time};
use crate::tables::messages::{MESSAGE_COLUMNS, event_columns, with_event};

/// Entries that fit into a millisecond before numbers run ahead of the clock, which does no harm.
const A_MILLISECOND: i64 = 1024;

/// Adds an event at the end.
pub(super) fn log(connection: &Connection, event: &LogEvent) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO event_log (workspace, n, message, at, event) VALUES (
                 ?1, max(?2, coalesce((SELECT max(n) FROM event_log WHERE workspace = ?1), 0) + 1), ?3, ?4, ?5)",
        )?
        .execute(params![
            event.workspace_id.to_bytes(),
            first_number(event.at),
            event.message_id.to_bytes(),
            event.at.as_millis(),
            event.event_id.to_bytes(),
        ])?;
    Ok(())
}

pub(super) fn follow(connection: &Connection, workspace: WorkspaceId, until: Timestamp) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO event_followers (workspace, until) VALUES (?1, ?2)
             ON CONFLICT (workspace) DO UPDATE SET until = excluded.until",
        )?
        .execute(params![workspace.to_bytes(), until.as_millis()])?;
    Ok(())
}

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
impl EventLog for SqliteStore {
    async fn event(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        at: Timestamp,
        id: EventId,
    ) -> Result<Option<(MessageEvent, Message)>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            event_columns!(),
            " FROM message_events e JOIN messages m ON m.workspace = ?1 AND m.id = ?2
              WHERE e.workspace = ?1 AND e.message = ?2 AND e.at = ?3 AND e.id = ?4"
        );
        self.readers
            .point_read(move |connection| {
                let key = params![workspace.to_bytes(), message.to_bytes(), at.as_millis(), id.to_bytes()];
                one(connection, SQL, key, |row| with_event(workspace, row))
            })
            .await
    }

    async fn events_after(
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

    async fn log_position(&self, _workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError> {
        Ok(position(first_number(time).saturating_sub(1)))
    }

    async fn followed_until(&self, workspace: WorkspaceId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT until FROM event_followers WHERE workspace = ?1";
        self.readers
            .point_read(move |connection| one(connection, SQL, [workspace.to_bytes()], |row| time(row, 0)))
            .await
    }

    async fn forget_log(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // A look at the front of each workspace's part.
        const SQL: &str = "DELETE FROM event_log WHERE (workspace, n) IN (
            SELECT l.workspace, l.n FROM workspaces w CROSS JOIN event_log l ON l.workspace = w.id AND l.n < ?1 LIMIT ?2)";
        let until = first_number(before);
        self.writer
            .undurably(move |connection| {
                let removed = connection.prepare_cached(SQL)?.execute(params![until, sql_limit(limit)])?;
                Ok(removed as u64)
            })
            .await
    }
}
