//! Events that automations listen for, and the notes kept of them. A note is part of the transaction of its cause, so
//! that none is ever missing.
//!
//! Several processes write. A transaction that may add notes takes the lock of the workspace in shared mode, and then
//! reads which events its automations listen for; a transaction that changes them takes the lock exclusively. So an
//! automation begins to listen after the last commit has ended that did not know of it. Notes are gathered in the
//! transaction and written by one statement, before a change of anything they depend on, or before the commit.

mod hearing;

use std::collections::BTreeMap;
use std::sync::Arc;

use messaging_core::changes::{AutomationWrite, Changes, Condition, Write};
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use self::hearing::{NewNote, OfWorkspace};
use super::fault::Fault;
use super::query::{Queries, many, one};
use super::row::{small, uuid};
use super::transaction::Transaction;
use super::waking;
use crate::row::{get, id, time};
use crate::sql::{Params, Value, key, params};
use crate::tables::automations::listening::{LISTENING_ANYWHERE, Listener, joined, listener, listeners};

pub(super) use self::hearing::Hearing;
pub(super) use crate::happened::{EventHappened, Happened, shard};

/// The lock of a workspace's automations, in shared mode and exclusive.
const SHARE: &str = "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended($1, 7045))";
const ALONE: &str = "SELECT pg_advisory_xact_lock(uuid_hash_extended($1, 7045))";

/// Returns the workspace whose automations a write uses, and true if the write changes them.
fn use_of(write: &Write) -> Option<(WorkspaceId, bool)> {
    Some(match write {
        Write::PutAutomation(put, _) => (put.automation.workspace_id, true),
        Write::DeleteAutomation(workspace, _) => (*workspace, true),
        Write::Expect(Condition::Automation(workspace, ..))
        | Write::Automation(
            AutomationWrite::CountNodes(workspace, ..)
            | AutomationWrite::TakeDateFire(workspace, ..)
            | AutomationWrite::DeleteRuns(workspace, ..),
        ) => (*workspace, false),
        Write::Automation(AutomationWrite::PutRun(put)) => (put.run.workspace_id, false),
        Write::Automation(AutomationWrite::PutEntry(entry, _)) => (entry.workspace_id, false),
        Write::Expect(Condition::Entries(expected)) => (expected.workspace_id, false),
        Write::Automation(AutomationWrite::TakeNotes(take)) => (take.workspace_id, false),
        Write::Automation(AutomationWrite::PutDateFires(put)) => (put.workspace_id, false),
        Write::Automation(AutomationWrite::MoveRuns(change)) => (change.workspace_id, false),
        _ => return None,
    })
}

/// Takes the locks that a transaction needs for its writes about automations, in a fixed order, before it writes
/// anything.
pub(super) fn lock(transaction: &mut Transaction, all: &[&Changes]) {
    let mut workspaces: BTreeMap<WorkspaceId, bool> = BTreeMap::new();
    for (workspace, is_alone) in all.iter().flat_map(|changes| changes.writes()).filter_map(use_of) {
        *workspaces.entry(workspace).or_default() |= is_alone;
    }
    for (workspace, is_alone) in workspaces {
        transaction.run(if is_alone { ALONE } else { SHARE }, params![uuid(workspace)]);
        transaction.hearing.locked.insert(workspace);
    }
}

/// Locks the automations of a workspace against changes until the commit, in shared mode.
pub(super) fn share(transaction: &mut Transaction, workspace: WorkspaceId) {
    if transaction.hearing.locked.insert(workspace) {
        transaction.run(SHARE, params![uuid(workspace)]);
    }
}

/// Like [`share`] for several workspaces, locked in the given order.
pub(super) fn share_all(transaction: &mut Transaction, workspaces: &[WorkspaceId]) {
    const SQL: &str =
        "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended(workspace, 7045)) FROM unnest($1::uuid[]) AS workspace";
    let locked = &mut transaction.hearing.locked;
    let keys = workspaces.iter().filter(|workspace| locked.insert(**workspace)).map(|of| key(*of));
    let keys: Vec<Value> = keys.collect();
    if !keys.is_empty() {
        transaction.run(SQL, params![keys]);
    }
}

async fn of(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<OfWorkspace, Fault> {
    if let Some(known) = transaction.hearing.known.get(&workspace) {
        return Ok(Arc::clone(known));
    }
    // A statement separate from the lock, so that it sees everything committed before the lock was granted.
    share(transaction, workspace);
    let listeners = Arc::new(listeners(transaction, workspace).await?);
    keep(transaction, workspace, Arc::clone(&listeners));
    Ok(listeners)
}

fn keep(transaction: &mut Transaction, workspace: WorkspaceId, listeners: OfWorkspace) {
    let hearing = &mut transaction.hearing;
    hearing.lanes.extend(listeners.iter().map(|listener| (listener.n, Arc::clone(&listener.lanes))));
    hearing.known.insert(workspace, listeners);
}

/// Query of the listening automations of workspaces.
pub(super) fn those_of(workspaces: &[WorkspaceId]) -> (&'static str, Params) {
    (LISTENING_ANYWHERE.postgres, params![workspaces.iter().map(|workspace| key(*workspace)).collect::<Vec<_>>()])
}

/// Keeps the answer to [`those_of`], which was read under the locks of the workspaces.
pub(super) fn know_all(transaction: &mut Transaction, workspaces: &[WorkspaceId], rows: &[Row]) -> Result<(), Fault> {
    let mut found: BTreeMap<WorkspaceId, Vec<_>> =
        workspaces.iter().map(|workspace| (*workspace, Vec::new())).collect();
    for row in rows {
        found.entry(id(row, 5)?).or_default().push(listener(row)?);
    }
    for (workspace, of_workspace) in found {
        keep(transaction, workspace, Arc::new(joined(of_workspace)));
    }
    Ok(())
}

/// Records that no automation of a workspace listens; its lock is held.
pub(super) fn know_none(transaction: &mut Transaction, workspace: WorkspaceId) {
    keep(transaction, workspace, Arc::default());
}

/// Returns true if it is known that no automation of a workspace listens.
pub(super) fn is_none(transaction: &Transaction, workspace: WorkspaceId) -> bool {
    transaction.hearing.known.get(&workspace).is_some_and(|listeners| listeners.is_empty())
}

/// Returns true if any automation of a workspace listens.
pub(super) async fn is_any(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<bool, Fault> {
    Ok(!of(transaction, workspace).await?.is_empty())
}

/// Returns true if any change of a contact may move or end one of its runs.
pub(super) async fn hears_changes(transaction: &mut Transaction, workspace: WorkspaceId) -> Result<bool, Fault> {
    Ok(of(transaction, workspace).await?.iter().any(Listener::hears_changes))
}

/// Keeps notes of an event of a contact, given by its number, for the automations that listen for it.
pub(super) async fn hear(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contact: i64,
    at: Timestamp,
    happened: Happened<'_>,
) -> Result<(), Fault> {
    let listeners = of(transaction, workspace).await?;
    for listener in listeners.iter() {
        let may_enter = listener.entry.as_ref().is_some_and(|entry| happened.enters(entry));
        let moved = listener.runs.iter().filter(|(_, subscription)| happened.moves(subscription));
        let versions: Vec<i64> =
            if may_enter { Vec::new() } else { moved.map(|(version, _)| i64::from(*version)).collect() };
        if may_enter || !versions.is_empty() {
            let (kind, what, event) = happened.stored();
            let (automation, depth) = (listener.n, transaction.depth);
            let note = NewNote { automation, contact, at, kind, depth, may_enter, event, what, versions };
            transaction.hearing.notes.push(note);
        }
    }
    Ok(())
}

/// Writes the gathered notes: to be called before runs begin, end or change hands, and before an automation changes the
/// events it listens for.
pub(super) async fn write_notes(transaction: &mut Transaction) -> Result<(), Fault> {
    const HOLD: &str = "SELECT 1 FROM contacts WHERE n = ANY ($1) ORDER BY n FOR NO KEY UPDATE";
    const KEEP: &str = "INSERT INTO automation_notes (automation, shard, n, contact, at, kind, depth, may_enter, event, what)
        SELECT automation, contact & 3, nextval('automation_note_numbers'), contact, at, kind, depth, may_enter, event, what
        FROM (
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::smallint[],
                $6::boolean[], $7::bigint[], $8::bytea[], $9::integer[], $10::integer[])
                WITH ORDINALITY AS t (automation, contact, at, kind, depth, may_enter, event, what, first, last, place)
            WHERE t.may_enter OR EXISTS (SELECT 1 FROM automation_runs r WHERE r.contact = t.contact
                AND r.automation = t.automation AND r.ended_at IS NULL
                AND r.version = ANY (($11::bigint[])[t.first:t.last]))
            ORDER BY t.place
        ) AS told RETURNING automation, shard::bigint, at";
    let notes = std::mem::take(&mut transaction.hearing.notes);
    if notes.is_empty() {
        return Ok(());
    }
    // A run of one of these contacts begins either before this or after the commit, so it is never missed.
    let held: Vec<i64> = notes.iter().filter(|note| !note.may_enter).map(|note| note.contact).collect();
    if !held.is_empty() {
        transaction.run(HOLD, params![held]);
    }
    let kept =
        many(transaction, KEEP, columns(notes)?, |row| Ok((get(row, 0)?, small(row, 1)?, time(row, 2)?))).await?;
    for (automation, shard, at) in kept {
        transaction.hearing.wake(automation, shard, at);
    }
    Ok(())
}

/// The parameters of notes, one for each column. The versions of all notes are in one column; each note has the range
/// of its own.
fn columns(notes: Vec<NewNote>) -> Result<super::query::Params, Fault> {
    const MANY: Fault = Fault::Malformed("a transaction has too many notes");
    let small = |number: i64| i16::try_from(number).map_err(|_| Fault::Malformed("a number is out of range"));
    let mut versions: Vec<i64> = Vec::new();
    let (mut firsts, mut lasts, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for note in &notes {
        firsts.push(i32::try_from(versions.len() + 1).map_err(|_| MANY)?);
        versions.extend(&note.versions);
        lasts.push(i32::try_from(versions.len()).map_err(|_| MANY)?);
        kinds.push(small(note.kind)?);
    }
    Ok(params![
        notes.iter().map(|note| note.automation).collect::<Vec<_>>(),
        notes.iter().map(|note| note.contact).collect::<Vec<_>>(),
        notes.iter().map(|note| note.at.as_millis()).collect::<Vec<_>>(),
        kinds,
        notes.iter().map(|note| i16::from(note.depth)).collect::<Vec<_>>(),
        notes.iter().map(|note| note.may_enter).collect::<Vec<_>>(),
        notes.iter().map(|note| note.event).collect::<Vec<_>>(),
        notes.into_iter().map(|note| note.what).collect::<Vec<_>>(),
        firsts,
        lasts,
        versions,
    ])
}

/// Makes the job of a contact's shard due at the time at which something of an automation is due, unless that job is
/// the one that commits.
pub(super) async fn due(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    automation: i64,
    contact: i64,
    at: Timestamp,
) -> Result<(), Fault> {
    let listeners = of(transaction, workspace).await?;
    let shard = shard(contact);
    if let Some(listener) = listeners.iter().find(|listener| listener.n == automation)
        && (transaction.own_job.is_none() || listener.lanes.get(usize::from(shard)) != transaction.own_job.as_ref())
    {
        transaction.hearing.wake(automation, shard, at);
    }
    Ok(())
}

/// Writes what all changes of the transaction share: notes, and the due times of jobs. Returns true if a job became
/// due.
pub(super) async fn settle(transaction: &mut Transaction) -> Result<bool, Fault> {
    write_notes(transaction).await?;
    let mut has_woken = false;
    for (lane, at) in std::mem::take(&mut transaction.hearing.wakes).into_values() {
        has_woken |= waking::wake_lane(transaction, &lane, at).await?;
    }
    Ok(has_woken)
}

/// Returns the number up to which no open transaction has made notes in a workspace; `None` while it is unknown.
pub(super) async fn settled_up_to(on: &mut impl Queries, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    // A transaction that makes a note has the lock before the note has its number. The number is read first.
    const SQL: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END,
            pg_try_advisory_xact_lock(uuid_hash_extended($1, 7045))
        FROM automation_note_numbers";
    let found = one(on, SQL, params![uuid(workspace)], |row| Ok((get::<i64>(row, 0)?, get::<bool>(row, 1)?))).await?;
    Ok(found.and_then(|(last, is_settled)| is_settled.then_some(last)))
}
