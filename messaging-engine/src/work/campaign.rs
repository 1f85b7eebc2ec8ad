//! Job of a campaign: begins it, finds its audience, makes and releases its messages, chooses the winner, ends it, and
//! withdraws the rest of a cancelled one.
//!
//! Contract section 12; the design is in docs/design/campaigns.md. One job does all of it, a step at a time, and each
//! step is a commit of its own: the campaign and its progress determine the next step, so that another run can take
//! over from one that was cut off. When there is nothing to do the job waits for the next due time, and is woken when
//! something else happens before.

mod fan_out;
mod freeze;
mod release;
mod start;
mod winner;
mod withdraw;

use std::time::Duration;

use messaging_core::changes::{Changes, Condition, Expect, WaitingKey, Write};
use messaging_core::domain::analytics::tally::{Counter, Counts};
use messaging_core::domain::campaign::progress::{CampaignProgress, Freeze, MAX_AHEAD};
use messaging_core::domain::campaign::schedule::has_stalled;
use messaging_core::domain::campaign::{Campaign, CampaignStatus, FailureReason, PauseReason};
use messaging_core::domain::message::Message;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{CommitError, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::run_campaign::RunCampaign;
use crate::work::job::{Job, JobContext, JobError, back_off_after_conflict};

/// Time a run works before others of its lane's flow have their turn.
const SLICE: Duration = Duration::from_millis(500);
/// Largest number of times in a row that a step is decided again because of a conflict.
const MAX_CONFLICTS: u32 = 16;
/// Interval at which the job looks again while messages are in delivery, although they wake it when they end.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// Interval at which the job looks at a campaign that waits for a person.
const REST: Duration = Duration::from_hours(1);
/// A duration longer than any wait.
const FOR_EVER: Duration = Duration::from_hours(24 * 3650);
/// A time later than any due time.
const EVER: Timestamp = Timestamp::from_millis(i64::MAX);
/// Number of pages of messages that are made before the next piece of the audience is judged.
const PAGES: u32 = 4;

/// Time at which the job of a campaign continues after a step.
enum Step {
    /// At once.
    Again,
    /// At this time, or when the job is woken.
    At(Timestamp),
    /// When the job is woken: nothing is due.
    WhenWoken,
    /// Not any more: the campaign stays as it was read until somebody changes it, and then has a job again.
    End,
}

/// State of one run besides its payload.
#[derive(Default)]
struct RunState {
    /// Pages of messages that were made since a piece of the audience was judged.
    pages: u32,
    /// True once this run has adapted windows: one that is full a moment later says nothing, and is not made smaller.
    has_shrunk: bool,
}

/// A campaign that has begun, as it was read.
struct UnderWay {
    campaign: Stored<Campaign>,
    progress: Stored<CampaignProgress>,
    now: Timestamp,
}

impl Job for RunCampaign {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        let until = cx.app.monotonic() + SLICE;
        let (mut state, mut conflicts) = (RunState::default(), 0);
        loop {
            let Some(campaign) = cx.app.store().campaign(self.workspace_id, self.campaign_id).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let status = campaign.record.status;
            let step = match self.step(cx, campaign, &mut state).await {
                Err(JobError::Commit(CommitError::Conflict)) if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    back_off_after_conflict(&cx.app, conflicts).await;
                    continue;
                }
                step => step?,
            };
            let now = cx.app.now();
            let at;
            (at, self.expected_at) = match step {
                Step::Again if cx.app.monotonic() < until => {
                    conflicts = 0;
                    self.expected_at = now;
                    continue;
                }
                Step::Again => (now, now),
                Step::At(at) => (at, at),
                Step::WhenWoken => (now + REST, now + FOR_EVER),
                Step::End => {
                    let expected = Write::Expect(Condition::Campaign(self.workspace_id, self.campaign_id, status));
                    return Ok(cx.finish(Changes::from_iter([expected])).await?);
                }
            };
            return cx.again_at(at, &self, Changes::default()).await;
        }
    }
}

impl RunCampaign {
    /// Does the next step.
    async fn step(
        &mut self,
        cx: &JobContext,
        campaign: Stored<Campaign>,
        state: &mut RunState,
    ) -> Result<Step, JobError> {
        let now = cx.app.now();
        match campaign.record.status {
            CampaignStatus::Draft | CampaignStatus::Sent => Ok(Step::End),
            CampaignStatus::Cancelled | CampaignStatus::Failed => self.withdraw(cx, &campaign.record, now).await,
            CampaignStatus::Scheduled if campaign.record.is_stale(now) => hold_back(cx, &campaign, now).await,
            CampaignStatus::Scheduled if campaign.record.is_due(now) => self.begin(cx, &campaign, now).await,
            CampaignStatus::Sending if has_stalled(self.expected_at, now) => hold_back(cx, &campaign, now).await,
            CampaignStatus::Scheduled | CampaignStatus::Paused if campaign.record.started_at.is_none() => {
                Ok(campaign.record.starts_at().map_or(Step::End, Step::At))
            }
            CampaignStatus::Scheduled | CampaignStatus::Paused | CampaignStatus::Sending => {
                let progress = cx.app.store().campaign_progress(self.workspace_id, self.campaign_id).await?;
                let Some(progress) = progress else {
                    return fail(cx, &campaign, FailureReason::Internal, now).await;
                };
                self.advance(cx, UnderWay { campaign, progress, now }, state).await
            }
        }
    }

    /// Continues a campaign that has begun. Steps that send nothing also happen while it is paused: its audience is
    /// found, and its winner chosen.
    async fn advance(&mut self, cx: &JobContext, under_way: UnderWay, state: &mut RunState) -> Result<Step, JobError> {
        let UnderWay { campaign: Stored { record: campaign, .. }, progress, now } = &under_way;
        let now = *now;
        let is_sending = campaign.status == CampaignStatus::Sending;
        let counts: Counts =
            cx.app.store().campaign_counts(self.workspace_id, self.campaign_id).await?.into_iter().sum();
        let waiting = counts.total(Counter::Waiting);
        let mut next = None;
        let mut is_idle = true;
        if is_sending && waiting > 0 {
            let released = self.release(cx, campaign, state, now).await?;
            is_idle = released.none_due;
            next = released.next_at;
        }
        let is_judged = progress.record.freeze == Freeze::Done;
        // If all existing messages are held for later, those that are due do not wait for them.
        let is_due = progress.record.wave().is_some_and(|wave| wave <= now);
        let is_ahead = waiting >= MAX_AHEAD && !(is_idle && is_due);
        if is_sending
            && !is_ahead
            && (is_judged || state.pages < PAGES)
            && progress.record.may_fan_out(campaign)
            && self.fan_out(cx, &under_way).await?
        {
            state.pages += 1;
            return Ok(Step::Again);
        }
        if !is_judged {
            state.pages = 0;
            self.freeze(cx, &under_way).await?;
            return Ok(Step::Again);
        }
        if let Some(step) = self.decide(cx, &under_way, waiting).await? {
            return Ok(step);
        }
        if is_sending && progress.record.is_complete(campaign) {
            // Every recipient has a message: the recipients that wait are those whose messages do.
            if let Some(sent) = campaign.finish(waiting, now) {
                if self.drop_settled(cx).await? {
                    return Ok(Step::Again);
                }
                put(cx, &sent, under_way.campaign.revision).await?;
                return Ok(Step::Again);
            }
        }
        // The wait for a winner may have ended without one: then a person decides.
        let winner_due_at = campaign.winner_due_at().filter(|due| *due > now);
        let idle = if is_sending { Step::WhenWoken } else { Step::End };
        let times = [campaign.starts_at(), winner_due_at, next.filter(|_| is_sending)];
        Ok(times.into_iter().flatten().min().map_or(idle, Step::At))
    }
}

/// Commits a campaign.
async fn put(cx: &JobContext, campaign: &Campaign, revision: u32) -> Result<(), JobError> {
    put_with(cx, campaign, revision, Vec::new()).await
}

/// Commits a campaign with further writes.
async fn put_with(cx: &JobContext, campaign: &Campaign, revision: u32, more: Vec<Write>) -> Result<(), JobError> {
    let put = Write::put(Box::new(campaign.clone()), Expect::Revision(revision));
    Ok(cx.commit(std::iter::once(put).chain(App::forget_addresses(campaign)).chain(more).collect()).await?)
}

/// Pauses a campaign until a person confirms that it is still wanted.
async fn hold_back(cx: &JobContext, stored: &Stored<Campaign>, now: Timestamp) -> Result<Step, JobError> {
    if let Some(paused) = stored.record.hold_back(PauseReason::Stale, now) {
        tracing::warn!(campaign = %paused.id, "a campaign is hours late and waits for a person");
        let entry = cx.app.record_own_campaign_change("pauseCampaign", &stored.record, &paused).await?;
        put_with(cx, &paused, stored.revision, entry).await?;
    }
    Ok(Step::Again)
}

/// Ends a campaign that cannot be sent. A paused campaign fails once it is resumed.
async fn fail(
    cx: &JobContext,
    stored: &Stored<Campaign>,
    reason: FailureReason,
    now: Timestamp,
) -> Result<Step, JobError> {
    let campaign = &stored.record;
    let begun = campaign.begin(now);
    let Some(failed) = begun.as_ref().unwrap_or(campaign).fail(reason, now) else {
        return Ok(campaign.starts_at().map_or(Step::End, Step::At));
    };
    tracing::error!(campaign = %campaign.id, ?reason, "a campaign cannot be sent");
    let entry = cx.app.record_own_campaign_change("failCampaign", campaign, &failed).await?;
    put_with(cx, &failed, stored.revision, entry).await?;
    Ok(Step::Again)
}

/// Reads messages by id. Those that are gone are left out.
async fn read_messages(
    cx: &JobContext,
    workspace: WorkspaceId,
    keys: &[WaitingKey],
) -> Result<Vec<(WaitingKey, Message)>, StoreError> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(message) = cx.app.store().message(workspace, key.message_id).await? {
            found.push((*key, message));
        }
    }
    Ok(found)
}
