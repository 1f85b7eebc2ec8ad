//! Release of a campaign's waiting messages: the row of a waiting message becomes a job that delivers it.
//!
//! Recipients of one domain share a track, and of each track only so many messages are in delivery that its mail
//! servers are always busy. A server that hangs holds up some dozens of messages, not the campaign. Campaigns have
//! lanes of their own, so messages of others take no room of this one, and the end of each of its messages wakes it.

use messaging_core::changes::{Changes, Condition, JobWrite, WaitingKey, Write};
use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::store::CommitError;
use messaging_core::time::Timestamp;

use super::withdraw::withdrawal;
use super::{EVER, LOOK_AGAIN, RunState, read_messages};
use crate::jobs::JobData as _;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::run_campaign::RunCampaign;
use crate::services::page_size::PageSize;
use crate::work::job::{JobContext, JobError};

/// Number of messages of a track that are in delivery at the same time, to begin with and at least.
const SMALLEST: u16 = 24;
/// Number of messages of a campaign that are in delivery at the same time, all tracks together.
const TOGETHER: u16 = 4096;
/// Number of messages of one commit.
const PAGE: usize = 256;

/// Result of releasing the messages of a campaign that are due.
pub(super) struct Released {
    /// True if no due message waits any more.
    pub(super) none_due: bool,
    /// Time when a message is due, or may be released, or those in delivery should have ended.
    pub(super) next_at: Option<Timestamp>,
}

/// A track with a due message.
struct Track {
    number: u8,
    lane: Lane,
    /// Number of its messages that may be released.
    room: usize,
}

impl RunCampaign {
    /// Releases due messages as far as there is room.
    pub(super) async fn release(
        &mut self,
        cx: &JobContext,
        campaign: &Campaign,
        state: &mut RunState,
        now: Timestamp,
    ) -> Result<Released, JobError> {
        let (workspace, id) = (self.workspace_id, self.campaign_id);
        let tracks = cx.app.store().waiting_tracks(workspace, id).await?;
        let later = tracks.iter().map(|(_, due)| *due).filter(|due| *due > now).min();
        // If no message waits for its time, all are in delivery.
        let mut released = Released { none_due: true, next_at: Some(later.unwrap_or(now + LOOK_AGAIN)) };
        let mut room = usize::from(TOGETHER);
        if let Some(limit) = campaign.plan.settings.rate_limit {
            let pace = cx.app.campaign_pace().look(id, limit, now);
            released.next_at = released.next_at.into_iter().chain(pace.next_at).min();
            room = room.min(pace.free);
        }
        let mut open = Vec::new();
        for (number, _) in tracks.into_iter().filter(|(_, due)| *due <= now) {
            let first = cx.app.store().due_messages(workspace, id, number, now, 1).await?;
            let Some((_, message)) = read_messages(cx, workspace, &first).await?.pop() else { continue };
            open.push(Track { number, lane: DeliverMessage::lane_of(&message), room: 0 });
        }
        if open.is_empty() {
            return Ok(released);
        }
        let lanes: Vec<Lane> = open.iter().map(|track| track.lane.clone()).collect();
        let lengths = cx.app.store().lane_lengths(&lanes, now, usize::from(TOGETHER)).await?;
        for (track, length) in open.iter_mut().zip(lengths) {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let window = usize::from(self.adapt(track.number, length, !state.has_shrunk));
            // Not one for each message that was delivered: the end of each wakes this job, and every pass reads all
            // tracks.
            track.room = if length > window / 2 { 0 } else { window - length };
            room = room.saturating_sub(length);
        }
        state.has_shrunk = true;
        let mut keys = Vec::new();
        for track in open {
            let wanted = track.room.min(room);
            if wanted == 0 {
                released.none_due = false;
                continue;
            }
            let due = cx.app.store().due_messages(workspace, id, track.number, now, wanted).await?;
            // The track may have more of them.
            released.none_due &= due.len() < wanted;
            room -= due.len();
            keys.extend(due);
        }
        let mut count = 0;
        let (mut size, mut rest) = (PageSize::new(PAGE), &keys[..]);
        while !rest.is_empty() {
            let (page, others) = rest.split_at(rest.len().min(size.size()));
            match self.release_page(cx, campaign, page, size.refused(), now).await {
                Ok(released) => {
                    (count, rest) = (count + released, others);
                    size.kept();
                }
                Err(JobError::Commit(error)) => size.failed(error, page.len())?,
                Err(error) => return Err(error),
            }
        }
        if count < keys.len() {
            // Other messages may take the place of withdrawn ones, whose end wakes nothing.
            released.next_at = Some(now);
        }
        if !released.none_due {
            released.next_at = released.next_at.min(Some(now + LOOK_AGAIN));
        }
        Ok(released)
    }

    /// Returns the window of a track with `length` messages in delivery: it doubles when found nearly empty, and is
    /// halved when found full.
    fn adapt(&mut self, track: u8, length: usize, may_shrink: bool) -> u16 {
        let window = self.windows.get(&track).copied().unwrap_or(SMALLEST);
        let next = match length {
            length if length <= usize::from(window / 8) && self.windows.contains_key(&track) => {
                window.saturating_mul(2).min(TOGETHER)
            }
            length if may_shrink && length >= usize::from(window) => (window / 2).max(SMALLEST),
            _ => window,
        };
        self.windows.insert(track, next);
        next
    }

    /// Removes a page of messages from the waiting ones that need no delivery: they were withdrawn one by one. Returns
    /// true if there were any.
    pub(super) async fn drop_settled(&self, cx: &JobContext) -> Result<bool, JobError> {
        let (workspace, id) = (self.workspace_id, self.campaign_id);
        let tracks = cx.app.store().waiting_tracks(workspace, id).await?;
        let Some((track, _)) = tracks.first() else { return Ok(false) };
        let keys = cx.app.store().due_messages(workspace, id, *track, EVER, PAGE).await?;
        cx.commit(Changes::from_iter([Write::TakeWaiting(workspace, id, keys)])).await?;
        Ok(true)
    }

    /// Makes the jobs of a page; returns their number. Messages that the store refuses are withdrawn instead.
    async fn release_page(
        &self,
        cx: &JobContext,
        campaign: &Campaign,
        keys: &[WaitingKey],
        refused: Option<&CommitError>,
        now: Timestamp,
    ) -> Result<usize, JobError> {
        let (workspace, id) = (self.workspace_id, self.campaign_id);
        let mut changes =
            Changes::from_iter([Write::Expect(Condition::Campaign(workspace, id, CampaignStatus::Sending))]);
        changes.push(Write::TakeWaiting(workspace, id, keys.to_vec()));
        let mut count = 0;
        for (_, message) in read_messages(cx, workspace, keys).await? {
            if let Some(why) = refused {
                changes.push(cx.app.quarantine(Some(workspace), ("campaign_message", &message.id), why, None));
                changes.extend(withdrawal(cx, &message, now).await?);
            } else if is_to_be_sent(&message) {
                let job = DeliverMessage::released(&message, now).enqueue(cx.app.new_id(now), now);
                changes.push(Write::Job(JobWrite::Enqueue(job)));
                count += 1;
            }
        }
        let Some(limit) = campaign.plan.settings.rate_limit else {
            cx.commit(changes).await?;
            return Ok(count);
        };
        // Counted before the commit: a message may be delivered before the commit returns here.
        cx.app.campaign_pace().release(id, limit, count, now);
        if let Err(error) = cx.commit(changes).await {
            cx.app.campaign_pace().put_back(id, count);
            return Err(error.into());
        }
        Ok(count)
    }
}

/// Returns true if a message is still to be sent. Withdrawing a message also removes it from the waiting ones; one that
/// was settled in another way is left out here.
fn is_to_be_sent(message: &Message) -> bool {
    message.status == MessageStatus::Queued && !message.is_redacted()
}
