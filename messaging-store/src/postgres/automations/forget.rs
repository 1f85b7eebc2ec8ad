//! Letting go what belongs to removed automations, runs whose history is over, and versions that nobody names.

use std::time::Duration;

use messaging_core::domain::automation::run::KEPT_AFTER_END;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::super::PostgresStore;
use super::super::fault::Fault;
use super::super::query::{many, params};
use super::super::row::{get as column, small, sql_limit};
use super::super::sweep::{begin_undurably, end, sweep};
use super::super::transaction::Transaction;
use crate::counter_deltas::AutomationCounter;
use crate::tables::counters;

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;
/// How long moments of dates are kept that were taken: longer than any are kept ahead.
const DATES_KEPT: Duration = Duration::from_hours(7 * 24);

/// Removes rows of a removed automation, `$1`, at most `$2`; one after another until there are none.
const OF_AN_AUTOMATION: [&str; 9] = [
    "DELETE FROM automation_notes WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_notes WHERE automation = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_runs WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_runs WHERE automation = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_run_inputs WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_run_inputs WHERE automation = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_run_steps WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_run_steps WHERE automation = $1
         LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_messages WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_messages WHERE automation = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_entries WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_entries WHERE automation = $1
         LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_date_fires WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_date_fires WHERE automation = $1
         LIMIT $2 FOR UPDATE SKIP LOCKED))",
    "DELETE FROM automation_branches WHERE (node, branch, shard) IN (
         SELECT b.node, b.branch, b.shard FROM automation_nodes n JOIN automation_branches b ON b.node = n.n
         WHERE n.automation = $1 LIMIT $2 FOR UPDATE OF b SKIP LOCKED)",
    "DELETE FROM automation_versions WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM automation_versions WHERE automation = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
];

impl PostgresStore {
    pub(super) async fn forget_rows_of_automations(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const REMOVED: &str = "SELECT n FROM automations WHERE removed LIMIT 1";
        let removed: Option<i64> = self.reads.one(REMOVED, params![], |row| column(row, 0)).await?;
        let mut room = limit;
        if let Some(n) = removed {
            self.forget_removed(n, &mut room).await?;
        }
        self.forget_ended(now, &mut room).await?;
        self.forget_fires(now, &mut room).await?;
        self.forget_versions(&mut room).await?;
        Ok((limit - room) as u64)
    }

    /// Repeats a statement whose last parameter is how many rows it may touch, until it finds fewer or there is no room.
    async fn forget_in_slices(&self, sql: &'static str, key: i64, room: &mut usize) -> Result<(), StoreError> {
        while *room > 0 {
            let slice = (*room).min(SLICE);
            let gone = sweep(&self.writes, sql, params![key, sql_limit(slice)]).await?;
            let gone = usize::try_from(gone).unwrap_or(slice);
            *room = room.saturating_sub(gone);
            if gone < slice {
                break;
            }
        }
        Ok(())
    }

    async fn forget_removed(&self, n: i64, room: &mut usize) -> Result<(), StoreError> {
        // Few rows, and the automation last, once no row is left that somebody else held.
        const FEW: [&str; 4] = [
            "DELETE FROM automation_node_counts WHERE node IN (SELECT n FROM automation_nodes WHERE automation = $1)",
            "DELETE FROM automation_nodes WHERE automation = $1",
            "DELETE FROM automation_run_counts WHERE automation = $1",
            "DELETE FROM automation_version_counts WHERE automation = $1",
        ];
        const LAST: &str = "DELETE FROM automations WHERE n = $1 AND removed
            AND NOT EXISTS (SELECT 1 FROM automation_notes WHERE automation = $1)
            AND NOT EXISTS (SELECT 1 FROM automation_runs WHERE automation = $1)";
        for sql in OF_AN_AUTOMATION {
            self.forget_in_slices(sql, n, room).await?;
        }
        if *room == 0 {
            return Ok(());
        }
        let mut transaction = begin_undurably(&self.writes).await?;
        for sql in FEW {
            transaction.run(sql, params![n]);
        }
        let gone = transaction.execute(LAST, params![n]).await;
        let gone = end(transaction, gone).await?;
        *room -= usize::try_from(gone).unwrap_or(0).min(*room);
        Ok(())
    }

    /// Runs whose history is over; they stay counted.
    async fn forget_ended(&self, now: Timestamp, room: &mut usize) -> Result<(), StoreError> {
        while *room > 0 {
            let slice = (*room).min(SLICE);
            let mut transaction = begin_undurably(&self.writes).await?;
            let gone = forget_ended_runs(&mut transaction, now - KEPT_AFTER_END, slice).await;
            let gone = end(transaction, gone).await?;
            *room -= gone;
            if gone < slice {
                break;
            }
        }
        Ok(())
    }

    async fn forget_fires(&self, now: Timestamp, room: &mut usize) -> Result<(), StoreError> {
        const SQL: &str = "DELETE FROM automation_date_fires WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM automation_date_fires
            WHERE taken AND due_at < $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        self.forget_in_slices(SQL, (now - DATES_KEPT).as_millis(), room).await
    }

    /// Versions that are not the present ones, and that no run names.
    async fn forget_versions(&self, room: &mut usize) -> Result<(), StoreError> {
        const SQL: &str = "WITH unused AS (
                SELECT v.automation, v.version FROM automation_versions v JOIN automations a ON a.n = v.automation
                WHERE v.version < a.version AND v.version >= $1 AND coalesce((SELECT sum(runs)
                    FROM automation_version_counts c WHERE c.automation = v.automation AND c.version = v.version), 0) = 0
                LIMIT $2 FOR UPDATE OF v SKIP LOCKED
            ), uncounted AS (
                DELETE FROM automation_version_counts c USING unused
                WHERE c.automation = unused.automation AND c.version = unused.version
            )
            DELETE FROM automation_versions v USING unused
            WHERE v.automation = unused.automation AND v.version = unused.version";
        self.forget_in_slices(SQL, 0, room).await
    }
}

async fn forget_ended_runs(transaction: &mut Transaction, before: Timestamp, limit: usize) -> Result<usize, Fault> {
    const ENDED: &str = "DELETE FROM automation_runs WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM automation_runs WHERE ended_at < $1 ORDER BY ended_at LIMIT $2
            FOR UPDATE SKIP LOCKED))
        RETURNING automation, id, version";
    let ended = many(transaction, ENDED, params![before.as_millis(), sql_limit(limit)], |row| {
        Ok((column::<i64>(row, 0)?, column::<Uuid>(row, 1)?, small(row, 2)?))
    })
    .await?;
    for (automation, _, version) in &ended {
        transaction.deltas.add_automation(AutomationCounter::Version(*automation, *version), -1);
    }
    delete_rows_of_runs(transaction, ended.iter().map(|(automation, run, _)| (*automation, *run)));
    let deltas = std::mem::take(&mut transaction.deltas);
    counters::settle(transaction, &deltas)?;
    Ok(ended.len())
}

/// Lets go what else is kept of runs.
pub(super) fn delete_rows_of_runs(transaction: &mut Transaction, runs: impl Iterator<Item = (i64, Uuid)>) {
    let (automations, runs): (Vec<i64>, Vec<Uuid>) = runs.unzip();
    if runs.is_empty() {
        return;
    }
    for sql in [
        "DELETE FROM automation_run_inputs WHERE (automation, run) IN (
             SELECT automation, run FROM unnest($1::bigint[], $2::uuid[]) AS gone (automation, run))",
        "DELETE FROM automation_run_steps WHERE (automation, run) IN (
             SELECT automation, run FROM unnest($1::bigint[], $2::uuid[]) AS gone (automation, run))",
        "DELETE FROM automation_messages WHERE (automation, run) IN (
             SELECT automation, run FROM unnest($1::bigint[], $2::uuid[]) AS gone (automation, run))",
    ] {
        transaction.run(sql, params![automations.clone(), runs.clone()]);
    }
}
