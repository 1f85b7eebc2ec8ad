//! What is known of the entries of contacts.

use messaging_core::changes::{Expect, ExpectEntries};
use messaging_core::domain::automation::run::{Entry, RunStatus};
use messaging_core::ids::ContactId;
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::numbers::{automation_number, contact_number};
use super::super::query::one;
use super::super::row::{number, time};
use super::runs::Of;

pub(in super::super) fn put(connection: &Connection, entry: &Entry, expect: Expect) -> Result<(), Fault> {
    let automation = automation_number(connection, entry.workspace_id, entry.automation_id)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, entry.workspace_id, entry.contact_id)?.ok_or(Fault::Conflict)?;
    let key = entry.key.as_deref().unwrap_or_default();
    let at = entry.entered_at.as_millis();
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO automation_entries (automation, contact, key, revision, entered_at) VALUES (?1, ?2, ?3, 1, ?4)",
            )?
            .execute(params![automation, contact, key, at])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE automation_entries SET revision = revision + 1, entered_at = ?4
                 WHERE automation = ?1 AND contact = ?2 AND key = ?3 AND revision = ?5",
            )?
            .execute(params![automation, contact, key, at, revision])?,
    })
}

pub(super) fn get(
    connection: &Connection,
    (workspace, automation): Of,
    keys: Vec<(ContactId, Option<String>)>,
) -> Result<Vec<Option<Stored<Entry>>>, Fault> {
    const SQL: &str = "SELECT e.revision, e.entered_at, (
            SELECT count(*) FROM automation_runs r INDEXED BY automation_runs_by_contact
            LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id
            WHERE r.contact = ?2 AND r.automation = ?1 AND r.ended_at IS NULL AND coalesce(i.key, '') = ?3)
        FROM automation_entries e WHERE e.automation = ?1 AND e.contact = ?2 AND e.key = ?3";
    let connection = &*connection.unchecked_transaction()?;
    let n = automation_number(connection, workspace, automation)?;
    let mut entries = Vec::with_capacity(keys.len());
    for (contact_id, key) in keys {
        let contact = contact_number(connection, workspace, contact_id)?;
        let found = one(connection, SQL, params![n, contact, key.as_deref().unwrap_or_default()], |row| {
            let record = Entry {
                workspace_id: workspace,
                automation_id: automation,
                contact_id,
                key: key.clone(),
                entered_at: time(row, 1)?,
                open: row.get(2)?,
            };
            Ok(Stored { record, revision: row.get(0)? })
        })?;
        entries.push(found);
    }
    Ok(entries)
}

/// How often contacts entered after a time.
pub(super) fn since(
    connection: &Connection,
    (workspace, automation): Of,
    contacts: &[(ContactId, Timestamp)],
) -> Result<Vec<u32>, Fault> {
    const SQL: &str = "SELECT count(*) FROM automation_runs INDEXED BY automation_runs_by_contact
        WHERE contact = ?1 AND automation = ?2 AND entered_at > ?3 AND (status <> ?4 OR node IS NOT NULL)";
    let connection = &*connection.unchecked_transaction()?;
    let n = automation_number(connection, workspace, automation)?;
    let failed = number(&RunStatus::ALL, &RunStatus::Failed);
    let mut counts = Vec::with_capacity(contacts.len());
    for (contact, since) in contacts {
        let contact = contact_number(connection, workspace, *contact)?;
        let count = one(connection, SQL, params![contact, n, since.as_millis(), failed], |row| Ok(row.get(0)?))?;
        counts.push(count.unwrap_or(0));
    }
    Ok(counts)
}

/// A conflict unless a contact has entered, or was refused for a reason, fewer times.
pub(in super::super) fn expect_fewer(connection: &Connection, expected: &ExpectEntries) -> Result<(), Fault> {
    const SQL: &str = "SELECT count(*) FROM (
        SELECT 1 FROM automation_runs INDEXED BY automation_runs_by_contact
        WHERE contact = ?1 AND automation = ?2 AND entered_at > ?3 AND CASE WHEN status = ?4 AND node IS NULL
            THEN exit_reason IS ?5 AND ?5 IS NOT NULL ELSE ?5 IS NULL END
        LIMIT ?6)";
    let automation = automation_number(connection, expected.workspace_id, expected.automation_id)?;
    let contact = contact_number(connection, expected.workspace_id, expected.contact_id)?;
    let (since, failed) = (expected.since.as_millis(), number(&RunStatus::ALL, &RunStatus::Failed));
    let bounds = params![contact, automation, since, failed, expected.refused, expected.fewer_than];
    let found: Option<u32> = one(connection, SQL, bounds, |row| Ok(row.get(0)?))?;
    if found.is_some_and(|found| found < expected.fewer_than) { Ok(()) } else { Err(Fault::Conflict) }
}
