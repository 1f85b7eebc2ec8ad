//! Quarantine: records of work that was put aside because the store refuses its outcome for good.

use messaging_core::domain::installation::quarantine::{KEPT, Quarantined};
use messaging_core::ids::JobId;
use messaging_core::ports::store::StoreError;

use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{count, document, record};
use crate::sql::{Sql, key, params, sql};

/// Adds a record and deletes the oldest beyond [`KEPT`].
pub(crate) fn put(on: &mut dyn Statements, quarantined: &Quarantined) -> Result<(), Fault> {
    const TRIM: Sql =
        sql!("DELETE FROM quarantined WHERE id <= (SELECT id FROM quarantined ORDER BY id DESC LIMIT 1 OFFSET $1)");
    on.run(
        sql!("INSERT INTO quarantined (id, doc) VALUES ($1, $2)"),
        params![key(quarantined.id), document(quarantined)?],
    )?;
    on.run(TRIM, params![sql_limit(KEPT)])
}

/// Deletes the record of a job. Fails with a conflict if there is none.
pub(crate) fn forget(on: &mut dyn Statements, id: JobId) -> Result<(), Fault> {
    on.run_one(sql!("DELETE FROM quarantined WHERE id = $1"), params![key(id)])
}

/// The number of records, and the newest of them, at most `limit`.
pub(crate) async fn newest(database: &impl Database, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError> {
    const COUNT: Sql = sql!("SELECT count(*) FROM quarantined");
    const NEWEST: Sql = sql!("SELECT doc FROM quarantined ORDER BY id DESC LIMIT $1");
    let all = database.one(Query::new(COUNT, params![], |row| count(row, 0)).point()).await?;
    let newest = Query::new(NEWEST, params![sql_limit(limit)], |row| record(row, 0)).point();
    Ok((all.unwrap_or(0), database.many(newest).await?))
}
