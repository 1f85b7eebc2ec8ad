//! Lists of contacts and their members.

use async_trait::async_trait;
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::list::ContactList;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::{Lists, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::listeners::{self, Happened};
use super::numbers::number_workspace;
use super::outbox;
use super::query::{many, one, params};
use super::row::{below_id, count, get, id, one_more, revision_param, slice, small, sql_limit, time, uuid};
use super::transaction::Transaction;

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;

/// The columns that [`list`] reads, in its order.
macro_rules! list_columns {
    () => {
        "l.id, l.revision,
         (SELECT coalesce(sum(members), 0)::bigint FROM list_counts WHERE list_counts.list = l.n),
         l.created_at, l.updated_at, l.name"
    };
}

/// A contact that becomes a member of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Join {
    pub(super) workspace: WorkspaceId,
    pub(super) list: ListId,
    pub(super) contact: ContactId,
    pub(super) at: Timestamp,
}

pub(super) fn put(transaction: &mut Transaction, list: &ContactList, expect: Expect) {
    const INSERT: &str = "INSERT INTO lists (workspace_number, id, revision, removed, created_at, updated_at, name)
        SELECT number, $2, 1, false, $3, $4, $5 FROM workspace_numbers WHERE workspace = $1";
    const UPDATE: &str = "UPDATE lists SET name = $3, updated_at = $4, revision = revision + 1
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed
            AND revision = $5";
    let (workspace, id) = (uuid(list.workspace_id), uuid(list.id));
    let (created_at, updated_at) = (list.created_at.as_millis(), list.updated_at.as_millis());
    match expect {
        Expect::Absent => {
            number_workspace(transaction, list.workspace_id);
            transaction.run_one(INSERT, params![workspace, id, created_at, updated_at, list.name.clone()]);
        }
        Expect::Revision(revision) => {
            transaction.run_one(UPDATE, params![workspace, id, list.name.clone(), updated_at, revision_param(revision)])
        }
    }
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: ListId) {
    // Whoever joins it at this moment holds the row: they end before, or find no list.
    const SQL: &str = "UPDATE lists SET removed = true, name = '' WHERE n = (
        SELECT n FROM lists
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed
        FOR UPDATE)";
    transaction.run(SQL, params![uuid(workspace), uuid(id)]);
}

/// The joins that stand at the front of some writes, of one workspace.
pub(super) fn leading_joins(writes: &[Write]) -> Vec<Join> {
    let joins = writes.iter().map_while(|write| match write {
        Write::JoinList(workspace, list, contact, at) => {
            Some(Join { workspace: *workspace, list: *list, contact: *contact, at: *at })
        }
        _ => None,
    });
    let mut leading: Vec<Join> = Vec::new();
    for join in joins {
        if leading.first().is_some_and(|first| first.workspace != join.workspace) {
            break;
        }
        leading.push(join);
    }
    leading
}

/// Makes contacts of a workspace members of lists.
pub(super) async fn join(transaction: &mut Transaction, joins: &[Join]) -> Result<(), Fault> {
    macro_rules! join {
        () => {
            // Both are held, so that neither goes before the membership is there to be seen.
            "WITH l AS MATERIALIZED (
                SELECT n, id FROM lists
                WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ANY ($2)
                    AND NOT removed
                ORDER BY n FOR KEY SHARE
            ), c AS MATERIALIZED (
                SELECT n, id FROM contacts
                WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ANY ($3)
                ORDER BY n FOR KEY SHARE
            )
            INSERT INTO list_members (list, contact)
            SELECT l.n, c.n FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS u(list, contact, place)
            JOIN l ON l.id = u.list JOIN c ON c.id = u.contact ORDER BY u.place"
        };
    }
    const RETURNING: &str = concat!(join!(), " RETURNING contact");
    let Some(Join { workspace, .. }) = joins.first().copied() else { return Ok(()) };
    let read_mask = outbox::read_mask(transaction, workspace).await?;
    let is_heard = listeners::is_any(transaction, workspace).await?;
    let lists: Vec<Uuid> = joins.iter().map(|join| uuid(join.list)).collect();
    let contacts: Vec<Uuid> = joins.iter().map(|join| uuid(join.contact)).collect();
    let members = params![uuid(workspace), lists, contacts];
    for join in joins {
        transaction.counts.add_members(workspace, join.list, 1);
    }
    if read_mask.is_none() && !is_heard {
        transaction.run_exactly(joins.len(), join!(), members);
        return Ok(());
    }
    let numbers: Vec<i64> = many(transaction, RETURNING, members, |row| get(row, 0)).await?;
    if numbers.len() != joins.len() {
        return Err(Fault::Conflict);
    }
    if let Some(read_mask) = read_mask {
        let changes: Vec<_> = numbers.iter().map(|n| (*n, ReadMask::LISTS)).collect();
        outbox::note_many(transaction, read_mask, &changes);
    }
    if is_heard {
        for (join, n) in joins.iter().zip(numbers) {
            listeners::hear(transaction, workspace, n, join.at, Happened::ListAdded(join.list)).await?;
        }
    }
    Ok(())
}

pub(super) async fn leave(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    (list, contact): (ListId, ContactId),
    at: Timestamp,
) -> Result<(), Fault> {
    const SQL: &str = "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1)
        DELETE FROM list_members
        WHERE list = (SELECT n FROM lists WHERE workspace_number = (SELECT number FROM w) AND id = $2 AND NOT removed)
            AND contact = (SELECT n FROM contacts WHERE workspace_number = (SELECT number FROM w) AND id = $3)
        RETURNING contact";
    let membership = params![uuid(workspace), uuid(list), uuid(contact)];
    let left: Option<i64> = one(transaction, SQL, membership, |row| get(row, 0)).await?;
    let Some(contact) = left else { return Ok(()) };
    transaction.counts.add_members(workspace, list, -1);
    if let Some(read_mask) = outbox::read_mask(transaction, workspace).await? {
        outbox::note(transaction, read_mask, contact, ReadMask::LISTS);
    }
    listeners::hear(transaction, workspace, contact, at, Happened::Changed { dates: false }).await
}

/// A list from the columns of `list_columns`.
fn list(workspace: WorkspaceId, row: &Row) -> Result<Stored<ContactList>, Fault> {
    let record = ContactList {
        id: id(row, 0)?,
        workspace_id: workspace,
        name: get(row, 5)?,
        contact_count: count(row, 2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok(Stored { record, revision: small(row, 1)? })
}

#[async_trait]
impl Lists for PostgresStore {
    async fn list(&self, workspace: WorkspaceId, id: ListId) -> Result<Option<Stored<ContactList>>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            list_columns!(),
            " FROM lists l WHERE l.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                AND l.id = $2 AND NOT l.removed"
        );
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| list(workspace, row)).await
    }

    async fn lists(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<ContactList>, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            list_columns!(),
            " FROM lists l WHERE l.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                AND l.id < $2 AND NOT l.removed ORDER BY l.id DESC LIMIT $3"
        );
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| Ok(list(workspace, row)?.record)).await?;
        Ok(slice(items, page.limit, |list: &ContactList| list.id.to_bytes()))
    }

    async fn lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError> {
        const SQL: &str = "SELECT id FROM lists
            WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ANY ($2)
                AND NOT removed";
        let ids: Vec<Uuid> = ids.iter().copied().map(uuid).collect();
        self.reads.many(SQL, params![uuid(workspace), ids], |row| id(row, 0)).await
    }

    async fn memberships(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, bool)>, StoreError> {
        const SQL: &str = "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1)
            SELECT c.id, EXISTS (SELECT 1 FROM list_members m WHERE m.contact = c.n AND m.list = (
                SELECT n FROM lists WHERE workspace_number = (SELECT number FROM w) AND id = $2 AND NOT removed))
            FROM contacts c WHERE c.workspace_number = (SELECT number FROM w) AND c.id = ANY ($3)";
        let contacts: Vec<Uuid> = contacts.iter().copied().map(uuid).collect();
        let asked = params![uuid(workspace), uuid(list), contacts];
        self.reads.many(SQL, asked, |row| Ok((id(row, 0)?, get(row, 1)?))).await
    }

    async fn forget_members(&self, limit: usize) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while forgotten < limit {
            let slice = SLICE.min(limit - forgotten);
            let mut transaction = self.writes.begin().await?;
            transaction.run("SET LOCAL synchronous_commit = off", params![]);
            let gone = match forget_some(&mut transaction, slice).await {
                Ok(gone) => gone,
                Err(fault) => {
                    transaction.roll_back().await;
                    return Err(fault.into());
                }
            };
            transaction.commit().await?;
            if gone == 0 {
                break;
            }
            forgotten += gone;
        }
        Ok(forgotten as u64)
    }
}

/// Lets members of some removed list go; answers how many rows went.
async fn forget_some(transaction: &mut Transaction, limit: usize) -> Result<usize, Fault> {
    const REMOVED: &str =
        "SELECT l.n, w.workspace FROM lists l JOIN workspace_numbers w ON w.number = l.workspace_number
        WHERE l.removed ORDER BY l.n LIMIT 1";
    let removed = one(transaction, REMOVED, params![], |row| Ok((get(row, 0)?, id(row, 1)?))).await?;
    match removed {
        Some((list, workspace)) => forget(transaction, workspace, list, limit).await,
        None => Ok(0),
    }
}

/// Lets members of a removed list go, and when there are none, the list; answers how many rows went.
pub(super) async fn forget(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    list: i64,
    limit: usize,
) -> Result<usize, Fault> {
    const MEMBERS: &str = "DELETE FROM list_members WHERE list = $1 AND contact IN (
            SELECT contact FROM list_members WHERE list = $1 ORDER BY contact LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING contact";
    const LIST: &str = "DELETE FROM lists WHERE n = $1 AND removed
        AND NOT EXISTS (SELECT 1 FROM list_members WHERE list_members.list = lists.n)";
    let members: Vec<i64> = many(transaction, MEMBERS, params![list, sql_limit(limit)], |row| get(row, 0)).await?;
    if members.is_empty() {
        let gone = transaction.execute(LIST, params![list]).await?;
        if gone == 1 {
            transaction.run("DELETE FROM list_counts WHERE list = $1", params![list]);
        }
        return Ok(usize::from(gone == 1));
    }
    if let Some(read_mask) = outbox::read_mask(transaction, workspace).await? {
        let changes: Vec<_> = members.iter().map(|contact| (*contact, ReadMask::LISTS)).collect();
        outbox::note_many(transaction, read_mask, &changes);
    }
    Ok(members.len())
}
