//! Product events of contacts that are gone: they are moved to the contact that theirs was merged into, or deleted.
//!
//! A contact may have more events than one commit should touch. As long as some are left, a row of `deleted_contacts`
//! keeps the number of the contact and its merge target. On PostgreSQL the contacts are locked, so that no other
//! transaction erases or merges them meanwhile; SQLite has one writer.

use messaging_core::changes::MoveProductEvents;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

use crate::database::open_commit::OpenCommit;
use crate::database::{Query, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, time};
use crate::sql::{Sql, key, params, sql};

/// Query for the number of a contact that is gone and has events left.
pub(super) fn number(workspace: WorkspaceId, contact: ContactId) -> Query<i64> {
    const SQL: Sql = sql!(
        "SELECT n FROM deleted_contacts
         WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2"
    );
    Query::new(SQL, params![key(workspace), key(contact)], |row| get(row, 0))
}

/// Adds a contact that is being removed to `deleted_contacts`, if it has events.
pub(crate) fn remember_deleted(
    on: &mut dyn Statements,
    workspace_number: i64,
    contact: ContactId,
    n: i64,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "INSERT INTO deleted_contacts (n, workspace_number, id)
         SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM product_events WHERE contact = $1) ON CONFLICT DO NOTHING"
    );
    on.run(SQL, params![n, workspace_number, key(contact)])
}

/// SQL that selects the number of a contact; `$lock` is a locking clause or empty.
macro_rules! contact {
    ($lock:literal) => {
        concat!(
            "SELECT n FROM contacts
             WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2",
            $lock
        )
    };
}

/// Moves a slice of the events of a contact that is gone, or goes in the same commit, to its merge target.
///
/// If the contact exists, its target is `to` of the change, which must exist, too, or the commit is a conflict. If it
/// is gone, the target is the one that its row names by now; where that was erased, the slice is deleted instead.
pub(crate) async fn move_events(on: &mut impl OpenCommit, change: &MoveProductEvents) -> Result<(), Fault> {
    const NUMBER: Sql = sql!("SELECT number FROM workspace_numbers WHERE workspace = $1");
    const FROM: Sql = sql!(sqlite: contact!(""), postgres: contact!(" FOR UPDATE"));
    const TO: Sql = sql!(sqlite: contact!(""), postgres: contact!(" FOR KEY SHARE"));
    // Contacts that were merged into this one before get its merge target, too.
    const FOLLOW: Sql = sql!("UPDATE deleted_contacts SET merge_target = $2 WHERE merge_target = $1");
    const MOVE: Sql = sql!(
        sqlite: "UPDATE product_events SET contact = $2
            WHERE n IN (SELECT n FROM product_events WHERE contact = $1 LIMIT $3)",
        postgres: "UPDATE product_events SET contact = $2
            WHERE n = ANY (ARRAY (SELECT n FROM product_events WHERE contact = $1 LIMIT $3))",
    );
    const REMEMBER: Sql = sql!(
        "INSERT INTO deleted_contacts (n, workspace_number, id, merge_target)
         SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT 1 FROM product_events WHERE contact = $1)
         ON CONFLICT (n) DO UPDATE SET merge_target = excluded.merge_target"
    );
    let MoveProductEvents { workspace_id: workspace, from, to, limit } = *change;
    let number_of = |sql, contact| Query::new(sql, params![key(workspace), key(contact)], |row| get::<i64>(row, 0));
    let workspace_number = Query::new(NUMBER, params![key(workspace)], |row| get::<i64>(row, 0));
    let Some(workspace_number) = on.one(workspace_number).await? else { return Ok(()) };
    let (n, merge_target) = if let Some(n) = on.one(number_of(FROM, from)).await? {
        let merge_target = on.one(number_of(TO, to)).await?.ok_or(Fault::Conflict)?;
        on.statements().run(FOLLOW, params![n, merge_target])?;
        (n, merge_target)
    } else {
        let Some(n) = on.one(number(workspace, from)).await? else { return Ok(()) };
        let Some(merge_target) = living_merge_target(on, n).await? else { return delete_of(on, n, limit).await };
        (n, merge_target)
    };
    if on.execute(MOVE, params![n, merge_target, sql_limit(limit)]).await? > 0 {
        on.note_numbered(workspace, merge_target, ReadMask::EVENTS).await?;
    }
    on.statements().run(REMEMBER, params![n, workspace_number, key(from), merge_target])?;
    forget_if_empty(on.statements(), n)
}

/// Deletes a slice of the events of a contact that is gone; nothing if it has none left.
pub(crate) async fn delete(
    on: &mut impl OpenCommit,
    workspace: WorkspaceId,
    contact: ContactId,
    limit: usize,
) -> Result<(), Fault> {
    match on.one(number(workspace, contact)).await? {
        Some(n) => delete_of(on, n, limit).await,
        None => Ok(()),
    }
}

/// Deletes up to `limit` events of the contact with number `n`, with their unique ids, and takes them from the counts.
async fn delete_of(on: &mut impl OpenCommit, n: i64, limit: usize) -> Result<(), Fault> {
    const DELETE_UNIQUE_IDS: Sql = sql!(
        sqlite: "DELETE FROM event_unique_ids
            WHERE event IN (SELECT n FROM product_events WHERE contact = $1 LIMIT $2)",
        postgres: "",
    );
    // On SQLite the subquery finds the same events as that of the statement before, because nothing changed in between.
    const DELETE: Sql = sql!(
        sqlite: "DELETE FROM product_events WHERE n IN (SELECT n FROM product_events WHERE contact = $1 LIMIT $2)
            RETURNING name, at",
        postgres: "WITH gone AS (
                DELETE FROM product_events
                WHERE n = ANY (ARRAY (SELECT n FROM product_events WHERE contact = $1 LIMIT $2))
                RETURNING n, name, at
            ), unnamed AS (
                DELETE FROM event_unique_ids WHERE event IN (SELECT n FROM gone)
            )
            SELECT name, at FROM gone",
    );
    let slice = || params![n, sql_limit(limit)];
    on.statements().run(DELETE_UNIQUE_IDS, slice())?;
    let gone = Query::new(DELETE, slice(), |row| Ok((get::<i64>(row, 0)?, time(row, 1)?)));
    for (name, at) in on.many(gone).await? {
        on.deltas().add_events(name, at, -1);
    }
    forget_if_empty(on.statements(), n)
}

/// The number of the merge target of a contact that is gone, with a lock on that contact; `None` if it has none or the
/// target was erased.
async fn living_merge_target(on: &mut impl OpenCommit, n: i64) -> Result<Option<i64>, Fault> {
    const TARGET: Sql = sql!("SELECT merge_target FROM deleted_contacts WHERE n = $1");
    const LOCK_TARGET: Sql = sql!(
        sqlite: "SELECT n FROM contacts WHERE n = $1",
        postgres: "SELECT n FROM contacts WHERE n = $1 FOR KEY SHARE",
    );
    let mut gone = None;
    loop {
        let target = Query::new(TARGET, params![n], |row| get::<Option<i64>>(row, 0));
        let Some(target) = on.one(target).await?.flatten() else { return Ok(None) };
        let held = on.one(Query::new(LOCK_TARGET, params![target], |row| get::<i64>(row, 0))).await?;
        if held.is_some() || gone == Some(target) {
            return Ok(held);
        }
        // The target may have been merged into another contact meanwhile, which is the new target then: look again.
        gone = Some(target);
    }
}

/// Deletes a contact that is gone from `deleted_contacts` if it has no events left.
fn forget_if_empty(on: &mut dyn Statements, n: i64) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "DELETE FROM deleted_contacts WHERE n = $1 AND NOT EXISTS (SELECT 1 FROM product_events WHERE contact = $1)"
    );
    on.run(SQL, params![n])
}
