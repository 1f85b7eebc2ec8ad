//! The log of a workspace's events.

use async_trait::async_trait;
use messaging_core::changes::LogEvent;
use messaging_core::domain::message::{Message, MessageEvent};
use messaging_core::ids::{EventId, MessageId, WorkspaceId};
use messaging_core::ports::store::{EventLog, LogPosition, StoreError};
use messaging_core::time::Timestamp;

use super::messages::{event_columns, with_event};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::time;
use crate::sql::{Sql, key, params, sql};

/// Methods that each database implements in its own way, because their positions differ.
#[async_trait]
pub(crate) trait LogRows {
    /// See [`EventLog::events_after`].
    async fn entries_after(
        &self,
        workspace: WorkspaceId,
        after: Option<LogPosition>,
        limit: usize,
    ) -> Result<Vec<(LogPosition, MessageEvent, Message)>, StoreError>;

    /// See [`EventLog::log_position`].
    async fn position_at(&self, workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError>;
}

/// Adds an event at the end. On SQLite each millisecond has 1,024 numbers; with more entries the numbers run ahead of
/// the clock, which does no harm.
pub(crate) fn log(on: &mut dyn Statements, event: &LogEvent) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO event_log (workspace, n, message, at, event) VALUES (
            $1, max($3 * 1024, coalesce((SELECT max(n) FROM event_log WHERE workspace = $1), 0) + 1), $2, $3, $4)",
        postgres: "INSERT INTO event_log (workspace, era, xid, n, message, at, event)
            SELECT u.workspace, (SELECT era FROM log_era), pg_current_xact_id()::text::bigint,
                nextval('event_log_numbers'), u.message, u.at, u.event
            FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[]) AS u (workspace, message, at, event)",
    );
    on.gather(SQL, params![key(event.workspace_id), key(event.message_id), event.at, key(event.event_id)])
}

pub(crate) fn follow(on: &mut dyn Statements, workspace: WorkspaceId, until: Timestamp) -> Result<(), Fault> {
    on.run(
        sql!(
            "INSERT INTO event_followers (workspace, until) VALUES ($1, $2)
             ON CONFLICT (workspace) DO UPDATE SET until = excluded.until"
        ),
        params![key(workspace), until],
    )
}

#[async_trait]
impl<D: Database + LogRows> EventLog for SqlStore<D> {
    async fn event(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        at: Timestamp,
        id: EventId,
    ) -> Result<Option<(MessageEvent, Message)>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT ",
            event_columns!(),
            " FROM message_events e JOIN messages m ON m.workspace = $1 AND m.id = $2
              WHERE e.workspace = $1 AND e.message = $2 AND e.at = $3 AND e.id = $4"
        ));
        let key = params![key(workspace), key(message), at, key(id)];
        self.one(Query::new(SQL, key, move |row| with_event(workspace, row)).point()).await
    }

    async fn events_among(
        &self,
        workspace: WorkspaceId,
        keys: &[(MessageId, Timestamp, EventId)],
    ) -> Result<Vec<(MessageEvent, Message)>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: concat!(
                "SELECT ",
                event_columns!(),
                " FROM message_events e JOIN messages m ON m.workspace = $1 AND m.id = $2
                  WHERE e.workspace = $1 AND e.message = $2 AND e.at = $3 AND e.id = $4"
            ),
            postgres: concat!(
                "SELECT found.* FROM unnest($2::uuid[], $3::bigint[], $4::uuid[]) AS asked (of_message, happened_at, event)
                 CROSS JOIN LATERAL (SELECT ",
                event_columns!(),
                " FROM message_events e JOIN messages m ON m.workspace = $1 AND m.id = of_message
                  WHERE e.workspace = $1 AND e.message = of_message AND e.at = happened_at AND e.id = event
                  OFFSET 0) AS found"
            ),
        );
        let query = Query::new(SQL, params![key(workspace)], move |row| with_event(workspace, row));
        let keys = keys.iter().map(|(message, at, id)| params![key(*message), *at, key(*id)]);
        self.gathered(query, keys.collect()).await
    }

    async fn events_after(
        &self,
        workspace: WorkspaceId,
        after: Option<LogPosition>,
        limit: usize,
    ) -> Result<Vec<(LogPosition, MessageEvent, Message)>, StoreError> {
        self.entries_after(workspace, after, limit).await
    }

    async fn log_position(&self, workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError> {
        self.position_at(workspace, time).await
    }

    async fn followed_until(&self, workspace: WorkspaceId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: Sql = sql!("SELECT until FROM event_followers WHERE workspace = $1");
        self.one(Query::new(SQL, params![key(workspace)], |row| time(row, 0)).point().shared()).await
    }

    async fn forget_log(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // On SQLite this reads the front of each workspace's part.
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM event_log WHERE (workspace, n) IN (
                SELECT l.workspace, l.n FROM workspaces w
                CROSS JOIN event_log l ON l.workspace = w.id AND l.n < $1 * 1024 LIMIT $2)",
            postgres: "DELETE FROM event_log WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM event_log WHERE (at >> 22) <= ($1::bigint >> 22) AND at < $1
                ORDER BY (at >> 22) LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        self.sweep(SQL, params![before, sql_limit(limit)]).await
    }
}
