//! Job that cancels the waiting work of a database that is a copy, and then takes the fence down.
//!
//! Contract section 22, `admin resume --queued cancel`. While the fence is up no job that leaves the installation is
//! claimed, so the waiting jobs do not move and are removed a page at a time, each page in one commit with the changes
//! of its messages and deliveries. After an interruption the rest follows.

use std::collections::HashSet;

use messaging_core::changes::{Changes, JobWrite, UpdateDelivery, WebhookWrite, Write, moves};
use messaging_core::domain::installation::fence::{Fence, FenceState};
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::domain::webhook::delivery::DeliveryStatus;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{CommitError, StoreError, StoredJob};

use crate::app::App;
use crate::jobs::JobData;
use crate::jobs::call_node::CallNode;
use crate::jobs::cancel_waiting::CancelWaiting;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::jobs::drain_webhook::DrainWebhook;
use crate::jobs::publish_keys::PublishKeys;
use crate::jobs::register_callback::RegisterCallback;
use crate::jobs::replay_webhook::ReplayWebhook;
use crate::jobs::run_automation::{EnterExisting, FollowDates, RunAutomation};
use crate::jobs::run_campaign::RunCampaign;
use crate::jobs::send_confirmation::SendConfirmation;
use crate::jobs::send_fallback::SendFallback;
use crate::work::job::{Job, JobContext, JobError};

/// Number of jobs of one commit.
const PAGE: usize = 200;
/// Number of pages of one run before other jobs have their turn.
const MAX_PAGES: usize = 100;
/// Number of tries to cancel a single job while its data keeps changing.
const MAX_COMMITS: usize = 8;

/// Kinds of jobs that leave the installation, or make messages that do, and are removed.
const TAKEN_AWAY: [&str; 4] = [DeliverMessage::KIND, DeliverWebhook::KIND, ReplayWebhook::KIND, SendConfirmation::KIND];
/// Kinds of jobs that leave the installation, and end by themselves when they find nothing left, or continue with due
/// work.
#[cfg_attr(not(test), expect(dead_code, reason = "a test holds that every kind that leaves is in one of the two"))]
const LEFT: [&str; 9] = [
    CallNode::KIND,
    DrainWebhook::KIND,
    EnterExisting::KIND,
    FollowDates::KIND,
    PublishKeys::KIND,
    RegisterCallback::KIND,
    RunAutomation::KIND,
    RunCampaign::KIND,
    SendFallback::KIND,
];

impl Job for CancelWaiting {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        for _ in 0..MAX_PAGES {
            let Some(fence) = app.store().fence().await?.filter(|fence| fence.state == FenceState::Cancelling) else {
                // The job came with the copy of a server that was cancelling, or another process has done the work.
                return Ok(cx.finish(Changes::default()).await?);
            };
            cx.hold().await?;
            if app.cancel_page(fence).await? == 0 {
                cx.finish(Changes::from_iter([Write::PutFence(None, Some(fence))])).await?;
                app.look_at_fence().await?;
                return Ok(());
            }
        }
        cx.again_at(app.now(), &self, Changes::default()).await
    }
}

impl App {
    /// Cancels all waiting work and takes the fence down: for a program that alone works on the database. `note` is
    /// called with the number cancelled of each page. A fence that waits for a person stays.
    pub(crate) async fn cancel_waiting(&self, note: &mut (dyn FnMut(usize) + Send)) -> Result<(), StoreError> {
        loop {
            let fence = self.store().fence().await?;
            let Some(fence) = fence.filter(|fence| fence.state == FenceState::Cancelling) else { return Ok(()) };
            let cancelled = self.cancel_page(fence).await.map_err(CommitError::into_store_error)?;
            note(cancelled);
            if cancelled == 0 {
                return self.take_fence_down(fence).await;
            }
        }
    }

    async fn take_fence_down(&self, fence: Fence) -> Result<(), StoreError> {
        match self.commit(Changes::from_iter([Write::PutFence(None, Some(fence))])).await {
            Ok(()) | Err(CommitError::Conflict) => self.look_at_fence().await,
            Err(error) => Err(error.into_store_error()),
        }
    }

    /// Cancels a page of the waiting work; returns the number of items.
    async fn cancel_page(&self, fence: Fence) -> Result<usize, CommitError> {
        let campaigns = self.cancel_open_campaigns().await?;
        if campaigns > 0 {
            return Ok(campaigns);
        }
        let runs = self.exit_restored_runs(fence).await?;
        if runs > 0 {
            return Ok(runs);
        }
        let jobs = self.store().jobs_of(&TAKEN_AWAY, PAGE).await?;
        if jobs.is_empty() {
            let given_up = self.store().give_up_backlogs(PAGE).await?;
            return Ok(usize::try_from(given_up).unwrap_or(usize::MAX));
        }
        let changes = self.cancellation(&jobs).await?;
        match self.commit_in_background(changes).await {
            Err(CommitError::Conflict) => {
                for job in &jobs {
                    self.cancel_one(job).await?;
                }
            }
            outcome => outcome?,
        }
        Ok(jobs.len())
    }

    /// Cancels one job alone, because a report may have changed one of many messages meanwhile.
    async fn cancel_one(&self, job: &StoredJob) -> Result<(), CommitError> {
        for _ in 0..MAX_COMMITS {
            let changes = self.cancellation(std::slice::from_ref(job)).await?;
            match self.commit_in_background(changes).await {
                Err(CommitError::Conflict) => {}
                outcome => return outcome,
            }
        }
        Err(CommitError::Conflict)
    }

    /// Returns the writes that remove jobs and cancel their messages and deliveries.
    async fn cancellation(&self, jobs: &[StoredJob]) -> Result<Changes, StoreError> {
        let mut changes = Changes::default();
        let mut messages = HashSet::new();
        for job in jobs {
            // A job that cannot be parsed could not be sent either.
            if let Ok(DeliverMessage { workspace_id, message_id, .. }) = read(job)
                && messages.insert(message_id)
            {
                changes.extend(self.cancel_message(workspace_id, message_id).await?);
            } else if let Ok(DeliverWebhook { workspace, delivery, .. }) = read(job)
                && let Some(found) = self.store().delivery(workspace, delivery).await?
                && matches!(found.status, DeliveryStatus::Pending | DeliveryStatus::Held)
            {
                let read = (found.status, found.attempts);
                let update = UpdateDelivery { delivery: found.give_up(), read };
                changes.push(Write::Webhook(WebhookWrite::UpdateDelivery(Box::new(update))));
            }
            changes.push(Write::Job(JobWrite::Remove(job.place.clone())));
        }
        Ok(changes)
    }

    /// Returns the writes that cancel a message, unless it has ended. A message whose attempt was under way when the
    /// copy was taken is cancelled as well: only the other server knows how that ended.
    ///
    /// No webhook gets an event: its receiver may know the outcome of the message from the other server.
    async fn cancel_message(&self, workspace: WorkspaceId, id: MessageId) -> Result<Vec<Write>, StoreError> {
        let Some(message) = self.store().message(workspace, id).await?.filter(|found| !found.status.is_settled())
        else {
            return Ok(Vec::new());
        };
        let now = self.now();
        let mut writes = moves(&message, &message.moved(MessageStatus::Cancelled, now), None, now);
        writes.extend(self.append_untold_event(&message, EventKind::Cancelled));
        Ok(writes)
    }
}

fn read<J: JobData>(job: &StoredJob) -> Result<J, serde_json::Error> {
    if job.kind != J::KIND {
        return Err(serde::de::Error::custom("a job of another kind"));
    }
    serde_json::from_slice(&job.payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Reach;

    #[test]
    fn every_job_that_leaves_is_taken_away_or_ends_by_itself() {
        let leaving = crate::work::all().iter().filter(|job| job.reach == Reach::Outside).map(|job| job.kind);
        let known: HashSet<_> = TAKEN_AWAY.into_iter().chain(LEFT).collect();
        // A confirmation leaves as a message, with a job of its own.
        assert_eq!(leaving.chain([SendConfirmation::KIND]).collect::<HashSet<_>>(), known);
    }
}
