//! Moving the write-ahead log into the database, beside the writer.
//!
//! A checkpoint inside a commit would be most of that commit's time. So the writer never does one; this
//! thread does: when the log has become long, and when nothing was committed for a moment. Not more
//! often, because every one makes the disk busy while commits wait for it, and a long log holds many
//! versions of a page of which only the last is moved.
//!
//! Under load the log is never moved completely, because the writer goes on appending, so it would
//! never start over: past its limit the thread moves until little is left, and asks the writer to
//! move that and start over. While another program reads from the beginning of the log nothing helps: the
//! log grows, is complained about, and in the end the disk reserve ends what adds.
//!
//! The thread also looks how much space is left on the disk.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use messaging_core::error::Chain;
use messaging_core::ports::store::StoreHealth;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::connection::{self, PAGE_SIZE, Reopen};
use super::fault::Fault;
use super::health::Health;

/// How often the thread looks while there is something in the log.
const EVERY: Duration = Duration::from_millis(100);

/// How often the thread looks at the disk, and how soon it tries again what failed or was held up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After so many pages the writer looks at the disk itself: 4 MiB.
const LOOK_PAGES: u64 = (4 << 20) / PAGE_SIZE.unsigned_abs();

/// How often a long log is moved in a row: each time what was appended during the last is left.
const PASSES: usize = 3;

/// A log that has so many times the length at which it is moved is complained about.
const SOFT_LIMIT: i64 = 2;

/// The least time between two warnings that the log is too long.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// The checkpoint thread, or its absence.
#[derive(Debug)]
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    health: Arc<Health>,
    /// Something was committed since the last checkpoint began, or something is left to be moved.
    grown: AtomicBool,
    /// The log is too long: the writer is to start it over.
    restart: AtomicBool,
    /// Pages in the log, as the writer sees it.
    pages: AtomicI64,
    /// Pages that were in the log when the writer last looked at the disk.
    looked_at: AtomicI64,
    closed: Mutex<bool>,
    wake: Condvar,
}

impl Shared {
    fn new(health: Arc<Health>) -> Self {
        Self {
            health,
            // What an earlier process left in the log.
            grown: AtomicBool::new(true),
            restart: AtomicBool::new(false),
            pages: AtomicI64::new(0),
            looked_at: AtomicI64::new(0),
            closed: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    fn note_restart(&self) {
        self.pages.store(0, Ordering::Relaxed);
        self.looked_at.store(0, Ordering::Relaxed);
    }

    fn is_longer_than(&self, limit: i64) -> bool {
        self.pages.load(Ordering::Relaxed).saturating_mul(PAGE_SIZE) > limit
    }

    fn limit(&self) -> i64 {
        i64::try_from(self.health.log_limit()).unwrap_or(i64::MAX)
    }
}

impl Checkpoints {
    /// Starts the thread.
    pub(super) fn start(path: &Path, health: Arc<Health>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let shared = Arc::new(Shared::new(health));
        let connection = connection::checkpointer(path)?;
        let mine = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("store-checkpoint".to_owned()).spawn(move || run(&mine, &connection))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// No thread: SQLite checkpoints by itself now and then.
    pub(super) fn left_to_sqlite(health: Arc<Health>) -> Self {
        Self { shared: Arc::new(Shared::new(health)), thread: Mutex::default() }
    }

    /// Has the writer's connection tell how long the log is. One that SQLite moves by itself keeps its own hook.
    pub(super) fn watch(&self, connection: &mut Connection, reopen: &Reopen) -> rusqlite::Result<()> {
        if !reopen.is_exclusive() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            shared.pages.store(pages.into(), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// The log has grown.
    pub(super) fn note_growth(&self) {
        let pages = self.shared.pages.load(Ordering::Relaxed);
        if pages.abs_diff(self.shared.looked_at.load(Ordering::Relaxed)) >= LOOK_PAGES {
            self.shared.looked_at.store(pages, Ordering::Relaxed);
            self.shared.health.look_at_space();
        }
        if !self.shared.grown.swap(true, Ordering::AcqRel) {
            // Under the lock, so that the thread is either before its look or asleep.
            let _closed = self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.wake.notify_one();
        }
    }

    /// Whether the writer is to start the log over; asked once per request.
    pub(super) fn restart_wanted(&self) -> bool {
        self.shared.restart.load(Ordering::Relaxed) && self.shared.restart.swap(false, Ordering::Relaxed)
    }

    /// The log was started over.
    pub(super) fn note_restart(&self) {
        self.shared.note_restart();
    }

    /// Empties the log and ends the thread.
    pub(super) fn close(&self) {
        *self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// What the thread remembers from one look to the next.
struct Round {
    /// What failed or was held up is not tried again before.
    not_before: Instant,
    looked: Instant,
    /// When a long log was last complained about.
    complained: Option<Instant>,
    /// When a checkpoint that failed was last told, unless one succeeded since.
    failure_told: Option<Instant>,
}

fn run(shared: &Shared, connection: &Connection) {
    let now = Instant::now();
    let mut round = Round { not_before: now, looked: now, complained: None, failure_told: None };
    let mut last = None;
    let mut closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    while !*closed {
        let has_grown = shared.grown.load(Ordering::Acquire);
        let patience = if has_grown { EVERY } else { LOOK_EVERY };
        let is_held_up = Instant::now() < round.not_before || shared.health.distrusts_log();
        if !has_grown || is_held_up || !shared.is_longer_than(shared.limit()) {
            closed = shared.wake.wait_timeout(closed, patience).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *closed {
            break;
        }
        drop(closed);
        round.look_at_disk(shared);
        // Whoever wakes the thread is probably not done: it waits until the log is long, or as long as at the
        // last look.
        let pages = shared.pages.load(Ordering::Relaxed);
        let is_quiet = last == Some(pages);
        last = Some(pages);
        let is_due = shared.grown.load(Ordering::Acquire) && (is_quiet || shared.is_longer_than(shared.limit()));
        if is_due && Instant::now() >= round.not_before && !shared.health.distrusts_log() {
            shared.grown.store(false, Ordering::Release);
            if !move_log(shared, connection, &mut round.failure_told) {
                shared.grown.store(true, Ordering::Release);
                round.not_before = Instant::now() + LOOK_EVERY;
            }
            last = None;
        }
        closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    }
    drop(closed);
    let is_distrusted = shared.health.distrusts_log();
    if is_distrusted || !has_room(shared, connection) {
        // SQLite would move it when the last connection is closed.
        if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::error!(%error, "SQLite may move the log into the database all the same");
        }
        let reason = if is_distrusted { "a sync failed" } else { "the disk is full" };
        tracing::warn!(reason, "the log is left to the next start");
    } else if let Err(error) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::warn!(%error, "the last checkpoint failed; the next start does it");
    }
}

impl Round {
    fn look_at_disk(&mut self, shared: &Shared) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        shared.health.look_at_space();
        let length = i64::try_from(shared.health.gauges().wal_bytes).unwrap_or(i64::MAX);
        let is_too_long = length > connection::WAL_LIMIT.saturating_mul(SOFT_LIMIT);
        if is_too_long && is_to_be_told(&mut self.complained) {
            tracing::warn!(bytes = length, "the write-ahead log is long: does another program read the database?");
        }
    }
}

/// Whether something that lasts is told now: at once, and then now and then.
fn is_to_be_told(told: &mut Option<Instant>) -> bool {
    let is_due = told.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY);
    if is_due {
        *told = Some(Instant::now());
    }
    is_due
}

/// Moves what can be moved; `false` when that failed or somebody who reads held it up, and it is to be tried
/// again.
fn move_log(shared: &Shared, connection: &Connection, failure_told: &mut Option<Instant>) -> bool {
    if !has_room(shared, connection) {
        if is_to_be_told(failure_told) {
            tracing::warn!(
                "the disk has no room to move the write-ahead log into the database; looked at every second"
            );
        }
        return false;
    }
    for _ in 0..PASSES {
        let moved = match checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)") {
            Ok(moved) => moved,
            Err(error) => {
                let fault = Fault::from(error);
                if is_to_be_told(failure_told) {
                    tracing::warn!(error = %Chain(&fault), "a checkpoint failed and is tried again every second");
                }
                shared.health.report_of_checkpoint(&fault);
                return false;
            }
        };
        *failure_told = None;
        if !shared.is_longer_than(shared.limit()) {
            // On a nearly full disk also the space of the file is wanted.
            if moved == Moved::All && !shared.health.state().is_healthy() && empty(connection).is_ok() {
                shared.note_restart();
            }
            return moved == Moved::All;
        }
    }
    shared.restart.store(true, Ordering::Relaxed);
    // The writer may be idle by now; the next look then finds the log quiet. Not at once: while a reader holds
    // the log, every try makes commits wait.
    false
}

/// Whether the database can become as large as the log makes it.
fn has_room(shared: &Shared, connection: &Connection) -> bool {
    let pages = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
    pages.is_ok_and(|pages| shared.health.has_room_for(pages.unsigned_abs()))
}

/// Moves what is left and starts the log over; for the writer, between two transactions. Answers whether that
/// was possible.
pub(super) fn restart(connection: &Connection, health: StoreHealth, busy: Duration) -> rusqlite::Result<bool> {
    // A reader that takes long is not waited for: the next checkpoint asks again.
    connection.busy_timeout(Duration::from_millis(20))?;
    let how = if health.is_healthy() { "PRAGMA wal_checkpoint(RESTART)" } else { "PRAGMA wal_checkpoint(TRUNCATE)" };
    let outcome = checkpoint(connection, how).map(|moved| moved == Moved::All);
    connection.busy_timeout(busy)?;
    outcome
}

/// Moves all of the log into the database and gives its space back. Fails as busy while somebody reads.
pub(super) fn empty(connection: &Connection) -> rusqlite::Result<()> {
    match checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")? {
        Moved::All => Ok(()),
        Moved::Part => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)),
    }
}

/// How much of the log a checkpoint moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    All,
    /// Somebody reads, or another program moves the log.
    Part,
}

fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<Moved> {
    connection.prepare_cached(pragma)?.query_row([], |row| {
        let (busy, frames, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(if busy == 0 && moved >= frames { Moved::All } else { Moved::Part })
    })
}
