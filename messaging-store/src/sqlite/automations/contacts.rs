//! Runs, entries and notes of a contact that is removed: those of an erased one are deleted a slice at a time, those of
//! a merged one pass to the contact into which it is merged.

use messaging_core::changes::MoveRuns;
use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params, params_from_iter};

use super::super::fault::Fault;
use super::super::listeners::{Listeners, shard};
use super::super::numbers::contact_number;
use super::super::query::{many, one};
use super::super::row::{maybe_time, numbered, sql_limit, time};
use super::forget::delete_rows_of_run;
use crate::automation_rows::RunPosition;
use crate::counter_deltas::{AutomationCounter, CounterDeltas};
use crate::tables::automations::{departed_number, end_departure};

/// Automations of a workspace, removed ones too.
fn of_workspace(connection: &Connection, workspace: WorkspaceId) -> Result<Vec<i64>, Fault> {
    let sql = "SELECT n FROM automations WHERE workspace = ?1";
    many(connection, sql, [workspace.to_bytes()], |row| Ok(row.get(0)?))
}

/// Deletes a slice of the runs of an erased contact. Its notes have no effect and are removed when they are worked off.
pub(in super::super) fn delete(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    workspace: WorkspaceId,
    id: ContactId,
    limit: usize,
) -> Result<(), Fault> {
    const RUNS: &str = "SELECT automation, id, version, status, node FROM automation_runs
        INDEXED BY automation_runs_by_contact WHERE contact = ?1 LIMIT ?2";
    let departed = departed_number(workspace, id);
    let found = one(connection, departed.sql.sqlite, params_from_iter(departed.params), |row| Ok(row.get(0)?))?;
    let Some(n): Option<i64> = found else { return Ok(()) };
    let runs = many(connection, RUNS, params![n, sql_limit(limit)], |row| {
        let position = RunPosition { status: numbered(&RunStatus::ALL, row.get(3)?)?, node: row.get(4)? };
        Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 16]>(1)?, row.get(2)?, position))
    })?;
    for (automation, run, version, position) in runs {
        // Ended runs stay counted.
        if position.status.is_open() {
            position.count(deltas, automation, -1);
        }
        deltas.add_automation(AutomationCounter::Version(automation, version), -1);
        delete_rows_of_run(connection, automation, run)?;
    }
    end_departure(&mut &*connection, workspace, id, n)
}

/// Passes all rows of a contact to the one that it is merged into; the contact itself is removed next.
pub(in super::super) fn merge(
    connection: &Connection,
    listeners: &mut Listeners,
    change: &MoveRuns,
) -> Result<(), Fault> {
    const RUNS: &str = "UPDATE automation_runs SET contact = ?2, revision = revision + 1 WHERE contact = ?1
        RETURNING automation, due_at";
    const ENTRIES: &str = "INSERT INTO automation_entries (automation, contact, key, revision, entered_at)
        SELECT automation, ?3, key, revision, entered_at FROM automation_entries WHERE automation = ?1 AND contact = ?2
        ON CONFLICT DO UPDATE SET revision = max(revision, excluded.revision) + 1,
            entered_at = max(entered_at, excluded.entered_at)";
    const OLD_ENTRIES: &str = "DELETE FROM automation_entries WHERE automation = ?1 AND contact = ?2";
    const FIRES: &str = "UPDATE OR IGNORE automation_date_fires SET contact = ?3
        WHERE automation = ?1 AND contact = ?2 RETURNING due_at, taken";
    const OLD_FIRES: &str = "DELETE FROM automation_date_fires WHERE automation = ?1 AND contact = ?2";
    let workspace = change.workspace_id;
    let automations = of_workspace(connection, workspace)?;
    if automations.is_empty() {
        return Ok(());
    }
    let Some(from) = contact_number(connection, workspace, change.from)? else { return Ok(()) };
    let to = contact_number(connection, workspace, change.to)?.ok_or(Fault::Conflict)?;
    for (automation, due_at) in many(connection, RUNS, [from, to], |row| Ok((row.get(0)?, maybe_time(row, 1)?)))? {
        if let Some(due_at) = due_at {
            listeners.due(connection, workspace, automation, to, due_at)?;
        }
    }
    for automation in automations {
        connection.prepare_cached(ENTRIES)?.execute([automation, from, to])?;
        connection.prepare_cached(OLD_ENTRIES)?.execute([automation, from])?;
        let fires = many(connection, FIRES, [automation, from, to], |row| Ok((time(row, 0)?, row.get::<_, bool>(1)?)))?;
        connection.prepare_cached(OLD_FIRES)?.execute([automation, from])?;
        for (due_at, _) in fires.into_iter().filter(|(_, taken)| !taken) {
            listeners.due(connection, workspace, automation, to, due_at)?;
        }
        move_notes(connection, listeners, workspace, automation, (from, to))?;
    }
    Ok(())
}

/// Moved notes come last in their new shard, so that its job does not remove notes which were not there when it read.
fn move_notes(
    connection: &Connection,
    listeners: &mut Listeners,
    workspace: WorkspaceId,
    automation: i64,
    (from, to): (i64, i64),
) -> Result<(), Fault> {
    const NOTES: &str =
        "SELECT n, at FROM automation_notes WHERE automation = ?1 AND shard = ?2 AND contact = ?3 ORDER BY n";
    const MOVE: &str = "UPDATE automation_notes SET shard = ?4, n = ?5, contact = ?6
        WHERE automation = ?1 AND shard = ?2 AND n = ?3";
    let notes: Vec<(i64, Timestamp)> =
        many(connection, NOTES, params![automation, shard(from), from], |row| Ok((row.get(0)?, time(row, 1)?)))?;
    for (n, at) in notes {
        let next = listeners.next_note(connection)?;
        connection.prepare_cached(MOVE)?.execute(params![automation, shard(from), n, shard(to), next, to])?;
        listeners.due(connection, workspace, automation, to, at)?;
    }
    Ok(())
}
