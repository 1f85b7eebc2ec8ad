//! Letting runs go whose history is over.

use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::super::Postgres;
use super::super::fault::Fault;
use super::super::query::{many, params};
use super::super::row::{get as column, small, sql_limit};
use super::super::sweep::{begin_undurably, end};
use super::super::transaction::Transaction;
use crate::counter_deltas::AutomationCounter;
use crate::tables::automations::SLICE;
use crate::tables::counters;

/// Lets runs go that ended before a time; they stay counted.
pub(super) async fn ended_runs(database: &Postgres, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    while forgotten < limit {
        let slice = SLICE.min(limit - forgotten);
        let mut transaction = begin_undurably(&database.writes).await?;
        let gone = forget_some(&mut transaction, before, slice).await;
        let gone = end(transaction, gone).await?;
        forgotten += gone;
        if gone < slice {
            break;
        }
    }
    Ok(forgotten as u64)
}

async fn forget_some(transaction: &mut Transaction, before: Timestamp, limit: usize) -> Result<usize, Fault> {
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
