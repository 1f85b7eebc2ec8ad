//! What changes of the deliveries of webhooks.

use crate::domain::webhook::delivery::{Delivery, DeliveryStatus};
use crate::ids::{DeliveryId, WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// A delivery after something became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateDelivery {
    /// As it is from now on.
    pub delivery: Delivery,
    /// The status and the number of attempts that were read; any other is a conflict.
    pub read: (DeliveryStatus, u32),
}

/// A change of the deliveries of webhooks, or of how a webhook fares.
#[derive(Debug, Clone)]
pub enum WebhookWrite {
    /// Notes that an attempt at a webhook failed, unless the one before it did too.
    NoteFailure(WorkspaceId, WebhookId, Timestamp),
    /// Ends a webhook's failures; no conflict when there are none.
    EndFailures(WorkspaceId, WebhookId),
    /// Stores a new delivery.
    InsertDelivery(Box<Delivery>),
    /// Replaces a delivery.
    UpdateDelivery(Box<UpdateDelivery>),
    /// Notes that a delivery was replayed: its receiver no longer misses it. No conflict when it is gone.
    MarkReplayed(WorkspaceId, DeliveryId),
}
