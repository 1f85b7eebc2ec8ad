//! Messages, their contents and their events.

mod copies;
mod list;
mod redact;
mod rows;

use std::collections::HashSet;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageFilter};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{AutomationId, ContactId, MessageId, WorkspaceId};
use messaging_core::ports::store::{Messages, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::automations;
use super::fault::Fault;
use super::listeners::{self, Happened, MessageHappened};
use super::numbers::contact_number;
use super::outbox;
use super::query::{one, params};
use super::row::{count, first_id_of, get, id, maybe_id, number, numbered, or_empty, sql_limit, time, uuid};
use super::sweep::sweep;
use super::transaction::Transaction;
use crate::happened::{counted_kind, is_machine, trigger};

use crate::tables::messages::{MESSAGE_COLUMNS, message, message_columns, unless_empty};
pub(super) use copies::{erase_copy, expect, list_copies, unlist_copy};
pub(super) use redact::{attribute, redact};
pub(super) use rows::insert_row;

pub(super) fn insert(transaction: &mut Transaction, message: &Message, content: &MessageContent) -> Result<(), Fault> {
    transaction.add_row(
        "INSERT INTO message_contents (workspace, message, request) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[])",
        params![uuid(message.workspace_id), uuid(message.id), content.request.to_vec()],
    );
    insert_row(transaction, message)
}

pub(super) async fn append_event(transaction: &mut Transaction, event: &MessageEvent) -> Result<(), Fault> {
    transaction.add_row(
        "INSERT INTO message_events (workspace, message, at, id, kind, meta)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[])",
        params![
            uuid(event.workspace_id),
            uuid(event.message_id),
            event.at.as_millis(),
            uuid(event.id),
            number(&EventKind::ALL, &event.kind),
            unless_empty(event.meta.is_empty(), &event.meta)?,
        ],
    );
    tell(transaction, event).await
}

/// Tells segments and automations of an event, if it is of a kind that they know: a message is accepted without a look.
async fn tell(transaction: &mut Transaction, event: &MessageEvent) -> Result<(), Fault> {
    const MESSAGE: &str =
        "SELECT contact, campaign, template, automation FROM messages WHERE workspace = $1 AND id = $2";
    let Some(kind) = counted_kind(event.kind) else { return Ok(()) };
    let workspace = event.workspace_id;
    let is_followed = outbox::read_mask_in(transaction, workspace, ReadMask::MESSAGES).await?.is_some();
    if !is_followed && !listeners::is_any(transaction, workspace).await? {
        return Ok(());
    }
    let found = one(transaction, MESSAGE, params![uuid(workspace), uuid(event.message_id)], |row| {
        let source = (maybe_id(row, 1)?, maybe_id(row, 2)?, maybe_id::<AutomationId>(row, 3)?);
        Ok((maybe_id::<ContactId>(row, 0)?, source))
    })
    .await?;
    let Some((Some(contact), (campaign_id, template_id, automation))) = found else { return Ok(()) };
    // Whatever becomes of the message of a run was caused by it.
    let before = transaction.depth;
    if automation.is_some() {
        transaction.depth = before.max(automations::depth_of_message(transaction, event.message_id).await?);
    }
    outbox::note_contact(transaction, workspace, contact, ReadMask::MESSAGES).await?;
    if !is_machine(&event.meta)
        && let Some(contact) = contact_number(transaction, workspace, contact).await?
    {
        let happened = MessageHappened {
            event_id: event.id,
            message_id: event.message_id,
            at: event.at,
            trigger: trigger(kind),
            campaign_id,
            template_id,
        };
        let accepted_at = event.id.made_at();
        listeners::hear(transaction, workspace, contact, accepted_at, Happened::Message(&happened)).await?;
    }
    transaction.depth = before;
    Ok(())
}

/// An event from the columns id, at, kind, meta.
fn event(workspace: WorkspaceId, message: MessageId, row: &Row) -> Result<MessageEvent, Fault> {
    Ok(MessageEvent {
        id: id(row, 0)?,
        workspace_id: workspace,
        message_id: message,
        kind: numbered(&EventKind::ALL, get(row, 2)?)?,
        at: time(row, 1)?,
        meta: or_empty(row, 3)?,
    })
}

#[async_trait]
impl Messages for PostgresStore {
    async fn message(&self, workspace: WorkspaceId, id: MessageId) -> Result<Option<Message>, StoreError> {
        const SQL: &str = concat!("SELECT ", message_columns!(), " FROM messages WHERE workspace = $1 AND id = $2");
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| message(workspace, row)).await
    }

    async fn message_with_length(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<u64>)>, StoreError> {
        // The length of a value that is stored outside of its row stands in the row: the value is not read.
        const SQL: &str = concat!(
            "SELECT ",
            message_columns!(),
            ", (SELECT length(request)::bigint FROM message_contents WHERE workspace = $1 AND message = $2)
             FROM messages WHERE workspace = $1 AND id = $2"
        );
        self.reads
            .one(SQL, params![uuid(workspace), uuid(id)], |row| {
                let has_content = get::<Option<i64>>(row, MESSAGE_COLUMNS)?.is_some();
                let length = if has_content { Some(count(row, MESSAGE_COLUMNS)?) } else { None };
                Ok((message(workspace, row)?, length))
            })
            .await
    }

    async fn message_with_content(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<MessageContent>)>, StoreError> {
        // One statement, so that both halves are of one moment.
        const SQL: &str = concat!(
            "SELECT ",
            message_columns!(),
            ", (SELECT request FROM message_contents WHERE workspace = $1 AND message = $2)
             FROM messages WHERE workspace = $1 AND id = $2"
        );
        self.reads
            .one(SQL, params![uuid(workspace), uuid(id)], |row| {
                let request: Option<Vec<u8>> = get(row, MESSAGE_COLUMNS)?;
                let content = request.map(|request| MessageContent { request: Bytes::from(request) });
                Ok((message(workspace, row)?, content))
            })
            .await
    }

    async fn message_events(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        const SQL: &str = "SELECT id, at, kind, meta FROM message_events
            WHERE workspace = $1 AND message = $2 ORDER BY at, id LIMIT $3";
        let bounds = params![uuid(workspace), uuid(id), sql_limit(limit)];
        self.reads.many(SQL, bounds, |row| event(workspace, id, row)).await
    }

    async fn message_events_of_kind(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        kind: EventKind,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        const SQL: &str = "SELECT id, at, kind, meta FROM message_events
            WHERE workspace = $1 AND message = $2 AND kind = $3 ORDER BY at, id LIMIT $4";
        let kind = number(&EventKind::ALL, &kind);
        let bounds = params![uuid(workspace), uuid(id), kind, sql_limit(limit)];
        self.reads.many(SQL, bounds, |row| event(workspace, id, row)).await
    }

    async fn messages(
        &self,
        workspace: WorkspaceId,
        filter: &MessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        Ok(list::messages(&self.reads, workspace, filter, &page).await?)
    }

    async fn messages_to(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        let addresses: HashSet<_> = addresses.iter().cloned().collect();
        Ok(redact::messages_to(&self.reads, workspace, &addresses, &page).await?)
    }

    async fn messages_copying(
        &self,
        workspace: WorkspaceId,
        key: CopyKey,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError> {
        Ok(copies::copying(self.reads.clone(), workspace, key, limit).await?)
    }

    async fn forget_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // Queued, sending, deferred (0, 1, 4) are not settled. Contents stand in the order of acceptance, which ids tell.
        const SQL: &str = "DELETE FROM message_contents WHERE ctid = ANY (ARRAY (
            SELECT c.ctid FROM message_contents c CROSS JOIN LATERAL (
                SELECT 1 FROM messages m WHERE m.workspace = c.workspace AND m.id = c.message
                    AND m.created_at < $1 AND m.status NOT IN (0, 1, 4) OFFSET 0) AS settled
            WHERE c.message < $2 ORDER BY c.message LIMIT $3 FOR UPDATE OF c SKIP LOCKED))";
        let bounds = params![before.as_millis(), Uuid::from_bytes(first_id_of(before)), sql_limit(limit)];
        sweep(&self.writes, SQL, bounds).await
    }
}
