//! Brings the schema up to date.

use std::error::Error;

use messaging_core::domain::address::normalize_email;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension as _};

use super::address_digest::define_digest;
use crate::migrations::{self, Applied, Migration, SQLITE};
use crate::open_error::{OpenError, failed};

/// The time, as migrations note it.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// How the schema of a database relates to ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Current,
    /// Empty counts as older.
    Older,
}

/// Whether the database has no schema yet.
pub(super) fn is_absent(connection: &Connection) -> Result<bool, OpenError> {
    Ok(version(connection).map_err(failed("read the schema's version"))?.is_none())
}

/// Looks at the history; a newer schema is an error. Two look-ups, so that a start stays fast.
pub(super) fn state(connection: &Connection) -> Result<State, OpenError> {
    let known = migrations::latest(SQLITE);
    let found = version(connection).map_err(failed("read the schema's version"))?;
    match found {
        Some(found) if found > known => Err(OpenError::Newer { found, known }),
        Some(found) if found == known => Ok(State::Current),
        _ => Ok(State::Older),
    }
}

/// Applies what is missing, in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    define_functions(connection).map_err(failed("prepare to bring the schema up to date"))?;
    apply(connection, SQLITE).map_err(failed("bring the schema up to date"))
}

fn apply(connection: &mut Connection, all: &[Migration]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(migrations::HISTORY)?;
    let applied = transaction
        .prepare(migrations::APPLIED)?
        .query_map([], |row| Ok(Applied { version: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? }))?
        .collect::<Result<Vec<_>, _>>()?;
    transaction.execute_batch(&migrations::missing(all, &applied, NOW)?)?;
    Ok(transaction.commit()?)
}

/// Gives the connection what migrations call: rules of ours that SQL cannot say.
fn define_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    define_digest(connection)?;
    connection
        .create_scalar_function("normalized_email", 1, flags, |call| Ok(normalize_email(call.get_raw(0).as_str()?)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of an earlier version.
    fn of_version(version: i32) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        define_functions(&connection).unwrap();
        let until = SQLITE.partition_point(|migration| migration.version <= version);
        apply(&mut connection, &SQLITE[..until]).unwrap();
        connection
    }

    #[test]
    fn lanes_without_a_class_belong_to_the_installation() {
        let mut connection = of_version(25);
        connection.execute("INSERT INTO lanes VALUES ('email:example.org', 5, 0)", []).unwrap();
        migrate(&mut connection).unwrap();
        let lane = messaging_core::domain::lane::Lane::parse("email:example.org");
        assert_eq!(texts(&connection, "SELECT flow FROM lanes"), [lane.flow().to_string()]);
    }

    #[test]
    fn what_happened_before_there_were_counters_is_counted() {
        let mut connection = of_version(33);
        // In the order of statuses and kinds: sent 2, delivered 3, bounced 5, failed 7; sent 1, delivered 2, bounce 4, open 6,
        // click 7.
        for (id, status, events) in [
            (
                "a",
                3,
                &[(1, 900_000, None), (2, 900_001, None), (6, 1_800_000, Some(false)), (6, 1_800_001, Some(false))][..],
            ),
            ("b", 5, &[(2, 900_000, None), (4, 2_700_000, None), (6, 1_800_000, Some(true))]),
            ("c", 2, &[]),
            ("d", 0, &[]),
            ("e", 7, &[(1, 900_000, None), (7, 1_800_000, Some(false))]),
        ] {
            connection
                .execute(
                    "INSERT INTO messages (workspace, id, revision, status, channel, created_at, updated_at, recipient)
                     VALUES (x'01', CAST(?1 AS BLOB), 1, ?2, 0, 0, 3600000, 'ann@example.org')",
                    rusqlite::params![id, status],
                )
                .unwrap();
            for (kind, at, machine) in events {
                connection
                    .execute(
                        "INSERT INTO message_events (workspace, message, at, id, kind, meta)
                         VALUES (x'01', CAST(?1 AS BLOB), ?2, CAST(?3 AS BLOB), ?3, ?4)",
                        rusqlite::params![id, at, kind, machine.map(|is| format!("{{\"machine\":{is}}}"))],
                    )
                    .unwrap();
            }
        }
        for (contact, at) in [(1, -1), (1, 0), (2, 899_999)] {
            connection
                .execute("INSERT INTO product_events (contact, name, at, id) VALUES (?1, 7, ?2, x'00')", [contact, at])
                .unwrap();
        }
        migrate(&mut connection).unwrap();
        assert_eq!(
            texts(
                &connection,
                "SELECT CAST(id AS TEXT) || ' ' || ifnull(sent_at, '-') || ' ' || ifnull(delivered_at, '-') || ' ' || seen
                 FROM messages ORDER BY id"
            ),
            ["a 900000 900001 1", "b 900000 900000 16", "c 3600000 - 0", "d - - 0", "e 900000 - 2"]
        );
        assert_eq!(
            texts(
                &connection,
                "SELECT format('%d: sent %d delivered %d bounces %d opened %d followed %d opens %d clicks %d', quarter,
                     sent, delivered, bounces, unique_opens, unique_clicks, opens, clicks) FROM activity ORDER BY quarter"
            ),
            [
                "1: sent 2 delivered 1 bounces 0 opened 0 followed 0 opens 0 clicks 0",
                "2: sent 0 delivered 0 bounces 0 opened 1 followed 1 opens 2 clicks 1",
                "3: sent 0 delivered 0 bounces 1 opened 0 followed 0 opens 0 clicks 0",
                "4: sent 1 delivered 0 bounces 0 opened 0 followed 0 opens 0 clicks 0",
            ]
        );
        assert_eq!(
            texts(
                &connection,
                "SELECT format('%d %d %d', name, quarter, events) FROM product_event_activity ORDER BY quarter"
            ),
            ["7 -1 1", "7 0 2"]
        );
    }

    fn texts(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn addresses_get_their_one_spelling_and_nobody_is_lost() {
        let mut connection = of_version(22);
        for (n, email) in ["ann@b\u{fc}cher.example", "bob@b\u{fc}cher.example", "bob@xn--bcher-kva.example", "c@d.co"]
            .into_iter()
            .enumerate()
        {
            connection
                .execute(
                    "INSERT INTO contacts (n, audience, id, revision, created_at, updated_at, email)
                     VALUES (?1, 1, CAST('id' || ?1 AS BLOB), 1, 0, 0, ?2)",
                    rusqlite::params![i64::try_from(n).unwrap(), email],
                )
                .unwrap();
        }
        for (address, reason, id) in [
            ("ann@b\u{fc}cher.example", "manual", "1"),
            ("bob@b\u{fc}cher.example", "complaint", "2"),
            ("bob@xn--bcher-kva.example", "unsubscribe", "3"),
            ("eve@b\u{fc}cher.example", "manual", "4"),
            ("eve@xn--bcher-kva.example", "bounce", "5"),
        ] {
            let doc = format!(r#"{{"id":"{id}","address":"{address}","reason":"{reason}"}}"#);
            connection
                .execute(
                    "INSERT INTO suppressions (workspace, channel, address, revision, doc) VALUES (x'01', 0, ?1, 1, ?2)",
                    [address, &doc],
                )
                .unwrap();
        }
        connection.execute("INSERT INTO soft_bounces VALUES (x'01', 0, 'ann@b\u{fc}cher.example', 3)", []).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(
            texts(&connection, "SELECT email FROM contacts ORDER BY n"),
            ["ann@xn--bcher-kva.example", "bob@b\u{fc}cher.example", "bob@xn--bcher-kva.example", "c@d.co"]
        );
        assert_eq!(
            texts(
                &connection,
                "SELECT address || ' ' || (doc ->> '$.address' = address) || ' ' || (doc ->> '$.reason')
                 FROM suppressions ORDER BY 1"
            ),
            [
                "ann@xn--bcher-kva.example 1 manual",
                "bob@xn--bcher-kva.example 1 complaint",
                "eve@xn--bcher-kva.example 1 bounce"
            ]
        );
        assert_eq!(texts(&connection, "SELECT address FROM soft_bounces"), ["ann@xn--bcher-kva.example"]);
    }
}
