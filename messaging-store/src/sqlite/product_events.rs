//! Product events on SQLite: adding them, and questions about many.

mod activity;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use messaging_core::domain::analytics::tally::buckets::Buckets;
use messaging_core::domain::audience::contact::Identifier;
use messaging_core::domain::audience::product_event::event_deduplicator::Known;
use messaging_core::domain::audience::product_event::{ProductEvent, UNIQUE_FOR};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, EventId, Id as _, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::product_events::{EventActivity, Named};
use messaging_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::Sqlite;
use super::change_subscribers::ChangeSubscribers;
use super::contacts::identified;
use super::fault::{Fault, expect_one};
use super::listeners::{EventHappened, Happened};
use super::numbers::workspace_number;
use super::query::one;
use super::segments::note;
use crate::counter_deltas::CounterDeltas;
use crate::row::id;
use crate::tables::product_events::{ActivityByName, EventRows};

pub(super) fn append(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    subscribers: &mut ChangeSubscribers,
    events: &[ProductEvent],
) -> Result<(), Fault> {
    let mut rest = events;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|event| event.workspace_id == first.workspace_id).count();
        let (of_workspace, others) = rest.split_at(count);
        append_of(connection, deltas, subscribers, first.workspace_id, of_workspace)?;
        rest = others;
    }
    Ok(())
}

/// Adds events of one workspace: shared data is looked up once.
fn append_of(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    events: &[ProductEvent],
) -> Result<(), Fault> {
    // In a workspace without contacts the contact of the event is gone.
    let workspace_number = workspace_number(connection, workspace)?.ok_or(Fault::Conflict)?;
    let mut contact = connection.prepare_cached("SELECT n FROM contacts WHERE workspace_number = ?1 AND id = ?2")?;
    let mut insertion = connection
        .prepare_cached("INSERT INTO product_events (contact, name, at, id, properties) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut unique_ids = UniqueIds::new(connection, workspace_number)?;
    let mut contacts: HashMap<ContactId, i64> = HashMap::new();
    let mut names: HashMap<&str, i64> = HashMap::new();
    let is_heard = subscribers.listeners.is_any(connection, workspace)?;
    for event in events {
        let contact = match contacts.entry(event.contact_id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let n = contact.query_row(params![workspace_number, event.contact_id.to_bytes()], |row| row.get(0));
                *unknown.insert(n.optional()?.ok_or(Fault::Conflict)?)
            }
        };
        let name = match names.entry(&event.name) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(make_name(connection, workspace_number, &event.name)?),
        };
        let properties = (!event.properties.is_empty()).then(|| event.properties.json());
        insertion.execute(params![contact, name, event.occurred_at.as_millis(), event.id.to_bytes(), properties])?;
        deltas.add_events(name, event.occurred_at, 1);
        let n = connection.last_insert_rowid();
        if let Some(unique_id) = &event.unique_id {
            unique_ids.add(n, unique_id, event.received_at())?;
        }
        if is_heard {
            let happened = EventHappened::new(event, n);
            let happened = Happened::Event(&happened);
            subscribers.listeners.hear(connection, workspace, contact, event.received_at(), happened)?;
        }
    }
    if let Some(read_mask) = subscribers.read_masks.in_mask(connection, workspace, ReadMask::EVENTS)? {
        for contact in contacts.into_values() {
            note(connection, read_mask, contact, ReadMask::EVENTS)?;
        }
    }
    Ok(())
}

/// Returns the number of a name, and assigns one if it has none.
fn make_name(connection: &Connection, workspace_number: i64, name: &str) -> Result<i64, Fault> {
    let sql = "SELECT n FROM event_names WHERE workspace_number = ?1 AND name = ?2";
    if let Some(number) = one(connection, sql, params![workspace_number, name], |row| Ok(row.get(0)?))? {
        return Ok(number);
    }
    let sql = "INSERT INTO event_names (workspace_number, name) VALUES (?1, ?2) RETURNING n";
    Ok(connection.prepare_cached(sql)?.query_row(params![workspace_number, name], |row| row.get(0))?)
}

/// Stores the unique ids that callers give their events, in one workspace.
struct UniqueIds<'a> {
    workspace_number: i64,
    insertion: CachedStatement<'a>,
    removal: CachedStatement<'a>,
}

impl<'a> UniqueIds<'a> {
    fn new(connection: &'a Connection, workspace_number: i64) -> Result<Self, Fault> {
        let insertion = connection.prepare_cached(
            "INSERT OR IGNORE INTO event_unique_ids (event, workspace_number, received_at, unique_id) VALUES (?1, ?2, ?3, ?4)",
        )?;
        // Removes a unique id that is void: it is too old, or its contact was erased.
        let removal = connection.prepare_cached(
            "DELETE FROM event_unique_ids WHERE workspace_number = ?1 AND unique_id = ?2 AND (received_at < ?3 OR NOT EXISTS (
                 SELECT 1 FROM product_events e LEFT JOIN deleted_contacts d ON d.n = e.contact
                 JOIN contacts c ON c.n IN (e.contact, d.merge_target)
                 WHERE e.n = event_unique_ids.event))",
        )?;
        Ok(Self { workspace_number, insertion, removal })
    }

    fn add(&mut self, event: i64, unique_id: &str, received_at: Timestamp) -> Result<(), Fault> {
        if self.insert(event, unique_id, received_at)? == 1 {
            return Ok(());
        }
        let since = received_at - UNIQUE_FOR;
        expect_one(self.removal.execute(params![self.workspace_number, unique_id, since.as_millis()])?)?;
        expect_one(self.insert(event, unique_id, received_at)?)
    }

    fn insert(&mut self, event: i64, unique_id: &str, received_at: Timestamp) -> Result<usize, Fault> {
        Ok(self.insertion.execute(params![event, self.workspace_number, received_at.as_millis(), unique_id])?)
    }
}

/// Looks up the contacts and events that some events name.
fn look_up(connection: &Connection, workspace_number: i64, named: Named, since: Timestamp) -> Result<Known, Fault> {
    const EVENT: &str = "SELECT e.id, c.id FROM event_unique_ids u CROSS JOIN product_events e ON e.n = u.event
        LEFT JOIN deleted_contacts d ON d.n = e.contact
        CROSS JOIN contacts c ON c.n IN (e.contact, d.merge_target)
        WHERE u.workspace_number = ?1 AND u.unique_id = ?2 AND u.received_at >= ?3";
    let mut known = Known::default();
    let mut by_id = connection.prepare_cached("SELECT 1 FROM contacts WHERE workspace_number = ?1 AND id = ?2")?;
    for contact in named.contacts {
        if by_id.exists(params![workspace_number, contact.to_bytes()])? {
            known.contacts.insert(contact);
        }
    }
    for identifiers in named.identifiers {
        for identifier in identifiers {
            if known.owners.contains_key(&identifier) {
                break;
            }
            if let Some(owner) = owner(connection, workspace_number, &identifier)? {
                known.owners.insert(identifier, owner);
                break;
            }
        }
    }
    let mut by_unique_id = connection.prepare_cached(EVENT)?;
    for unique_id in named.unique_ids {
        let wanted = params![workspace_number, unique_id, since.as_millis()];
        let found = by_unique_id.query_row(wanted, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((event, contact)) = found {
            known.events.insert(unique_id, (EventId::from_bytes(event), ContactId::from_bytes(contact)));
        }
    }
    Ok(known)
}

/// Returns the contact with an identifier.
fn owner(connection: &Connection, workspace_number: i64, identifier: &Identifier) -> Result<Option<ContactId>, Fault> {
    let Some(n) = identified(connection, workspace_number, identifier)? else { return Ok(None) };
    one(connection, "SELECT id FROM contacts WHERE n = ?1", [n], |row| id(row, 0))
}

#[async_trait]
impl EventRows for Sqlite {
    async fn known_to(&self, workspace: WorkspaceId, named: Named, since: Timestamp) -> Result<Known, StoreError> {
        /// Looking up more names than this takes longer than waking a thread.
        const FEW: usize = 8;
        let few = named.contacts.len() + named.identifiers.len() + named.unique_ids.len() <= FEW;
        let read = move |connection: &Connection| {
            // One transaction: for one moment, and one lock instead of one for every look-up.
            let connection = connection.unchecked_transaction()?;
            match workspace_number(&connection, workspace)? {
                Some(workspace_number) => look_up(&connection, workspace_number, named, since),
                None => Ok(Known::default()),
            }
        };
        if few { self.readers.point_read(read).await } else { self.readers.read(read).await }
    }

    async fn with_contacts(
        &self,
        workspace: WorkspaceId,
        buckets: &Arc<Buckets>,
        found: ActivityByName,
    ) -> Result<Vec<EventActivity>, StoreError> {
        let began = Instant::now();
        let mut contacts = activity::Contacts::of(workspace, buckets, found);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = contacts.go_on(connection)?;
                    Ok((contacts, is_all))
                })
                .await?;
            contacts = gone_on;
            if is_all || began.elapsed() >= activity::COUNTING {
                return Ok(contacts.finish());
            }
        }
    }
}
