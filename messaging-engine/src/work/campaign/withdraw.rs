//! Withdrawing what is left of a campaign that was cancelled or has failed: messages that wait, that are released and
//! that are tried again. Of recipients without a message nothing has to be written.

use messaging_core::changes::{Changes, WaitingKey, Write, moves};
use messaging_core::domain::analytics::tally::{Counter, Counts};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ports::store::{CampaignMessageFilter, CommitError, PageRequest};
use messaging_core::time::Timestamp;

use super::{EVER, Step, read_messages};
use crate::jobs::run_campaign::RunCampaign;
use crate::work::job::{JobContext, JobError};

/// Messages of one commit.
const PAGE: usize = 200;
/// Messages that are in delivery when the campaign is cancelled are looked for again after this, should one have been
/// put off meanwhile.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(2);

impl RunCampaign {
    /// Withdraws the next page.
    pub(super) async fn withdraw(
        &self,
        cx: &JobContext,
        campaign: &Campaign,
        now: Timestamp,
    ) -> Result<Step, JobError> {
        let (workspace, id) = (self.workspace_id, self.campaign_id);
        for (track, _) in cx.app.store().waiting_tracks(workspace, id).await? {
            let keys = cx.app.store().due_messages(workspace, id, track, EVER, PAGE).await?;
            if !keys.is_empty() {
                self.withdraw_waiting(cx, &keys, now).await?;
                return Ok(Step::Again);
            }
        }
        // Nothing waits. What is left is in delivery, and finds that out itself at the latest when its turn comes.
        let counts: Counts = cx.app.store().campaign_counts(workspace, id).await?.into_iter().sum();
        let mut left = counts.total(Counter::Waiting) + counts.total(Counter::Deferred);
        let wanted =
            CampaignMessageFilter::Statuses(1 << MessageStatus::Queued as u16 | 1 << MessageStatus::Deferred as u16);
        let mut page = PageRequest { after: None, limit: PAGE };
        while left > 0 {
            let slice = cx.app.store().campaign_messages(workspace, id, wanted, page).await?;
            left = left.saturating_sub(slice.items.len() as u64);
            for message in &slice.items {
                withdraw_one(cx, message, now).await?;
            }
            match slice.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let is_over = counts.total(Counter::Sending) == 0 && counts.total(Counter::Waiting) == 0;
        let is_late = campaign.completed_at.is_none_or(|completed| now >= completed + LOOK_AGAIN);
        Ok(if is_over && is_late { Step::End } else { Step::At(now + LOOK_AGAIN) })
    }

    async fn withdraw_waiting(&self, cx: &JobContext, keys: &[WaitingKey], now: Timestamp) -> Result<(), JobError> {
        let (workspace, id) = (self.workspace_id, self.campaign_id);
        let mut changes = Changes::from_iter([Write::TakeWaiting(workspace, id, keys.to_vec())]);
        for (_, message) in read_messages(cx, workspace, keys).await? {
            changes.extend(withdrawal(cx, &message, now).await?);
        }
        Ok(cx.commit(changes).await?)
    }
}

/// The writes that withdraw a message; none where that cannot be.
pub(super) async fn withdrawal(cx: &JobContext, message: &Message, now: Timestamp) -> Result<Vec<Write>, JobError> {
    if !message.status.may_become(MessageStatus::Cancelled) {
        return Ok(Vec::new());
    }
    let mut writes = moves(message, &message.moved(MessageStatus::Cancelled, now), None, now);
    let cancelled = [(EventKind::Cancelled, serde_json::Map::new())];
    writes.extend(cx.app.append_events(message.into(), cancelled).await?);
    Ok(writes)
}

/// Withdraws a message that has a job, unless it has just been changed: that job decides about it then.
async fn withdraw_one(cx: &JobContext, message: &Message, now: Timestamp) -> Result<(), JobError> {
    match cx.commit(withdrawal(cx, message, now).await?.into_iter().collect()).await {
        Ok(()) | Err(CommitError::Conflict) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
