//! Reading messages from their rows, and noting that one has changed.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, MessageId, WorkspaceId};
use rusqlite::{Connection, Row};

use super::super::fault::Fault;
use super::super::query::one;
use super::super::row::{id, maybe_id, numbered, or_empty, time};
use super::super::segments::ReadMasks;

/// The columns that [`message`] reads, in its order. Position 1 and 2 are looked at by `list`.
macro_rules! message_columns {
    () => {
        "id, status, channel, tags, revision, created_at, updated_at, recipient, sender, contact, campaign, \
         automation, template, metadata"
    };
}
pub(super) use message_columns;

/// A message from the columns of `message_columns`.
pub(in super::super) fn message(workspace: WorkspaceId, row: &Row<'_>) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace_id: workspace,
        revision: row.get(4)?,
        status: numbered(&MessageStatus::ALL, row.get(1)?)?,
        channel: numbered(&Channel::ALL, row.get(2)?)?,
        to: row.get(7)?,
        from_email: row.get(8)?,
        contact_id: maybe_id(row, 9)?,
        campaign_id: maybe_id(row, 10)?,
        automation_id: maybe_id(row, 11)?,
        template_id: maybe_id(row, 12)?,
        tags: or_empty(row, 3)?,
        metadata: or_empty(row, 13)?,
        created_at: time(row, 5)?,
        updated_at: time(row, 6)?,
    })
}

/// Notes that the events of messages changed for the contact of a message.
pub(super) fn note_contact(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<(), Fault> {
    if read_masks.in_mask(connection, workspace, ReadMask::MESSAGES)?.is_none() {
        return Ok(());
    }
    let sql = "SELECT contact FROM messages WHERE workspace = ?1 AND id = ?2";
    let key = [workspace.to_bytes(), message.to_bytes()];
    let contact: Option<ContactId> = one(connection, sql, key, |row| maybe_id(row, 0))?.flatten();
    match contact {
        Some(contact) => read_masks.note(connection, workspace, contact, ReadMask::MESSAGES),
        None => Ok(()),
    }
}
