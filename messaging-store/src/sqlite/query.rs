//! Running prepared queries.

use rusqlite::{Connection, Params, Row, params_from_iter};

use super::fault::Fault;
use crate::sql::{self, Sql};

/// The first row, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &'static str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// All rows.
pub(super) fn many<T>(
    connection: &Connection,
    sql: &'static str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(read(row)?);
    }
    Ok(items)
}

/// Carries out a statement, if there is one for SQLite; answers how many rows it touched.
pub(super) fn execute(connection: &Connection, sql: Sql, params: sql::Params) -> Result<usize, Fault> {
    if sql.sqlite.is_empty() {
        return Ok(0);
    }
    Ok(connection.prepare_cached(sql.sqlite)?.execute(params_from_iter(params))?)
}
