//! Decides which contact a product event means, and whether the event is a repetition.
//!
//! Contract section 5. The contacts and ids that the events of a request name are read together; the events are then
//! decided one after another, each with the unique ids and the contacts that the ones before it added.

use std::collections::{HashMap, HashSet};

use super::input::{ContactReference, ProductEventInput};
use super::{ProductEvent, possible_times};
use crate::domain::audience::contact::{Contact, Identifier};
use crate::error::DomainError;
use crate::ids::{ContactId, EventId, WorkspaceId};
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

/// Contacts and earlier events that some events name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Ids that belong to contacts.
    pub contacts: HashSet<ContactId>,
    /// Contacts by their identifiers.
    pub owners: HashMap<Identifier, ContactId>,
    /// Earlier events by unique id, with their contacts.
    pub events: HashMap<String, (EventId, ContactId)>,
}

/// State while the events of a request are decided.
#[derive(Debug)]
pub struct EventDeduplicator {
    known: Known,
    earliest: Timestamp,
    latest: Timestamp,
}

/// Decision about an event: what to store for it, or which earlier event it repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Id of the event, or of the first one if this one repeats it.
    pub event_id: EventId,
    /// Contact of the event.
    pub contact_id: ContactId,
    /// The event to be stored; `None` if it repeats an earlier one.
    pub event: Option<ProductEvent>,
    /// The contact to be created for it.
    pub contact: Option<Contact>,
}

/// Time and ids for an event that is entered.
#[derive(Debug, Clone, Copy)]
pub struct IngestContext {
    /// Workspace that owns the event.
    pub workspace_id: WorkspaceId,
    /// The id of the event.
    pub event_id: EventId,
    /// Id for a contact, if one is created.
    pub contact_id: ContactId,
    /// The present.
    pub now: Timestamp,
}

impl EventDeduplicator {
    /// Begins with the data that was read, for events that arrive now.
    pub fn new(known: Known, now: Timestamp) -> Self {
        let (earliest, latest) = possible_times(now);
        Self { known, earliest, latest }
    }

    /// Decides on an event.
    ///
    /// `faults` are the violations of the request so far: with any, nothing is decided, and only more violations are
    /// found.
    pub fn enter(
        &mut self,
        sent: ProductEventInput,
        faults: Violations,
        on: IngestContext,
    ) -> Result<Entry, DomainError> {
        let mut violations = faults;
        let occurred_at = sent.occurred_at.unwrap_or(on.now);
        if !(self.earliest..=self.latest).contains(&occurred_at) {
            let rule = "must be at most 5 years ago and at most 1 hour ahead";
            violations.add("/occurred_at", FieldCode::OutOfRange, rule);
        }
        let first = sent.unique_id.as_ref().and_then(|unique_id| self.known.events.get(unique_id)).copied();
        let named = sent.contact.unwrap_or_default();
        // A repeated event named its contact correctly before; the contact may be merged or erased since.
        if first.is_none() && named.id.is_some() && !named.id().is_some_and(|id| self.known.contacts.contains(&id)) {
            violations.add("/contact/id", FieldCode::NotFound, "no such contact in this workspace");
        }
        violations.into_result()?;
        if let Some((event_id, contact_id)) = first {
            return Ok(Entry { event_id, contact_id, event: None, contact: None });
        }
        let (contact_id, contact) = self.resolve(&named, on);
        if let Some(unique_id) = &sent.unique_id {
            self.known.events.insert(unique_id.clone(), (on.event_id, contact_id));
        }
        let event = ProductEvent {
            id: on.event_id,
            workspace_id: on.workspace_id,
            contact_id,
            name: trimmed(sent.name),
            occurred_at,
            properties: sent.properties.unwrap_or_default(),
            unique_id: sent.unique_id,
        };
        Ok(Entry { event_id: event.id, contact_id, event: Some(event), contact })
    }

    /// Returns the contact that is meant, and the contact itself if it is new. An existing contact is not changed.
    fn resolve(&mut self, named: &ContactReference, on: IngestContext) -> (ContactId, Option<Contact>) {
        // An unknown id was refused before.
        if let Some(id) = named.id() {
            return (id, None);
        }
        if let Some(owner) = named.identifiers().find_map(|identifier| self.known.owners.get(&identifier).copied()) {
            return (owner, None);
        }
        let mut contact = Contact::new(on.contact_id, on.workspace_id, on.now);
        for identifier in named.identifiers() {
            match &identifier {
                Identifier::ExternalId(text) => contact.external_id = Some(text.clone()),
                Identifier::Email(text) => contact.email = Some(text.clone()),
                Identifier::Phone(text) => contact.phone = Some(text.clone()),
            }
            self.known.owners.insert(identifier, contact.id);
        }
        (contact.id, Some(contact))
    }
}

fn trimmed(name: String) -> String {
    let inner = name.trim();
    if inner.len() == name.len() { name } else { inner.to_owned() }
}

#[cfg(test)]
mod tests;
