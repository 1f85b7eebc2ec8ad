//! Promises that must hold in the rows of the database. To add one: a function here, called by [`rows`].

use std::path::Path;

use messaging_engine::Sweep;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use crate::world::World;

/// Counters beside rows, which must equal the rows.
const COUNTERS: [(&str, &str); 5] = [
    (
        "contacts of a workspace",
        "SELECT w.number, w.contacts, (SELECT count(*) FROM contacts c WHERE c.workspace_number = w.number) FROM workspace_numbers w",
    ),
    (
        "members of a list",
        "SELECT l.n, l.contacts, (SELECT count(*) FROM list_members m WHERE m.list = l.n) FROM lists l WHERE removed = 0",
    ),
    (
        "members of a segment",
        "SELECT s.n, s.members, (SELECT count(*) FROM segment_members m WHERE m.segment = s.n) \
         FROM segments s WHERE removed = 0",
    ),
    (
        "lists with members who are no contacts",
        "SELECT m.list, 0, count(*) FROM list_members m LEFT JOIN contacts c ON c.n = m.contact \
         WHERE c.n IS NULL GROUP BY m.list",
    ),
    (
        "segments with members who are no contacts",
        "SELECT m.segment, 0, count(*) FROM segment_members m LEFT JOIN contacts c ON c.n = m.contact \
         WHERE c.n IS NULL GROUP BY m.segment",
    ),
];

/// Looks through the rows of a closed database.
pub(crate) fn rows(world: &World, path: &Path) {
    let checks = [integrity, counters, product_events, segments, upkeep];
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let checked = connection.and_then(|connection| checks.iter().try_for_each(|check| check(world, &connection)));
    if let Err(error) = checked {
        world.ledger().broken(format!("the rows cannot be read: {error}"));
    }
}

fn integrity(world: &World, connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.query_row("PRAGMA quick_check", [], |row| row.get(0))?;
    if found != "ok" {
        world.ledger().broken(format!("the database is damaged: {found}"));
    }
    Ok(())
}

fn counters(world: &World, connection: &Connection) -> rusqlite::Result<()> {
    for (name, query) in COUNTERS {
        let mut statement = connection.prepare(query)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in rows {
            let (number, said, counted): (i64, i64, i64) = row?;
            if said != counted {
                world.ledger().broken(format!("{name}, {number}: {said} is said, {counted} are there"));
            }
        }
    }
    Ok(())
}

/// Each product event is stored as often as its callers can explain, once under a key. The events of an erased contact
/// are gone.
fn product_events(world: &World, connection: &Connection) -> rusqlite::Result<()> {
    let has_erased = world.plan.requests.iter().any(|planned| planned.call.operation == "deleteContact");
    let mut statement = connection
        .prepare("SELECT count(*) FROM product_events e JOIN event_names n ON n.n = e.name WHERE n.name = ?1")?;
    let mut ledger = world.ledger();
    let mut broken = Vec::new();
    for (planned, record) in world.plan.requests.iter().zip(&ledger.requests) {
        let most = if planned.key.is_some() { 1 } else { record.fresh_successes + record.unknown };
        let is_accepted = record.success.as_ref().is_some_and(|(_, body)| !body.contains("\"error\""));
        let least = u32::from(is_accepted && !has_erased);
        for name in &planned.call.events {
            let found: u32 = statement.query_row([name], |row| row.get(0))?;
            if !(least..=most).contains(&found) {
                broken.push(format!("{name} is there {found} times, instead of {least} to {most}"));
            }
        }
    }
    ledger.broken.append(&mut broken);
    Ok(())
}

/// Members of segments are the contacts that their filters match.
fn segments(world: &World, connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT c.attributes, EXISTS (SELECT 1 FROM segment_members m WHERE m.segment = s.n AND m.contact = c.n), \
         s.filter, s.n, c.n FROM segments s JOIN contacts c ON c.workspace_number = s.workspace_number WHERE s.removed = 0",
    )?;
    let read = |row: &Row<'_>| {
        let (attributes, is_member): (Option<String>, bool) = (row.get(0)?, row.get(1)?);
        let (filter, segment, contact): (String, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((attributes.unwrap_or_default(), is_member, filter, segment, contact))
    };
    let found = statement.query_map([], read)?.collect::<Result<Vec<_>, _>>()?;
    for (attributes, is_member, filter, segment, contact) in found {
        let plan = serde_json::from_str::<Value>(&attributes).unwrap_or_default()["plan"].clone();
        let filter = serde_json::from_str::<Value>(&filter).unwrap_or_default();
        // The filters that `requests.rs` makes: a plan, or not a plan.
        let is_matched = match &filter["not"] {
            Value::Null => filter["value"] == plan,
            negated => negated["value"] != plan,
        };
        if is_member != is_matched {
            world
                .ledger()
                .broken(format!("segment {segment} has contact {contact}: {is_member}, matches: {is_matched}"));
        }
    }
    Ok(())
}

/// Only the jobs of the upkeep and of automations are left, each once.
fn upkeep(world: &World, connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT lane FROM jobs ORDER BY lane")?;
    let found = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut expected: Vec<_> = Sweep::ALL.iter().map(|sweep| format!("upkeep:{}", sweep.as_str())).collect();
    let mut statement =
        connection.prepare("SELECT a.lanes FROM automations a WHERE a.status <> 0 AND a.removed = 0")?;
    for lanes in statement.query_map([], |row| row.get::<_, String>(0))? {
        expected.append(&mut serde_json::from_str(&lanes?).unwrap_or_default());
    }
    expected.sort();
    if found != expected {
        world.ledger().broken(format!("the jobs that are left are {found:?}"));
    }
    Ok(())
}
