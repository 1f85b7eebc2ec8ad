//! Product events.

use std::sync::Arc;

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::analytics::tally::buckets::Buckets;
use crate::domain::audience::contact::Identifier;
use crate::domain::audience::product_event::ProductEvent;
use crate::domain::audience::product_event::event_deduplicator::Known;
use crate::ids::{ContactId, WorkspaceId};
use crate::time::Timestamp;

/// Contacts and ids that some events name, to be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Contacts by id.
    pub contacts: Vec<ContactId>,
    /// Contacts by other names, each by one or more. Once one of these is found, the names after it need not be looked
    /// up.
    pub identifiers: Vec<Vec<Identifier>>,
    /// Unique ids of the events.
    pub unique_ids: Vec<String>,
}

/// Number of events of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventActivity {
    /// Name of the events.
    pub name: String,
    /// Events in all buckets.
    pub count: u64,
    /// Contacts of these events.
    pub contacts: u64,
    /// Events in each bucket.
    pub series: Vec<u64>,
}

/// Reads of product events.
#[async_trait]
pub trait ProductEvents {
    /// Looks up the contacts and unique ids that some events name, all at one moment. Unique ids that arrived before
    /// `since`, and those of events of erased contacts, are forgotten; after a merge an event is the primary's.
    async fn known_to_events(
        &self,
        workspace: WorkspaceId,
        named: Named,
        since: Timestamp,
    ) -> Result<Known, StoreError>;
    /// Returns the events of a contact in the order of their arrival, newest first. A unique id is shown as long as it
    /// is remembered.
    async fn product_events(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        page: PageRequest,
    ) -> Result<Slice<ProductEvent>, StoreError>;
    /// True if events of a deleted contact are still there, to be moved or deleted.
    async fn has_left_events(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError>;
    /// Counts the events in each bucket, by name: of one name, or of the names with the most events, at most `limit`,
    /// in descending order. Names without events in the buckets are left out.
    ///
    /// The cost of counting depends on the span and the names, not on the events. The contacts are counted for at most
    /// some two seconds; after that their number is estimated from a sample spread over all contacts.
    async fn event_activity(
        &self,
        workspace: WorkspaceId,
        name: Option<&str>,
        buckets: &Arc<Buckets>,
        limit: usize,
    ) -> Result<Vec<EventActivity>, StoreError>;
    /// Forgets up to `limit` unique ids that arrived before a time; returns how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_unique_ids(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
