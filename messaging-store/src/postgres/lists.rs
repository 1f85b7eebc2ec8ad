//! Members of lists: joining and leaving, with notes for those that follow changes, and removal of members.

use async_trait::async_trait;
use messaging_core::changes::Write;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::Postgres;
use super::fault::Fault;
use super::listeners::{self, Happened};
use super::outbox;
use super::query::{many, one};
use super::sweep::{begin_undurably, end};
use super::transaction::Transaction;
use crate::pages::sql_limit;
use crate::row::{get, id};
use crate::sql::{Value, key, params};
use crate::tables::lists::ListRows;

/// Number of rows that a sweep removes in one transaction.
const SLICE: usize = 500;

/// A contact that becomes a member of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Join {
    pub(super) workspace: WorkspaceId,
    pub(super) list: ListId,
    pub(super) contact: ContactId,
    pub(super) at: Timestamp,
}

/// The joins of one workspace at the front of some writes.
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
            // List and contact are locked, so that neither is removed before the membership is visible.
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
    let lists: Vec<Value> = joins.iter().map(|join| key(join.list)).collect();
    let contacts: Vec<Value> = joins.iter().map(|join| key(join.contact)).collect();
    let members = params![key(workspace), lists, contacts];
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
    let membership = params![key(workspace), key(list), key(contact)];
    let left: Option<i64> = one(transaction, SQL, membership, |row| get(row, 0)).await?;
    let Some(contact) = left else { return Ok(()) };
    transaction.counts.add_members(workspace, list, -1);
    if let Some(read_mask) = outbox::read_mask(transaction, workspace).await? {
        outbox::note(transaction, read_mask, contact, ReadMask::LISTS);
    }
    listeners::hear(transaction, workspace, contact, at, Happened::Changed { dates: false }).await
}

#[async_trait]
impl ListRows for Postgres {
    async fn forget_members_of_lists(&self, limit: usize) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while forgotten < limit {
            let slice = SLICE.min(limit - forgotten);
            let mut transaction = begin_undurably(&self.writes).await?;
            let gone = forget_some(&mut transaction, slice).await;
            let gone = end(transaction, gone).await?;
            if gone == 0 {
                break;
            }
            forgotten += gone;
        }
        Ok(forgotten as u64)
    }
}

/// Removes members of some removed list; returns the number of rows removed.
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

/// Removes members of a removed list, and if there are none, the list; returns the number of rows removed.
pub(super) async fn forget(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    list: i64,
    limit: usize,
) -> Result<usize, Fault> {
    const MEMBERS: &str = "DELETE FROM list_members WHERE list = $1 AND contact = ANY (ARRAY (
            SELECT contact FROM list_members WHERE list = $1 ORDER BY contact LIMIT $2 FOR UPDATE SKIP LOCKED))
        RETURNING contact";
    const RECORDED: &str = "DELETE FROM list_subscriptions WHERE list = $1 AND contact = ANY (ARRAY (
            SELECT contact FROM list_subscriptions WHERE list = $1 ORDER BY contact LIMIT $2 FOR UPDATE SKIP LOCKED))";
    const LIST: &str = "DELETE FROM lists WHERE n = $1 AND removed
        AND NOT EXISTS (SELECT 1 FROM list_members WHERE list_members.list = lists.n)";
    let members: Vec<i64> = many(transaction, MEMBERS, params![list, sql_limit(limit)], |row| get(row, 0)).await?;
    if members.is_empty() {
        let recorded = transaction.execute(RECORDED, params![list, sql_limit(limit)]).await?;
        if recorded > 0 {
            return Ok(usize::try_from(recorded).unwrap_or(limit));
        }
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
