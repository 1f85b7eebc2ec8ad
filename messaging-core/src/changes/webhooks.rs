//! Changes of deliveries to webhooks, and of webhooks' failures.

use crate::domain::webhook::delivery::{Delivery, DeliveryStatus};
use crate::ids::{DeliveryId, WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// An update of a delivery after an attempt or another change.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateDelivery {
    /// New state of the delivery.
    pub delivery: Delivery,
    /// The status and the number of attempts that were read; any other is a conflict.
    pub read: (DeliveryStatus, u32),
}

/// A change of deliveries to webhooks, or of a webhook's failures.
#[derive(Debug, Clone)]
pub enum WebhookWrite {
    /// Records that an attempt at a webhook failed, unless the one before it did too.
    NoteFailure(WorkspaceId, WebhookId, Timestamp),
    /// Ends a webhook's failures; no conflict if there are none.
    EndFailures(WorkspaceId, WebhookId),
    /// Stores a new delivery.
    InsertDelivery(Box<Delivery>),
    /// Replaces a delivery.
    UpdateDelivery(Box<UpdateDelivery>),
    /// Records that a delivery was replayed: its receiver no longer misses it. No conflict if it is gone.
    MarkReplayed(WorkspaceId, DeliveryId),
}
