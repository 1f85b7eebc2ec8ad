//! Product events.
//!
//! What the numbers mean stands in the migrations that make the tables. Events of contacts that are gone are
//! the subject of [`deleted`].

mod activity;
mod append;
mod deleted;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::contact::Identifier;
use messaging_core::domain::product_event::event_deduplicator::Known;
use messaging_core::domain::product_event::{ProductEvent, Properties};
use messaging_core::domain::tally::buckets::Buckets;
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::ports::store::product_events::{EventActivity, Named};
use messaging_core::ports::store::{PageRequest, ProductEvents, Slice, StoreError};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::contacts::Kinds;
use super::fault::Fault;
use super::query::params;
use super::row::{get, id, numbered_place, one_more, place_number, sql_limit, time, uuid};

pub(super) use self::append::append;
pub(super) use self::deleted::{delete, depart, relocate};

/// How many unique ids a sweep forgets in one transaction.
const SLICE: usize = 500;

/// Something that events named, and was found.
enum Found {
    Contact(ContactId),
    Owner(Identifier, ContactId),
    Event(String, EventId, ContactId),
}

impl Found {
    /// From the columns: 0 to 4 for a contact, an owner by external id, email or phone, and an event; a name; two ids.
    fn read(row: &Row) -> Result<Self, Fault> {
        let named = |kind: fn(String) -> Identifier| Ok(Self::Owner(kind(get(row, 1)?), id(row, 3)?));
        match get::<i32>(row, 0)? {
            0 => Ok(Self::Contact(id(row, 3)?)),
            1 => named(Identifier::ExternalId),
            2 => named(Identifier::Email),
            3 => named(Identifier::Phone),
            _ => Ok(Self::Event(get(row, 1)?, id(row, 2)?, id(row, 3)?)),
        }
    }
}

/// Of the identifiers of an event the first that is somebody's decides.
fn known(found: Vec<Found>, identifiers: Vec<Vec<Identifier>>) -> Known {
    let mut known = Known::default();
    let mut owners = HashMap::new();
    for one in found {
        match one {
            Found::Contact(contact) => {
                known.contacts.insert(contact);
            }
            Found::Owner(identifier, contact) => {
                owners.insert(identifier, contact);
            }
            Found::Event(unique_id, event, contact) => {
                known.events.insert(unique_id, (event, contact));
            }
        }
    }
    for identifiers in identifiers {
        let first = identifiers.into_iter().find_map(|identifier| {
            let owner = *owners.get(&identifier)?;
            Some((identifier, owner))
        });
        known.owners.extend(first);
    }
    known
}

#[async_trait]
impl ProductEvents for PostgresStore {
    async fn known_to_events(
        &self,
        workspace: WorkspaceId,
        named: Named,
        since: Timestamp,
    ) -> Result<Known, StoreError> {
        // One statement, so that all is of one moment.
        const SQL: &str = "WITH w AS (SELECT number FROM workspace_numbers WHERE workspace = $1)
            SELECT 0, NULL::text, NULL::uuid, id FROM contacts
                WHERE workspace_number = (SELECT number FROM w) AND id = ANY ($2)
            UNION ALL SELECT 1, external_id, NULL, id FROM contacts
                WHERE workspace_number = (SELECT number FROM w) AND external_id = ANY ($3)
            UNION ALL SELECT 2, email, NULL, id FROM contacts
                WHERE workspace_number = (SELECT number FROM w) AND email = ANY ($4)
            UNION ALL SELECT 3, phone, NULL, id FROM contacts
                WHERE workspace_number = (SELECT number FROM w) AND phone = ANY ($5)
            UNION ALL SELECT 4, u.unique_id, e.id, c.id FROM event_unique_ids u
                JOIN product_events e ON e.n = u.event
                LEFT JOIN deleted_contacts d ON d.n = e.contact
                JOIN contacts c ON c.n IN (e.contact, d.merge_target)
                WHERE u.workspace_number = (SELECT number FROM w) AND u.unique_id = ANY ($6) AND u.received_at >= $7";
        let Named { contacts, identifiers, unique_ids } = named;
        let contacts: Vec<Uuid> = contacts.into_iter().map(uuid).collect();
        let Kinds { external_ids, emails, phones } = identifiers.iter().flatten().cloned().collect();
        let wanted = params![uuid(workspace), contacts, external_ids, emails, phones, unique_ids, since.as_millis()];
        let found = self.reads.many(SQL, wanted, Found::read).await?;
        Ok(known(found, identifiers))
    }

    async fn product_events(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        page: PageRequest,
    ) -> Result<Slice<ProductEvent>, StoreError> {
        // The numbers come from the index alone; the rows are read for the page.
        const SQL: &str = "SELECT e.n, e.id, names.name, e.at, e.properties, u.unique_id FROM (
                SELECT n FROM product_events WHERE n < $3 AND contact = (SELECT c.n FROM contacts c
                    WHERE c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                        AND c.id = $2)
                ORDER BY n DESC LIMIT $4
            ) page JOIN product_events e ON e.n = page.n
            JOIN event_names names ON names.n = e.name
            LEFT JOIN event_unique_ids u ON u.event = e.n
            ORDER BY e.n DESC";
        let start = page.after.map_or(i64::MAX, place_number);
        let read = |row: &Row| {
            let event = ProductEvent {
                id: id(row, 1)?,
                workspace_id: workspace,
                contact_id: contact,
                name: get(row, 2)?,
                occurred_at: time(row, 3)?,
                properties: get::<Option<String>>(row, 4)?.map(Properties::from_json).unwrap_or_default(),
                unique_id: get(row, 5)?,
            };
            Ok((get::<i64>(row, 0)?, event))
        };
        let wanted = params![uuid(workspace), uuid(contact), start, one_more(&page)];
        let mut events = self.reads.many(SQL, wanted, read).await?;
        let has_more = events.len() > page.limit;
        events.truncate(page.limit);
        let next = events.last().filter(|_| has_more).map(|(n, _)| numbered_place(*n));
        Ok(Slice { items: events.into_iter().map(|(_, event)| event).collect(), next })
    }

    async fn has_left_events(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        Ok(deleted::number(&mut self.reads.clone(), workspace, contact).await?.is_some())
    }

    async fn event_activity(
        &self,
        workspace: WorkspaceId,
        name: Option<&str>,
        buckets: &Arc<Buckets>,
        limit: usize,
    ) -> Result<Vec<EventActivity>, StoreError> {
        let found = activity::count(&self.reads, workspace, name, buckets, limit).await?;
        Ok(activity::with_contacts(&self.reads, workspace, buckets, found).await?)
    }

    async fn forget_unique_ids(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM event_unique_ids WHERE event = ANY (ARRAY (
            SELECT event FROM event_unique_ids WHERE received_at < $1 ORDER BY received_at LIMIT $2
            FOR UPDATE SKIP LOCKED))";
        let mut forgotten = 0;
        while forgotten < limit {
            let slice = SLICE.min(limit - forgotten);
            let mut transaction = self.writes.begin().await?;
            transaction.run("SET LOCAL synchronous_commit = off", params![]);
            let gone = transaction.execute(SQL, params![before.as_millis(), sql_limit(slice)]).await?;
            transaction.commit().await?;
            let gone = usize::try_from(gone).unwrap_or(usize::MAX);
            forgotten = forgotten.saturating_add(gone);
            if gone < slice {
                break;
            }
        }
        Ok(forgotten as u64)
    }
}
