//! What changes of the deliveries of webhooks.

use crate::domain::webhook::delivery::{Delivery, DeliveryStatus};

/// A delivery after something became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateDelivery {
    /// As it is from now on.
    pub delivery: Delivery,
    /// The status and the number of attempts that were read; any other is a conflict.
    pub read: (DeliveryStatus, u32),
}
