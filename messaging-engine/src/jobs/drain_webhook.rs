//! Sending of a webhook's backlog in order.

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::{WebhookId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::lanes;
use crate::jobs::{JobData, Reach};

/// Job that sends the backlog of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DrainWebhook {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) webhook_id: WebhookId,
    /// Deliveries sent so far.
    pub(crate) sent: u32,
    /// True if the receiver hung at the last delivery.
    pub(crate) hangs: bool,
}

impl DrainWebhook {
    /// Returns the job of a webhook whose backlog begins to be sent.
    pub(crate) const fn of(webhook: &Webhook) -> Self {
        Self { workspace_id: webhook.workspace_id, webhook_id: webhook.id, sent: 0, hangs: false }
    }
}

impl JobData for DrainWebhook {
    const KIND: &'static str = "drain_webhook";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        lanes::of_webhook(self.workspace_id, lanes::BACKLOG, self.webhook_id)
    }
}
