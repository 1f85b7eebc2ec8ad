//! The trait of background jobs, and the context of one run of a job.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use messaging_core::changes::{Changes, JobHandle, JobWrite, PutBack, Reschedule, Write};
use messaging_core::error::Chain;
use messaging_core::ports::store::{ClaimedJob, CommitError, StoreError};
use messaging_core::time::{Monotonic, Timestamp};
use tokio::time::Instant;

use crate::app::App;
use crate::app::account_rates::SendSlot;
use crate::app::chat_order::ChatPosition;
use crate::app::grouped_commits::{Leading, Turn};
use crate::app::work_signal::Unsettled;
use crate::jobs::{JobData, Reach};
use crate::work::delivery_batch::DeliveryBatch;

/// Conflicts in a row that are normal.
const FREE_CONFLICTS: u32 = 4;
/// Wait before a commit that failed is tried again for the first time; it doubles with every try.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Longest wait between two tries, before jitter: an outcome is stored at most so long after the store has recovered.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Interval at which a wait for the store checks whether it takes writes again.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time for which a claim is fresh: a small part of a lease, and of the time after which a process counts as dead.
const FRESH: Duration = Duration::from_secs(1);
/// Tries of one outcome for each log line about them.
const LOG_EVERY: u32 = 16;

/// Kind of background work.
///
/// `run` owes a last commit that finishes or reschedules the job, through [`JobContext::finish`] or
/// [`JobContext::again_at`]. A job may run more than once, after a crash; while the process lives, an outcome that the
/// store cannot take is offered to it again until it can. An outcome that the store refuses for good is put aside with
/// its job if the job is about one item; a job of many items takes the refused item out itself.
pub(crate) trait Job: JobData {
    /// Does the work.
    fn run(self, cx: &JobContext) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// Error of a job that could not do its work or its commit. The runner puts the job back for later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// The payload cannot be decoded by this version.
    #[error("the payload of a job cannot be read")]
    Payload(#[source] serde_json::Error),
    /// A commit did not go through.
    #[error("the outcome of a job was not committed")]
    Commit(#[from] CommitError),
    /// A read failed.
    #[error("a job could not read what it needs")]
    Store(#[from] StoreError),
}

/// Context of one run of a job.
#[derive(Debug, Clone)]
pub(crate) struct JobContext {
    /// The application.
    pub app: App,
    /// Number of runs of the job before this one that failed in a row.
    pub failures: u32,
    handle: JobHandle,
    /// Time when this run began.
    began: Timestamp,
    /// Time when the job was claimed.
    claimed_at: Monotonic,
    /// Position of its message in the order of its chat.
    position: Option<Arc<ChatPosition>>,
    /// Webhook deliveries that were claimed with it.
    batch: Option<Arc<DeliveryBatch>>,
    /// Milliseconds of this run spent on waiting for a turn: they say nothing about the speed of its peer.
    waited: Arc<AtomicU64>,
}

impl JobContext {
    /// Context of a job that was claimed at `claimed_at`.
    pub(super) fn of(app: &App, job: &ClaimedJob, claimed_at: Monotonic) -> Self {
        Self {
            app: app.clone(),
            failures: job.failures,
            handle: job.handle.clone(),
            began: app.now(),
            claimed_at,
            position: None,
            batch: None,
            waited: Arc::default(),
        }
    }

    /// Sets the position of the run's message in the order of its chat.
    #[must_use]
    pub(super) fn placed(self, position: Option<ChatPosition>) -> Self {
        Self { position: position.map(Arc::new), ..self }
    }

    /// Sets the webhook deliveries that were claimed with the run's one.
    #[must_use]
    pub(super) fn among(self, batch: Option<Arc<DeliveryBatch>>) -> Self {
        Self { batch, ..self }
    }

    /// Webhook deliveries that were claimed with this one, if there are others.
    pub(super) fn batch(&self) -> Option<&DeliveryBatch> {
        self.batch.as_deref()
    }

    /// Commits changes together with the state of the job in case this run does not end: the job stays claimed, and a
    /// later run gets `job` as its payload.
    ///
    /// A peer waits for this commit with a connection open, so it is not held back to be grouped with others as the
    /// commits of other background work are.
    pub(crate) async fn save<J: Job>(&self, job: &J, mut changes: Changes) -> Result<(), JobError> {
        let payload = serde_json::to_vec(job).map_err(JobError::Payload)?;
        changes.push(Write::Job(JobWrite::Save(self.handle.clone(), payload.into())));
        Ok(self.app.commit_attempt(changes).await?)
    }

    /// Waits until the time `before` ahead of a slot.
    pub(super) async fn wait_for(&self, slot: Option<SendSlot>, before: Duration) {
        let wait = slot.map_or(Duration::ZERO, |slot| slot.0.since(self.app.monotonic())).saturating_sub(before);
        if !wait.is_zero() {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.waited.fetch_add(millis, Ordering::Relaxed);
            // A wait is always short, and takes real time, whatever the clock of the product shows.
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits a moment until the earlier messages to the same chat have left; the error is the time after which to ask
    /// again.
    pub(super) async fn turn_in_chat(&self) -> Result<(), Duration> {
        let Some(position) = &self.position else { return Ok(()) };
        let began = Instant::now();
        let turn = position.turn(|| self.app.monotonic()).await;
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waited.fetch_add(millis, Ordering::Relaxed);
        turn
    }

    /// Lets other messages to the chat go, which waited for this run.
    pub(super) fn leave_chat(&self) {
        if let Some(position) = &self.position {
            position.give_up();
        }
    }

    /// Puts off the message in the order of its chat. Called before the commit: right after it the next run of the job
    /// may hold the position.
    fn put_off_in_chat(&self, due_at: Timestamp) {
        if let Some(position) = &self.position {
            position.put_off(due_at.since(self.app.now()), self.app.monotonic());
        }
    }

    /// Time this run has waited for turns.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_millis(self.waited.load(Ordering::Relaxed))
    }

    /// Claim of this run, for upkeep that stores do under it.
    pub(super) const fn handle(&self) -> &JobHandle {
        &self.handle
    }

    /// Returns true if the claim of this run was made a moment ago, so that it need not be confirmed: no other process
    /// gets the job that soon.
    pub(super) fn is_claim_fresh(&self) -> bool {
        self.app.monotonic().since(self.claimed_at) <= FRESH
    }

    /// Fails unless the claim of this run is held; called right before something leaves the process. Costs no sync.
    pub(super) async fn hold(&self) -> Result<(), CommitError> {
        self.app.commit_promptly(Changes::from_iter([Write::Job(JobWrite::Hold(self.handle.clone()))])).await
    }

    /// Commits changes while the run continues, and only if its claim is held.
    pub(super) async fn commit(&self, mut changes: Changes) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        changes.push(Write::Job(JobWrite::Hold(self.handle.clone())));
        self.app.commit_in_background(changes).await
    }

    /// Commits the outcome and removes the job.
    ///
    /// Returns once it is committed, however long the disk is full or failing; the only errors are a conflict, a lost
    /// claim, changes that are refused for good, and a store that is closed or broken.
    pub(crate) async fn finish(&self, mut changes: Changes) -> Result<(), CommitError> {
        changes.push(Write::Job(JobWrite::Finish(self.handle.clone())));
        self.settle(changes).await?;
        self.leave_chat();
        Ok(())
    }

    /// Commits the outcome and puts the job, changed, back for later. As persistent as [`JobContext::finish`].
    pub(crate) async fn again_at<J: Job>(
        &self,
        due_at: Timestamp,
        job: &J,
        mut changes: Changes,
    ) -> Result<(), JobError> {
        changes.push(self.rescheduled(due_at, job)?);
        self.put_off_in_chat(due_at);
        Ok(self.settle(changes).await?)
    }

    /// Commits that the job, changed, continues in the lane that it names, where another process may claim it. As
    /// persistent as [`JobContext::finish`].
    pub(super) async fn go_on_in_its_lane<J: Job>(&self, due_at: Timestamp, job: &J) -> Result<(), JobError> {
        let next = job.enqueue(self.app.new_id(self.app.now()), due_at);
        let writes = [JobWrite::Finish(self.handle.clone()), JobWrite::Enqueue(next)];
        Ok(self.settle(writes.into_iter().map(Write::Job).collect()).await?)
    }

    /// Returns the write that puts the job, changed, back for later.
    fn rescheduled<J: Job>(&self, due_at: Timestamp, job: &J) -> Result<Write, JobError> {
        let payload = serde_json::to_vec(job).map_err(JobError::Payload)?;
        let to = Reschedule { due_at, at: self.dated_at(due_at), payload: payload.into() };
        Ok(Write::Job(JobWrite::Reschedule(self.handle.clone(), to)))
    }

    /// Commits the outcome together with those of other jobs that end meanwhile, and removes the job, or puts it back
    /// if it continues at some time. As persistent as [`JobContext::finish`]. Returns false if the outcome has to be
    /// committed by itself: something in the group conflicted, or the result of the commit is unknown.
    pub(super) async fn settle_with_others<J: Job>(
        &self,
        job: &J,
        due_at: Option<Timestamp>,
        mut changes: Changes,
    ) -> Result<bool, JobError> {
        changes.push(match due_at {
            Some(due_at) => self.rescheduled(due_at, job)?,
            None => Write::Job(JobWrite::Finish(self.handle.clone())),
        });
        let _waits = self.app.work().unsettled();
        let (leading, own) = match self.app.0.grouped_commits.offer(changes) {
            Ok(lead) => lead,
            Err(turn) => match turn.await {
                Ok(Turn::Lead(leading, own)) => (leading, own),
                Ok(Turn::Over(is_committed)) => return Ok(is_committed),
                Err(_) => return Ok(false),
            },
        };
        Ok(self.commit_group(leading, own).await)
    }

    /// Commits changes together with those that wait behind them; returns true on success.
    async fn commit_group(&self, leading: Leading, own: Changes) -> bool {
        let (group, followers) = leading.gather(own);
        let committed = self.settle(group).await;
        if let Err(error) = &committed {
            tracing::debug!(error = %Chain(error), "outcomes are committed one by one");
        }
        followers.tell(committed.is_ok());
        committed.is_ok()
    }

    /// Date at which a due time of this run was decided on, as far as can be told. When the clock has been set back
    /// since, that is a date in the future, and the store has to know: a job that is dated now would wait until then.
    fn dated_at(&self, due_at: Timestamp) -> Timestamp {
        let now = self.app.now();
        if now < self.began && self.began <= due_at { self.began } else { now }
    }

    /// Puts the job back for `wait` after a run without an outcome, with the state that was saved last; `is_failure` is
    /// counted.
    pub(super) async fn put_back(&self, wait: Duration, is_failure: bool) -> Result<(), CommitError> {
        let at = self.app.now();
        let write = Write::Job(JobWrite::PutBack(self.handle.clone(), PutBack { due_at: at + wait, at, is_failure }));
        self.put_off_in_chat(at + wait);
        self.settle(Changes::from_iter([write])).await
    }

    async fn settle(&self, changes: Changes) -> Result<(), CommitError> {
        retry_while_unavailable(&self.app, || self.app.commit_in_background(changes.clone())).await
    }
}

/// Repeats the step between a known outcome and its commit until the store allows it: otherwise the message would be
/// sent again.
pub(super) async fn retry_while_unavailable<T, E, F>(app: &App, mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: std::error::Error + 'static,
    for<'a> &'a E: Into<Persistence>,
{
    let mut unsettled: Option<Unsettled<'_>> = None;
    let mut wait = FIRST_WAIT;
    let mut tries = 0_u32;
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if (&error).into() == Persistence::GiveUp || app.store().health().is_final() {
            return Err(error);
        }
        unsettled.get_or_insert_with(|| app.work().unsettled());
        // Hundreds of outcomes may wait for one disk, whose failure is logged itself; one that waits for long is logged
        // too.
        if tries.is_multiple_of(LOG_EVERY) && tries > 0 {
            tracing::warn!(tries, error = %Chain(&error), "an outcome waits for the store");
        }
        tries = tries.saturating_add(1);
        // The store's own state, not the product's clock, decides when to continue.
        wait_for_store(app, jittered(app, wait)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Waits for the given time, or until a store that takes no writes takes them again. The store is polled: a channel
/// would wake the waiters in a random order, and no simulated run could be repeated.
async fn wait_for_store(app: &App, wait: Duration) {
    if app.store().health().takes_work() {
        return tokio::time::sleep(wait).await;
    }
    let end = Instant::now() + wait;
    while Instant::now() < end && !app.store().health().takes_work() {
        tokio::time::sleep_until(end.min(Instant::now() + LOOK_EVERY)).await;
    }
}

/// Decision whether a failed step is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Persistence {
    TryAgain,
    GiveUp,
}

impl From<&CommitError> for Persistence {
    fn from(error: &CommitError) -> Self {
        match error {
            // The caller that offered a change decides about its refusal.
            CommitError::Conflict | CommitError::LeaseLost | CommitError::Refused(_) => Self::GiveUp,
            CommitError::Store(_) => Self::TryAgain,
        }
    }
}

impl From<&StoreError> for Persistence {
    fn from(_: &StoreError) -> Self {
        Self::TryAgain
    }
}

/// Waits a moment before an outcome is decided again after the first conflicts: outcomes that count for the same
/// address at the same time would otherwise meet again and again, and only one of them gets through each time.
pub(super) async fn back_off_after_conflict(app: &App, conflicts: u32) {
    if conflicts > FREE_CONFLICTS {
        // In real time, as in `retry_while_unavailable`: the store is what it waits for.
        tokio::time::sleep(jittered(app, FIRST_WAIT * (conflicts % FREE_CONFLICTS + 1))).await;
    }
}

/// Returns a random wait between one and one and a half times as long: outcomes that failed together come back apart.
fn jittered(app: &App, wait: Duration) -> Duration {
    let mut random = [0; 1];
    app.entropy().fill(&mut random);
    wait + wait * u32::from(random[0]) / 512
}

/// A job type with its types erased.
#[derive(Clone, Copy)]
pub(crate) struct JobType {
    /// [`JobData::KIND`]
    pub kind: &'static str,
    /// [`JobData::REACH`]
    pub reach: Reach,
    /// Decodes the payload and runs.
    pub run: for<'a> fn(&'a JobContext, &'a ClaimedJob) -> BoxFuture<'a, Result<(), JobError>>,
}

impl JobType {
    /// Returns the row of a job type.
    pub(crate) const fn of<J: Job>() -> Self {
        Self {
            kind: J::KIND,
            reach: J::REACH,
            run: |cx, claimed| {
                Box::pin(async move {
                    let mut job: J = serde_json::from_slice(&claimed.payload).map_err(JobError::Payload)?;
                    job.claimed_in(&claimed.handle.lane);
                    job.run(cx).await
                })
            },
        }
    }
}

impl std::fmt::Debug for JobType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind)
    }
}
