//! Removal of the rows of removed automations, of runs whose history is over, and of versions that no run names.

use std::time::Duration;

use messaging_core::domain::automation::run::KEPT_AFTER_END;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::rows::AutomationRows;
use crate::database::{Database, Query};
use crate::pages::sql_limit;
use crate::row::get;
use crate::sql::{Sql, params, sql};

/// Number of rows that a sweep removes in one transaction.
pub(crate) const SLICE: usize = 500;
/// Time for which taken moments of dates are kept: longer than any are kept ahead.
const DATES_KEPT: Duration = Duration::from_hours(7 * 24);

/// Removes rows of a table by a condition on `$1`, at most `$2`; locked rows are skipped.
macro_rules! delete {
    ($table:literal, $key:literal, $which:literal) => {
        sql!(
            sqlite: concat!(
                "DELETE FROM ", $table, " WHERE (", $key, ") IN (SELECT ", $key, " FROM ", $table, " WHERE ", $which,
                " LIMIT $2)"
            ),
            postgres: concat!(
                "DELETE FROM ", $table, " WHERE ctid = ANY (ARRAY (SELECT ctid FROM ", $table, " WHERE ", $which,
                " LIMIT $2 FOR UPDATE SKIP LOCKED))"
            ),
        )
    };
}

/// Removes rows of the removed automation `$1`, at most `$2`; each statement is repeated until none are left.
const OF_AN_AUTOMATION: [Sql; 9] = [
    delete!("automation_notes", "automation, shard, n", "automation = $1"),
    delete!("automation_runs", "automation, id", "automation = $1"),
    delete!("automation_run_inputs", "automation, run", "automation = $1"),
    delete!("automation_run_steps", "automation, run, revision", "automation = $1"),
    delete!("automation_messages", "message", "automation = $1"),
    delete!("automation_entries", "automation, contact, key", "automation = $1"),
    delete!("automation_date_fires", "automation, contact, due_at", "automation = $1"),
    sql!(
        sqlite: "DELETE FROM automation_branches WHERE (node, branch) IN (
            SELECT b.node, b.branch FROM automation_nodes n JOIN automation_branches b ON b.node = n.n
            WHERE n.automation = $1 LIMIT $2)",
        postgres: "DELETE FROM automation_branches WHERE (node, branch, shard) IN (
            SELECT b.node, b.branch, b.shard FROM automation_nodes n JOIN automation_branches b ON b.node = n.n
            WHERE n.automation = $1 LIMIT $2 FOR UPDATE OF b SKIP LOCKED)",
    ),
    delete!("automation_versions", "automation, version", "automation = $1"),
];

/// Removes the rest of the removed automation `$1`: few rows, and the automation last, once no row is left that another
/// transaction had locked.
const LAST: [Sql; 5] = [
    sql!(
        sqlite: "",
        postgres: "DELETE FROM automation_node_counts
            WHERE node IN (SELECT n FROM automation_nodes WHERE automation = $1)",
    ),
    sql!("DELETE FROM automation_nodes WHERE automation = $1"),
    sql!("DELETE FROM automation_run_counts WHERE automation = $1"),
    sql!(sqlite: "", postgres: "DELETE FROM automation_version_counts WHERE automation = $1"),
    sql!(
        "DELETE FROM automations WHERE n = $1 AND removed
             AND NOT EXISTS (SELECT 1 FROM automation_notes WHERE automation = $1)
             AND NOT EXISTS (SELECT 1 FROM automation_runs WHERE automation = $1)"
    ),
];

/// Removes taken moments of dates before `$1`.
const FIRES: Sql = delete!("automation_date_fires", "automation, contact, due_at", "taken AND due_at < $1");

/// Removes versions from `$1` on that are not current and that no run names.
const VERSIONS: Sql = sql!(
    sqlite: "DELETE FROM automation_versions WHERE (automation, version) IN (
        SELECT v.automation, v.version FROM automation_versions v INDEXED BY automation_versions_unused
        JOIN automations a ON a.n = v.automation
        WHERE v.runs = 0 AND v.version < a.version AND v.version >= $1 LIMIT $2)",
    postgres: "WITH unused AS (
            SELECT v.automation, v.version FROM automation_versions v JOIN automations a ON a.n = v.automation
            WHERE v.version < a.version AND v.version >= $1 AND coalesce((SELECT sum(runs)
                FROM automation_version_counts c WHERE c.automation = v.automation AND c.version = v.version), 0) = 0
            LIMIT $2 FOR UPDATE OF v SKIP LOCKED
        ), uncounted AS (
            DELETE FROM automation_version_counts c USING unused
            WHERE c.automation = unused.automation AND c.version = unused.version
        )
        DELETE FROM automation_versions v USING unused
        WHERE v.automation = unused.automation AND v.version = unused.version",
);

pub(super) async fn forget<D: Database + AutomationRows>(
    database: &D,
    now: Timestamp,
    limit: usize,
) -> Result<u64, StoreError> {
    const REMOVED: Sql = sql!("SELECT n FROM automations {INDEXED BY automations_removed} WHERE removed LIMIT 1");
    let removed: Option<i64> = database.one(Query::new(REMOVED, params![], |row| get(row, 0))).await?;
    let mut room = limit;
    if let Some(n) = removed {
        for sql in OF_AN_AUTOMATION {
            in_slices(database, sql, n, &mut room).await?;
        }
        if room > 0 {
            let mut gone = 0;
            for sql in LAST {
                gone = database.sweep(sql, params![n]).await?;
            }
            room = less(room, gone);
        }
    }
    room = less(room, database.forget_ended_runs(now - KEPT_AFTER_END, room).await?);
    in_slices(database, FIRES, (now - DATES_KEPT).as_millis(), &mut room).await?;
    in_slices(database, VERSIONS, 0, &mut room).await?;
    Ok((limit - room) as u64)
}

fn less(room: usize, gone: u64) -> usize {
    room.saturating_sub(usize::try_from(gone).unwrap_or(room))
}

/// Repeats a statement whose last parameter is the maximum number of rows, until it finds fewer or there is no room.
async fn in_slices(database: &impl Database, sql: Sql, of: i64, room: &mut usize) -> Result<(), StoreError> {
    while *room > 0 {
        let slice = SLICE.min(*room);
        let gone = database.sweep(sql, params![of, sql_limit(slice)]).await?;
        *room = less(*room, gone);
        if gone < slice as u64 {
            break;
        }
    }
    Ok(())
}
