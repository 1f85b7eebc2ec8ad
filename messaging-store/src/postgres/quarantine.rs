//! What was put aside.

use messaging_core::domain::quarantine::{KEPT, Quarantined};
use messaging_core::ids::JobId;
use messaging_core::ports::store::StoreError;

use super::fault::Fault;
use super::query::params;
use super::reads::Reads;
use super::row::{document, get, record, sql_limit, uuid};
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, quarantined: &Quarantined) -> Result<(), Fault> {
    const TRIM: &str = "DELETE FROM quarantined
        WHERE id <= (SELECT id FROM quarantined ORDER BY id DESC OFFSET $1 LIMIT 1)";
    let sql = "INSERT INTO quarantined (id, doc) VALUES ($1, $2)";
    transaction.run(sql, params![uuid(quarantined.id), document(quarantined)?]);
    transaction.run(TRIM, params![sql_limit(KEPT)]);
    Ok(())
}

pub(super) fn forget(transaction: &mut Transaction, id: JobId) {
    transaction.run_one("DELETE FROM quarantined WHERE id = $1", params![uuid(id)]);
}

pub(super) async fn newest(reads: &Reads, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError> {
    let count: Option<i64> = reads.one("SELECT count(*) FROM quarantined", params![], |row| get(row, 0)).await?;
    let sql = "SELECT doc FROM quarantined ORDER BY id DESC LIMIT $1";
    let newest = reads.many(sql, params![sql_limit(limit)], |row| record(row, 0)).await?;
    Ok((count.unwrap_or(0).unsigned_abs(), newest))
}
