//! The delivery of an event to a webhook.

use messaging_core::changes::NewJob;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::webhook::delivery::Delivery;
use messaging_core::ids::{DeliveryId, JobId, WebhookId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::lanes;
use crate::jobs::{JobData, Reach};

/// Delivers an event to a webhook.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DeliverWebhook {
    pub(crate) workspace: WorkspaceId,
    pub(crate) webhook: WebhookId,
    pub(crate) delivery: DeliveryId,
}

impl DeliverWebhook {
    /// The job of a delivery.
    pub(crate) const fn of(delivery: &Delivery) -> Self {
        Self { workspace: delivery.workspace_id, webhook: delivery.webhook_id, delivery: delivery.id }
    }

    /// The row to enqueue.
    pub(crate) fn job(self, id: JobId, due_at: Timestamp) -> NewJob {
        self.enqueue(id, due_at)
    }
}

impl JobData for DeliverWebhook {
    const KIND: &'static str = "deliver_webhook";
    const REACH: Reach = Reach::Outside;

    /// One for each webhook, so that a receiver that hangs delays nobody else.
    fn lane(&self) -> Lane {
        lanes::of_webhook(self.workspace, lanes::WEBHOOK, self.webhook)
    }
}
