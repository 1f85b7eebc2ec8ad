//! Members of lists: joining and leaving, with notes for those that follow changes, and removal of members.

use async_trait::async_trait;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::Sqlite;
use super::change_subscribers::ChangeSubscribers;
use super::fault::Fault;
use super::listeners::Happened;
use super::numbers::{contact_number, list_number};
use super::query::{many, one};
use super::segments::{WorkspaceReadMask, note};
use crate::pages::sql_limit;
use crate::tables::lists::ListRows;

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 500;

pub(super) fn join(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    (id, contact): (ListId, ContactId),
    at: Timestamp,
) -> Result<(), Fault> {
    let list = list_number(connection, workspace, id)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, workspace, contact)?.ok_or(Fault::Conflict)?;
    connection.prepare_cached("INSERT INTO list_members (list, contact) VALUES (?1, ?2)")?.execute([list, contact])?;
    connection.prepare_cached("UPDATE lists SET contacts = contacts + 1 WHERE n = ?1")?.execute([list])?;
    if let Some(read_mask) = subscribers.read_masks.of(connection, workspace)? {
        note(connection, read_mask, contact, ReadMask::LISTS)?;
    }
    subscribers.listeners.hear(connection, workspace, contact, at, Happened::ListAdded(id))
}

pub(super) fn leave(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    (list, contact): (ListId, ContactId),
    at: Timestamp,
) -> Result<(), Fault> {
    let list = list_number(connection, workspace, list)?;
    let contact = contact_number(connection, workspace, contact)?;
    let (Some(list), Some(contact)) = (list, contact) else { return Ok(()) };
    let left = connection
        .prepare_cached("DELETE FROM list_members WHERE list = ?1 AND contact = ?2")?
        .execute([list, contact])?;
    if left == 0 {
        return Ok(());
    }
    connection.prepare_cached("UPDATE lists SET contacts = contacts - 1 WHERE n = ?1")?.execute([list])?;
    if let Some(read_mask) = subscribers.read_masks.of(connection, workspace)? {
        note(connection, read_mask, contact, ReadMask::LISTS)?;
    }
    subscribers.listeners.hear(connection, workspace, contact, at, Happened::Changed { dates: false })
}

#[async_trait]
impl ListRows for Sqlite {
    async fn forget_members_of_lists(&self, limit: usize) -> Result<u64, StoreError> {
        let removed = self
            .readers
            .read(|connection| one(connection, "SELECT n FROM lists WHERE removed", [], |row| Ok(row.get(0)?)))
            .await?;
        let Some(n): Option<i64> = removed else { return Ok(0) };
        self.forget_in_slices(limit, SLICE, move |connection, slice| forget(connection, n, slice)).await
    }
}

/// Removes members of a removed list, and if there are none, the list; returns the number of rows removed.
pub(super) fn forget(connection: &Connection, list: i64, limit: usize) -> Result<u64, Fault> {
    let members: Vec<i64> = many(
        connection,
        "SELECT contact FROM list_members WHERE list = ?1 LIMIT ?2",
        params![list, sql_limit(limit)],
        |row| Ok(row.get(0)?),
    )?;
    if members.is_empty() {
        let recorded = connection
            .prepare_cached(
                "DELETE FROM list_subscriptions WHERE list = ?1 AND contact IN (
                     SELECT contact FROM list_subscriptions WHERE list = ?1 LIMIT ?2)",
            )?
            .execute(params![list, sql_limit(limit)])?;
        if recorded > 0 {
            return Ok(recorded as u64);
        }
        return Ok(connection.prepare_cached("DELETE FROM lists WHERE n = ?1 AND removed")?.execute([list])? as u64);
    }
    let sql = "SELECT workspace_number FROM lists WHERE n = ?1";
    let workspace_number: Option<i64> = one(connection, sql, [list], |row| Ok(row.get(0)?))?;
    let read_mask = WorkspaceReadMask::of_workspace_number(connection, workspace_number.unwrap_or(0))?;
    let mut delete = connection.prepare_cached("DELETE FROM list_members WHERE list = ?1 AND contact = ?2")?;
    for contact in &members {
        delete.execute([list, *contact])?;
        note(connection, read_mask, *contact, ReadMask::LISTS)?;
    }
    Ok(members.len() as u64)
}
