//! Messages, their contents and their events.

mod erasure;
mod events;
mod list;
pub(crate) mod rows;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::MoveMessage;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::milestones::{Milestones, Skip};
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageFilter, MessageStatus};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{Messages, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;

use self::rows::values;
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{number, sql_limit};
use crate::row::{get, id};
use crate::sql::{Sql, key, params, sql};
use crate::tables::search;

pub(crate) use self::erasure::{attribute, erase_copy, expect, list_copies, redact, unlist_copy};
pub(crate) use self::events::append as append_event;
pub(crate) use self::list::{MessageMatcher, rows_between, span};
pub(crate) use self::rows::{MESSAGE_COLUMNS, event_columns, message, message_columns, with_event};

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait ContentRows {
    /// See [`Messages::forget_contents`].
    async fn forget_old_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// Stores a message. `$content` is the number of its content on SQLite; on PostgreSQL contents are found by their message.
macro_rules! insert {
    (sqlite $content:literal) => {
        concat!(
            "INSERT INTO messages (workspace, ",
            message_columns!(),
            ", content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                 $21, $22, coalesce($23, -70368744177664), coalesce($24, -70368744177664), $25, $26, $27, ",
            $content,
            ")"
        )
    };
    (postgres) => {
        concat!(
            "INSERT INTO messages (workspace, ",
            message_columns!(),
            ") SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                 $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::uuid[], $12::uuid[], $13::uuid[], $14::uuid[],
                 $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
                 $22::bigint[], $23::bigint[], $24::bigint[], $25::uuid[], $26::boolean[], $27::boolean[])"
        )
    };
}

pub(crate) fn insert(on: &mut dyn Statements, message: &Message, content: &MessageContent) -> Result<(), Fault> {
    const CONTENT: Sql = sql!(
        sqlite: "INSERT INTO message_contents (workspace, message, request) VALUES ($1, $2, $3)",
        postgres: "INSERT INTO message_contents (workspace, message, request)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[])",
    );
    const MESSAGE: Sql = sql!(sqlite: insert!(sqlite "last_insert_rowid()"), postgres: insert!(postgres));
    on.gather(CONTENT, params![key(message.workspace_id), key(message.id), content.request.clone()])?;
    on.gather(MESSAGE, values(message)?)
}

/// Stores a message without its content: a message of a campaign has none of its own.
pub(crate) fn insert_row(on: &mut dyn Statements, message: &Message) -> Result<(), Fault> {
    const SQL: Sql = sql!(sqlite: insert!(sqlite "NULL"), postgres: insert!(postgres));
    on.gather(SQL, values(message)?)
}

pub(crate) fn change_status(on: &mut dyn Statements, movement: &MoveMessage) -> Result<(), Fault> {
    const ONE: Sql = sql!(
        sqlite: "UPDATE messages SET status = $4, updated_at = $5, revision = revision + 1, hold_reason = $6,
                hold_until = $7, hold_since = $8, seen = $9, links = $10, skip = $11,
                sent_at = coalesce($12, -70368744177664), delivered_at = coalesce($13, -70368744177664)
            WHERE workspace = $1 AND id = $2 AND revision = $3",
        postgres: "UPDATE messages SET status = $4, updated_at = $5, revision = revision + 1, hold_reason = $6,
                hold_until = $7, hold_since = $8, seen = $9, links = $10, skip = $11, sent_at = $12, delivered_at = $13
            WHERE workspace = $1 AND id = $2 AND revision = $3",
    );
    const MANY: &str = "UPDATE messages SET status = moved.status, updated_at = moved.updated_at,
            revision = messages.revision + 1, hold_reason = moved.hold_reason, hold_until = moved.hold_until,
            hold_since = moved.hold_since, seen = moved.seen, links = moved.links, skip = moved.skip,
            sent_at = moved.sent_at, delivered_at = moved.delivered_at
        FROM (SELECT wanted.*, found.at
            FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])
                AS wanted (of_workspace, of_message, of_revision, status, updated_at, hold_reason, hold_until,
                    hold_since, seen, links, skip, sent_at, delivered_at)
            CROSS JOIN LATERAL (SELECT m.ctid AS at FROM messages m
                WHERE m.workspace = of_workspace AND m.id = of_message OFFSET 0) AS found
            WHERE of_revision BETWEEN 0 AND 4294967295) AS moved
        WHERE messages.ctid = moved.at AND messages.revision = moved.of_revision";
    // Workspace and id.
    const KEY: usize = 2;
    let Milestones { seen, links, skip, sent_at, delivered_at } = movement.milestones;
    on.change_one(
        ONE,
        MANY,
        KEY,
        params![
            key(movement.workspace_id),
            key(movement.message_id),
            movement.revision,
            number(&MessageStatus::ALL, &movement.status),
            movement.at,
            movement.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
            movement.hold.and_then(|hold| hold.until),
            movement.hold.map(|hold| hold.since),
            seen.bits(),
            links.cast_signed(),
            skip.map(|skip| number(&Skip::ALL, &skip)),
            sent_at,
            delivered_at,
        ],
    )
}

/// Selects a message by its id, with part of its content after its columns. PostgreSQL's text takes many keys.
macro_rules! with_content {
    ($what:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT ",
                message_columns!(),
                ", (SELECT ",
                $what,
                " FROM message_contents WHERE n = content) FROM messages WHERE workspace = $1 AND id = $2"
            ),
            postgres: concat!(
                "SELECT ",
                message_columns!(),
                ", (SELECT ",
                $what,
                " FROM message_contents WHERE workspace = of_workspace AND message = of_message), number
                  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS wanted (of_workspace, of_message, number)
                  CROSS JOIN LATERAL (
                      SELECT * FROM messages WHERE workspace = of_workspace AND id = of_message OFFSET 0) AS found"
            ),
        )
    };
}

#[async_trait]
impl<D: Database + ContentRows> Messages for SqlStore<D> {
    async fn message(&self, workspace: WorkspaceId, id: MessageId) -> Result<Option<Message>, StoreError> {
        const SQL: Sql =
            sql!(concat!("SELECT ", message_columns!(), " FROM messages WHERE workspace = $1 AND id = $2"));
        let query = Query::new(SQL, params![key(workspace), key(id)], move |row| message(workspace, row));
        self.one(query.point()).await
    }

    async fn message_with_length(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<u64>)>, StoreError> {
        // The length is in the row, or at the start of the content: the value itself is not read.
        const SQL: Sql = with_content!("length(request)");
        let query = Query::new(SQL, Vec::new(), move |row| {
            Ok((message(workspace, row)?, get::<Option<u32>>(row, MESSAGE_COLUMNS)?.map(u64::from)))
        });
        Ok(self.by_keys(query.point(), vec![params![key(workspace), key(id)]]).await?.pop())
    }

    async fn message_with_content(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<MessageContent>)>, StoreError> {
        // One statement, so that both halves are of one moment.
        const SQL: Sql = with_content!("request");
        let query = Query::new(SQL, Vec::new(), move |row| {
            let request: Option<Vec<u8>> = get(row, MESSAGE_COLUMNS)?;
            let content = request.map(|request| MessageContent { request: Bytes::from(request) });
            Ok((message(workspace, row)?, content))
        });
        Ok(self.by_keys(query.point(), vec![params![key(workspace), key(id)]]).await?.pop())
    }

    async fn message_events(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT id, at, kind, meta FROM message_events
             WHERE workspace = $1 AND message = $2 ORDER BY at, id LIMIT $3"
        );
        let bounds = params![key(workspace), key(id), sql_limit(limit)];
        self.many(events::of_message(workspace, id, SQL, bounds)).await
    }

    async fn message_events_of_kind(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        kind: EventKind,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT id, at, kind, meta FROM message_events
             WHERE workspace = $1 AND message = $2 AND kind = $3 ORDER BY at, id LIMIT $4"
        );
        let bounds = params![key(workspace), key(id), number(&EventKind::ALL, &kind), sql_limit(limit)];
        self.many(events::of_message(workspace, id, SQL, bounds)).await
    }

    async fn messages(
        &self,
        workspace: WorkspaceId,
        filter: &MessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        match &filter.search {
            Some(search) => search::messages(&self.0, workspace, (filter, search), &page).await,
            None => list::messages(&self.0, workspace, filter, &page).await,
        }
    }

    async fn messages_to(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        list::messages_to(&self.0, workspace, addresses.iter().cloned().collect(), &page).await
    }

    async fn messages_copying(
        &self,
        workspace: WorkspaceId,
        copy: CopyKey,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError> {
        const SQL: Sql = sql!("SELECT message FROM copied_recipients WHERE workspace = $1 AND key = $2 LIMIT $3");
        self.many(Query::new(SQL, params![key(workspace), copy.0, sql_limit(limit)], |row| id(row, 0))).await
    }

    async fn forget_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.forget_old_contents(before, limit).await
    }
}
