//! What is known of the entries of contacts.

use messaging_core::changes::{Expect, ExpectEntries};
use messaging_core::domain::automation::run::{Entry, RunStatus};
use messaging_core::ids::ContactId;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::listeners;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{maybe_time, number, small, uuid};
use super::super::transaction::Transaction;
use super::look_up::revision;
use super::runs::Of;

pub(in super::super) fn put(transaction: &mut Transaction, entry: &Entry, expect: Expect) {
    const INSERT: &str = "INSERT INTO automation_entries (automation, contact, key, revision, entered_at)
        SELECT a.n, c.n, $4, 1, $5 FROM automations a, contacts c
        WHERE a.workspace = $1 AND a.id = $2 AND NOT a.removed AND c.id = $3
            AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
        FOR KEY SHARE OF c";
    const UPDATE: &str = "UPDATE automation_entries SET revision = revision + 1, entered_at = $5
        WHERE automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND contact = (SELECT n FROM contacts WHERE id = $3
                AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
            AND key = $4 AND revision = $6";
    listeners::share(transaction, entry.workspace_id);
    let mut row = params![
        uuid(entry.workspace_id),
        uuid(entry.automation_id),
        uuid(entry.contact_id),
        entry.key.clone().unwrap_or_default(),
        entry.entered_at.as_millis(),
    ];
    match expect {
        Expect::Absent => transaction.run_one(INSERT, row),
        Expect::Revision(_) => {
            row.push(revision(expect).into());
            transaction.run_one(UPDATE, row);
        }
    }
}

pub(super) async fn get(
    reads: &Reads,
    (workspace, automation): Of,
    keys: &[(ContactId, Option<String>)],
) -> Result<Vec<Option<Stored<Entry>>>, StoreError> {
    const SQL: &str = "SELECT e.revision, e.entered_at, (
            SELECT count(*) FROM automation_runs r
            LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id
            WHERE r.contact = e.contact AND r.automation = e.automation AND r.ended_at IS NULL
                AND coalesce(i.key, '') = e.key)
        FROM unnest($3::uuid[], $4::text[]) WITH ORDINALITY AS wanted (contact, key, place)
        LEFT JOIN contacts c ON c.id = wanted.contact
            AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
        LEFT JOIN automation_entries e ON e.contact = c.n AND e.key = wanted.key
            AND e.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
        ORDER BY wanted.place";
    let contacts: Vec<Uuid> = keys.iter().map(|(contact, _)| uuid(*contact)).collect();
    let texts: Vec<String> = keys.iter().map(|(_, key)| key.clone().unwrap_or_default()).collect();
    let rows = reads
        .many(SQL, params![uuid(workspace), uuid(automation), contacts, texts], |row| {
            let Some(entered_at) = maybe_time(row, 1)? else { return Ok(None) };
            Ok(Some((small(row, 0)?, entered_at, small(row, 2)?)))
        })
        .await?;
    let entry = |(key, found): (&EntryKey, Option<Found>)| {
        let (revision, entered_at, open) = found?;
        let (contact_id, key) = (key.0, key.1.clone());
        let record = Entry { workspace_id: workspace, automation_id: automation, contact_id, key, entered_at, open };
        Some(Stored { record, revision })
    };
    Ok(keys.iter().zip(rows).map(entry).collect())
}

/// A contact and its re-entry key.
type EntryKey = (ContactId, Option<String>);

/// The revision, when the contact entered, and its open runs.
type Found = (u32, Timestamp, u32);

fn failed() -> Result<i16, Fault> {
    let failed = number(&RunStatus::ALL, &RunStatus::Failed);
    i16::try_from(failed).map_err(|_| Fault::Malformed("a number is out of range"))
}

/// How often contacts entered after a time.
pub(super) async fn since(
    reads: &Reads,
    (workspace, automation): Of,
    contacts: &[(ContactId, Timestamp)],
) -> Result<Vec<u32>, StoreError> {
    const SQL: &str = "SELECT (
            SELECT count(*) FROM automation_runs r
            WHERE r.contact = (SELECT n FROM contacts WHERE id = wanted.contact
                    AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                AND r.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
                AND r.entered_at > wanted.since AND (r.status <> $5 OR r.node IS NOT NULL))
        FROM unnest($3::uuid[], $4::bigint[]) WITH ORDINALITY AS wanted (contact, since, place) ORDER BY place";
    let people: Vec<Uuid> = contacts.iter().map(|(contact, _)| uuid(*contact)).collect();
    let times: Vec<i64> = contacts.iter().map(|(_, since)| since.as_millis()).collect();
    let key = params![uuid(workspace), uuid(automation), people, times, failed()?];
    reads.many(SQL, key, |row| small(row, 0)).await
}

/// A conflict unless a contact has entered, or was refused for a reason, fewer times. Until the commit nobody else lets the
/// contact in.
pub(in super::super) fn expect_fewer(transaction: &mut Transaction, expected: &ExpectEntries) -> Result<(), Fault> {
    const HOLD: &str = "SELECT 1 FROM contacts WHERE id = $2
        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) FOR NO KEY UPDATE";
    const EXPECT: &str = "SELECT expect_rows((SELECT count(*) FROM (
        SELECT 1 FROM automation_runs
        WHERE contact = (SELECT n FROM contacts WHERE id = $3
                AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
            AND automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND entered_at > $4 AND CASE WHEN status = $5 AND node IS NULL
                THEN exit_reason = $6::text ELSE $6::text IS NULL END
        LIMIT 1 OFFSET $7) AS one_too_many), 0)";
    let (workspace, contact) = (uuid(expected.workspace_id), uuid(expected.contact_id));
    listeners::share(transaction, expected.workspace_id);
    transaction.run(HOLD, params![workspace, contact]);
    transaction.run(
        EXPECT,
        params![
            workspace,
            uuid(expected.automation_id),
            contact,
            expected.since.as_millis(),
            failed()?,
            expected.refused.clone(),
            i64::from(expected.fewer_than.saturating_sub(1)),
        ],
    );
    Ok(())
}
