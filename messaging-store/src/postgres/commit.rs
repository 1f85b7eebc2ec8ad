//! Commits: those that wait are gathered into one transaction.
//!
//! A task for each connection takes the waiting commits and sends them as one transaction; while it waits for the disk,
//! the next ones gather. No commit waits for others to come. If part of a transaction is refused, its commits are tried
//! in halves, down to single ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use messaging_core::changes::{Changes, Write};
use messaging_core::ports::store::{CommitBatch, CommitError, Priority, StoreError};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use super::connection_health::ConnectionHealth;
use super::fault::Fault;
use super::nodes::Membership;
use super::transaction::Transaction;
use super::writes::Writes;
use crate::observed::Observed;
use crate::sql::params;

/// Number of connections for requests, and as many for background work.
pub(super) const LANES: usize = 2;

/// Maximum number of commits in one transaction.
const MAX_BATCH: usize = 128;

/// Number of attempts of a transaction that collides with others.
const TRIES: usize = 4;

/// Applies changes inside an open transaction, all that one commit brings together.
pub(super) type Apply = for<'a> fn(&'a mut Transaction, &'a [&'a Changes]) -> BoxFuture<'a, Result<(), Fault>>;

/// Changes, and the caller who waits for them.
struct Commit {
    changes: Changes,
    /// Time when it was handed over.
    since: Instant,
    reply: oneshot::Sender<Result<(), Fault>>,
}

/// Commits that wait.
#[derive(Default)]
struct CommitQueue {
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Default)]
struct Queue {
    commits: VecDeque<Commit>,
    is_closed: bool,
}

/// Hands commits to the tasks.
#[derive(Debug)]
pub(super) struct Commits {
    foreground: Arc<CommitQueue>,
    background: Arc<CommitQueue>,
    capacity: usize,
    health: Arc<ConnectionHealth>,
    tasks: Mutex<JoinSet<()>>,
}

/// The shared state that each committing task works with.
#[derive(Debug, Clone)]
struct Committing {
    writes: Writes,
    membership: Arc<Membership>,
    observed: Arc<Observed>,
    apply: Apply,
}

impl std::fmt::Debug for CommitQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitQueue").finish_non_exhaustive()
    }
}

impl CommitQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a commit, unless there is no room or the store is closing.
    fn put(&self, commit: Commit, capacity: usize) -> Result<(), StoreError> {
        let mut queue = self.lock();
        if queue.is_closed || queue.commits.len() >= capacity {
            return Err(StoreError::Unavailable);
        }
        queue.commits.push_back(commit);
        drop(queue);
        self.wake.notify_one();
        Ok(())
    }

    /// Waits for commits and takes those that wait; none once the queue is closed and empty.
    async fn take(&self) -> Vec<Commit> {
        loop {
            let woken = self.wake.notified();
            if self.has_some() {
                // Callers that are about to commit do so first.
                tokio::task::yield_now().await;
                let taken = self.drain();
                if !taken.is_empty() {
                    return taken;
                }
            }
            if self.lock().is_closed {
                // The other tasks have to see it too.
                self.wake.notify_one();
                return self.drain();
            }
            if !self.has_some() {
                woken.await;
            }
        }
    }

    fn has_some(&self) -> bool {
        !self.lock().commits.is_empty()
    }

    /// Takes waiting commits, as many as fit one transaction.
    fn drain(&self) -> Vec<Commit> {
        let mut queue = self.lock();
        let count = queue.commits.len().min(MAX_BATCH);
        let taken = queue.commits.drain(..count).collect();
        if !queue.commits.is_empty() {
            self.wake.notify_one();
        }
        taken
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }
}

impl Commits {
    /// Starts the tasks, which write the commits they take with `apply`. At most `capacity` commits of a kind wait.
    pub(super) fn start(
        writes: &Writes,
        membership: &Arc<Membership>,
        capacity: usize,
        observed: &Arc<Observed>,
        apply: Apply,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let mut start = || {
            let waiting = Arc::<CommitQueue>::default();
            for _ in 0..LANES {
                let committing = Committing {
                    writes: writes.clone(),
                    membership: Arc::clone(membership),
                    observed: Arc::clone(observed),
                    apply,
                };
                tasks.spawn(committing.work(Arc::clone(&waiting)));
            }
            waiting
        };
        let (foreground, background) = (start(), start());
        let health = Arc::clone(&writes.0.health);
        Self { foreground, background, capacity: capacity.max(1), health, tasks: Mutex::new(tasks) }
    }

    /// Commits, and waits. The commit is done even if its caller goes away.
    pub(super) async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        let waiting = match priority {
            Priority::Foreground | Priority::Attempt => &self.foreground,
            Priority::Background => &self.background,
        };
        waiting.put(Commit { changes, since: Instant::now(), reply }, self.capacity)?;
        let answer = async { answer.await.map_err(|_| Fault::Panicked)? };
        if priority == Priority::Background {
            return Ok(answer.await?);
        }
        // A request waits for it. The commit may be done later all the same.
        Ok(self.health.commit(answer).await?)
    }

    /// Takes no more commits, and waits until all that were handed over are done.
    pub(super) async fn close(&self) {
        self.foreground.close();
        self.background.close();
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

impl Committing {
    async fn work(self, waiting: Arc<CommitQueue>) {
        loop {
            let batch = waiting.take().await;
            if batch.is_empty() {
                return;
            }
            self.commit_all(batch).await;
        }
    }

    /// Commits a batch. If part of it is refused, each half is tried, so that few commits share a transaction with a
    /// refused one.
    async fn commit_all(&self, batch: Vec<Commit>) {
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            if part.len() == 1 {
                for commit in part {
                    self.commit_one(commit).await;
                }
                continue;
            }
            let began = Instant::now();
            match self.try_together(&part).await {
                Ok(()) => {
                    self.tell(&part, began.elapsed());
                    answer(part, || Ok(()));
                }
                // Nothing was done, and no other part would get a connection either.
                Err(Fault::NoAnswer) => {
                    parts.push(part);
                    return parts.into_iter().for_each(|part| answer(part, || Err(Fault::NoAnswer)));
                }
                Err(_) => {
                    let second = part.split_off(part.len() / 2);
                    // The first half comes first.
                    parts.extend([second, part]);
                }
            }
        }
    }

    async fn commit_one(&self, commit: Commit) {
        let began = Instant::now();
        let outcome = self.commit_alone(&commit.changes).await;
        if outcome.is_ok() {
            self.tell(std::slice::from_ref(&commit), began.elapsed());
        }
        let _ = commit.reply.send(outcome);
    }

    async fn commit_alone(&self, changes: &Changes) -> Result<(), Fault> {
        let (mut tries, mut is_renewed, mut may_assume) = (0, false, true);
        loop {
            tries += 1;
            match self.try_once(&[changes], may_assume).await {
                Err(Fault::Outdated) if may_assume => may_assume = false,
                Err(fault) if fault.is_passing() && tries < TRIES => {}
                // Tried again under another term; claims of the former one are lost.
                Err(Fault::Fenced) if !is_renewed => is_renewed = true,
                outcome => return outcome,
            }
        }
    }

    async fn try_together(&self, batch: &[Commit]) -> Result<(), Fault> {
        let all: Vec<_> = batch.iter().map(|commit| &commit.changes).collect();
        self.try_once(&all, true).await
    }

    /// Commits one transaction. With `may_assume` it relies on the subscriptions that this process saw last;
    /// [`Fault::Outdated`] then means a conflict, or that they have changed.
    async fn try_once(&self, all: &[&Changes], may_assume: bool) -> Result<(), Fault> {
        let mut transaction = self.writes.begin().await?;
        transaction.may_assume = may_assume;
        if all.len() > 1 {
            transaction.serve_several();
        }
        if all.iter().all(|changes| may_be_lost(changes)) {
            transaction.run("SET LOCAL synchronous_commit = off", params![]);
        }
        let term = transaction.term();
        let outcome = (self.apply)(&mut transaction, all).await;
        let assumed = std::mem::take(&mut transaction.assumed);
        let outcome = match outcome {
            Ok(()) => transaction.commit().await,
            Err(fault) => {
                transaction.roll_back().await;
                // Nothing was committed yet: it can be tried again.
                Err(if fault.lost_connection() { Fault::NotCommitted } else { fault })
            }
        };
        if matches!(outcome, Err(Fault::Fenced)) {
            self.membership.renew(term).await?;
        }
        if outcome.is_err() && !assumed.is_empty() {
            self.writes.0.known_subscriptions.forget(&assumed);
            if matches!(outcome, Err(Fault::Conflict)) {
                return Err(Fault::Outdated);
            }
        }
        outcome
    }

    /// Reports durable commits to the observer, before their callers hear: an observer may count them by then.
    fn tell(&self, batch: &[Commit], sync: Duration) {
        let Some(observer) = self.observed.get() else { return };
        for commit in batch {
            observer.committed(&commit.changes, commit.since.elapsed());
        }
        observer.synced(CommitBatch { commits: batch.len(), sync });
    }
}

/// Returns true if a crash of the server may undo the changes: they are derived from notes that come back with them.
fn may_be_lost(changes: &Changes) -> bool {
    changes.writes().iter().all(|write| matches!(write, Write::PutContactBlock(_) | Write::PutMessageBlock(_)))
}

/// Sends the same outcome to all callers that wait for commits.
fn answer(batch: Vec<Commit>, outcome: impl Fn() -> Result<(), Fault>) {
    for commit in batch {
        // The caller may have gone away.
        let _ = commit.reply.send(outcome());
    }
}
