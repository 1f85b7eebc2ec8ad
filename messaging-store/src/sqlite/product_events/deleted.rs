//! Events of contacts that are gone: moved to the contact that theirs was merged into, or deleted.
//!
//! A contact may have done more than one commit should touch. While some of it is left, a row keeps the
//! contact's number and its merge target.

use messaging_core::changes::MoveProductEvents;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{contact_number, workspace_number};
use super::super::query::{many, one};
use super::super::row::sql_limit;
use super::super::segments::{ReadMasks, note};
use crate::counter_deltas::CounterDeltas;

const KEEP: &str = "INSERT INTO deleted_contacts (n, workspace_number, id, merge_target) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (n) DO UPDATE SET merge_target = ?4";

/// The number of a contact that is gone and has events left.
pub(super) fn number(
    connection: &Connection,
    workspace: WorkspaceId,
    contact: ContactId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM deleted_contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2";
    one(connection, SQL, [workspace.to_bytes(), contact.to_bytes()], |row| Ok(row.get(0)?))
}

/// Remembers a contact that is being removed, if it has events.
pub(in super::super) fn depart(
    connection: &Connection,
    workspace_number: i64,
    contact: ContactId,
    n: i64,
) -> Result<(), Fault> {
    const SQL: &str = "INSERT OR IGNORE INTO deleted_contacts (n, workspace_number, id)
        SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM product_events WHERE contact = ?1)";
    connection.prepare_cached(SQL)?.execute(params![n, workspace_number, contact.to_bytes()])?;
    Ok(())
}

/// Moves a slice of the events of a contact that is gone, or is about to go, to its merge target.
pub(in super::super) fn relocate(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    read_masks: &mut ReadMasks,
    change: &MoveProductEvents,
) -> Result<(), Fault> {
    let MoveProductEvents { workspace_id: workspace, from, to, limit } = *change;
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    let (n, merge_target) = if let Some(n) = contact_number(connection, workspace, from)? {
        let merge_target = contact_number(connection, workspace, to)?.ok_or(Fault::Conflict)?;
        // Whoever was merged into this one follows it.
        connection
            .prepare_cached("UPDATE deleted_contacts SET merge_target = ?2 WHERE merge_target = ?1")?
            .execute([n, merge_target])?;
        (n, merge_target)
    } else {
        let Some(n) = number(connection, workspace, from)? else { return Ok(()) };
        let Some(merge_target) = living_heir(connection, n)? else { return delete_of(connection, deltas, n, limit) };
        (n, merge_target)
    };
    let events = slice(connection, n, limit)?;
    let mut movement = connection.prepare_cached("UPDATE product_events SET contact = ?2 WHERE n = ?1")?;
    for event in &events {
        movement.execute([*event, merge_target])?;
    }
    if let Some(read_mask) = read_masks.of(connection, workspace)?.filter(|_| !events.is_empty()) {
        note(connection, read_mask, merge_target, ReadMask::EVENTS)?;
    }
    if events.len() < limit {
        return forget(connection, n);
    }
    connection.prepare_cached(KEEP)?.execute(params![n, workspace_number, from.to_bytes(), merge_target])?;
    Ok(())
}

/// Deletes a slice of the events of a contact that is gone.
pub(in super::super) fn delete(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    workspace: WorkspaceId,
    contact: ContactId,
    limit: usize,
) -> Result<(), Fault> {
    match number(connection, workspace, contact)? {
        Some(n) => delete_of(connection, deltas, n, limit),
        None => Ok(()),
    }
}

fn delete_of(connection: &Connection, deltas: &mut CounterDeltas, n: i64, limit: usize) -> Result<(), Fault> {
    let events = slice(connection, n, limit)?;
    let mut unique_id = connection.prepare_cached("DELETE FROM event_unique_ids WHERE event = ?1")?;
    let mut removal = connection.prepare_cached("DELETE FROM product_events WHERE n = ?1 RETURNING name, at")?;
    for event in &events {
        unique_id.execute([event])?;
        let (name, at) = removal.query_row([event], |row| Ok((row.get(0)?, row.get(1)?)))?;
        deltas.add_events(name, Timestamp::from_millis(at), -1);
    }
    if events.len() < limit { forget(connection, n) } else { Ok(()) }
}

/// The merge target of a contact that is gone, unless that one was erased.
fn living_heir(connection: &Connection, n: i64) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT c.n FROM deleted_contacts d JOIN contacts c ON c.n = d.merge_target WHERE d.n = ?1";
    one(connection, SQL, [n], |row| Ok(row.get(0)?))
}

fn slice(connection: &Connection, n: i64, limit: usize) -> Result<Vec<i64>, Fault> {
    const SQL: &str = "SELECT n FROM product_events WHERE contact = ?1 LIMIT ?2";
    many(connection, SQL, params![n, sql_limit(limit)], |row| Ok(row.get(0)?))
}

fn forget(connection: &Connection, n: i64) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM deleted_contacts WHERE n = ?1")?.execute([n])?;
    Ok(())
}
