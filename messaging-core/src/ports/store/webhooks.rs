//! Webhooks and their deliveries.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::webhook::Webhook;
use crate::domain::webhook::delivery::{Delivery, DeliveryStatus, Replayed};
use crate::ids::{DeliveryId, MessageId, WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of webhooks and deliveries.
#[async_trait]
pub trait Webhooks {
    /// A webhook.
    async fn webhook(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Stored<Webhook>>, StoreError>;
    /// Webhooks, newest first.
    async fn webhooks(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Webhook>, StoreError>;
    /// Since when every attempt at a webhook has failed.
    async fn failing_since(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Timestamp>, StoreError>;
    /// A delivery.
    async fn delivery(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError>;
    /// Those of some deliveries that are there, in no order.
    async fn deliveries_among(&self, workspace: WorkspaceId, ids: &[DeliveryId]) -> Result<Vec<Delivery>, StoreError>;
    /// Deliveries to a webhook, newest first.
    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError>;
    /// Deliveries of the events of a message to any webhook, newest first.
    async fn deliveries_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError>;
    /// Deliveries of a webhook's backlog, oldest first, at most `limit`.
    async fn backlog(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// What a replay would repeat, oldest first, at most `limit`.
    async fn replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// How many a replay would repeat, counted as far as `limit`, and the last of them.
    async fn count_replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Option<(u64, DeliveryId)>, StoreError>;
    /// Lets up to `limit` held deliveries expire that were created before a time; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes), like the next one: it decides nothing and may
    /// stop anywhere.
    async fn expire_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
    /// Gives up to `limit` deliveries up that wait for their turn or for a paused webhook, of any workspace; answers how
    /// many. Deliveries with a job of their own are left alone.
    async fn give_up_backlogs(&self, limit: usize) -> Result<u64, StoreError>;
    /// Removes up to `limit` deliveries created before a time; answers how many.
    async fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// Deliveries of a webhook that a replay is about, by their ids, which are in the order of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayRange {
    /// Selection of the deliveries: every event once, or those that failed.
    pub replayed: Replayed,
    /// After this one.
    pub after: DeliveryId,
    /// Up to this one.
    pub until: DeliveryId,
}
