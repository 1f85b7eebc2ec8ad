//! The job that sends a confirmation, once.
//!
//! Contract section 23. The message, and that it was sent for a list, are one commit with the end of the job.
//!
//! The confirmations of an import are made no faster than they leave: as long as [`ENOUGH`] bulk messages wait for a
//! recipient domain, those for it wait as jobs, in a lane that is held. A message that waits has a time at which it
//! expires, and a million of them take gigabytes.

use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::error::Chain;
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::time::Timestamp;

use crate::error::Error;
use crate::jobs::send_confirmation::SendConfirmation;
use crate::jobs::{JobData as _, lanes};
use crate::work::job::{Job, JobContext, JobError};

/// Number of bulk messages that wait for a recipient domain above which no confirmation for it is made.
const ENOUGH: usize = 200;

/// Time after which it is looked whether fewer wait.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Job for SendConfirmation {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        if let Some(domain) = crowded_domain(cx, &self).await? {
            return self.wait_behind(cx, domain).await;
        }
        if self.behind.is_some() {
            cx.app.0.held_lanes.release(&self.lane());
        }
        let writes = match cx.app.confirmation_writes(&self).await {
            Ok(writes) => writes,
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => return Err(StoreError::Unavailable.into()),
            Err(Error::Internal(source)) => match source.downcast::<StoreError>() {
                Ok(failed) => return Err((*failed).into()),
                Err(other) => return Err(StoreError::Failed(other).into()),
            },
            // Nothing that the reader could do: the workspace has no sender, or no verified domain.
            Err(error) => {
                tracing::warn!(
                    workspace_id = %self.workspace_id,
                    error = %Chain(&error),
                    "a confirmation could not be sent"
                );
                Vec::new()
            }
        };
        match cx.finish(Changes::from_iter(writes)).await {
            // The record has changed: whether anything is left to confirm is decided again.
            Err(CommitError::Conflict) => cx.again_at(cx.app.now(), &self, Changes::default()).await,
            outcome => Ok(outcome?),
        }
    }
}

impl SendConfirmation {
    /// Has the job wait until fewer messages wait for the domain: in the domain's lane, of which one job at a time
    /// looks.
    async fn wait_behind(mut self, cx: &JobContext, domain: String) -> Result<(), JobError> {
        let is_there = self.behind.as_deref() == Some(domain.as_str());
        self.behind = Some(domain);
        let now = cx.app.monotonic();
        cx.app.0.held_lanes.hold(self.lane(), now, now + LOOK_AGAIN);
        if is_there {
            cx.again_at(cx.app.now() + LOOK_AGAIN, &self, Changes::default()).await
        } else {
            cx.go_on_in_its_lane(cx.app.now(), &self).await
        }
    }
}

/// Returns the recipient domain of a confirmation of an import, if enough bulk messages wait for it. Messages that wait
/// for the source of another node have a lane beside, and are not counted.
async fn crowded_domain(cx: &JobContext, job: &SendConfirmation) -> Result<Option<String>, StoreError> {
    if job.class() != JobClass::Bulk {
        return Ok(None);
    }
    let Some(contact) = cx.app.store().contact(job.workspace_id, job.contact_id).await? else { return Ok(None) };
    let address = contact.record.email.and_then(|email| EmailAddress::parse(&email).ok());
    let Some(domain) = address.map(|address| address.ascii_domain()) else { return Ok(None) };
    let lane = Lane::new(JobClass::Bulk, job.workspace_id, &format!("{}{domain}", lanes::EMAIL));
    let ever = Timestamp::from_millis(i64::MAX);
    let waiting = cx.app.store().lane_lengths(&[lane], ever, ENOUGH).await?;
    let is_crowded = waiting.iter().any(|length| *length >= ENOUGH as u64);
    Ok(is_crowded.then_some(domain))
}
