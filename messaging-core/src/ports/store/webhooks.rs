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
    /// Looks up a webhook.
    async fn webhook(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Stored<Webhook>>, StoreError>;
    /// Returns webhooks, newest first.
    async fn webhooks(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Webhook>, StoreError>;
    /// Returns the time since which every attempt at a webhook has failed.
    async fn failing_since(&self, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Timestamp>, StoreError>;
    /// Looks up a delivery.
    async fn delivery(&self, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError>;
    /// Returns those of some deliveries that exist, in no order.
    async fn deliveries_among(&self, workspace: WorkspaceId, ids: &[DeliveryId]) -> Result<Vec<Delivery>, StoreError>;
    /// Returns the deliveries to a webhook, newest first.
    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError>;
    /// Returns the deliveries of a message's events to any webhook, newest first.
    async fn deliveries_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        page: PageRequest,
    ) -> Result<Slice<Delivery>, StoreError>;
    /// Returns the deliveries of a webhook's backlog, oldest first, at most `limit`.
    async fn backlog(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// Returns the deliveries that a replay would repeat, oldest first, at most `limit`.
    async fn replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// Counts the deliveries that a replay would repeat, at most `limit`, and returns the last of them.
    async fn count_replayable(
        &self,
        workspace: WorkspaceId,
        webhook: WebhookId,
        range: &ReplayRange,
        limit: usize,
    ) -> Result<Option<(u64, DeliveryId)>, StoreError>;
    /// Marks up to `limit` held deliveries that were created before a time as expired; returns how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes), like the next one: it decides nothing and may
    /// stop anywhere.
    async fn expire_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
    /// Gives up at most `limit` deliveries that wait in a backlog or for a paused webhook, of any workspace; returns
    /// how many. Deliveries with a job of their own are left alone.
    async fn give_up_backlogs(&self, limit: usize) -> Result<u64, StoreError>;
    /// Deletes up to `limit` deliveries created before a time; returns how many.
    async fn forget_deliveries(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// Deliveries of a webhook that are replayed, by their ids, which are in the order of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayRange {
    /// Selection of the deliveries: every event once, or those that failed.
    pub replayed: Replayed,
    /// Starts after this delivery.
    pub after: DeliveryId,
    /// Ends with this delivery.
    pub until: DeliveryId,
}
