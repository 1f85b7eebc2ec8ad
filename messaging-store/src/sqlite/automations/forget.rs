//! Letting go what belongs to removed automations, runs whose history is over, and versions that nobody names.

use std::time::Duration;

use messaging_core::domain::automation::run::KEPT_AFTER_END;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::SqliteStore;
use super::super::fault::Fault;
use super::super::query::{many, one};
use super::super::row::sql_limit;

/// How many rows a sweep removes in one transaction.
const SLICE: usize = 500;
/// How long moments of dates are kept that were taken: longer than any are kept ahead.
const DATES_KEPT: Duration = Duration::from_hours(7 * 24);

/// Removes rows of a removed automation, `?1`, at most `?2`; tried in their order until one finds some.
const OF_AN_AUTOMATION: [&str; 9] = [
    "DELETE FROM automation_notes WHERE (automation, shard, n) IN (
         SELECT automation, shard, n FROM automation_notes WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_runs WHERE (automation, id) IN (
         SELECT automation, id FROM automation_runs WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_run_inputs WHERE (automation, run) IN (
         SELECT automation, run FROM automation_run_inputs WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_run_steps WHERE (automation, run, revision) IN (
         SELECT automation, run, revision FROM automation_run_steps WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_messages WHERE message IN (
         SELECT message FROM automation_messages INDEXED BY automation_messages_by_run WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_entries WHERE (automation, contact, key) IN (
         SELECT automation, contact, key FROM automation_entries WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_date_fires WHERE (automation, contact, due_at) IN (
         SELECT automation, contact, due_at FROM automation_date_fires WHERE automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_branches WHERE (node, branch) IN (
         SELECT b.node, b.branch FROM automation_nodes n JOIN automation_branches b ON b.node = n.n
         WHERE n.automation = ?1 LIMIT ?2)",
    "DELETE FROM automation_versions WHERE (automation, version) IN (
         SELECT automation, version FROM automation_versions WHERE automation = ?1 LIMIT ?2)",
];

impl SqliteStore {
    pub(super) async fn forget_rows_of_automations(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const REMOVED: &str = "SELECT n FROM automations INDEXED BY automations_removed WHERE removed = 1 LIMIT 1";
        let removed = self.readers.read(|connection| one(connection, REMOVED, [], |row| Ok(row.get(0)?))).await?;
        let removed: Option<i64> = removed;
        let mut forgotten = 0;
        if let Some(n) = removed {
            let forget = move |connection: &Connection, slice| forget_removed(connection, n, slice);
            forgotten += self.forget_in_slices(limit, SLICE, forget).await?;
        }
        let forget = [forget_ended, forget_fires, forget_versions];
        for forget in forget {
            let room = limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
            let forget = move |connection: &Connection, slice| forget(connection, now, slice);
            forgotten += self.forget_in_slices(room, SLICE, forget).await?;
        }
        Ok(forgotten)
    }
}

fn forget_removed(connection: &Connection, n: i64, limit: usize) -> Result<u64, Fault> {
    for sql in OF_AN_AUTOMATION {
        let gone = connection.prepare_cached(sql)?.execute(params![n, sql_limit(limit)])?;
        if gone > 0 {
            return Ok(gone as u64);
        }
    }
    // Few rows, and the automation last: its number is free from then on.
    for sql in [
        "DELETE FROM automation_nodes WHERE automation = ?1",
        "DELETE FROM automation_run_counts WHERE automation = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([n])?;
    }
    Ok(connection.prepare_cached("DELETE FROM automations WHERE n = ?1 AND removed = 1")?.execute([n])? as u64)
}

/// Lets a run go with all that is kept of it.
pub(super) fn delete_rows_of_run(connection: &Connection, automation: i64, run: [u8; 16]) -> Result<(), Fault> {
    for sql in [
        "DELETE FROM automation_run_inputs WHERE automation = ?1 AND run = ?2",
        "DELETE FROM automation_run_steps WHERE automation = ?1 AND run = ?2",
        "DELETE FROM automation_messages WHERE automation = ?1 AND run = ?2",
        "DELETE FROM automation_runs WHERE automation = ?1 AND id = ?2",
    ] {
        connection.prepare_cached(sql)?.execute(params![automation, run])?;
    }
    Ok(())
}

/// Runs whose history is over; they stay counted.
fn forget_ended(connection: &Connection, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    const ENDED: &str = "SELECT automation, id, version FROM automation_runs INDEXED BY automation_runs_ended
        WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2";
    const UNCOUNT: &str = "UPDATE automation_versions SET runs = runs - 1 WHERE automation = ?1 AND version = ?2";
    let bounds = params![(now - KEPT_AFTER_END).as_millis(), sql_limit(limit)];
    let ended = many(connection, ENDED, bounds, |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 16]>(1)?, row.get::<_, u32>(2)?))
    })?;
    for (automation, run, version) in &ended {
        delete_rows_of_run(connection, *automation, *run)?;
        connection.prepare_cached(UNCOUNT)?.execute(params![automation, version])?;
    }
    Ok(ended.len() as u64)
}

fn forget_fires(connection: &Connection, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    const SQL: &str = "DELETE FROM automation_date_fires WHERE (automation, contact, due_at) IN (
        SELECT automation, contact, due_at FROM automation_date_fires INDEXED BY automation_date_fires_taken
        WHERE taken = 1 AND due_at < ?1 LIMIT ?2)";
    let bounds = params![(now - DATES_KEPT).as_millis(), sql_limit(limit)];
    Ok(connection.prepare_cached(SQL)?.execute(bounds)? as u64)
}

fn forget_versions(connection: &Connection, _now: Timestamp, limit: usize) -> Result<u64, Fault> {
    const SQL: &str = "DELETE FROM automation_versions WHERE (automation, version) IN (
        SELECT v.automation, v.version FROM automation_versions v INDEXED BY automation_versions_unused
        JOIN automations a ON a.n = v.automation
        WHERE v.runs = 0 AND v.version < a.version LIMIT ?1)";
    Ok(connection.prepare_cached(SQL)?.execute([sql_limit(limit)])? as u64)
}
