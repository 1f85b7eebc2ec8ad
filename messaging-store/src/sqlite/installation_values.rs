//! Values that apply to the whole database: rows of the table `installation`, by name.

use messaging_core::changes::SwitchSecretKey;
use rusqlite::{Connection, OptionalExtension as _};

use super::fault::Fault;
pub(super) use crate::tables::installation::{FENCE, KEY_CHECK, SECRET_KEY};

/// The token of the program that does the jobs.
pub(super) const OWNER: &str = "owner";

/// Latest time given to a job, in milliseconds; stored only from time to time.
pub(super) const LATEST: &str = "latest";

/// Ids of the secret keys that the program which does the jobs holds, separated by commas.
pub(super) const HELD_KEYS: &str = "held_keys";

/// Sources of the program that does the jobs, as JSON; present while it runs, and after it was killed.
pub(super) const OWN_SOURCES: &str = "own_sources";

/// The number of the latest start.
pub(super) const EPOCH: &str = "epoch";

/// The name under which the file of latest starts keeps the number of this database.
pub(super) const EPOCH_OF: &str = "epoch_of";

/// Present while a start raises the number of the latest one: the file may be one ahead.
pub(super) const EPOCH_RAISED: &str = "epoch_raised";

/// Reads a value.
pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<String>, Fault> {
    let value = connection
        .prepare_cached("SELECT value FROM installation WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(value)
}

/// Writes a value, in place of an existing one.
pub(super) fn set(connection: &Connection, name: &str, value: &str) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO installation (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute([name, value])?;
    Ok(())
}

/// Makes another secret key the one that seals secrets, if the program that does the jobs holds it.
pub(super) fn switch_secret_key(connection: &Connection, switch: &SwitchSecretKey) -> Result<(), Fault> {
    let is_held = get(connection, HELD_KEYS)?.is_some_and(|held| held.split(',').any(|held| held == switch.key));
    if !is_held || get(connection, KEY_CHECK)?.as_ref() != Some(&switch.before) {
        return Err(Fault::Conflict);
    }
    set(connection, KEY_CHECK, &switch.after)?;
    set(connection, SECRET_KEY, &switch.key)
}

/// Removes a value.
pub(super) fn remove(connection: &Connection, name: &str) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM installation WHERE name = ?1")?.execute([name])?;
    Ok(())
}
