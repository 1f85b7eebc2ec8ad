//! The numbered migrations, forward only.

use rusqlite::{Connection, OptionalExtension as _};

use super::open::{OpenError, failed};

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// How the schema of a database relates to ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Current,
    /// Empty counts as older.
    Older,
}

/// Looks at the history; a newer schema is an error. Two look-ups, so that a start stays fast.
pub(super) fn state(connection: &Connection) -> Result<State, OpenError> {
    let known = latest();
    let found = version(connection).map_err(failed("read the schema's version"))?;
    match found {
        Some(found) if found > known => Err(OpenError::Newer { found, known }),
        Some(found) if found == known => Ok(State::Current),
        _ => Ok(State::Older),
    }
}

/// Applies what is missing, in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    embedded::migrations::runner()
        .set_grouped(true)
        .run(connection)
        .map(drop)
        .map_err(failed("bring the schema up to date"))
}

fn latest() -> i64 {
    embedded::migrations::runner()
        .get_migrations()
        .iter()
        .map(|migration| i64::from(migration.version()))
        .max()
        .unwrap_or(0)
}

fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let has_history = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'refinery_schema_history'", [], |_| Ok(()))
        .optional()?
        .is_some();
    if !has_history {
        return Ok(None);
    }
    connection.query_row("SELECT max(version) FROM refinery_schema_history", [], |row| row.get(0))
}
