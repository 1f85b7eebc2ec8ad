//! Product events: what contacts did in the caller's product.
//!
//! The schema describes the numbers that stand for names and contacts. [`gone`] moves and deletes events of contacts that
//! were merged or erased.

mod activity;
mod gone;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::analytics::tally::buckets::Buckets;
use messaging_core::domain::audience::product_event::event_deduplicator::Known;
use messaging_core::domain::audience::product_event::{ProductEvent, Properties};
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::product_events::{EventActivity, Named};
use messaging_core::ports::store::{PageRequest, ProductEvents, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Aged, Database, Query, SqlStore};
use crate::pages::{numbered_place, one_more, place_number};
use crate::row::{get, id, time};
use crate::sql::{Sql, key, params, sql};

pub(crate) use self::activity::{ActivityByName, estimated};
pub(crate) use self::gone::{delete, move_events, remember_deleted};

/// Sweep of the unique ids that callers gave to their events, by the time at which the events were received.
const OLD_UNIQUE_IDS: Aged = Aged {
    table: "event_unique_ids",
    window: 10_000,
    slice: 500,
    find: "SELECT event, received_at < ?3 FROM event_unique_ids WHERE event > ?1 ORDER BY event LIMIT ?2",
    delete: sql!(
        sqlite: "DELETE FROM event_unique_ids WHERE event = ?1 AND received_at < ?2",
        postgres: "DELETE FROM event_unique_ids WHERE event = ANY (ARRAY (
            SELECT event FROM event_unique_ids WHERE received_at < $1 ORDER BY received_at LIMIT $2
            FOR UPDATE SKIP LOCKED))",
    ),
};

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait EventRows {
    /// See [`ProductEvents::known_to_events`].
    async fn known_to(&self, workspace: WorkspaceId, named: Named, since: Timestamp) -> Result<Known, StoreError>;

    /// Adds the number of distinct contacts to counted events; an estimate if counting takes too long.
    async fn with_contacts(
        &self,
        workspace: WorkspaceId,
        buckets: &Arc<Buckets>,
        found: ActivityByName,
    ) -> Result<Vec<EventActivity>, StoreError>;
}

#[async_trait]
impl<D: Database + EventRows> ProductEvents for SqlStore<D> {
    async fn known_to_events(
        &self,
        workspace: WorkspaceId,
        named: Named,
        since: Timestamp,
    ) -> Result<Known, StoreError> {
        self.known_to(workspace, named, since).await
    }

    async fn product_events(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        page: PageRequest,
    ) -> Result<Slice<ProductEvent>, StoreError> {
        // The subquery reads numbers from the index alone, and rows are read for the page only.
        const SQL: Sql = sql!(
            "SELECT e.n, e.id, names.name, e.at, e.properties, u.unique_id FROM (
                 SELECT n FROM product_events WHERE n < $3 AND contact = (SELECT c.n FROM contacts c
                     WHERE c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                         AND c.id = $2)
                 ORDER BY n DESC LIMIT $4
             ) page {CROSS} JOIN product_events e ON e.n = page.n
             {CROSS} JOIN event_names names ON names.n = e.name
             LEFT JOIN event_unique_ids u ON u.event = e.n
             ORDER BY e.n DESC"
        );
        let start = page.after.map_or(i64::MAX, place_number);
        let wanted = params![key(workspace), key(contact), start, one_more(&page)];
        let query = Query::new(SQL, wanted, move |row| {
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
        });
        let found = self.page(query, page, |(n, _)| numbered_place(*n).to_bytes()).await?;
        Ok(Slice { items: found.items.into_iter().map(|(_, event)| event).collect(), next: found.next })
    }

    async fn has_left_events(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        Ok(self.one(gone::number(workspace, contact).point()).await?.is_some())
    }

    async fn event_activity(
        &self,
        workspace: WorkspaceId,
        name: Option<&str>,
        buckets: &Arc<Buckets>,
        limit: usize,
    ) -> Result<Vec<EventActivity>, StoreError> {
        let found = activity::count_events(&self.0, workspace, name, buckets, limit).await?;
        self.with_contacts(workspace, buckets, found).await
    }

    async fn forget_unique_ids(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.sweep_aged(&OLD_UNIQUE_IDS, before, limit).await
    }
}
