//! Job that acts on the waiting messages of a part of the queue: it tries them again at once, cancels them, or has them
//! look for an address to leave from.
//!
//! Contract section 26. The job reads all jobs in the order of their lanes, a page to a commit, and stores its position
//! between runs. Work that is done twice after an interruption changes nothing: a cancelled message is not cancelled
//! again, and one that was tried again is dated later than the request.

use std::collections::HashSet;

use messaging_core::changes::{Changes, JobPlace, JobWrite, Write};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::delivery::queue::messages_of;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{CommitError, DatedJob, StoreError};
use messaging_core::time::Timestamp;

use crate::app::paths::UNTIL_SOMEBODY_ACTS;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::work_on_queue::{QueueAction, WorkOnQueue};
use crate::jobs::{JobData as _, lanes};
use crate::work::job::{Job, JobContext, JobError};

/// Number of jobs of one commit.
const PAGE: usize = 200;
/// Number of pages of one run before other jobs have their turn.
const MAX_PAGES: usize = 100;
/// Number of tries to cancel a single message while it keeps changing.
const MAX_COMMITS: usize = 8;

impl Job for WorkOnQueue {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        for _ in 0..MAX_PAGES {
            let after = self.after.clone().map(|(lane, due_at, id)| JobPlace { id, lane, due_at });
            let page = cx.app.store().jobs_after(after.as_ref(), PAGE).await?;
            let Some(last) = page.last().map(|read| &read.job.place) else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            // The rest of a lane outside the part is skipped.
            let is_part = self.scope.covers(&last.lane) || self.has_confirmations(&last.lane);
            let due_at = if is_part { last.due_at } else { Timestamp::from_millis(i64::MAX) };
            self.after = Some((last.lane.clone(), due_at, last.id));
            match self.action {
                QueueAction::Retry => {
                    let places = self.put_off(cx.app.now(), &page);
                    // Otherwise the attempts would be answered with a failure from before the request.
                    let domains = places.iter().filter_map(|place| messages_of(&place.lane)?.1);
                    domains.collect::<HashSet<_>>().into_iter().for_each(|domain| cx.app.forget_unreachable(domain));
                    cx.commit(make_due(places, cx.app.now())).await?;
                }
                QueueAction::FindSource => {
                    let places = self.without_source(cx, &page).await?;
                    cx.commit(make_due(places, cx.app.now())).await?;
                }
                QueueAction::Cancel => {
                    cancel_all(cx, self.messages(&page)).await?;
                    cx.commit(self.removed_confirmations(&page)).await?;
                }
            }
        }
        cx.again_at(cx.app.now(), &self, Changes::default()).await
    }
}

impl WorkOnQueue {
    /// Returns the delivery jobs of a page within the part, with their positions.
    fn deliveries<'a>(&'a self, page: &'a [DatedJob]) -> impl Iterator<Item = (&'a DatedJob, DeliverMessage)> {
        let is_meant = |read: &&DatedJob| {
            read.job.kind == DeliverMessage::KIND
                && self.scope.covers(&read.job.place.lane)
                && read.job.place.id.millis() <= self.asked_at.as_millis()
        };
        // Jobs that a later version wrote are left to it.
        page.iter().filter(is_meant).filter_map(|read| Some((read, serde_json::from_slice(&read.job.payload).ok()?)))
    }

    /// Returns the jobs that were put off before the request. Without that bound, messages that fail again while the
    /// job is at work would be tried again without end.
    fn put_off(&self, now: Timestamp, page: &[DatedJob]) -> Vec<JobPlace> {
        let waits = |read: &DatedJob| read.job.place.due_at > now && read.dated_at <= self.asked_at;
        let found = self.deliveries(page).filter(|(read, delivery)| delivery.attempt > 1 && waits(read));
        found.map(|(read, _)| read.job.place.clone()).collect()
    }

    /// Returns the jobs whose messages are held for want of an address to leave from, since before the request. No such
    /// job waits longer than a path lets it, so that messages of jobs that wait longer need not be read.
    async fn without_source(&self, cx: &JobContext, page: &[DatedJob]) -> Result<Vec<JobPlace>, StoreError> {
        let now = cx.app.now();
        let may_be = |read: &DatedJob| {
            (now..=now + UNTIL_SOMEBODY_ACTS).contains(&read.job.place.due_at) && read.dated_at < self.asked_at
        };
        let mut places = Vec::new();
        for (read, delivery) in self.deliveries(page).filter(|(read, _)| may_be(read)) {
            let message = cx.app.store().message(delivery.workspace_id, delivery.message_id).await?;
            if message.and_then(|message| message.hold).is_some_and(|hold| hold.reason == HoldReason::NoSource) {
                places.push(read.job.place.clone());
            }
        }
        Ok(places)
    }

    /// Returns true if a lane holds confirmations of imports whose messages would be in the part.
    fn has_confirmations(&self, lane: &Lane) -> bool {
        let Some(behind) = lane.resource().strip_prefix(lanes::CONFIRMATIONS) else { return false };
        lane.class() == JobClass::Bulk
            && self.scope.campaign_id.is_none()
            && self.scope.workspace_id.is_none_or(|wanted| lane.flow().workspace == Some(wanted))
            && self.scope.domain.as_deref().is_none_or(|wanted| behind.strip_prefix(':') == Some(wanted))
    }

    /// Returns the writes that remove the confirmations of a page that would be messages of the part.
    fn removed_confirmations(&self, page: &[DatedJob]) -> Changes {
        let is_meant =
            |place: &&JobPlace| self.has_confirmations(&place.lane) && place.id.millis() <= self.asked_at.as_millis();
        let places = page.iter().map(|read| &read.job.place).filter(is_meant);
        places.map(|place| Write::Job(JobWrite::Remove(place.clone()))).collect()
    }

    /// Returns the messages of a page, each once.
    fn messages(&self, page: &[DatedJob]) -> HashSet<(WorkspaceId, MessageId)> {
        self.deliveries(page).map(|(_, delivery)| (delivery.workspace_id, delivery.message_id)).collect()
    }
}

/// Returns the write that makes jobs due.
fn make_due(places: Vec<JobPlace>, now: Timestamp) -> Changes {
    (!places.is_empty()).then_some(Write::Job(JobWrite::MakeDue(places, now))).into_iter().collect()
}

/// Cancels messages in one commit; one by one if a running delivery has changed one of them meanwhile.
async fn cancel_all(cx: &JobContext, messages: HashSet<(WorkspaceId, MessageId)>) -> Result<(), JobError> {
    let mut changes = Changes::default();
    for (workspace, message) in &messages {
        changes.extend(cancellation(cx, *workspace, *message).await?);
    }
    match cx.commit(changes).await {
        Err(CommitError::Conflict) => {
            for (workspace, message) in messages {
                cancel_one(cx, workspace, message).await?;
            }
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}

async fn cancel_one(cx: &JobContext, workspace: WorkspaceId, id: MessageId) -> Result<(), JobError> {
    for _ in 0..MAX_COMMITS {
        match cx.commit(cancellation(cx, workspace, id).await?.into_iter().collect()).await {
            Err(CommitError::Conflict) => {}
            outcome => return Ok(outcome?),
        }
    }
    // The message keeps being attempted, and a running attempt continues.
    Ok(())
}

/// Returns the writes that cancel a message, unless it is being attempted or has ended. Its job ends when it finds
/// that.
async fn cancellation(cx: &JobContext, workspace: WorkspaceId, id: MessageId) -> Result<Vec<Write>, StoreError> {
    let found = cx.app.store().message(workspace, id).await?;
    match found.filter(|message| message.status.may_become(MessageStatus::Cancelled)) {
        Some(message) => cx.app.cancellation_of(&message, cx.app.now()).await,
        None => Ok(Vec::new()),
    }
}
