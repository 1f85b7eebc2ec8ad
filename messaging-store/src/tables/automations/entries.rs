//! Entries of contacts into automations.

use messaging_core::changes::{Expect, ExpectEntries};
use messaging_core::domain::automation::run::{Entry, RunStatus};
use messaging_core::ids::ContactId;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::time::Timestamp;

use super::keys::{Of, automation, contact, key_of};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::number;
use crate::row::{get as column, maybe_time};
use crate::sql::{Sql, Value, key, params, sql};

/// Parameters as a table: contacts, each with a value of its own.
macro_rules! wanted {
    (sqlite $value:literal, $contacts:literal, $values:literal) => {
        concat!(
            "(SELECT key AS place, unhex(value) AS contact, ",
            $values,
            " ->> key AS ",
            $value,
            " FROM json_each(",
            $contacts,
            ")) AS wanted"
        )
    };
    (postgres $value:literal, $contacts:literal, $values:literal) => {
        concat!(
            "unnest(",
            $contacts,
            "::uuid[], ",
            $values,
            ") WITH ORDINALITY AS wanted (contact, ",
            $value,
            ", place)"
        )
    };
}

fn failed() -> i64 {
    number(&RunStatus::ALL, &RunStatus::Failed)
}

pub(crate) fn put(on: &mut dyn Statements, entry: &Entry, expect: Expect) -> Result<(), Fault> {
    macro_rules! insert {
        ($lock:literal) => {
            concat!(
                "INSERT INTO automation_entries (automation, contact, key, revision, entered_at)
                 SELECT a.n, c.n, $4, 1, $5 FROM automations a CROSS JOIN contacts c
                 WHERE a.workspace = $1 AND a.id = $2 AND NOT a.removed AND c.id = $3
                     AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)",
                $lock
            )
        };
    }
    // On PostgreSQL the contact stays until the commit.
    const INSERT: Sql = sql!(sqlite: insert!(""), postgres: insert!(" FOR KEY SHARE OF c"));
    const UPDATE: Sql = sql!(concat!(
        "UPDATE automation_entries SET revision = revision + 1, entered_at = $5 WHERE automation = ",
        automation!(),
        " AND contact = ",
        contact!("$3"),
        " AND key = $4 AND revision = $6"
    ));
    let mut row = key_of((entry.workspace_id, entry.automation_id));
    row.extend(params![key(entry.contact_id), entry.key.as_deref().unwrap_or_default(), entry.entered_at]);
    match expect {
        Expect::Absent => on.run_one(INSERT, row),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(UPDATE, row)
        }
    }
}

pub(super) async fn get(
    database: &impl Database,
    of: Of,
    keys: &[(ContactId, Option<String>)],
) -> Result<Vec<Option<Stored<Entry>>>, StoreError> {
    macro_rules! select {
        ($wanted:expr) => {
            concat!(
                "SELECT e.revision, e.entered_at, (
                     SELECT count(*) FROM automation_runs r {INDEXED BY automation_runs_by_contact}
                     LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id
                     WHERE r.contact = e.contact AND r.automation = e.automation AND r.ended_at IS NULL
                         AND coalesce(i.key, '') = e.key)
                 FROM ",
                $wanted,
                " LEFT JOIN contacts c ON c.id = wanted.contact
                     AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                 LEFT JOIN automation_entries e ON e.contact = c.n AND e.key = wanted.key AND e.automation = ",
                automation!(),
                " ORDER BY wanted.place"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select!(wanted!(sqlite "key", "$3", "$4")),
        postgres: select!(wanted!(postgres "key", "$3", "$4::text[]")),
    );
    let mut wanted = key_of(of);
    wanted.push(Value::List(keys.iter().map(|(contact, _)| key(*contact)).collect()));
    wanted.push(keys.iter().map(|(_, key)| key.as_deref().unwrap_or_default()).collect::<Vec<_>>().into());
    let query = Query::new(SQL, wanted, |row| {
        let Some(entered_at) = maybe_time(row, 1)? else { return Ok(None) };
        Ok(Some((column(row, 0)?, entered_at, column(row, 2)?)))
    });
    let found = database.many(query).await?;
    let (workspace_id, automation_id) = of;
    let entries = keys.iter().zip(found).map(|((contact_id, key), found)| {
        let (revision, entered_at, open) = found?;
        let record = Entry { workspace_id, automation_id, contact_id: *contact_id, key: key.clone(), entered_at, open };
        Some(Stored { record, revision })
    });
    Ok(entries.collect())
}

/// Number of times that each contact entered after a given time.
pub(super) async fn since(
    database: &impl Database,
    of: Of,
    contacts: &[(ContactId, Timestamp)],
) -> Result<Vec<u32>, StoreError> {
    macro_rules! select {
        ($wanted:expr) => {
            concat!(
                "SELECT (SELECT count(*) FROM automation_runs r {INDEXED BY automation_runs_by_contact}
                     WHERE r.contact = ",
                contact!("wanted.contact"),
                " AND r.automation = ",
                automation!(),
                " AND r.entered_at > wanted.since AND (r.status <> $5 OR r.node IS NOT NULL))
                 FROM ",
                $wanted,
                " ORDER BY wanted.place"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select!(wanted!(sqlite "since", "$3", "$4")),
        postgres: select!(wanted!(postgres "since", "$3", "$4::bigint[]")),
    );
    let mut wanted = key_of(of);
    wanted.push(Value::List(contacts.iter().map(|(contact, _)| key(*contact)).collect()));
    wanted.push(Value::List(contacts.iter().map(|(_, since)| (*since).into()).collect()));
    wanted.push(failed().into());
    database.many(Query::new(SQL, wanted, |row| column(row, 0))).await
}

/// Raises a conflict unless a contact has entered, or was refused for a reason, fewer times than the limit. On
/// PostgreSQL no other transaction lets the contact in until the commit.
pub(crate) fn expect_fewer(on: &mut dyn Statements, expected: &ExpectEntries) -> Result<(), Fault> {
    const HOLD: Sql = sql!(
        sqlite: "",
        postgres: "SELECT 1 FROM contacts WHERE id = $2
            AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) FOR NO KEY UPDATE",
    );
    const TOO_MANY: Sql = sql!(concat!(
        "SELECT count(*) FROM (
             SELECT 1 FROM automation_runs {INDEXED BY automation_runs_by_contact} WHERE contact = ",
        contact!("$3"),
        " AND automation = ",
        automation!(),
        " AND entered_at > $4 AND CASE WHEN status = $5 AND node IS NULL
              THEN exit_reason = CAST ($6 AS text) ELSE CAST ($6 AS text) IS NULL END
             LIMIT 1 OFFSET $7) AS one_too_many"
    ));
    let contact = key(expected.contact_id);
    on.run(HOLD, params![key(expected.workspace_id), contact.clone()])?;
    let mut bounds = key_of((expected.workspace_id, expected.automation_id));
    bounds.extend(params![
        contact,
        expected.since,
        failed(),
        expected.refused.clone(),
        expected.fewer_than.saturating_sub(1),
    ]);
    on.expect(0, TOO_MANY, bounds)
}
