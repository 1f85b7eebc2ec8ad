//! The repetition of what a receiver missed.

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::webhook::delivery::Replayed;
use messaging_core::ids::{DeliveryId, WebhookId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::lanes;
use crate::jobs::{JobData, Reach};

/// Repeats deliveries to a webhook.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ReplayWebhook {
    /// Workspace that owns the webhook.
    pub(crate) workspace_id: WorkspaceId,
    /// The webhook.
    pub(crate) webhook_id: WebhookId,
    /// Selection of the deliveries: every event once, or those that failed.
    pub(crate) replayed: Replayed,
    /// After this one.
    pub(crate) after: DeliveryId,
    /// Up to this one.
    pub(crate) until: DeliveryId,
}

impl JobData for ReplayWebhook {
    const KIND: &'static str = "replay_webhook";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        lanes::of_webhook(self.workspace_id, lanes::BACKLOG, self.webhook_id)
    }
}
