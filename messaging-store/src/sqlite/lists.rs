//! Lists of contacts and their members.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::list::ContactList;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::{Lists, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::interests::Interests;
use super::listeners::Happened;
use super::numbers::{contact_number, list_number, make_workspace_number, workspace_number};
use super::query::{many, one};
use super::row::{below, count, id, one_more, slice, sql_limit, time};
use super::segments::{WorkspaceReadMask, note};

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;

pub(super) fn put(connection: &Connection, list: &ContactList, expect: Expect) -> Result<(), Fault> {
    expect_one(match expect {
        Expect::Absent => {
            let workspace_number = make_workspace_number(connection, list.workspace_id)?;
            connection
                .prepare_cached(
                    "INSERT INTO lists (workspace_number, id, revision, removed, contacts, created_at, updated_at, name)
                     VALUES (?1, ?2, 1, 0, 0, ?3, ?4, ?5)",
                )?
                .execute(params![
                    workspace_number,
                    list.id.to_bytes(),
                    list.created_at.as_millis(),
                    list.updated_at.as_millis(),
                    list.name
                ])?
        }
        Expect::Revision(revision) => {
            let n = list_number(connection, list.workspace_id, list.id)?;
            connection
                .prepare_cached(
                    "UPDATE lists SET name = ?3, updated_at = ?4, revision = revision + 1 WHERE n = ?1 AND revision = ?2",
                )?
                .execute(params![n, revision, list.name, list.updated_at.as_millis()])?
        }
    })
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: ListId) -> Result<(), Fault> {
    if let Some(n) = list_number(connection, workspace, id)? {
        connection.prepare_cached("UPDATE lists SET removed = 1, name = '' WHERE n = ?1")?.execute([n])?;
    }
    Ok(())
}

pub(super) fn join(
    connection: &Connection,
    interests: &mut Interests,
    workspace: WorkspaceId,
    (id, contact): (ListId, ContactId),
    at: Timestamp,
) -> Result<(), Fault> {
    let list = list_number(connection, workspace, id)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, workspace, contact)?.ok_or(Fault::Conflict)?;
    connection.prepare_cached("INSERT INTO list_members (list, contact) VALUES (?1, ?2)")?.execute([list, contact])?;
    connection.prepare_cached("UPDATE lists SET contacts = contacts + 1 WHERE n = ?1")?.execute([list])?;
    if let Some(read_mask) = interests.read_masks.of(connection, workspace)? {
        note(connection, read_mask, contact, ReadMask::LISTS)?;
    }
    interests.listeners.hear(connection, workspace, contact, at, Happened::ListAdded(id))
}

pub(super) fn leave(
    connection: &Connection,
    interests: &mut Interests,
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
    if let Some(read_mask) = interests.read_masks.of(connection, workspace)? {
        note(connection, read_mask, contact, ReadMask::LISTS)?;
    }
    interests.listeners.hear(connection, workspace, contact, at, Happened::Changed { dates: false })
}

/// A list from the columns id, revision, contacts, `created_at`, `updated_at`, name.
fn list(workspace: WorkspaceId, row: &Row<'_>) -> Result<Stored<ContactList>, Fault> {
    let record = ContactList {
        id: id(row, 0)?,
        workspace_id: workspace,
        name: row.get(5)?,
        contact_count: count(row, 2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok(Stored { record, revision: row.get(1)? })
}

#[async_trait]
impl Lists for SqliteStore {
    async fn list(&self, workspace: WorkspaceId, id: ListId) -> Result<Option<Stored<ContactList>>, StoreError> {
        const SQL: &str = "SELECT id, revision, contacts, created_at, updated_at, name FROM lists
            WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2 AND removed = 0";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| list(workspace, row))
            })
            .await
    }

    async fn lists(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<ContactList>, StoreError> {
        const SQL: &str = "SELECT id, revision, contacts, created_at, updated_at, name FROM lists
            WHERE workspace_number = ?1 AND id < ?2 AND removed = 0 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let workspace_number = workspace_number(connection, workspace)?;
                let bounds = params![workspace_number, below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| Ok(list(workspace, row)?.record))?;
                Ok(slice(items, page.limit, |list: &ContactList| list.id.to_bytes()))
            })
            .await
    }

    async fn lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError> {
        let ids = ids.to_vec();
        self.readers
            .point_read(move |connection| {
                let mut found = Vec::new();
                for id in ids {
                    found.extend(list_number(connection, workspace, id)?.map(|_| id));
                }
                Ok(found)
            })
            .await
    }

    async fn memberships(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, bool)>, StoreError> {
        const SQL: &str = "SELECT 1 FROM list_members WHERE list = ?1 AND contact = ?2";
        let contacts = contacts.to_vec();
        self.readers
            .read(move |connection| {
                // Locked once instead of once for every look-up.
                let connection = connection.unchecked_transaction()?;
                let list = list_number(&connection, workspace, list)?;
                let mut found = Vec::new();
                for contact in contacts {
                    let Some(n) = contact_number(&connection, workspace, contact)? else { continue };
                    found.push((contact, one(&connection, SQL, params![list, n], |_| Ok(()))?.is_some()));
                }
                Ok(found)
            })
            .await
    }

    async fn forget_members(&self, limit: usize) -> Result<u64, StoreError> {
        let removed = self
            .readers
            .read(|connection| one(connection, "SELECT n FROM lists WHERE removed = 1", [], |row| Ok(row.get(0)?)))
            .await?;
        let Some(n): Option<i64> = removed else { return Ok(0) };
        self.forget_in_slices(limit, SLICE, move |connection, slice| forget(connection, n, slice)).await
    }
}

/// A removed list of a workspace.
pub(super) fn removed(connection: &Connection, workspace_number: i64) -> Result<Option<i64>, Fault> {
    let sql = "SELECT n FROM lists WHERE removed = 1 AND workspace_number = ?1";
    one(connection, sql, [workspace_number], |row| Ok(row.get(0)?))
}

/// Lets members of a removed list go, and when there are none, the list; answers how many rows went.
pub(super) fn forget(connection: &Connection, list: i64, limit: usize) -> Result<u64, Fault> {
    let members: Vec<i64> = many(
        connection,
        "SELECT contact FROM list_members WHERE list = ?1 LIMIT ?2",
        params![list, sql_limit(limit)],
        |row| Ok(row.get(0)?),
    )?;
    if members.is_empty() {
        return Ok(connection.prepare_cached("DELETE FROM lists WHERE n = ?1 AND removed = 1")?.execute([list])? as u64);
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
