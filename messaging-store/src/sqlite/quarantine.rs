//! What was put aside.

use messaging_core::domain::quarantine::{KEPT, Quarantined};
use messaging_core::ids::Id as _;
use messaging_core::ids::JobId;
use rusqlite::{Connection, params};

use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{document, record, sql_limit};

pub(super) fn put(connection: &Connection, quarantined: &Quarantined) -> Result<(), Fault> {
    const TRIM: &str = "DELETE FROM quarantined
        WHERE id <= (SELECT id FROM quarantined ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    connection
        .prepare_cached("INSERT INTO quarantined (id, doc) VALUES (?1, ?2)")?
        .execute(params![quarantined.id.to_bytes(), document(quarantined)?])?;
    connection.prepare_cached(TRIM)?.execute([sql_limit(KEPT)])?;
    Ok(())
}

pub(super) fn forget(connection: &Connection, id: JobId) -> Result<(), Fault> {
    expect_one(connection.prepare_cached("DELETE FROM quarantined WHERE id = ?1")?.execute(params![id.to_bytes()])?)
}

pub(super) fn newest(connection: &Connection, limit: usize) -> Result<(u64, Vec<Quarantined>), Fault> {
    let count: Option<i64> = one(connection, "SELECT count(*) FROM quarantined", [], |row| Ok(row.get(0)?))?;
    let sql = "SELECT doc FROM quarantined ORDER BY id DESC LIMIT ?1";
    Ok((count.unwrap_or(0).unsigned_abs(), many(connection, sql, [sql_limit(limit)], |row| record(row, 0))?))
}
