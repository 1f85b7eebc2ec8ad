//! Messages of merged and erased contacts.

use std::collections::HashSet;

use messaging_core::changes::{AttributeMessage, RedactMessage};
use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice};
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::query::one;
use super::super::row::{below, document, number};
use super::super::segments::ReadMasks;
use super::list::page_of;
use super::rows::note_contact;
use crate::tables::messages::{message, message_columns};

pub(in super::super) fn attribute(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    change: &AttributeMessage,
) -> Result<(), Fault> {
    let rows = connection
        .prepare_cached("UPDATE messages SET contact = ?4 WHERE workspace = ?1 AND id = ?2 AND contact = ?3")?
        .execute(params![
            change.workspace_id.to_bytes(),
            change.message_id.to_bytes(),
            change.from.to_bytes(),
            change.to.to_bytes()
        ])?;
    if rows == 1 {
        for contact in [change.from, change.to] {
            read_masks.note(connection, change.workspace_id, contact, ReadMask::MESSAGES)?;
        }
    }
    Ok(())
}

pub(in super::super) fn redact(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    redaction: &RedactMessage,
) -> Result<(), Fault> {
    let (workspace, message) = (redaction.workspace_id.to_bytes(), redaction.message_id.to_bytes());
    let sql = "SELECT content FROM messages WHERE workspace = ?1 AND id = ?2 AND revision = ?3";
    let content =
        one(connection, sql, params![workspace, message, redaction.revision], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    let Some(content) = content else { return Err(Fault::Conflict) };
    // Its address may have been that of another contact than the one it is attributed to.
    note_contact(connection, read_masks, redaction.workspace_id, redaction.message_id)?;
    let rows = connection
        .prepare_cached(
            "UPDATE messages SET recipient = '', contact = NULL, metadata = NULL, content = NULL, tags = ?3,
                 hold_reason = NULL, hold_until = NULL, hold_since = NULL,
                 status = ?4, updated_at = ?5, revision = revision + 1
             WHERE workspace = ?1 AND id = ?2",
        )?
        .execute(params![
            workspace,
            message,
            if redaction.tags.is_empty() { None } else { Some(document(&redaction.tags)?) },
            number(&MessageStatus::ALL, &redaction.status),
            redaction.updated_at.as_millis(),
        ])?;
    expect_one(rows)?;
    connection.prepare_cached("DELETE FROM message_contents WHERE n = ?1")?.execute([content])?;
    for (at, id, meta) in &redaction.events {
        let meta = if meta.is_empty() { None } else { Some(document(meta)?) };
        connection
            .prepare_cached(
                "UPDATE message_events SET meta = ?5 WHERE workspace = ?1 AND message = ?2 AND at = ?3 AND id = ?4",
            )?
            .execute(params![workspace, message, at.as_millis(), id.to_bytes(), meta])?;
    }
    connection
        .prepare_cached("DELETE FROM message_attempts WHERE workspace = ?1 AND message = ?2")?
        .execute([workspace, message])?;
    // A source in a file goes after the commit; see `SqliteStore::commit`.
    connection
        .prepare_cached("DELETE FROM captures WHERE workspace = ?1 AND message = ?2")?
        .execute([workspace, message])?;
    Ok(())
}

pub(super) fn messages_to(
    connection: &Connection,
    workspace: WorkspaceId,
    addresses: &HashSet<(Channel, String)>,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages NOT INDEXED WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC"
    );
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![workspace.to_bytes(), below(page)])?;
    page_of(workspace, &mut rows, page.limit, |row| {
        let message = message(workspace, row)?;
        let address = address::normalize(message.channel, &message.to);
        Ok(addresses.contains(&(message.channel, address)))
    })
}
