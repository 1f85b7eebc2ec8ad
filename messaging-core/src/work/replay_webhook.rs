//! The job that repeats what a receiver missed since some time (an extension of contract section 15).
//!
//! New deliveries are added to the webhook's backlog page by page, oldest first; they are sent in this order.

use serde::{Deserialize, Serialize};

use crate::changes::{Changes, Expect, Write};
use crate::domain::webhook::WebhookStatus;
use crate::domain::webhook::delivery::Replayed;
use crate::ids::{DeliveryId, WebhookId, WorkspaceId};
use crate::ports::store::{CommitError, ReplayRange};
use crate::work::deliver_webhook::MAX_COMMITS;
use crate::work::drain_webhook::DrainWebhook;
use crate::work::job::{Job, JobContext, JobError};

/// Deliveries of one commit.
const PAGE: usize = 100;

/// Repeats deliveries to a webhook.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ReplayWebhook {
    /// Workspace that owns the webhook.
    pub(crate) workspace_id: WorkspaceId,
    /// The webhook.
    pub(crate) webhook_id: WebhookId,
    /// Which deliveries.
    pub(crate) replayed: Replayed,
    /// After this one.
    pub(crate) after: DeliveryId,
    /// Up to this one.
    pub(crate) until: DeliveryId,
}

impl Job for ReplayWebhook {
    const KIND: &'static str = "replay_webhook";

    fn lane(&self) -> String {
        format!("{}{}", super::lanes::BACKLOG, self.webhook_id)
    }

    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        for _ in 0..MAX_COMMITS {
            let (app, store) = (&cx.app, cx.app.store());
            let Some(stored) = store.webhook(self.workspace_id, self.webhook_id).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let range = ReplayRange { replayed: self.replayed, after: self.after, until: self.until };
            let page = store.replayable(self.workspace_id, self.webhook_id, &range, PAGE).await?;
            let mut webhook = stored.record;
            let last = page.last().map(|delivery| delivery.id).filter(|_| webhook.status != WebhookStatus::Disabled);
            let Some(last) = last else { return Ok(cx.finish(Changes::default()).await?) };
            let now = app.now();
            let mut changes = Changes::default();
            for original in page {
                let mut replay = original.replay(app.new_id(now), now);
                replay.in_backlog = true;
                if webhook.status == WebhookStatus::Paused {
                    replay = replay.hold();
                }
                changes.push(Write::MarkReplayed(self.workspace_id, original.id));
                changes.push(Write::InsertDelivery(Box::new(replay)));
            }
            // Put in any case: of a pause at the same time one finds the other's change.
            if webhook.status == WebhookStatus::Active {
                changes.extend(DrainWebhook::start(app, &mut webhook));
            }
            changes.push(Write::PutWebhook(Box::new(webhook), Expect::Revision(stored.revision)));
            let further = Self { after: last, ..self };
            match cx.again_at(now, &further, changes).await {
                Err(JobError::Commit(CommitError::Conflict)) => {}
                other => return other,
            }
        }
        Err(JobError::Commit(CommitError::Conflict))
    }
}
