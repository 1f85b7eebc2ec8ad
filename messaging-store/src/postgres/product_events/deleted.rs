//! Events of contacts that are gone: moved to the contact that theirs was merged into, or deleted.
//!
//! A contact may have done more than one commit should touch. While some of it is left, a row keeps the
//! contact's number and its merge target.

use messaging_core::changes::MoveProductEvents;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

use super::super::fault::Fault;
use super::super::numbers::workspace_number;
use super::super::outbox;
use super::super::query::{Queries, many, one, params};
use super::super::row::{get, sql_limit, time, uuid};
use super::super::transaction::Transaction;

/// The number of a contact that is gone and has events left.
pub(super) async fn number(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    contact: ContactId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM deleted_contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2";
    one(on, SQL, params![uuid(workspace), uuid(contact)], |row| get(row, 0)).await
}

/// Remembers a contact that is being removed, if it has events.
pub(in super::super) fn depart(transaction: &mut Transaction, workspace_number: i64, contact: ContactId, n: i64) {
    const SQL: &str = "INSERT INTO deleted_contacts (n, workspace_number, id)
        SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM product_events WHERE contact = $1) ON CONFLICT DO NOTHING";
    transaction.run(SQL, params![n, workspace_number, uuid(contact)]);
}

/// Moves a slice of the events of a contact that is gone, or is about to go, to its merge target.
pub(in super::super) async fn relocate(transaction: &mut Transaction, change: &MoveProductEvents) -> Result<(), Fault> {
    // Nothing happens to a contact any more while its events move.
    const FROM: &str = "SELECT n FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 FOR UPDATE";
    const TO: &str = "SELECT n FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 FOR KEY SHARE";
    // Whoever was merged into this one follows it.
    const FOLLOW: &str = "UPDATE deleted_contacts SET merge_target = $2 WHERE merge_target = $1";
    const MOVE: &str = "UPDATE product_events SET contact = $2
        WHERE n = ANY (ARRAY (SELECT n FROM product_events WHERE contact = $1 LIMIT $3))";
    const KEEP: &str = "INSERT INTO deleted_contacts (n, workspace_number, id, merge_target)
        SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT 1 FROM product_events WHERE contact = $1)
        ON CONFLICT (n) DO UPDATE SET merge_target = excluded.merge_target";
    let MoveProductEvents { workspace_id: workspace, from, to, limit } = *change;
    let Some(workspace_number) = workspace_number(transaction, workspace).await? else { return Ok(()) };
    let alive: Option<i64> = one(transaction, FROM, params![uuid(workspace), uuid(from)], |row| get(row, 0)).await?;
    let (n, merge_target) = if let Some(n) = alive {
        let merge_target: Option<i64> =
            one(transaction, TO, params![uuid(workspace), uuid(to)], |row| get(row, 0)).await?;
        let merge_target = merge_target.ok_or(Fault::Conflict)?;
        transaction.run(FOLLOW, params![n, merge_target]);
        (n, merge_target)
    } else {
        let Some(n) = number(transaction, workspace, from).await? else { return Ok(()) };
        let Some(merge_target) = living_merge_target(transaction, n).await? else {
            return delete_of(transaction, n, limit).await;
        };
        (n, merge_target)
    };
    let moved = transaction.execute(MOVE, params![n, merge_target, sql_limit(limit)]).await?;
    if moved > 0
        && let Some(read_mask) = outbox::read_mask(transaction, workspace).await?
    {
        outbox::note(transaction, read_mask, merge_target, ReadMask::EVENTS);
    }
    transaction.run(KEEP, params![n, workspace_number, uuid(from), merge_target]);
    forget(transaction, n);
    Ok(())
}

/// Deletes a slice of the events of a contact that is gone.
pub(in super::super) async fn delete(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contact: ContactId,
    limit: usize,
) -> Result<(), Fault> {
    match number(transaction, workspace, contact).await? {
        Some(n) => delete_of(transaction, n, limit).await,
        None => Ok(()),
    }
}

async fn delete_of(transaction: &mut Transaction, n: i64, limit: usize) -> Result<(), Fault> {
    const SQL: &str = "WITH gone AS (
            DELETE FROM product_events
            WHERE n = ANY (ARRAY (SELECT n FROM product_events WHERE contact = $1 LIMIT $2))
            RETURNING n, name, at
        ), unnamed AS (
            DELETE FROM event_unique_ids WHERE event IN (SELECT n FROM gone)
        )
        SELECT name, at FROM gone";
    let gone: Vec<(i64, _)> =
        many(transaction, SQL, params![n, sql_limit(limit)], |row| Ok((get(row, 0)?, time(row, 1)?))).await?;
    for (name, at) in gone {
        transaction.deltas.add_events(name, at, -1);
    }
    forget(transaction, n);
    Ok(())
}

/// The merge target of a contact that is gone, unless that one was erased; it is held until the transaction ends.
async fn living_merge_target(transaction: &mut Transaction, n: i64) -> Result<Option<i64>, Fault> {
    const TARGET: &str = "SELECT merge_target FROM deleted_contacts WHERE n = $1";
    const HOLD: &str = "SELECT n FROM contacts WHERE n = $1 FOR KEY SHARE";
    let mut gone = None;
    loop {
        let target: Option<Option<i64>> = one(transaction, TARGET, params![n], |row| get(row, 0)).await?;
        let Some(target) = target.flatten() else { return Ok(None) };
        let held: Option<i64> = one(transaction, HOLD, params![target], |row| get(row, 0)).await?;
        if held.is_some() || gone == Some(target) {
            return Ok(held);
        }
        // It may have been merged itself meanwhile: then there is another target.
        gone = Some(target);
    }
}

/// Forgets a contact that is gone once it has no events left.
fn forget(transaction: &mut Transaction, n: i64) {
    const SQL: &str = "DELETE FROM deleted_contacts WHERE n = $1
        AND NOT EXISTS (SELECT 1 FROM product_events WHERE contact = $1)";
    transaction.run(SQL, params![n]);
}
