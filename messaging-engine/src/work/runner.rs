//! Claims jobs and runs them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use messaging_core::changes::Changes;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::installation::quarantine::Again;
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Claim, ClaimedJob, CommitError, StoreError, StoreHealth, WithheldOf};
use messaging_core::time::Monotonic;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::app::App;
use crate::app::chat_order::ChatPosition;
use crate::app::unknown_kinds;
use crate::jobs::call_node::CallNode;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::jobs::send_fallback::SendFallback;
use crate::jobs::settle_receipt::SettleReceipt;
use crate::jobs::{JobData as _, Reach, lanes};
use crate::work::delivery_batch::DeliveryBatch;
use crate::work::job::{JobContext, JobError};
use crate::work::lanes::{HOLD, Lanes, Took, WINDOW};
use crate::work::repeated_failure::RepeatedFailure;
use crate::work::{all, paused_lanes};
use crate::work::{index_search, keep_paths};

/// Duration of a claim. It outlasts every attempt: SMTP alone may take half an hour (RFC 5321 section 4.5.3.2).
const LEASE: Duration = Duration::from_hours(1);
/// Jobs in a claim after which the next claim follows at once.
const MANY: usize = 24;
/// Time that jobs which come one by one are gathered for one claim: a claim costs the store as much as some jobs.
const GATHER: Duration = Duration::from_millis(40);
/// Number of looks for further jobs that end at the same moment as one that did.
const AT_ONCE: usize = 64;
/// Wait of a job that failed.
const RETRY: Duration = Duration::from_secs(30);
/// Longest wait of a job that keeps failing; it doubles with every failure that the job caused itself.
const LONGEST_RETRY: Duration = Duration::from_hours(6);
/// Wait of a job whose data changed while it decided.
const CONFLICT_RETRY: Duration = Duration::from_secs(1);
/// Longest wait between claims: jobs that another process committed (the command line beside a server) announce nothing
/// here.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Wait of a job that did nothing because the store kept it from its work.
const STORE_RETRY: Duration = Duration::from_secs(2);
/// Wait of a job that was claimed although nothing may leave the installation, or its workspace.
const WITHHELD_RETRY: Duration = Duration::from_mins(1);
/// Wait of a message that was claimed although its part of the queue is suspended.
const SUSPENDED_RETRY: Duration = Duration::from_secs(5);
/// Longest time that outcomes waiting for the store go before new claims once the store is healthy again: a job whose
/// lease ended meanwhile must not be claimed again while its outcome is known.
const SETTLE: Duration = Duration::from_secs(5);
/// Interval of the looks whether these outcomes are stored.
const SETTLE_LOOK: Duration = Duration::from_millis(20);
/// Time limit for running jobs to end when the workers stop.
const GRACE: Duration = Duration::from_secs(10);

/// The running background work of a process.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Workers {
    /// Starts working on `runtime`, which may differ from the one that serves requests.
    pub fn start(app: &App, runtime: &Handle) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, task: runtime.spawn(work(app.clone(), stopped)) }
    }

    /// Stops claiming and waits for the running jobs, at most 10 seconds. Jobs that have not ended by then are dropped;
    /// they are still stored and will be run again.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await
            && error.is_panic()
        {
            tracing::error!("the workers panicked");
        }
    }
}

/// Running jobs and their lanes.
#[derive(Default)]
struct InWork {
    tasks: JoinSet<Ended>,
    lanes: Lanes,
}

/// Lane of a job that ended, and the time it took.
type Ended = (Lane, Took);

/// Jobs that were claimed together.
struct Claimed {
    jobs: Vec<ClaimedJob>,
    /// Time at which the claim began, on the clock of the process.
    at: Monotonic,
}

impl InWork {
    fn start_all(&mut self, app: &App, Claimed { jobs, at }: Claimed) {
        let batches = DeliveryBatch::of(&jobs);
        for (job, batch) in jobs.into_iter().zip(batches) {
            self.start(app, (job, at), batch);
        }
    }

    fn start(&mut self, app: &App, (job, at): (ClaimedJob, Monotonic), batch: Option<Arc<DeliveryBatch>>) {
        self.lanes.begin(&job.handle.lane);
        let position = position_in_chat(app, &job);
        let app = app.clone();
        let claimed = Instant::now();
        self.tasks.spawn(async move {
            let lane = job.handle.lane.clone();
            let began = Instant::now();
            let waited = run(JobContext::of(&app, &job, at).placed(position).among(batch), job).await;
            (lane, Took { lag: began.duration_since(claimed), work: began.elapsed().saturating_sub(waited) })
        });
    }

    /// Collects all jobs that have ended.
    fn collect(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            // `run` catches panics, so that the lane is always known.
            if let Ok((lane, took)) = ended {
                self.lanes.end(&lane, took);
            }
        }
    }

    async fn one_ended(&mut self) {
        if let Some(Ok((lane, took))) = self.tasks.join_next().await {
            self.lanes.end(&lane, took);
        }
    }

    /// Waits until a job has ended, and collects those that end at the same moment: the outcomes of many are one
    /// commit, and a claim for each of them would cost more than they do.
    async fn some_ended(&mut self) {
        self.one_ended().await;
        for _ in 0..AT_ONCE {
            let before = self.tasks.len();
            tokio::task::yield_now().await;
            self.collect();
            if self.tasks.len() == before {
                return;
            }
        }
    }
}

async fn work(app: App, mut stopped: watch::Receiver<bool>) {
    let mut in_work = InWork::default();
    let mut is_prepared = false;
    let mut failure = RepeatedFailure::default();
    let keeping = keep_paths::spawn(&app, &stopped);
    let indexing = index_search::spawn(&app, &stopped);
    while !*stopped.borrow() {
        in_work.collect();
        if !app.store().health().takes_work() {
            tokio::select! {
                biased;
                _ = stopped.changed() => {}
                () = healthy_again(&app) => {}
            }
            continue;
        }
        let claiming = async {
            if !is_prepared {
                app.prepare_to_work().await.map_err(CommitError::into_store_error)?;
                is_prepared = true;
            }
            claim(&app, &in_work, WINDOW).await
        };
        let claimed = match claiming.await {
            Ok(claimed) => claimed,
            Err(error) => {
                if let Some(error) = failure.note(&error, app.monotonic()) {
                    tracing::warn!(error, "no jobs could be claimed");
                }
                tokio::select! {
                    biased;
                    _ = stopped.changed() => {}
                    () = app.clock().sleep(LOOK_AGAIN) => {}
                }
                continue;
            }
        };
        // A claim of this size has hardly taken all due jobs.
        let more = claimed.jobs.len() >= MANY;
        in_work.start_all(&app, claimed);
        if more && in_work.tasks.len() < WINDOW {
            continue;
        }
        let pause = pause(&app).await;
        // The next claim waits until a quarter of the jobs has ended.
        let enough = in_work.tasks.len() - in_work.tasks.len() / 4;
        loop {
            tokio::select! {
                // In this order: a process that is told to stop begins nothing more.
                biased;
                _ = stopped.changed() => {}
                () = in_work.one_ended(), if !in_work.tasks.is_empty() => {
                    in_work.collect();
                    if in_work.tasks.len() > enough {
                        continue;
                    }
                }
                () = app.work().changed(), if in_work.tasks.len() < WINDOW => tokio::time::sleep(GATHER).await,
                () = app.clock().sleep(pause), if in_work.tasks.len() < WINDOW => {}
            }
            break;
        }
    }
    app.store().hand_over();
    let ending = async { while in_work.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ending).await.is_err() {
        tracing::warn!("some jobs did not end in time and will be run again");
    }
    // The two loops end by the same signal as this one.
    let _ = keeping.await;
    let _ = indexing.await;
    keep_paths::save_all(&app).await;
}

/// Returns when the store takes work again, and the outcomes that waited for it are stored, or `SETTLE` has passed.
async fn healthy_again(app: &App) {
    let mut health = app.store().watch_health();
    let state = *health.borrow_and_update();
    tracing::warn!(reason = state.as_str(), "no jobs are claimed until the store is healthy again");
    // An error means that the store is gone; the worker is about to be stopped.
    if health.wait_for(|health| health.takes_work()).await.is_err() {
        std::future::pending::<()>().await;
    }
    let settled = async {
        while app.work().has_unsettled() {
            tokio::time::sleep(SETTLE_LOOK).await;
        }
    };
    let _ = tokio::time::timeout(SETTLE, settled).await;
    tracing::info!("jobs are claimed again");
}

/// Returns the time until the next claim, unless something happens before.
async fn pause(app: &App) -> Duration {
    match app.store().next_due(app.now(), app.monotonic()).await {
        // A job that is due but held by its lane is looked for after a moment, not at once.
        Ok(Some(wait)) => wait.clamp(HOLD, LOOK_AGAIN),
        Ok(None) | Err(_) => LOOK_AGAIN,
    }
}

/// Claims jobs until `most` jobs are in work.
async fn claim(app: &App, in_work: &InWork, most: usize) -> Result<Claimed, StoreError> {
    let at = app.monotonic();
    let room = most.saturating_sub(in_work.tasks.len());
    if room == 0 {
        return Ok(Claimed { jobs: Vec::new(), at });
    }
    if !app.store().health().takes_work() {
        return Err(StoreError::Unavailable);
    }
    let claim = in_work.lanes.claim(room, app.now(), at, LEASE);
    let weights = app.settings().workspace_weights.clone();
    if app.fence().is_some() {
        app.look_at_fence().await?;
    }
    let withheld = if app.fence().is_some() { lanes::LEAVING } else { &[] };
    let withheld_of = WithheldOf { workspaces: app.ending_workspaces().await?, resources: lanes::LEAVING };
    let suspended = app.suspensions().await?;
    let mut claim = Claim { weights, withheld, withheld_of, suspended, ..claim };
    app.0.held_lanes.bound(&mut claim);
    let paused = paused_lanes::hold(app, &in_work.lanes, &mut claim).await?;
    app.0.metrics.tell_paused(paused);
    Ok(Claimed { jobs: app.store().claim(claim).await?, at })
}

/// Returns the position of a job in the order of its chat; positions are given in the order of claims.
fn position_in_chat(app: &App, job: &ClaimedJob) -> Option<ChatPosition> {
    let chat = DeliverMessage::chat_of(job)?;
    Some(app.0.chat_order.enter(chat, job.handle.id, app.monotonic()))
}

/// Runs one job. Whatever happens, it ends finished, rescheduled, or to be claimed again. Returns the time it waited
/// for turns.
async fn run(cx: JobContext, job: ClaimedJob) -> Duration {
    attempt(&cx.app, &cx, job).await;
    cx.waited()
}

async fn attempt(app: &App, cx: &JobContext, job: ClaimedJob) {
    let Some(job_type) = all().iter().find(|one| one.kind == job.kind) else {
        // Written by a newer version; it stays for that version.
        tracing::error!(kind = job.kind, "a job of an unknown kind is left for later");
        app.0.metrics.unknown_kinds.meet(job.handle.id, app.monotonic());
        put_back(cx, &job, unknown_kinds::LOOK_AGAIN, false).await;
        return;
    };
    if job_type.reach == Reach::Outside && app.fence().is_some() {
        // The lane of the job should have been withheld.
        tracing::warn!(kind = job.kind, lane = %job.handle.lane, "a job waits for the fence to come down");
        put_back(cx, &job, WITHHELD_RETRY, false).await;
        return;
    }
    if job_type.reach == Reach::Outside && is_of_ending_workspace(app, &job).await {
        tracing::debug!(kind = job.kind, lane = %job.handle.lane, "a job waits because its workspace is under deletion");
        put_back(cx, &job, WITHHELD_RETRY, false).await;
        return;
    }
    if job.kind == DeliverMessage::KIND && app.is_suspended(&job.handle.lane) {
        put_back(cx, &job, SUSPENDED_RETRY, false).await;
        return;
    }
    let health = app.store().watch_health();
    let outcome = std::panic::AssertUnwindSafe((job_type.run)(cx, &job)).catch_unwind().await;
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(JobError::Commit(lost @ CommitError::LeaseLost))) => {
            // Another process has the job now and does the rest; there is nothing to put back.
            tracing::warn!(kind = job.kind, job = %job.handle.id, "{lost}");
        }
        Ok(Err(JobError::Commit(CommitError::Conflict))) => {
            // A row had changed that the job expected otherwise: the job decides again on the current data.
            tracing::debug!(kind = job.kind, job = %job.handle.id, "a job decides again");
            put_back(cx, &job, CONFLICT_RETRY, false).await;
        }
        Ok(Err(JobError::Commit(CommitError::Refused(why)))) if is_one_item(&job.kind) => {
            let (workspace, subject) = item_of(&job);
            let again = Again::Job {
                kind: job.kind.clone(),
                lane: job.handle.lane.clone(),
                payload: String::from_utf8_lossy(&job.payload).into_owned(),
            };
            let record = app.quarantine(workspace, (&job.kind, &subject), why.as_ref(), Some(again));
            if let Err(error) = cx.finish(Changes::from_iter([record])).await {
                tracing::warn!(error = %Chain(&error), "a job was not put aside and waits for its lease to end");
            }
        }
        // The store failed, not the job: its wait does not grow.
        Ok(Err(JobError::Store(error) | JobError::Commit(CommitError::Store(error))))
            if is_unavailable(&error) && is_held_up(app, &job, &health) =>
        {
            tracing::debug!(kind = job.kind, job = %job.handle.id, "a job waits for the store");
            put_back(cx, &job, STORE_RETRY, false).await;
        }
        Ok(Err(error)) => {
            tracing::error!(kind = job.kind, job = %job.handle.id, error = %Chain(&error), "a job failed");
            // A store that is healthy and fails at one thing will fail at it again.
            let is_failure = match &error {
                JobError::Payload(_) | JobError::Commit(CommitError::Refused(_)) => true,
                JobError::Store(StoreError::Failed(_)) => app.store().health().is_healthy(),
                _ => false,
            };
            put_back(cx, &job, if is_failure { back_off(job.failures) } else { RETRY }, is_failure).await;
        }
        Err(_) => {
            tracing::error!(kind = job.kind, job = %job.handle.id, failures = job.failures, "a job panicked");
            put_back(cx, &job, back_off(job.failures), true).await;
        }
    }
}

/// Returns true if a store could not be reached, or the result of a commit is unknown.
const fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable | StoreError::OutcomeUnknown)
}

/// Returns true if there is a known reason why a job could not do its work: the store is not healthy, or was not since
/// `health` was subscribed to; it has lost its database; or nothing may leave the installation, or the workspace.
fn is_held_up(app: &App, job: &ClaimedJob, health: &watch::Receiver<StoreHealth>) -> bool {
    let workspace = job.handle.lane.flow().workspace;
    !app.store().health().is_healthy()
        || health.has_changed().unwrap_or(true)
        || app.store().has_lost_connection()
        || app.fence().is_some()
        || workspace.is_some_and(|workspace| !app.may_send_from(workspace))
}

/// Returns true if the workspace of a job is under deletion, which was not known yet when the job was claimed. If that
/// cannot be looked up now, the job looks itself.
async fn is_of_ending_workspace(app: &App, job: &ClaimedJob) -> bool {
    let Some(workspace) = job.handle.lane.flow().workspace else { return false };
    app.ending_workspaces().await.is_ok_and(|ending| ending.contains(&workspace))
}

/// Kinds of jobs that are about one item each: if one is put aside, no other work stops.
const OF_ONE_ITEM: [&str; 5] =
    [CallNode::KIND, DeliverMessage::KIND, DeliverWebhook::KIND, SendFallback::KIND, SettleReceipt::KIND];

fn is_one_item(kind: &str) -> bool {
    OF_ONE_ITEM.contains(&kind)
}

/// Returns the workspace and the item of such a job, as its payload names them.
fn item_of(job: &ClaimedJob) -> (Option<WorkspaceId>, String) {
    let payload: Value = serde_json::from_slice(&job.payload).unwrap_or_default();
    let named = |names: &[&str]| names.iter().find_map(|name| payload[*name].as_str()).map(ToOwned::to_owned);
    let workspace = named(&["workspace_id", "workspace"]).and_then(|text| text.parse().ok());
    (workspace, named(&["message_id", "delivery", "run_id"]).unwrap_or_else(|| job.handle.id.to_string()))
}

/// Wait of a job after a failure that `failures` others preceded: a job that failed by itself, not because of the
/// store, will most likely fail again.
fn back_off(failures: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(LONGEST_RETRY)
}

/// Gives up the claim; while the store cannot be written, this waits for the store like every outcome.
async fn put_back(cx: &JobContext, job: &ClaimedJob, wait: Duration, is_failure: bool) {
    if let Err(error) = cx.put_back(wait, is_failure).await {
        tracing::warn!(kind = job.kind, error = %Chain(&error), "a job was not put back and waits for its lease to end");
    }
}

impl App {
    /// Does all due work, and all that follows from it, until nothing is due or only what is held for a moment. For tests and for programs that
    /// send and exit; a server runs [`Workers`]. When jobs cannot be claimed, those in work end before the error is
    /// returned.
    pub async fn run_until_idle(&self) -> Result<(), StoreError> {
        let mut in_work = InWork::default();
        loop {
            let claimed = match claim(self, &in_work, WINDOW).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    // Jobs in work may have sent something, and their outcome would be lost.
                    while !in_work.tasks.is_empty() {
                        in_work.one_ended().await;
                    }
                    return Err(error);
                }
            };
            if claimed.jobs.is_empty() && in_work.tasks.is_empty() {
                keep_paths::save_all(self).await;
                index_search::follow(self, &mut RepeatedFailure::default()).await;
                return Ok(());
            }
            in_work.start_all(self, claimed);
            in_work.some_ended().await;
        }
    }

    /// Like `run_until_idle`, one job after another: for simulations, which have the store for themselves.
    pub(crate) async fn run_one_by_one(&self) -> Result<(), StoreError> {
        let nothing = InWork::default();
        loop {
            let Claimed { jobs, at } = claim(self, &nothing, 1).await?;
            if jobs.is_empty() {
                return Ok(());
            }
            for job in jobs {
                let position = position_in_chat(self, &job);
                run(JobContext::of(self, &job, at).placed(position), job).await;
            }
        }
    }
}
