//! Letting runs go whose history is over.

use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::query::many;
use super::super::row::sql_limit;

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

/// Lets runs go that ended before a time; they stay counted.
pub(super) fn ended_runs(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    const ENDED: &str = "SELECT automation, id, version FROM automation_runs INDEXED BY automation_runs_ended
        WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2";
    const UNCOUNT: &str = "UPDATE automation_versions SET runs = runs - 1 WHERE automation = ?1 AND version = ?2";
    let ended = many(connection, ENDED, params![before.as_millis(), sql_limit(limit)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 16]>(1)?, row.get::<_, u32>(2)?))
    })?;
    for (automation, run, version) in &ended {
        delete_rows_of_run(connection, *automation, *run)?;
        connection.prepare_cached(UNCOUNT)?.execute(params![automation, version])?;
    }
    Ok(ended.len() as u64)
}
