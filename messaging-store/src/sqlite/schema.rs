//! Brings the schema up to date.

use std::error::Error;

use rusqlite::{Connection, OptionalExtension as _};

use crate::migrations::{self, Applied, SQLITE};
use crate::open_error::{OpenError, failed};

/// SQL of the current time in the format of the history of migrations.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// Relation of the schema of a database to the schema of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Current,
    /// Empty counts as older.
    Older,
}

/// Returns true if the database has no schema yet.
pub(super) fn is_absent(connection: &Connection) -> Result<bool, OpenError> {
    Ok(version(connection).map_err(failed("read the schema's version"))?.is_none())
}

/// Reads the history; fails if this program cannot work with it. Two look-ups, so that a start stays fast.
pub(super) fn state(connection: &Connection) -> Result<State, OpenError> {
    let known = migrations::latest(SQLITE);
    let found = version(connection).map_err(failed("read the schema's version"))?;
    match found {
        Some((_, false)) => Err(OpenError::BeforeFirstRelease),
        Some((found, true)) if found > known => Err(OpenError::Newer { found, known }),
        Some((found, true)) if found == known => Ok(State::Current),
        _ => Ok(State::Older),
    }
}

/// Applies the missing migrations, in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let found = version(connection).map_err(failed("read the schema's version"))?.map(|(found, _)| found);
    let known = migrations::latest(SQLITE);
    let is_older = found.is_some_and(|found| found < known);
    if is_older {
        tracing::info!(
            found,
            known,
            "the schema of the database is brought up to date, which takes long on a large one"
        );
    }
    apply(connection).map_err(failed("bring the schema up to date"))?;
    if is_older {
        tracing::info!(known, "the schema of the database is up to date");
    }
    Ok(())
}

fn apply(connection: &mut Connection) -> Result<(), Box<dyn Error + Send + Sync>> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(migrations::HISTORY)?;
    let applied = transaction
        .prepare(migrations::APPLIED)?
        .query_map([], |row| Ok(Applied { version: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? }))?
        .collect::<Result<Vec<_>, _>>()?;
    transaction.execute_batch(&migrations::missing(SQLITE, &applied, NOW)?)?;
    Ok(transaction.commit()?)
}

/// Latest number in the history, and true if the history began with the schema of this program; `None` without a
/// history.
fn version(connection: &Connection) -> rusqlite::Result<Option<(i64, bool)>> {
    let has_history = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'refinery_schema_history'", [], |_| Ok(()))
        .optional()?
        .is_some();
    if !has_history {
        return Ok(None);
    }
    connection.query_row(migrations::LATEST, [], |row| Ok(Some((row.get(0)?, row.get(1)?))))
}
