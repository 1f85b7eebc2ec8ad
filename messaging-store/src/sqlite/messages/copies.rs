//! Whom messages copy, and what is left of them when one of those is erased.

use messaging_core::changes::EraseCopy;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::query::many;
use super::super::row::{document, id, sql_limit};
use super::super::sandbox;
use super::super::segments::ReadMasks;
use super::rows::note_contact;

pub(in super::super) fn list_copies(
    connection: &Connection,
    workspace: WorkspaceId,
    message: MessageId,
    keys: &[CopyKey],
) -> Result<(), Fault> {
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO copied_recipients (workspace, key, message) VALUES (?1, ?2, ?3)")?;
    for key in keys {
        insert.execute(params![workspace.to_bytes(), key.0, message.to_bytes()])?;
    }
    Ok(())
}

pub(in super::super) fn unlist_copy(
    connection: &Connection,
    workspace: WorkspaceId,
    message: MessageId,
    key: CopyKey,
) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM copied_recipients WHERE workspace = ?1 AND key = ?2 AND message = ?3")?
        .execute(params![workspace.to_bytes(), key.0, message.to_bytes()])?;
    Ok(())
}

/// A conflict unless the message is at a revision.
pub(in super::super) fn expect(
    connection: &Connection,
    workspace: WorkspaceId,
    message: MessageId,
    revision: u32,
) -> Result<(), Fault> {
    let found = connection
        .prepare_cached("SELECT 1 FROM messages WHERE workspace = ?1 AND id = ?2 AND revision = ?3")?
        .exists(params![workspace.to_bytes(), message.to_bytes(), revision])?;
    if found { Ok(()) } else { Err(Fault::Conflict) }
}

pub(in super::super) fn erase_copy(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    erasure: &EraseCopy,
) -> Result<(), Fault> {
    let (workspace, message) = (erasure.workspace_id.to_bytes(), erasure.message_id.to_bytes());
    // First what may be a conflict.
    let rows = connection
        .prepare_cached(
            "UPDATE messages SET tags = ?4, metadata = ?5, revision = revision + 1
             WHERE workspace = ?1 AND id = ?2 AND revision = ?3",
        )?
        .execute(params![
            workspace,
            message,
            erasure.revision,
            if erasure.tags.is_empty() { None } else { Some(document(&erasure.tags)?) },
            if erasure.metadata.is_empty() { None } else { Some(document(&erasure.metadata)?) },
        ])?;
    expect_one(rows)?;
    note_contact(connection, read_masks, erasure.workspace_id, erasure.message_id)?;
    if let Some(content) = &erasure.content {
        connection
            .prepare_cached(
                "UPDATE message_contents SET request = ?3
                 WHERE n = (SELECT content FROM messages WHERE workspace = ?1 AND id = ?2)",
            )?
            .execute(params![workspace, message, &content.request[..]])?;
    }
    for (at, id, meta) in &erasure.events {
        let meta = if meta.is_empty() { None } else { Some(document(meta)?) };
        connection
            .prepare_cached(
                "UPDATE message_events SET meta = ?5 WHERE workspace = ?1 AND message = ?2 AND at = ?3 AND id = ?4",
            )?
            .execute(params![workspace, message, at.as_millis(), id.to_bytes(), meta])?;
    }
    for (id, dialog) in &erasure.attempts {
        connection
            .prepare_cached("UPDATE message_attempts SET doc = ?4 WHERE workspace = ?1 AND message = ?2 AND id = ?3")?
            .execute(params![workspace, message, id.to_bytes(), document(dialog)?])?;
    }
    // A large source was written to its file before; see `SqliteStore::commit`.
    if let Some(capture) = &erasure.capture { sandbox::put(connection, capture) } else { Ok(()) }
}

pub(super) fn copying(
    connection: &Connection,
    workspace: WorkspaceId,
    key: CopyKey,
    limit: usize,
) -> Result<Vec<MessageId>, Fault> {
    const SQL: &str = "SELECT message FROM copied_recipients WHERE workspace = ?1 AND key = ?2 LIMIT ?3";
    many(connection, SQL, params![workspace.to_bytes(), key.0, sql_limit(limit)], |row| id(row, 0))
}
