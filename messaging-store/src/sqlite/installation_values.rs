//! What holds for the database as a whole: rows of the table `installation`, by name.

use rusqlite::{Connection, OptionalExtension as _};

use super::fault::{Fault, expect_one};

/// The token of the program that does the jobs.
pub(super) const OWNER: &str = "owner";

/// Nearly the latest time that a job was dated at, in milliseconds.
pub(super) const LATEST: &str = "latest";

/// The check value of the secret key.
pub(super) const KEY_CHECK: &str = "key_check";

/// Reads a value.
pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<String>, Fault> {
    let value = connection
        .prepare_cached("SELECT value FROM installation WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(value)
}

/// Writes a value over whatever there is.
pub(super) fn set(connection: &Connection, name: &str, value: &str) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO installation (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute([name, value])?;
    Ok(())
}

/// Keeps the check value of the secret key, unless there is one.
pub(super) fn put_key_check(connection: &Connection, check: &str) -> Result<(), Fault> {
    let rows = connection
        .prepare_cached("INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING")?
        .execute([KEY_CHECK, check])?;
    expect_one(rows)
}
