//! Job that sends the deliveries that a webhook missed, in the order of the events.
//!
//! Contract section 15.3: after a pause, held deliveries are sent oldest first; a replay of a period is sent in the
//! order of events too. Jobs of one lane run concurrently, so order needs one job that sends one delivery after
//! another. There is at most one for a webhook ([`Webhook::draining`]).
//!
//! Order costs time. The first deliveries are sent one by one; if there are many, later ones are sent a few at a time,
//! and with a receiver that hangs there is no order to keep.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus};
use messaging_core::domain::webhook::{MAX_HOLD, Webhook, WebhookStatus};
use messaging_core::ports::store::{CommitError, StoreError, Stored};

use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::jobs::drain_webhook::DrainWebhook;
use crate::work::deliver_webhook::MAX_COMMITS;
use crate::work::job::{Job, JobContext, JobError, retry_while_unavailable};
use crate::work::webhook_attempt::{Attempted, attempt};

/// Number of deliveries that are sent strictly one after another.
const ONE_BY_ONE: u32 = 64;
/// Number of concurrent deliveries after those.
const A_FEW: usize = 8;
/// Number of concurrent deliveries to a receiver that hangs.
const MANY: usize = 24;
/// Duration of a call from which a receiver counts as hanging.
const HANGS: Duration = Duration::from_secs(5);
/// Time after which the job gives up its place to others before it continues.
const RUN: Duration = Duration::from_secs(20);

impl DrainWebhook {
    fn width(&self) -> usize {
        match self {
            Self { hangs: true, .. } => MANY,
            Self { sent: ..ONE_BY_ONE, .. } => 1,
            _ => A_FEW,
        }
    }
}

impl Job for DrainWebhook {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        let began = Instant::now();
        let mut conflicts = 0;
        loop {
            let store = cx.app.store();
            let Some(stored) = store.webhook(self.workspace_id, self.webhook_id).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let is_active = stored.record.status == WebhookStatus::Active;
            let width = if is_active { self.width() } else { 0 };
            let batch = store.backlog(self.workspace_id, self.webhook_id, width).await?;
            if batch.is_empty() {
                // If the webhook changed meanwhile it may have been resumed: it is read again.
                match stop(cx, stored).await {
                    Err(CommitError::Conflict) if conflicts < MAX_COMMITS => conflicts += 1,
                    other => return Ok(other?),
                }
                continue;
            }
            // All of them end, so that their outcomes are known, before the first failure is returned.
            let sent = join_all(batch.into_iter().map(|delivery| send(cx, &stored.record, delivery))).await;
            let times = sent.into_iter().collect::<Result<Vec<_>, _>>()?;
            self.sent = self.sent.saturating_add(u32::try_from(times.len()).unwrap_or(u32::MAX));
            self.hangs = times.iter().any(|took| *took >= HANGS);
            if began.elapsed() >= RUN {
                return cx.again_at(cx.app.now(), &self, Changes::default()).await;
            }
        }
    }
}

/// Ends the job: no delivery is left, or none may be sent.
async fn stop(cx: &JobContext, stored: Stored<Webhook>) -> Result<(), CommitError> {
    let webhook = Webhook { draining: false, ..stored.record };
    let put = Write::put(Box::new(webhook), Expect::Revision(stored.revision));
    cx.finish(Changes::from_iter([put])).await
}

/// Attempts one delivery and commits its outcome; a further attempt is a job of its own. Returns the time it took.
async fn send(cx: &JobContext, webhook: &Webhook, delivery: Delivery) -> Result<Duration, JobError> {
    let app = &cx.app;
    let is_too_old = delivery.status == DeliveryStatus::Held && app.now().since(delivery.created_at) >= MAX_HOLD;
    let read = (delivery.status, delivery.attempts);
    let mut attempted = if is_too_old {
        Attempted::without(read, delivery.expire())
    } else {
        attempt(cx, webhook, delivery, None).await?
    };
    let mut aside = None;
    for _ in 0..MAX_COMMITS {
        let mut changes: Changes = retry_while_unavailable(app, || attempted.writes(app)).await?.into_iter().collect();
        changes.extend(aside.clone());
        if let Some(due_at) = attempted.delivery.next_attempt_at {
            let job = DeliverWebhook::of(&attempted.delivery).job(app.new_id(app.now()), due_at);
            changes.push(Write::Job(JobWrite::Enqueue(job)));
        }
        match retry_while_unavailable(app, || app.commit_in_background(changes.clone())).await {
            Err(CommitError::Conflict) if retry_while_unavailable(app, || attempted.is_current(app)).await? => {}
            // After a conflict another process has decided about it.
            Ok(()) | Err(CommitError::Conflict) => return Ok(attempted.took),
            Err(why @ CommitError::Refused(_)) if aside.is_none() => {
                aside = attempted.without_answer(app, &why);
                if aside.is_none() {
                    return Err(why.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(JobError::Store(StoreError::Unavailable))
}
