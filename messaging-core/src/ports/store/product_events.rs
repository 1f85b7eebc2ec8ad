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

/// What some events name, to be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Contacts by id.
    pub contacts: Vec<ContactId>,
    /// Contacts by other names, each by one or more. Once one of them is found, those after it need not be.
    pub identifiers: Vec<Vec<Identifier>>,
    /// Unique ids of events.
    pub unique_ids: Vec<String>,
}

/// How many events of a name there were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventActivity {
    /// The name.
    pub name: String,
    /// How many there were in all buckets.
    pub count: u64,
    /// How many contacts they were of.
    pub contacts: u64,
    /// How many there were in each bucket.
    pub series: Vec<u64>,
}

/// Reads of product events.
#[async_trait]
pub trait ProductEvents {
    /// What is known of what some events name, all of one moment. Unique ids that arrived before `since`, and
    /// those of events whose contact is erased, are forgotten; after a merge an event is the primary's.
    async fn known_to_events(
        &self,
        workspace: WorkspaceId,
        named: Named,
        since: Timestamp,
    ) -> Result<Known, StoreError>;
    /// The events of a contact in the order of their arrival, newest first. A unique id is shown as long as it
    /// is remembered.
    async fn product_events(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        page: PageRequest,
    ) -> Result<Slice<ProductEvent>, StoreError>;
    /// Whether events of a contact that is gone are still there, to be moved or deleted.
    async fn has_left_events(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError>;
    /// How many events happened in each of some buckets, by name: of one name, or of the names that have most, at most
    /// `limit`, those with most first. Names without events there are left out.
    ///
    /// The cost of counting depends on the span and the names, not on the events. The contacts are counted for at most
    /// some two seconds; when those are over, their number is estimated from a part that is spread over all contacts.
    async fn event_activity(
        &self,
        workspace: WorkspaceId,
        name: Option<&str>,
        buckets: &Arc<Buckets>,
        limit: usize,
    ) -> Result<Vec<EventActivity>, StoreError>;
    /// Forgets up to `limit` unique ids that arrived before a time; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_unique_ids(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
