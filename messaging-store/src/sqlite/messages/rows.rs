//! Storing rows of messages, and noting that one has changed.

use messaging_core::domain::message::Message;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, MessageId, WorkspaceId};
use rusqlite::{CachedStatement, Connection, params_from_iter};

use super::super::fault::Fault;
use super::super::query::one;
use super::super::row::maybe_id;
use super::super::segments::ReadMasks;
use crate::tables::messages::{message_columns, values};

/// Stores messages, one after the other.
pub(in super::super) struct InsertMessage<'connection>(CachedStatement<'connection>);

impl<'connection> InsertMessage<'connection> {
    pub(in super::super) fn prepare(connection: &'connection Connection) -> Result<Self, Fault> {
        const SQL: &str = concat!(
            "INSERT INTO messages (workspace, ",
            message_columns!(),
            ", content) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                 ?21, ?22, coalesce(?23, -70368744177664), coalesce(?24, -70368744177664), ?25, ?26, ?27)"
        );
        Ok(Self(connection.prepare_cached(SQL)?))
    }

    /// `content` is the number of its stored content; a message of a campaign has none of its own.
    pub(in super::super) fn run(&mut self, message: &Message, content: Option<i64>) -> Result<(), Fault> {
        let mut row = values(message)?;
        row.push(content.into());
        self.0.execute(params_from_iter(row))?;
        Ok(())
    }
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
