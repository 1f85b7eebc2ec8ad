//! The job that repeats what a receiver missed since some time (an extension of contract section 15).
//!
//! New deliveries are added to the webhook's backlog page by page, oldest first; they are sent in this order.

use messaging_core::changes::{Changes, Expect, WebhookWrite, Write};
use messaging_core::domain::webhook::WebhookStatus;
use messaging_core::ports::store::{CommitError, ReplayRange};

use crate::jobs::replay_webhook::ReplayWebhook;
use crate::work::deliver_webhook::MAX_COMMITS;
use crate::work::job::{Job, JobContext, JobError};

/// Deliveries of one commit.
const PAGE: usize = 100;

impl Job for ReplayWebhook {
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
                changes.push(Write::Webhook(WebhookWrite::MarkReplayed(self.workspace_id, original.id)));
                changes.push(Write::Webhook(WebhookWrite::InsertDelivery(Box::new(replay))));
            }
            // Put in any case: of a pause at the same time one finds the other's change.
            if webhook.status == WebhookStatus::Active {
                changes.extend(app.start_draining(&mut webhook));
            }
            changes.push(Write::put(Box::new(webhook), Expect::Revision(stored.revision)));
            let further = Self { after: last, ..self };
            match cx.again_at(now, &further, changes).await {
                Err(JobError::Commit(CommitError::Conflict)) => {}
                other => return other,
            }
        }
        Err(JobError::Commit(CommitError::Conflict))
    }
}
