//! Accepting product events, one or many.
//!
//! Read, decide, write: the contacts and ids that the events of a request name are read at once, then the events are
//! decided one after another, and the result is two writes, new contacts and events.

use std::sync::Arc;

use messaging_core::DomainError;
use messaging_core::changes::{Expect, PutContact, Write};
use messaging_core::domain::audience::product_event::UNIQUE_FOR;
use messaging_core::domain::audience::product_event::event_deduplicator::{EventDeduplicator, IngestContext};
use messaging_core::domain::audience::product_event::input::ProductEventInput;
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::product_events::Named;
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;

use crate::app::App;

/// An item as far as it could be parsed, and its faults.
pub(crate) type CheckedItem = Result<(ProductEventInput, Violations), Violations>;

/// Result of an accepted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IngestResult {
    /// Id of the event; of the first one if this repeats it.
    pub(crate) event_id: EventId,
    /// Contact that the event is about.
    pub(crate) contact_id: ContactId,
    /// True if it repeats an earlier event.
    pub(crate) is_duplicate: bool,
}

impl App {
    /// Decides on events in order, each independent of the others, and returns the writes that store them.
    pub(crate) async fn take_events(
        &self,
        workspace: WorkspaceId,
        items: Vec<CheckedItem>,
        now: Timestamp,
    ) -> Result<(Vec<Write>, Vec<Result<IngestResult, DomainError>>), StoreError> {
        let readable = items.iter().filter_map(|item| item.as_ref().ok().map(|(sent, _)| sent));
        let known = self.store().known_to_events(workspace, named(readable), now - UNIQUE_FOR).await?;
        let mut deduplicator = EventDeduplicator::new(known, now);
        let (mut contacts, mut events) = (Vec::new(), Vec::with_capacity(items.len()));
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            let entry = match item {
                Ok((sent, faults)) => {
                    let (event_id, contact_id) = (self.new_id(now), self.new_id(now));
                    deduplicator.enter(
                        sent,
                        faults,
                        IngestContext { workspace_id: workspace, event_id, contact_id, now },
                    )
                }
                Err(faults) => Err(faults.into()),
            };
            results.push(entry.map(|entry| {
                let told = IngestResult {
                    event_id: entry.event_id,
                    contact_id: entry.contact_id,
                    is_duplicate: entry.event.is_none(),
                };
                let put = |contact| PutContact { contact: Arc::new(contact), expect: Expect::Absent };
                contacts.extend(entry.contact.map(put));
                events.extend(entry.event);
                told
            }));
        }
        let contacts = (!contacts.is_empty()).then_some(Write::PutContacts(contacts));
        let events = (!events.is_empty()).then_some(Write::AppendProductEvents(events));
        Ok((contacts.into_iter().chain(events).collect(), results))
    }
}

/// Returns the contacts and unique ids that the events name.
fn named<'s>(events: impl Iterator<Item = &'s ProductEventInput>) -> Named {
    let mut named = Named::default();
    for event in events {
        named.unique_ids.extend(event.unique_id.clone());
        let Some(contact) = &event.contact else { continue };
        if contact.id.is_some() {
            // The other identifiers are not looked up if the id decides.
            named.contacts.extend(contact.id());
        } else {
            named.identifiers.push(contact.identifiers().collect());
        }
    }
    named
}
