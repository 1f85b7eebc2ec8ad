//! Messages, their contents and their events.

mod erasure;
mod events;
mod list;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::MoveMessage;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{Milestones, Seen, Skip};
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageFilter, MessageStatus};
use messaging_core::ids::{Id, MessageId, WorkspaceId};
use messaging_core::ports::store::{Messages, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;
use serde::Serialize;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{number, sql_limit};
use crate::row::{Row, document, get, id, maybe_id, maybe_time, numbered, or_empty, time};
use crate::sql::{Params, Sql, key, params, sql};

pub(crate) use self::erasure::{attribute, erase_copy, expect, list_copies, redact, unlist_copy};
pub(crate) use self::events::append as append_event;

/// What each database does in its own way.
#[async_trait]
pub(crate) trait ContentRows {
    /// See [`Messages::forget_contents`].
    async fn forget_old_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// The columns that [`message`] reads, in its order; or those after the id. Position 1 and 2 are looked at by listings.
macro_rules! message_columns {
    () => {
        concat!("id, ", $crate::tables::messages::message_columns!(after_id))
    };
    (after_id) => {
        "status, channel, tags, revision, created_at, updated_at, recipient, sender, contact, campaign, automation, \
         template, metadata, variant, hold_reason, hold_until, hold_since, seen, links, skip, sent_at, delivered_at, \
         fallback_of, has_fallback"
    };
}
pub(crate) use message_columns;

/// How many columns those are: where those of a longer selection begin.
pub(crate) const MESSAGE_COLUMNS: usize = 25;

/// Stands on SQLite in the place of a time that has not come, and is as long as one, six bytes: a row that grew when its
/// message is sent would make pages overflow, and SQLite does not overwrite what it moves from one page to another. So
/// what is erased from the row later would stay where the row was before.
const NOT_YET: i64 = -(1 << 46);

/// A message from the columns of `message_columns`.
pub(crate) fn message(workspace: WorkspaceId, row: &dyn Row) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace_id: workspace,
        revision: get(row, 4)?,
        status: numbered(&MessageStatus::ALL, get(row, 1)?)?,
        channel: numbered(&Channel::ALL, get(row, 2)?)?,
        to: get(row, 7)?,
        from_email: get(row, 8)?,
        contact_id: maybe_id(row, 9)?,
        campaign_id: maybe_id(row, 10)?,
        automation_id: maybe_id(row, 11)?,
        template_id: maybe_id(row, 12)?,
        fallback_of: maybe_id(row, 23)?,
        has_fallback: get::<Option<bool>>(row, 24)?.unwrap_or_default(),
        tags: or_empty(row, 3)?,
        metadata: or_empty(row, 13)?,
        created_at: time(row, 5)?,
        updated_at: time(row, 6)?,
        variant: get(row, 14)?,
        hold: hold(row)?,
        milestones: Milestones {
            seen: Seen::from_bits(get(row, 18)?),
            links: get::<i64>(row, 19)?.cast_unsigned(),
            skip: get::<Option<i64>>(row, 20)?.map(|number| numbered(&Skip::ALL, number)).transpose()?,
            sent_at: kept_time(row, 21)?,
            delivered_at: kept_time(row, 22)?,
        },
    })
}

fn kept_time(row: &dyn Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(maybe_time(row, column)?.filter(|time| time.as_millis() != NOT_YET))
}

fn hold(row: &dyn Row) -> Result<Option<Hold>, Fault> {
    let Some(reason) = get::<Option<i64>>(row, 15)? else { return Ok(None) };
    let reason = numbered(&HoldReason::ALL, reason)?;
    Ok(Some(Hold { reason, until: maybe_time(row, 16)?, since: time(row, 17)? }))
}

/// The columns of `message_columns`, then id, at, kind and meta of an event, for [`with_event`]. Only what both tables
/// have is told apart.
macro_rules! event_columns {
    () => {
        concat!("m.id, ", $crate::tables::messages::message_columns!(after_id), ", e.id, e.at, e.kind, e.meta")
    };
}
pub(crate) use event_columns;

/// An event and its message from the columns of `event_columns`.
pub(crate) fn with_event(workspace: WorkspaceId, row: &dyn Row) -> Result<(MessageEvent, Message), Fault> {
    let message = message(workspace, row)?;
    let event = MessageEvent {
        id: id(row, MESSAGE_COLUMNS)?,
        workspace_id: workspace,
        message_id: message.id,
        kind: numbered(&EventKind::ALL, get(row, MESSAGE_COLUMNS + 2)?)?,
        at: time(row, MESSAGE_COLUMNS + 1)?,
        meta: or_empty(row, MESSAGE_COLUMNS + 3)?,
    };
    Ok((event, message))
}

/// The text of a document column in which NULL stands for an empty document.
pub(crate) fn unless_empty<T: Serialize>(is_empty: bool, record: &T) -> Result<Option<String>, Fault> {
    if is_empty { Ok(None) } else { document(record).map(Some) }
}

/// The workspace of a message and its values for `message_columns`.
fn values(message: &Message) -> Result<Params, Fault> {
    let Milestones { seen, links, skip, sent_at, delivered_at } = message.milestones;
    Ok(params![
        key(message.workspace_id),
        key(message.id),
        number(&MessageStatus::ALL, &message.status),
        number(&Channel::ALL, &message.channel),
        unless_empty(message.tags.is_empty(), &message.tags)?,
        message.revision,
        message.created_at,
        message.updated_at,
        message.to.as_str(),
        message.from_email.as_deref(),
        message.contact_id.map(Id::to_bytes),
        message.campaign_id.map(Id::to_bytes),
        message.automation_id.map(Id::to_bytes),
        message.template_id.map(Id::to_bytes),
        unless_empty(message.metadata.is_empty(), &message.metadata)?,
        message.variant,
        message.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
        message.hold.and_then(|hold| hold.until),
        message.hold.map(|hold| hold.since),
        seen.bits(),
        links.cast_signed(),
        skip.map(|skip| number(&Skip::ALL, &skip)),
        sent_at,
        delivered_at,
        message.fallback_of.map(Id::to_bytes),
        message.has_fallback.then_some(true),
    ])
}

/// Stores a message. `$content` is the number of its content on SQLite; on PostgreSQL contents are found by their message.
macro_rules! insert {
    (sqlite $content:literal) => {
        concat!(
            "INSERT INTO messages (workspace, ",
            message_columns!(),
            ", content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                 $21, $22, coalesce($23, -70368744177664), coalesce($24, -70368744177664), $25, $26, ",
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
                 $22::bigint[], $23::bigint[], $24::bigint[], $25::uuid[], $26::boolean[])"
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
    on.gather(CONTENT, params![key(message.workspace_id), key(message.id), content.request.to_vec()])?;
    on.gather(MESSAGE, values(message)?)
}

/// Stores a message without its content: one of a campaign has none of its own.
pub(crate) fn insert_row(on: &mut dyn Statements, message: &Message) -> Result<(), Fault> {
    const SQL: Sql = sql!(sqlite: insert!(sqlite "NULL"), postgres: insert!(postgres));
    on.gather(SQL, values(message)?)
}

pub(crate) fn change_status(on: &mut dyn Statements, movement: &MoveMessage) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE messages SET status = $4, updated_at = $5, revision = revision + 1, hold_reason = $6,
                hold_until = $7, hold_since = $8, seen = $9, links = $10, skip = $11,
                sent_at = coalesce($12, -70368744177664), delivered_at = coalesce($13, -70368744177664)
            WHERE workspace = $1 AND id = $2 AND revision = $3",
        postgres: "UPDATE messages SET status = $4, updated_at = $5, revision = revision + 1, hold_reason = $6,
                hold_until = $7, hold_since = $8, seen = $9, links = $10, skip = $11, sent_at = $12, delivered_at = $13
            WHERE workspace = $1 AND id = $2 AND revision = $3",
    );
    let Milestones { seen, links, skip, sent_at, delivered_at } = movement.milestones;
    on.run_one(
        SQL,
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

/// A message by its id, with something of its content behind its columns.
macro_rules! with_content {
    ($what:literal) => {
        sql!(
            sqlite: with_content!($what "n = content"),
            postgres: with_content!($what "workspace = $1 AND message = $2"),
        )
    };
    ($what:literal $found:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            ", (SELECT ",
            $what,
            " FROM message_contents WHERE ",
            $found,
            ") FROM messages WHERE workspace = $1 AND id = $2"
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
        // The length stands in the row, or at its beginning: what holds the value itself is not read.
        const SQL: Sql = with_content!("length(request)");
        let query = Query::new(SQL, params![key(workspace), key(id)], move |row| {
            Ok((message(workspace, row)?, get::<Option<u32>>(row, MESSAGE_COLUMNS)?.map(u64::from)))
        });
        self.one(query.point()).await
    }

    async fn message_with_content(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<MessageContent>)>, StoreError> {
        // One statement, so that both halves are of one moment.
        const SQL: Sql = with_content!("request");
        let query = Query::new(SQL, params![key(workspace), key(id)], move |row| {
            let request: Option<Vec<u8>> = get(row, MESSAGE_COLUMNS)?;
            let content = request.map(|request| MessageContent { request: Bytes::from(request) });
            Ok((message(workspace, row)?, content))
        });
        self.one(query.point()).await
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
        list::messages(&self.0, workspace, filter, &page).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_sqlite_name_the_time_that_has_not_come() {
        assert_eq!(NOT_YET.to_string(), "-70368744177664");
    }
}
