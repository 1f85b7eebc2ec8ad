//! Runs, entries and notes of a contact that is removed: those of an erased one are deleted a slice at a time, those of
//! a merged one pass to the contact into which it is merged.

use messaging_core::changes::MoveRuns;
use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::listeners;
use super::super::query::{many, one, params};
use super::super::row::{get as column, maybe_time, numbered, small, sql_limit, time, uuid};
use super::super::transaction::Transaction;
use super::forget::delete_rows_of_runs;
use crate::automation_rows::RunPosition;
use crate::counter_deltas::AutomationCounter;
use crate::tables::automations::{departed_number, end_departure};

/// Deletes a slice of the runs of an erased contact. Its notes have no effect and are removed when they are worked off.
pub(in super::super) async fn delete(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: ContactId,
    limit: usize,
) -> Result<(), Fault> {
    const RUNS: &str = "DELETE FROM automation_runs WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM automation_runs WHERE contact = $1 LIMIT $2 FOR UPDATE))
        RETURNING automation, id, version, status::bigint, node";
    let departed = departed_number(workspace, id);
    let found = one(transaction, departed.sql.postgres, departed.params, |row| column(row, 0)).await?;
    let Some(n): Option<i64> = found else { return Ok(()) };
    let runs = many(transaction, RUNS, params![n, sql_limit(limit)], |row| {
        let position = RunPosition { status: numbered(&RunStatus::ALL, column(row, 3)?)?, node: column(row, 4)? };
        Ok((column::<i64>(row, 0)?, column::<Uuid>(row, 1)?, small(row, 2)?, position))
    })
    .await?;
    for (automation, _, version, position) in &runs {
        // Ended runs stay counted.
        if position.status.is_open() {
            position.count(&mut transaction.deltas, *automation, -1);
        }
        transaction.deltas.add_automation(AutomationCounter::Version(*automation, *version), -1);
    }
    delete_rows_of_runs(transaction, runs.iter().map(|(automation, run, ..)| (*automation, *run)));
    end_departure(transaction, workspace, id, n)
}

/// Passes all rows of a contact to the one that it is merged into; the contact itself is removed next.
pub(in super::super) async fn merge(transaction: &mut Transaction, change: &MoveRuns) -> Result<(), Fault> {
    // Locks both contacts, so that no note or run of theirs is added until the commit. Always in the order of the
    // numbers.
    const HOLD: &str = "SELECT 1 FROM contacts WHERE id = ANY ($2)
            AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
        ORDER BY n FOR UPDATE";
    const NUMBERS: &str = "SELECT ARRAY(SELECT n FROM automations WHERE workspace = $1),
        (SELECT n FROM contacts WHERE id = $2
            AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)),
        (SELECT n FROM contacts WHERE id = $3
            AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))";
    let workspace = change.workspace_id;
    listeners::write_notes(transaction).await?;
    let (from, to) = (uuid(change.from), uuid(change.to));
    transaction.run(HOLD, params![uuid(workspace), vec![from, to]]);
    let found = one(transaction, NUMBERS, params![uuid(workspace), from, to], |row| {
        Ok((row.try_get::<_, Vec<i64>>(0)?, column::<Option<i64>>(row, 1)?, column::<Option<i64>>(row, 2)?))
    });
    let Some((automations, from, to)) = found.await? else { return Ok(()) };
    let Some(from) = from.filter(|_| !automations.is_empty()) else { return Ok(()) };
    let to = to.ok_or(Fault::Conflict)?;
    let mut due = move_runs(transaction, from, to).await?;
    move_entries(transaction, &automations, from, to);
    due.extend(move_fires(transaction, &automations, from, to).await?);
    due.extend(move_notes(transaction, &automations, from, to).await?);
    for (automation, at) in due {
        listeners::due(transaction, workspace, automation, to, at).await?;
    }
    Ok(())
}

/// Automations with work that a move makes due, each with its due time.
type Due = Vec<(i64, Timestamp)>;

async fn move_runs(transaction: &mut Transaction, from: i64, to: i64) -> Result<Due, Fault> {
    const SQL: &str = "UPDATE automation_runs SET contact = $2, revision = revision + 1 WHERE contact = $1
        RETURNING automation, due_at";
    let moved = many(transaction, SQL, params![from, to], |row| Ok((column::<i64>(row, 0)?, maybe_time(row, 1)?)));
    Ok(moved.await?.into_iter().filter_map(|(automation, due_at)| Some((automation, due_at?))).collect())
}

fn move_entries(transaction: &mut Transaction, automations: &[i64], from: i64, to: i64) {
    const MOVE: &str = "INSERT INTO automation_entries AS held (automation, contact, key, revision, entered_at)
        SELECT automation, $3, key, revision, entered_at FROM automation_entries
        WHERE automation = ANY ($1) AND contact = $2
        ON CONFLICT (automation, contact, key) DO UPDATE
            SET revision = greatest(held.revision, excluded.revision) + 1,
                entered_at = greatest(held.entered_at, excluded.entered_at)";
    const OLD: &str = "DELETE FROM automation_entries WHERE automation = ANY ($1) AND contact = $2";
    transaction.run(MOVE, params![automations.to_vec(), from, to]);
    transaction.run(OLD, params![automations.to_vec(), from]);
}

async fn move_fires(transaction: &mut Transaction, automations: &[i64], from: i64, to: i64) -> Result<Due, Fault> {
    const SQL: &str = "WITH old AS (
            DELETE FROM automation_date_fires WHERE automation = ANY ($1) AND contact = $2
            RETURNING automation, due_at, taken
        ), moved AS (
            INSERT INTO automation_date_fires (automation, contact, due_at, taken)
            SELECT automation, $3, due_at, taken FROM old ON CONFLICT DO NOTHING RETURNING automation, due_at, taken
        )
        SELECT automation, due_at FROM moved WHERE NOT taken";
    let key = params![automations.to_vec(), from, to];
    many(transaction, SQL, key, |row| Ok((column(row, 0)?, time(row, 1)?))).await
}

/// Moved notes come last in their new shard, so that its job does not remove notes which were not there when it read.
async fn move_notes(transaction: &mut Transaction, automations: &[i64], from: i64, to: i64) -> Result<Due, Fault> {
    const SQL: &str = "WITH old AS (
            DELETE FROM automation_notes
            WHERE automation = ANY ($1) AND shard = ($2::bigint & 3)::smallint AND contact = $2 RETURNING *
        )
        INSERT INTO automation_notes (automation, shard, n, contact, at, kind, depth, may_enter, event, what)
        SELECT automation, ($3::bigint & 3)::smallint, nextval('automation_note_numbers'), $3, at, kind, depth, may_enter,
            event, what
        FROM (SELECT * FROM old ORDER BY n) AS told RETURNING automation, at";
    let key = params![automations.to_vec(), from, to];
    many(transaction, SQL, key, |row| Ok((column(row, 0)?, time(row, 1)?))).await
}
