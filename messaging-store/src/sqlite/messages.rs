//! Messages, their contents and their events.

mod copies;
mod list;
mod redact;
mod rows;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageFilter, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{AutomationId, ContactId, Id, MessageId, WorkspaceId};
use messaging_core::ports::store::{Messages, PageRequest, Slice, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, Row, params};
use std::collections::HashSet;

use super::SqliteStore;
use super::automations;
use super::due_rows::{Dated, DueRows};
use super::fault::Fault;
use super::interests::Interests;
use super::listeners::{Happened, MessageHappened, counted_kind, is_machine, trigger};
use super::numbers::contact_number;
use super::query::{many, one};
use super::row::{self, document, maybe_id, number, numbered, or_empty, sql_limit, time};

use crate::tables::messages::{MESSAGE_COLUMNS, message, message_columns};
pub(super) use copies::{erase_copy, expect, list_copies, unlist_copy};
pub(super) use list::page_of;
pub(super) use redact::{attribute, redact};
pub(super) use rows::InsertMessage;

/// How many rows a sweep changes in one transaction.
const SLICE: usize = 200;

/// How many contents a sweep looks at: each costs looking up its message.
const CONTENTS: usize = 2_000;

pub(super) fn insert(connection: &Connection, message: &Message, content: &MessageContent) -> Result<(), Fault> {
    let (workspace, id) = (message.workspace_id.to_bytes(), message.id.to_bytes());
    connection
        .prepare_cached("INSERT INTO message_contents (workspace, message, request) VALUES (?1, ?2, ?3)")?
        .execute(params![workspace, id, &content.request[..]])?;
    InsertMessage::prepare(connection)?.run(message, Some(connection.last_insert_rowid()))
}

pub(super) fn append_event(
    connection: &Connection,
    interests: &mut Interests,
    event: &MessageEvent,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO message_events (workspace, message, at, id, kind, meta) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            event.workspace_id.to_bytes(),
            event.message_id.to_bytes(),
            event.at.as_millis(),
            event.id.to_bytes(),
            number(&EventKind::ALL, &event.kind),
            if event.meta.is_empty() { None } else { Some(document(&event.meta)?) },
        ])?;
    tell(connection, interests, event)
}

/// Tells segments and automations of an event.
fn tell(connection: &Connection, interests: &mut Interests, event: &MessageEvent) -> Result<(), Fault> {
    const MESSAGE: &str =
        "SELECT contact, campaign, template, automation FROM messages WHERE workspace = ?1 AND id = ?2";
    let workspace = event.workspace_id;
    let is_followed = interests.read_masks.in_mask(connection, workspace, ReadMask::MESSAGES)?.is_some();
    if !is_followed && !interests.listeners.is_any(connection, workspace)? {
        return Ok(());
    }
    let found = one(connection, MESSAGE, [workspace.to_bytes(), event.message_id.to_bytes()], |row| {
        let source = (maybe_id(row, 1)?, maybe_id(row, 2)?, maybe_id::<AutomationId>(row, 3)?);
        Ok((maybe_id::<ContactId>(row, 0)?, source))
    })?;
    let Some((Some(contact), (campaign_id, template_id, automation))) = found else { return Ok(()) };
    // Whatever becomes of the message of a run was caused by it.
    let before = interests.depth();
    if automation.is_some() {
        interests.caused_at(before.max(automations::depth_of_message(connection, event.message_id)?));
    }
    interests.read_masks.note(connection, workspace, contact, ReadMask::MESSAGES)?;
    if let Some(kind) = counted_kind(event.kind).filter(|_| !is_machine(&event.meta))
        && let Some(contact) = contact_number(connection, workspace, contact)?
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
        interests.listeners.hear(connection, workspace, contact, accepted_at, Happened::Message(&happened))?;
    }
    interests.caused_at(before);
    Ok(())
}

/// An event from the columns id, at, kind, meta.
fn event(workspace: WorkspaceId, message: MessageId, row: &Row<'_>) -> Result<MessageEvent, Fault> {
    Ok(MessageEvent {
        id: row::id(row, 0)?,
        workspace_id: workspace,
        message_id: message,
        kind: numbered(&EventKind::ALL, row.get(2)?)?,
        at: time(row, 1)?,
        meta: or_empty(row, 3)?,
    })
}

#[async_trait]
impl Messages for SqliteStore {
    async fn message(&self, workspace: WorkspaceId, id: MessageId) -> Result<Option<Message>, StoreError> {
        const SQL: &str = concat!("SELECT ", message_columns!(), " FROM messages WHERE workspace = ?1 AND id = ?2");
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| message(workspace, row))
            })
            .await
    }

    async fn message_with_length(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<u64>)>, StoreError> {
        // The length of a value stands at the beginning of its row: the pages that hold it are not read.
        const SQL: &str = concat!(
            "SELECT ",
            message_columns!(),
            ", (SELECT length(request) FROM message_contents WHERE n = content)
             FROM messages WHERE workspace = ?1 AND id = ?2"
        );
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| {
                    Ok((message(workspace, row)?, row.get::<_, Option<u32>>(MESSAGE_COLUMNS)?.map(u64::from)))
                })
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
            ", (SELECT request FROM message_contents WHERE n = content) FROM messages WHERE workspace = ?1 AND id = ?2"
        );
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| {
                    let request: Option<Vec<u8>> = row.get(MESSAGE_COLUMNS)?;
                    let content = request.map(|request| MessageContent { request: Bytes::from(request) });
                    Ok((message(workspace, row)?, content))
                })
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
            WHERE workspace = ?1 AND message = ?2 ORDER BY at, id LIMIT ?3";
        self.readers
            .point_read(move |connection| {
                let bounds = params![workspace.to_bytes(), id.to_bytes(), sql_limit(limit)];
                many(connection, SQL, bounds, |row| event(workspace, id, row))
            })
            .await
    }

    async fn message_events_of_kind(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        kind: EventKind,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        const SQL: &str = "SELECT id, at, kind, meta FROM message_events
            WHERE workspace = ?1 AND message = ?2 AND kind = ?3 ORDER BY at, id LIMIT ?4";
        self.readers
            .point_read(move |connection| {
                let kind = number(&EventKind::ALL, &kind);
                let bounds = params![workspace.to_bytes(), id.to_bytes(), kind, sql_limit(limit)];
                many(connection, SQL, bounds, |row| event(workspace, id, row))
            })
            .await
    }

    async fn messages(
        &self,
        workspace: WorkspaceId,
        filter: &MessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        let filter = filter.clone();
        self.readers.read(move |connection| list::messages(connection, workspace, &filter, &page)).await
    }

    async fn messages_to(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        let addresses: HashSet<_> = addresses.iter().cloned().collect();
        self.readers.read(move |connection| redact::messages_to(connection, workspace, &addresses, &page)).await
    }

    async fn messages_copying(
        &self,
        workspace: WorkspaceId,
        key: CopyKey,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError> {
        self.readers.read(move |connection| copies::copying(connection, workspace, key, limit)).await
    }

    async fn forget_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let found = {
            let rows = self.due.of("message_contents");
            self.readers.read(move |connection| forgettable(connection, &rows, before, limit)).await?
        };
        let mut forgotten = 0;
        for slice in found.chunks(SLICE) {
            let slice = slice.to_vec();
            forgotten += self.writer.undurably(move |connection| forget(connection, &slice)).await?;
        }
        Ok(forgotten)
    }
}

/// A stored content: its row, and whose it is.
type ContentKey = (i64, [u8; 16], [u8; 16]);

/// The oldest contents of settled messages. Contents stand in the order of acceptance.
fn forgettable(
    connection: &Connection,
    rows: &DueRows,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<ContentKey>, Fault> {
    const ROWS: &str = "SELECT message_contents.n, message_contents.workspace, message_contents.message,
             messages.created_at, messages.status
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
