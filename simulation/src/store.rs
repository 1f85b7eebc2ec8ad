//! A store that fails by plan, in front of the real one.

mod claims;
mod reads;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{AutomationWrite, Changes, Condition, Document, JobHandle, JobWrite, Write};
use messaging_core::domain::message::EventKind;
use messaging_core::ids::Id as _;
use messaging_core::ports::store::{
    CommitError, CommitObserver, News, Priority, StoreError, StoreGauges, StoreHealth, Topics,
};
use messaging_core::ports::{BlobStore, Store, Uploads};
use messaging_store::{OpenError, SqliteOptions, SqliteStore};
use tokio::sync::watch;

use crate::blocking::wait;
use crate::life::Life;
use crate::planted::Planted;
use crate::signal::Signal;
use crate::world::World;
use claims::Claims;

/// The database of a run, which all processes share.
#[derive(Debug)]
pub(crate) struct Database {
    world: Arc<World>,
    path: PathBuf,
    open: Mutex<Option<Arc<SqliteStore>>>,
    state: Signal<StoreHealth>,
    /// The health as the product sees it.
    health: watch::Sender<StoreHealth>,
    /// A commit whose outcome is not decided yet, with the life that made it.
    undecided: Mutex<Option<(usize, Changes)>>,
    /// Counts commits, so that processes look for work.
    commits: Signal<u64>,
    /// News of commits, some of which are lost.
    news: watch::Sender<News>,
    claims: Mutex<Claims>,
}

/// Without reader threads: the simulation waits for every read, and waking a thread takes longer than reading.
fn options(path: &Path) -> SqliteOptions {
    SqliteOptions { readers: 0, ..SqliteOptions::new(path) }
}

impl Database {
    pub(crate) fn open(world: &Arc<World>, path: &Path) -> Result<Arc<Self>, OpenError> {
        let store = Arc::new(SqliteStore::open(options(path))?);
        Ok(Arc::new(Self {
            world: Arc::clone(world),
            path: path.to_owned(),
            open: Mutex::new(Some(store)),
            state: Signal::new(StoreHealth::Healthy),
            health: watch::Sender::new(StoreHealth::Healthy),
            undecided: Mutex::default(),
            commits: Signal::new(0),
            news: watch::Sender::default(),
            claims: Mutex::default(),
        }))
    }

    fn store(&self) -> Arc<SqliteStore> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(open.as_ref().expect("it is open while processes live"))
    }

    /// Closes the database and opens it again, as when the only process starts again: claims are forgotten.
    pub(crate) fn restart(&self) -> Result<(), OpenError> {
        self.decide();
        self.close();
        let store = SqliteStore::open(options(&self.path))?;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(store));
        self.set_health(StoreHealth::Healthy);
        Ok(())
    }

    /// Closes the files.
    pub(crate) fn close(&self) {
        drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(crate) fn set_health(&self, health: StoreHealth) {
        self.world.note(format_args!("the store is {}", health.as_str()));
        self.health.send_replace(health);
        self.state.change(|state| *state = health);
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.state.get()
    }

    /// Signals every commit.
    pub(crate) const fn commits(&self) -> &Signal<u64> {
        &self.commits
    }

    /// Signals every change of the health.
    pub(crate) const fn state(&self) -> &Signal<StoreHealth> {
        &self.state
    }

    /// Decides a commit with an unknown outcome: it is stored, or it is not.
    fn decide(&self) {
        let undecided = self.undecided.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((life, changes)) = undecided {
            let is_kept = self.world.draw(|dice| dice.chance(500));
            self.world.note(format_args!("the undecided commit is kept: {is_kept}"));
            if is_kept {
                // If the commit does not apply any more, it was not stored.
                let _ = self.apply(life, &changes);
            }
        }
    }

    fn apply(&self, life: usize, changes: &Changes) -> Result<(), CommitError> {
        wait(self.store().commit(changes.clone(), Priority::Foreground))?;
        let mut ledger = self.world.ledger();
        let ends_a_run = |write: &Write| matches!(write, Write::Job(JobWrite::Finish(..) | JobWrite::Reschedule(..)));
        if changes.writes().iter().any(ends_a_run) {
            for write in changes.writes() {
                if let Write::AppendEvent(event) = write
                    && event.kind == EventKind::Sent
                    && let Some(recipient) = event.meta.get("recipient").and_then(|recipient| recipient.as_str())
                {
                    ledger.outcome_kept(life, event.message_id, recipient);
                }
            }
        }
        drop(ledger);
        self.commits.change(|commits| *commits += 1);
        let topics = Topics::of(changes);
        if !topics.is_empty() && self.world.draw(|dice| dice.chance(500)) {
            self.news.send_modify(|news| news.tell(topics));
        }
        Ok(())
    }

    /// Changes the member counts of lists, outside of any commit of the product.
    fn miscount(&self, lists: &[Vec<u8>], by: i64) -> rusqlite::Result<()> {
        let connection = rusqlite::Connection::open(&self.path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        for list in lists {
            connection.execute("UPDATE lists SET contacts = contacts + ?1 WHERE id = ?2", (by, list))?;
        }
        Ok(())
    }
}

/// The store as one life of a process sees it.
#[derive(Debug, Clone)]
pub(crate) struct FaultyStore {
    life: Arc<Life>,
    database: Arc<Database>,
}

/// Fault of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitFault {
    /// Nothing is stored.
    Refused,
    /// Nothing is stored, because the data is said to have changed.
    Conflict,
    /// Nothing is stored, and the outcome is reported as unknown.
    UnknownAndLost,
    /// It is stored, and the outcome is reported as unknown.
    UnknownAndKept,
    /// The outcome is undecided for a while, in which the store accepts no writes.
    Undecided,
}

impl FaultyStore {
    pub(crate) const fn new(life: Arc<Life>, database: Arc<Database>) -> Self {
        Self { life, database }
    }

    fn database(&self) -> Arc<SqliteStore> {
        self.database.store()
    }

    /// Passes the point before every call but a commit, which may be refused.
    async fn before(&self, call: &'static str) -> Result<(), StoreError> {
        self.life.point(call).await;
        let world = &self.life.world;
        if world.strikes(world.plan.store.call_refused) {
            self.fault("call of the store refused", format_args!("{call} is refused"));
            return Err(StoreError::Unavailable);
        }
        Ok(())
    }

    /// Notes the outcome of a call, and passes the point after it, at which the process may end or freeze.
    async fn after(&self, call: &'static str, is_done: bool) {
        self.life.note(format_args!("{call}: {is_done}"));
        self.life.point(call).await;
    }

    fn fault(&self, kind: &'static str, line: std::fmt::Arguments<'_>) {
        self.life.world.ledger().count_fault(kind);
        self.life.note(line);
    }

    /// Returns true if the state of the store admits the changes.
    fn admits(&self, changes: &Changes) -> bool {
        match self.database.health() {
            StoreHealth::Healthy => true,
            StoreHealth::BelowReserve | StoreHealth::ReserveUsed => !changes.adds(),
            _ => false,
        }
    }

    fn commit_fault(&self, changes: &Changes) -> Option<CommitFault> {
        let world = &self.life.world;
        let rates = &world.plan.store;
        // The port promises that a conflict is real: a job that meets it knows that its claim or its message changed.
        let is_hold = |write: &Write| matches!(write, Write::Job(JobWrite::Hold(_)));
        let is_of_a_job = changes.writes().iter().any(|write| write.claim().is_some() && !is_hold(write))
            || changes.writes().iter().all(is_hold);
        if world.strikes(rates.commit_refused) {
            return Some(CommitFault::Refused);
        }
        if !is_of_a_job && world.strikes(rates.conflict) {
            return Some(CommitFault::Conflict);
        }
        if world.strikes(rates.unknown) {
            return Some(*world.draw(|dice| {
                *dice.pick(&[&CommitFault::UnknownAndLost, &CommitFault::UnknownAndKept, &CommitFault::Undecided])
            }));
        }
        None
    }

    fn apply(&self, changes: &Changes) -> Result<(), CommitError> {
        let planted = self.life.world.planted;
        if planted == Some(Planted::LeaseNotChecked) {
            return self.database.apply(self.life.number, &self.with_latest_claims(changes));
        }
        self.database.apply(self.life.number, changes)
    }

    /// The changes of a job that lost its claim, under the latest claim.
    fn with_latest_claims(&self, changes: &Changes) -> Changes {
        let claims = self.database.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = |handle: &JobHandle| claims.latest(handle);
        let renamed = changes.writes().iter().map(|write| match write {
            Write::Job(JobWrite::Finish(handle)) => Write::Job(JobWrite::Finish(latest(handle))),
            Write::Job(JobWrite::Reschedule(handle, next)) => {
                Write::Job(JobWrite::Reschedule(latest(handle), next.clone()))
            }
            Write::Job(JobWrite::PutBack(handle, to)) => Write::Job(JobWrite::PutBack(latest(handle), *to)),
            Write::Job(JobWrite::Save(handle, payload)) => Write::Job(JobWrite::Save(latest(handle), payload.clone())),
            Write::Job(JobWrite::Hold(handle)) => Write::Job(JobWrite::Hold(latest(handle))),
            other => other.clone(),
        });
        renamed.collect()
    }

    async fn commit_now(&self, changes: &Changes) -> Result<(), CommitError> {
        if !self.admits(changes) {
            if self.life.world.planted == Some(Planted::OutcomeForgotten) && changes.writes().iter().any(ends_a_job) {
                self.life.note(format_args!("an outcome is forgotten"));
                return Ok(());
            }
            return Err(StoreError::Unavailable.into());
        }
        let Some(fault) = self.commit_fault(changes) else {
            if self.life.world.planted == Some(Planted::CounterOutsideCommit) {
                return self.commit_and_count_later(changes).await;
            }
            if self.life.world.planted == Some(Planted::PlaceOutsideCommit) {
                return self.commit_and_move_on_later(changes).await;
            }
            if self.life.world.planted == Some(Planted::RunOutsideCommit) {
                return self.commit_and_move_runs_later(changes).await;
            }
            return self.apply(changes);
        };
        self.fault("commit fails", format_args!("commit: {fault:?}"));
        match fault {
            CommitFault::Refused => Err(StoreError::Unavailable.into()),
            CommitFault::Conflict => Err(CommitError::Conflict),
            CommitFault::UnknownAndLost => Err(StoreError::OutcomeUnknown.into()),
            CommitFault::UnknownAndKept => {
                let applied = self.apply(changes);
                applied.and(Err(StoreError::OutcomeUnknown.into()))
            }
            CommitFault::Undecided => {
                let commit = (self.life.number, changes.clone());
                *self.database.undecided.lock().unwrap_or_else(PoisonError::into_inner) = Some(commit);
                self.database.set_health(StoreHealth::SyncFailed);
                let (database, span) = (Arc::clone(&self.database), self.life.world.draw(|dice| dice.span(1, 40)));
                tokio::spawn(async move {
                    tokio::time::sleep(span).await;
                    // A restart has decided already.
                    if database.health() == StoreHealth::SyncFailed {
                        database.decide();
                        database.set_health(StoreHealth::Healthy);
                    }
                });
                Err(StoreError::OutcomeUnknown.into())
            }
        }
    }

    /// Commits, and counts the members of lists in a separate transaction afterwards.
    async fn commit_and_count_later(&self, changes: &Changes) -> Result<(), CommitError> {
        let joined = changes.writes().iter().filter_map(|write| match write {
            Write::JoinList(_, list, ..) => Some(list.to_bytes().to_vec()),
            _ => None,
        });
        let joined: Vec<_> = joined.collect();
        self.apply(changes)?;
        if !joined.is_empty() {
            let failed = |error| StoreError::Failed(Box::new(error));
            self.database.miscount(&joined, -1).map_err(failed)?;
            self.life.point("count").await;
            self.database.miscount(&joined, 1).map_err(failed)?;
        }
        Ok(())
    }

    /// Commits new messages of a campaign, and the progress of the fan-out in a separate commit afterwards.
    async fn commit_and_move_on_later(&self, changes: &Changes) -> Result<(), CommitError> {
        let writes = changes.writes();
        let is_place = |write: &&Write| matches!(write, Write::Put(Document::CampaignProgress(_), _));
        let makes_messages = writes.iter().any(|write| matches!(write, Write::InsertWaiting(..)));
        if makes_messages { self.commit_apart(changes, is_place).await } else { self.apply(changes) }
    }

    /// Commits new messages of runs, and the state of the runs in a separate commit afterwards.
    async fn commit_and_move_runs_later(&self, changes: &Changes) -> Result<(), CommitError> {
        let is_of_a_run = |write: &&Write| {
            matches!(
                write,
                Write::Automation(
                    AutomationWrite::PutRun(..)
                        | AutomationWrite::PutEntry(..)
                        | AutomationWrite::TakeNotes(..)
                        | AutomationWrite::CountNodes(..)
                )
            )
        };
        let sends = |write: &Write| matches!(write, Write::Automation(AutomationWrite::PutRun(put)) if !put.messages.is_empty());
        let has_sent = changes.writes().iter().any(sends);
        if has_sent { self.commit_apart(changes, is_of_a_run).await } else { self.apply(changes) }
    }

    /// Commits some of the writes in a separate commit, after the others.
    async fn commit_apart(&self, changes: &Changes, is_later: impl Fn(&&Write) -> bool) -> Result<(), CommitError> {
        let (later, others): (Vec<_>, Vec<_>) = changes.writes().iter().partition(is_later);
        if later.is_empty() {
            return self.apply(changes);
        }
        self.apply(&others.into_iter().cloned().collect())?;
        self.life.point("apart").await;
        // The separate commit may fail alone; a process that ends right here is too rare.
        if self.life.world.strikes(APART_LOST_PER_MILLE) {
            self.life.note(format_args!("a commit of its own is not kept"));
            return Err(StoreError::Unavailable.into());
        }
        self.apply(&later.into_iter().cloned().collect())
    }
}

/// Commits of a thousand that are lost among those that a planted mistake makes separately.
const APART_LOST_PER_MILLE: u64 = 300;

const fn ends_a_job(write: &Write) -> bool {
    matches!(write, Write::Job(JobWrite::Finish(..) | JobWrite::Reschedule(..)))
}

#[async_trait]
impl Store for FaultyStore {
    async fn commit(&self, changes: Changes, _: Priority) -> Result<(), CommitError> {
        self.life.point("commit").await;
        let outcome = self.commit_now(&changes).await;
        self.life.note(format_args!("commit of {}: {outcome:?}", names(&changes)));
        self.life.point("committed").await;
        outcome
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(self.clone())
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        Arc::new(self.clone())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.before("ping").await
    }

    fn health(&self) -> StoreHealth {
        self.database.health()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.database.health.subscribe()
    }

    fn news(&self) -> watch::Receiver<News> {
        self.database.news.subscribe()
    }

    fn clock_offset_ms(&self) -> i64 {
        -self.life.clock_ahead_ms
    }

    // The metrics of a simulation are not read.
    fn observe(&self, _: Arc<dyn CommitObserver>) {}

    fn gauges(&self) -> StoreGauges {
        StoreGauges::default()
    }

    async fn close(&self) {}
}

/// The names of the writes, for the trace.
fn names(changes: &Changes) -> String {
    let name = |write: &Write| {
        let mut name = Name(String::new());
        // Ends with an error at the end of the name.
        let _ = write!(name, "{write:?}");
        let mut name = name.0;
        // Details that help to follow a message through a trace.
        let _ = match write {
            Write::MoveMessage(to) => write!(name, "({} {:?})", to.message_id, to.status),
            Write::Expect(Condition::Message(_, message, revision)) => write!(name, "({message}/{revision})"),
            Write::AppendEvent(event) => write!(name, "({} {:?})", event.message_id, event.kind),
            other => other.claim().map_or(Ok(()), |handle| write!(name, "({})", handle.id)),
        };
        name
    };
    changes.writes().iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Accepts the name of a variant and no more.
struct Name(String);

impl std::fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if text.starts_with(['(', ' ', '{']) {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
