//! The job that delivers an event to a webhook: one attempt, then done or later.
//!
//! Contract section 15.3. Delivery is at least once: the attempt is made, then its outcome committed; a crash between
//! the two repeats the attempt with the same `webhook-id`. Deliveries that were claimed together are read together, and
//! outcomes that come at the same time are committed together.

use messaging_core::changes::Changes;
use messaging_core::domain::webhook::WebhookStatus;
use messaging_core::domain::webhook::delivery::DeliveryStatus;
use messaging_core::ports::store::CommitError;

use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::work::job::{Job, JobContext, JobError, retry_while_unavailable};
use crate::work::webhook_attempt::{Attempted, attempt};

/// Number of tries to store an outcome while the webhook keeps changing.
pub(super) const MAX_COMMITS: usize = 8;

impl Job for DeliverWebhook {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        // Read before its turn, so that no other delivery waits for the read.
        let ahead = match cx.batch() {
            Some(batch) => batch.take(&cx.app, self.delivery).await,
            None => None,
        };
        let turn = cx.app.webhook_turn(self.webhook).await;
        let (found, event) = match ahead.filter(|_| cx.is_claim_fresh()) {
            Some((delivery, event)) => (Some(delivery), event),
            None => (cx.app.store().delivery(self.workspace, self.delivery).await?, None),
        };
        let listeners = cx.app.listeners(self.workspace).await?;
        let webhook = listeners.webhooks.iter().find(|webhook| webhook.id == self.webhook);
        let (Some(delivery), Some(webhook)) = (found, webhook) else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        if delivery.status != DeliveryStatus::Pending || delivery.in_backlog {
            return Ok(cx.finish(Changes::default()).await?);
        }
        let read = (delivery.status, delivery.attempts);
        let attempted = match webhook.status {
            _ if delivery.is_test() => attempt(cx, webhook, delivery, event).await?,
            WebhookStatus::Active => attempt(cx, webhook, delivery, event).await?,
            WebhookStatus::Paused => Attempted::held(delivery),
            WebhookStatus::Disabled => Attempted::without(read, delivery.give_up()),
        };
        drop(turn);
        self.record(cx, attempted).await
    }
}

impl DeliverWebhook {
    /// Commits the outcome. A request that was sent cannot be taken back: if the webhook changed meanwhile, the same
    /// outcome is written beside its new state.
    async fn record(self, cx: &JobContext, mut attempted: Attempted) -> Result<(), JobError> {
        if attempted.goes_with_others() {
            let writes = retry_while_unavailable(&cx.app, || attempted.writes(&cx.app)).await?;
            let due_at = attempted.delivery.next_attempt_at;
            if cx.settle_with_others(&self, due_at, writes.into_iter().collect()).await? {
                return Ok(());
            }
        }
        let mut aside = None;
        for _ in 0..MAX_COMMITS {
            let mut changes: Changes =
                retry_while_unavailable(&cx.app, || attempted.writes(&cx.app)).await?.into_iter().collect();
            changes.extend(aside.clone());
            let committed = match attempted.delivery.next_attempt_at {
                Some(due_at) => cx.again_at(due_at, &self, changes).await,
                None => cx.finish(changes).await.map_err(JobError::from),
            };
            match committed {
                Err(JobError::Commit(CommitError::Conflict))
                    if retry_while_unavailable(&cx.app, || attempted.is_current(&cx.app)).await? => {}
                Err(JobError::Commit(why @ CommitError::Refused(_))) if aside.is_none() => {
                    aside = attempted.without_answer(&cx.app, &why);
                    if aside.is_none() {
                        return Err(why.into());
                    }
                }
                other => return other,
            }
        }
        Err(JobError::Commit(CommitError::Conflict))
    }
}
