//! Notes, as they are read and worked off. They are made by [`listeners`](super::super::listeners).

use messaging_core::changes::TakeNotes;
use messaging_core::domain::automation::note::{Cause, Happened, Note};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::product_event::{ProductEvent, Properties};
use messaging_core::domain::segment::filter::MessageEventKind;
use messaging_core::domain::segment::matching::MessageFact;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use messaging_core::ports::store::StoreCursor;
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::super::fault::Fault;
use super::super::listeners::{counted_kind, is_machine};
use super::super::numbers::automation_number;
use super::super::query::{many, one};
use super::super::row::{id, maybe_id, numbered, numbered_place, or_empty, place_number, sql_limit, time};
use super::runs::Of;
use crate::automation_rows::cause;

/// The oldest notes of a share of the contacts, with what they tell of; those of contacts that are gone are passed by.
pub(super) fn oldest(
    connection: &Connection,
    of: Of,
    shard: u8,
    limit: usize,
) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, Fault> {
    const SQL: &str = "SELECT n.n, c.id, n.at, n.kind, n.depth, n.may_enter, n.what, n.event
        FROM automation_notes n CROSS JOIN contacts c ON c.n = n.contact
        WHERE n.automation = (SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0)
            AND n.shard = ?3 ORDER BY n.n LIMIT ?4";
    // One transaction: of one moment.
    let connection = &*connection.unchecked_transaction()?;
    many(connection, SQL, params![of.0.to_bytes(), of.1.to_bytes(), shard, sql_limit(limit)], |row| {
        let what = row.get_ref(6)?.as_blob().map_err(|_| Fault::Malformed("ids are no bytes"))?;
        let note = Note {
            contact_id: id(row, 1)?,
            cause: cause(row.get(3)?, what).ok_or(Fault::Malformed("a note says nothing"))?,
            at: time(row, 2)?,
            depth: row.get(4)?,
            may_enter: row.get(5)?,
        };
        let happened = match row.get(7)? {
            Some(event) => happened(connection, of.0, &note, event)?,
            None => None,
        };
        Ok((numbered_place(row.get(0)?), note, happened))
    })
}

fn happened(
    connection: &Connection,
    workspace: WorkspaceId,
    note: &Note,
    event: i64,
) -> Result<Option<Happened>, Fault> {
    Ok(match note.cause {
        Cause::Event(_) => {
            product_event(connection, workspace, note.contact_id, event)?.map(|event| Happened::Event(Box::new(event)))
        }
        Cause::Message { event_id, message_id } => {
            let key = params![workspace.to_bytes(), message_id.to_bytes(), event, event_id.to_bytes()];
            message_fact(connection, key)?.map(|fact| Happened::Message(Box::new(fact)))
        }
        _ => None,
    })
}

fn product_event(
    connection: &Connection,
    workspace: WorkspaceId,
    contact: ContactId,
    n: i64,
) -> Result<Option<ProductEvent>, Fault> {
    const SQL: &str = "SELECT e.id, names.name, e.at, e.properties, u.unique_id FROM product_events e
        CROSS JOIN event_names names ON names.n = e.name
        LEFT JOIN event_unique_ids u ON u.event = e.n
        WHERE e.n = ?1";
    one(connection, SQL, [n], |row| {
        Ok(ProductEvent {
            id: id(row, 0)?,
            workspace_id: workspace,
            contact_id: contact,
            name: row.get(1)?,
            occurred_at: time(row, 2)?,
            properties: row.get::<_, Option<String>>(3)?.map(Properties::from_json).unwrap_or_default(),
            unique_id: row.get(4)?,
        })
    })
}

/// An event of a message by workspace, message, time and id.
fn message_fact(connection: &Connection, key: &[&dyn rusqlite::ToSql]) -> Result<Option<MessageFact>, Fault> {
    const SQL: &str = "SELECT e.kind, e.at, e.meta, m.channel, m.campaign, m.automation, m.template
        FROM message_events e CROSS JOIN messages m ON m.workspace = e.workspace AND m.id = e.message
        WHERE e.workspace = ?1 AND e.message = ?2 AND e.at = ?3 AND e.id = ?4";
    let found = one(connection, SQL, key, |row| {
        let Some(event) = counted_kind(numbered(&EventKind::ALL, row.get(0)?)?) else { return Ok(None) };
        let meta: Map<String, Value> = or_empty(row, 2)?;
        Ok(Some(MessageFact {
            event,
            at: time(row, 1)?,
            is_machine: matches!(event, MessageEventKind::Open | MessageEventKind::Click) && is_machine(&meta),
            url: meta.get("url").and_then(Value::as_str).map(ToOwned::to_owned),
            channel: numbered(&Channel::ALL, row.get(3)?)?,
            campaign_id: maybe_id(row, 4)?,
            automation_id: maybe_id(row, 5)?,
            template_id: maybe_id(row, 6)?,
        }))
    })?;
    Ok(found.flatten())
}

/// Takes notes away up to a place, which must be there.
pub(in super::super) fn take(connection: &Connection, take: &TakeNotes) -> Result<(), Fault> {
    const LAST: &str = "SELECT 1 FROM automation_notes WHERE automation = ?1 AND shard = ?2 AND n = ?3";
    const ALL: &str = "DELETE FROM automation_notes WHERE automation = ?1 AND shard = ?2 AND n <= ?3";
    let n = automation_number(connection, take.workspace_id, take.automation_id)?.ok_or(Fault::Conflict)?;
    let key = params![n, take.shard, place_number(take.up_to)];
    if !connection.prepare_cached(LAST)?.exists(key)? {
        return Err(Fault::Conflict);
    }
    connection.prepare_cached(ALL)?.execute(key)?;
    Ok(())
}
