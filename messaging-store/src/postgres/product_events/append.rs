//! Insertion of product events, many by one statement.

use std::collections::BTreeSet;

use messaging_core::domain::audience::product_event::{ProductEvent, UNIQUE_FOR};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::listeners::{self, EventHappened, Happened};
use super::super::outbox;
use super::super::query::many;
use super::super::transaction::Transaction;
use crate::pages::sql_limit;
use crate::row::{get, id};
use crate::sql::{Params, Value, key, params};

/// SQL that adds events and their unique ids (`$8` to `$10`). It locks the contacts of the events, so that none is
/// deleted before the events are visible.
macro_rules! append {
    ($answer:literal) => {
        concat!(
            "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1), c AS MATERIALIZED (
                SELECT n, id FROM contacts
                WHERE workspace_number = (SELECT number FROM w) AND id = ANY ($2) ORDER BY n FOR KEY SHARE
            ), added AS (
                INSERT INTO product_events (contact, name, at, id, properties)
                SELECT c.n, u.name, u.at, u.id, u.properties
                FROM unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::uuid[], $7::text[])
                    WITH ORDINALITY AS u(contact, name, at, id, properties, place)
                JOIN c ON c.id = u.contact ORDER BY u.place
                RETURNING n, contact, id
            ), named AS (
                INSERT INTO event_unique_ids (event, workspace_number, received_at, unique_id)
                SELECT added.n, w.number, u.received_at, u.unique_id
                FROM unnest($8::uuid[], $9::text[], $10::bigint[]) AS u(id, unique_id, received_at)
                JOIN added ON added.id = u.id CROSS JOIN w
                ORDER BY u.unique_id COLLATE \"C\"
            ) ",
            $answer
        )
    };
}

const APPEND: &str = append!("SELECT expect_rows((SELECT count(*) FROM added), $11)");
const RETURNING: &str = append!("SELECT n, contact FROM added ORDER BY n");

pub(in super::super) async fn append(transaction: &mut Transaction, events: &[ProductEvent]) -> Result<(), Fault> {
    let mut rest = events;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|event| event.workspace_id == first.workspace_id).count();
        let (of_workspace, others) = rest.split_at(count);
        append_of(transaction, first.workspace_id, of_workspace).await?;
        rest = others;
    }
    Ok(())
}

/// Adds events of one workspace.
async fn append_of(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    events: &[ProductEvent],
) -> Result<(), Fault> {
    let is_heard = listeners::is_any(transaction, workspace).await?;
    let read_mask = outbox::read_mask_in(transaction, workspace, ReadMask::EVENTS).await?;
    let names = names(transaction, workspace, events).await?;
    for (event, name) in events.iter().zip(&names) {
        transaction.deltas.add_events(*name, event.occurred_at, 1);
    }
    free_unique_ids(transaction, workspace, events);
    let mut columns = columns(workspace, events, names);
    if !is_heard && read_mask.is_none() {
        columns.push(sql_limit(events.len()).into());
        transaction.run(APPEND, columns);
        return Ok(());
    }
    let added: Vec<(i64, i64)> = many(transaction, RETURNING, columns, |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
    if added.len() != events.len() {
        return Err(Fault::Conflict);
    }
    if is_heard {
        for (event, (n, contact)) in events.iter().zip(&added) {
            let happened = EventHappened::new(event, *n);
            let happened = Happened::Event(&happened);
            listeners::hear(transaction, workspace, *contact, event.received_at(), happened).await?;
        }
    }
    if let Some(read_mask) = read_mask {
        let contacts: BTreeSet<i64> = added.into_iter().map(|(_, contact)| contact).collect();
        let changes: Vec<_> = contacts.into_iter().map(|contact| (contact, ReadMask::EVENTS)).collect();
        outbox::note_many(transaction, read_mask, &changes);
    }
    Ok(())
}

/// Returns the parameters `$1` to `$10` of [`append!`].
fn columns(workspace: WorkspaceId, events: &[ProductEvent], names: Vec<i64>) -> Params {
    fn column<T>(events: &[ProductEvent], of: impl Fn(&ProductEvent) -> T) -> Vec<T> {
        events.iter().map(of).collect()
    }
    let distinct: BTreeSet<_> = events.iter().map(|event| event.contact_id).collect();
    let unique = || events.iter().filter_map(|event| Some((event, event.unique_id.clone()?)));
    params![
        key(workspace),
        distinct.into_iter().map(key).collect::<Vec<_>>(),
        column(events, |event| key(event.contact_id)),
        names,
        column(events, |event| event.occurred_at.as_millis()),
        column(events, |event| key(event.id)),
        column(events, |event| (!event.properties.is_empty()).then(|| event.properties.json().to_owned())),
        unique().map(|(event, _)| key(event.id)).collect::<Vec<_>>(),
        unique().map(|(_, unique_id)| unique_id).collect::<Vec<_>>(),
        unique().map(|(event, _)| event.received_at().as_millis()).collect::<Vec<_>>(),
    ]
}

/// Returns the query for the numbers of event names; it finds those that have one.
pub(in super::super) fn names_of(names: &BTreeSet<(WorkspaceId, String)>) -> (&'static str, Params) {
    const SQL: &str = "SELECT w.workspace, e.name, e.n FROM unnest($1::uuid[], $2::text[]) AS given (workspace, name)
        JOIN workspace_numbers w ON w.workspace = given.workspace
        JOIN event_names e ON e.workspace_number = w.number AND e.name = given.name";
    let each = names.iter().map(|(workspace, name)| (key(*workspace), name.clone()));
    let (workspaces, names): (Vec<Value>, Vec<String>) = each.unzip();
    (SQL, params![workspaces, names])
}

/// Reads a row of the answer to [`names_of`]: the name of events of a workspace, and its number.
pub(in super::super) fn name_of(row: &Row) -> Result<((WorkspaceId, String), i64), Fault> {
    Ok(((id(row, 0)?, get(row, 1)?), get(row, 2)?))
}

/// Returns the number of each event's name, and gives one to names that have none. Names are not removed with events.
async fn names(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    events: &[ProductEvent],
) -> Result<Vec<i64>, Fault> {
    const MAKE: &str = "INSERT INTO event_names (workspace_number, name)
        SELECT w.number, given.name FROM workspace_numbers w CROSS JOIN unnest($2::text[]) AS given(name)
        WHERE w.workspace = $1 AND NOT EXISTS (
            SELECT 1 FROM event_names held WHERE held.workspace_number = w.number AND held.name = given.name)
        ORDER BY given.name COLLATE \"C\" ON CONFLICT DO NOTHING";
    const FIND: &str = "SELECT name, n FROM event_names
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND name = ANY ($2)";
    let is_known = |name: &String| transaction.event_names.contains_key(&(workspace, name.clone()));
    let unknown: BTreeSet<&String> = events.iter().map(|event| &event.name).filter(|name| !is_known(name)).collect();
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().cloned().collect();
        transaction.run(MAKE, params![key(workspace), unknown.clone()]);
        let found: Vec<(String, i64)> =
            many(transaction, FIND, params![key(workspace), unknown], |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
        transaction.event_names.extend(found.into_iter().map(|(name, n)| ((workspace, name), n)));
    }
    // A workspace without contacts has no number and no names; the contact of the event is gone.
    let number = |event: &ProductEvent| transaction.event_names.get(&(workspace, event.name.clone())).copied();
    events.iter().map(|event| number(event).ok_or(Fault::Conflict)).collect()
}

/// Removes stored unique ids that new events have and that no longer count: they are older than `UNIQUE_FOR`, or their
/// event's contact was erased.
fn free_unique_ids(transaction: &mut Transaction, workspace: WorkspaceId, events: &[ProductEvent]) {
    const SQL: &str = "DELETE FROM event_unique_ids u
        USING unnest($2::text[], $3::bigint[]) AS given(unique_id, since)
        WHERE u.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
            AND u.unique_id = given.unique_id AND (u.received_at < given.since OR NOT EXISTS (
                SELECT 1 FROM product_events e LEFT JOIN deleted_contacts d ON d.n = e.contact
                JOIN contacts c ON c.n IN (e.contact, d.merge_target) WHERE e.n = u.event))";
    let unique = events.iter().filter_map(|event| {
        let since = event.received_at() - UNIQUE_FOR;
        Some((event.unique_id.clone()?, since.as_millis()))
    });
    let (unique_ids, since): (Vec<String>, Vec<i64>) = unique.unzip();
    if !unique_ids.is_empty() {
        transaction.run(SQL, params![key(workspace), unique_ids, since]);
    }
}
