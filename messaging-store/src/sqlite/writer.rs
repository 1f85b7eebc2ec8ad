//! The writer thread, the only one that writes to the database.
//!
//! The thread takes all waiting changes, applies them in one transaction, commits once, and answers all callers. While
//! a commit waits for the disk, the next changes gather; no request waits for others. Background work does wait, for
//! some milliseconds: there is much of it at a time, and a page that many commits change is written once for all.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use messaging_core::changes::{Changes, JobHandle};
use messaging_core::ports::store::{CommitError, Priority, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::change_subscribers::ChangeSubscribers;
use super::fault::Fault;
use super::news::LOOK_EVERY;
use super::write_connection::WriteConnection;

/// Maximum number of commits that one transaction takes from a queue.
const MAX_BATCH: usize = 512;

/// Minimum interval at which background work joins the commits of requests, so that no request waits for a commit of
/// background work; the work that gathers in it costs little more than a single commit. This long after the last
/// request, background work is committed alone, or with records of attempts, which are less urgent.
const RIDE_EVERY: Duration = Duration::from_millis(20);

/// Interval between batches of background work while no requests come; a batch begins earlier if [`CROWD`] commits
/// wait.
const ALONE_EVERY: Duration = Duration::from_millis(8);

/// Number of waiting background commits that make a batch worth its sync.
const CROWD: usize = 256;

type WriterTask = Box<dyn FnOnce(&mut WriteConnection) + Send>;

/// Changes to commit, and the channel to the caller who waits for the outcome.
pub(super) struct Commit {
    pub(super) changes: Changes,
    /// True if the commit belongs to a request, which has precedence over background work.
    is_request: bool,
    /// Time at which the caller handed the changes over.
    since: Instant,
    reply: oneshot::Sender<Result<(), Fault>>,
}

impl Commit {
    /// Returns the time that the caller has waited so far.
    pub(super) fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    /// Sends the outcome to the caller; a caller that is gone is ignored.
    pub(super) fn answer(self, outcome: Result<(), Fault>) {
        let _ = self.reply.send(outcome);
    }
}

/// Handle that passes work to the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<WriterQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    capacity: usize,
}

#[derive(Default)]
struct WriterQueue {
    waiting: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct QueueState {
    foreground: VecDeque<Commit>,
    background: VecDeque<Commit>,
    tasks: VecDeque<WriterTask>,
    /// State of the thread, which is only woken if it sleeps: waking costs a system call.
    sleep: Sleep,
    closed: bool,
}

/// State of the writer thread: awake, or asleep until certain work arrives.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// The thread checks for work by itself.
    #[default]
    Awake,
    /// Asleep until any work arrives.
    ForWork,
    /// Asleep until a deadline, a request, a task, or `CROWD` waiting background commits.
    ForCompany,
}

impl QueueState {
    /// Returns true if the thread has to be woken for what was just put into a queue.
    fn wakes(&self) -> bool {
        match self.sleep {
            Sleep::Awake => false,
            Sleep::ForWork => true,
            Sleep::ForCompany => {
                !self.foreground.is_empty() || !self.tasks.is_empty() || self.background.len() >= CROWD
            }
        }
    }
}

impl std::fmt::Debug for WriterQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriterQueue").finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts the thread, which passes the commits it takes to `commit`: all of the foreground, and as much of the
    /// background as fits. With `alone`, background work does not wait for others.
    pub(super) fn start<C>(
        mut writing: WriteConnection,
        mut commit: C,
        capacity: usize,
        alone: bool,
    ) -> std::io::Result<Self>
    where
        C: FnMut(&mut WriteConnection, &mut VecDeque<Commit>, &mut VecDeque<Commit>) + Send + 'static,
    {
        let queue = Arc::<WriterQueue>::default();
        let mine = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || run(&mine, &mut writing, &mut commit, alone))?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)), capacity })
    }

    /// Hands over changes and waits until they are durable.
    pub(super) async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        let queue: fn(&mut QueueState) -> &mut VecDeque<Commit> = match priority {
            Priority::Foreground | Priority::Attempt => |waiting| &mut waiting.foreground,
            Priority::Background => |waiting| &mut waiting.background,
        };
        let is_request = priority == Priority::Foreground;
        self.queue.put(Commit { changes, is_request, since: Instant::now(), reply }, queue, self.capacity)?;
        Ok(answer.await.map_err(|_| Fault::Panicked)??)
    }

    /// Runs a task on the thread, between two transactions.
    pub(super) async fn task<T, F>(&self, task: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteConnection) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task: WriterTask = Box::new(move |writing| {
            let _ = reply.send(task(writing));
        });
        self.queue.put(task, |waiting| &mut waiting.tasks, self.capacity)?;
        Ok(answer.await.map_err(|_| Fault::Panicked)??)
    }

    /// Writes in a transaction of its own that a power cut may undo; see [`WriteConnection::undurably`].
    pub(super) async fn undurably<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.task(move |writing| writing.undurably(|connection, _, _| write(connection))).await
    }

    /// Like `undurably`, under the claim of a job: fails, and writes nothing, if the claim is lost. `write` may pass
    /// changes to the segments and automations that follow them.
    pub(super) async fn undurably_for<T, F>(&self, job: &JobHandle, write: F) -> Result<T, CommitError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &mut ChangeSubscribers) -> Result<T, Fault> + Send + 'static,
    {
        let job = job.clone();
        self.claimed_task(move |writing| {
            writing.undurably(|connection, index, subscribers| {
                index.require_lease(&job)?;
                subscribers.caused_at(0);
                write(connection, subscribers)
            })
        })
        .await
    }

    /// Fails unless all claims are held. Nothing is written, so nobody waits for the disk.
    pub(super) async fn hold(&self, jobs: Vec<JobHandle>) -> Result<(), CommitError> {
        self.claimed_task(move |writing| writing.require_leases(&jobs)).await
    }

    /// Runs a task that may find a claim lost.
    async fn claimed_task<T, F>(&self, task: F) -> Result<T, CommitError>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteConnection) -> Result<T, Fault> + Send + 'static,
    {
        Ok(self.task(move |writing| Ok(task(writing))).await??)
    }

    /// Lets the thread finish the waiting work, and waits for its end.
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.queue.wake.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

impl WriterQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends to a queue. Each has its own capacity, so that background work cannot crowd out requests.
    fn put<T>(
        &self,
        item: T,
        queue: impl FnOnce(&mut QueueState) -> &mut VecDeque<T>,
        capacity: usize,
    ) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        let closed = waiting.closed;
        let queue = queue(&mut waiting);
        if closed || queue.len() >= capacity {
            return Err(StoreError::Unavailable);
        }
        queue.push_back(item);
        if waiting.wakes() {
            waiting.sleep = Sleep::Awake;
            drop(waiting);
            self.wake.notify_one();
        }
        Ok(())
    }
}

/// Work that the thread took from the queue.
#[derive(Default)]
struct PendingWork {
    tasks: VecDeque<WriterTask>,
    foreground: VecDeque<Commit>,
    /// Commits of background work; those that did not fit into the time of one batch stay here for the next.
    background: VecDeque<Commit>,
    /// Time when the last batch with a request was taken.
    last_request: Option<Instant>,
    /// Time when background work last joined a batch with requests.
    last_ride: Option<Instant>,
    /// Time when background work last had a batch of its own.
    last_alone: Option<Instant>,
    /// True if background work stays out of this batch.
    background_waits: bool,
    /// True if background work never stays out of a batch.
    alone: bool,
}

impl PendingWork {
    /// Waits for work, or until the health of the store has to be checked; returns false if there is no work and will
    /// be none.
    fn fill(&mut self, queue: &WriterQueue) -> bool {
        // Commits that the last batch had no time for do not wait again.
        let is_left = !self.background.is_empty() && !self.background_waits;
        let mut waiting = queue.lock();
        loop {
            self.tasks.append(&mut waiting.tasks);
            take(&mut waiting.foreground, &mut self.foreground);
            take(&mut waiting.background, &mut self.background);
            let now = Instant::now();
            if self.foreground.iter().any(|commit| commit.is_request) {
                self.last_request = Some(now);
            }
            let riding = left_of(RIDE_EVERY, self.last_request, now);
            if !self.foreground.is_empty() {
                let has_requests = !self.alone && !riding.is_zero();
                self.background_waits = has_requests && !left_of(RIDE_EVERY, self.last_ride, now).is_zero();
                if !self.background_waits {
                    self.last_ride = Some(now);
                }
                return true;
            }
            let is_crowd = is_left || self.background.len() >= CROWD;
            let gathering = if is_crowd { Duration::ZERO } else { left_of(ALONE_EVERY, self.last_alone, now) };
            let alone_in = if waiting.closed || self.alone { Duration::ZERO } else { riding.max(gathering) };
            self.background_waits = !alone_in.is_zero();
            if !(self.background.is_empty() || self.background_waits) {
                self.last_alone = Some(now);
                return true;
            }
            if !self.tasks.is_empty() {
                return true;
            }
            if waiting.closed && self.background.is_empty() {
                return false;
            }
            waiting = if self.background.is_empty() {
                waiting.sleep = Sleep::ForWork;
                let (mut waiting, timeout) =
                    queue.wake.wait_timeout(waiting, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
                if timeout.timed_out() {
                    waiting.sleep = Sleep::Awake;
                    return true;
                }
                waiting
            } else {
                waiting.sleep = Sleep::ForCompany;
                queue.wake.wait_timeout(waiting, alone_in).unwrap_or_else(PoisonError::into_inner).0
            };
            waiting.sleep = Sleep::Awake;
        }
    }
}

/// Returns the rest of an interval that began at `since`; zero if it never began.
fn left_of(interval: Duration, since: Option<Instant>, now: Instant) -> Duration {
    since.map_or(Duration::ZERO, |since| interval.saturating_sub(now.duration_since(since)))
}

fn take(from: &mut VecDeque<Commit>, into: &mut VecDeque<Commit>) {
    let room = MAX_BATCH.saturating_sub(into.len()).min(from.len());
    into.extend(from.drain(..room));
}

/// Runs the thread: writes the work that is due. The parameters are those of [`Writer::start`].
fn run(
    queue: &WriterQueue,
    writing: &mut WriteConnection,
    commit: &mut impl FnMut(&mut WriteConnection, &mut VecDeque<Commit>, &mut VecDeque<Commit>),
    alone: bool,
) {
    let mut pending = PendingWork { alone, ..PendingWork::default() };
    while pending.fill(queue) {
        let is_idle = pending.tasks.is_empty() && pending.foreground.is_empty() && pending.background.is_empty();
        survive(writing, WriteConnection::look_after_health);
        survive(writing, |writing| writing.look_for_news(is_idle));
        // Tasks first: a claim that runs before the batch sees only what is durable.
        for task in pending.tasks.drain(..) {
            survive(writing, |writing| task(writing));
        }
        let mut none = VecDeque::new();
        let background = if pending.background_waits { &mut none } else { &mut pending.background };
        survive(writing, |writing| commit(writing, &mut pending.foreground, background));
        writing.keep_log_short();
    }
}

/// Runs `work` and survives its panics, which are bugs but must not end the store: waiting callers get a dropped reply.
fn survive(writing: &mut WriteConnection, work: impl FnOnce(&mut WriteConnection)) {
    if catch_unwind(AssertUnwindSafe(|| work(writing))).is_err() {
        writing.abandon();
    }
}
