//! Product events on PostgreSQL: adding them, and questions about many.

mod activity;
mod append;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::analytics::tally::buckets::Buckets;
use messaging_core::domain::audience::contact::Identifier;
use messaging_core::domain::audience::product_event::event_deduplicator::Known;
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::product_events::{EventActivity, Named};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use super::Postgres;
use super::contacts::Kinds;
use super::fault::Fault;
use crate::row::{get, id};
use crate::sql::{Value, key, params};
use crate::tables::product_events::{ActivityByName, EventRows};

pub(super) use self::append::{append, name_of, names_of};

/// A record that events named, as it was found.
enum EventReference {
    Contact(ContactId),
    Owner(Identifier, ContactId),
    Event(String, EventId, ContactId),
}

impl EventReference {
    /// Reads the columns: 0 to 4 for a contact, a contact by external id, email or phone, and an event; a name; two
    /// ids.
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

/// Of the identifiers of an event, the first that belongs to a contact decides.
fn known(found: Vec<EventReference>, identifiers: Vec<Vec<Identifier>>) -> Known {
    let mut known = Known::default();
    let mut owners = HashMap::new();
    for one in found {
        match one {
            EventReference::Contact(contact) => {
                known.contacts.insert(contact);
            }
            EventReference::Owner(identifier, contact) => {
                owners.insert(identifier, contact);
            }
            EventReference::Event(unique_id, event, contact) => {
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
impl EventRows for Postgres {
    async fn known_to(&self, workspace: WorkspaceId, named: Named, since: Timestamp) -> Result<Known, StoreError> {
        // One statement, for one moment.
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
        let contacts = Value::List(contacts.into_iter().map(key).collect());
        let Kinds { external_ids, emails, phones } = identifiers.iter().flatten().cloned().collect();
        let wanted = params![key(workspace), contacts, external_ids, emails, phones, unique_ids, since.as_millis()];
        let found = self.reads.many(SQL, wanted, EventReference::read).await?;
        Ok(known(found, identifiers))
    }

    async fn with_contacts(
        &self,
        workspace: WorkspaceId,
        buckets: &Arc<Buckets>,
        found: ActivityByName,
    ) -> Result<Vec<EventActivity>, StoreError> {
        Ok(activity::with_contacts(&self.reads, workspace, buckets, found).await?)
    }
}
