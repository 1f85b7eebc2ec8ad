//! The checkpoint thread, which moves the write-ahead log into the database beside the writer.
//!
//! A checkpoint inside a commit would be most of that commit's time. So the writer never makes one; this
//! thread does, when the log has become long or nothing was committed for a moment. It does so no more
//! often, because a checkpoint makes the disk busy while commits wait for it, and because a long log holds
//! many versions of a page, of which only the last is moved.
//!
//! Under load a checkpoint never moves the whole log, because the writer goes on appending, so the log would
//! never start over. When the log is past its limit, the thread moves it until little is left, syncs the
//! database, and asks the writer to move the rest and to start the log over. SQLite itself syncs the database
//! only then, so without the thread's sync commits would wait until all that was moved is on the disk. While
//! another program reads from the beginning of the log the log cannot start over: it grows, the thread warns of
//! it, and in the end the disk reserve makes the store refuse commits that add data.
//!
//! A log that starts over keeps old pages behind its new end. After something was erased the thread therefore empties the
//! file as well, once all of it is moved.
//!
//! The thread also looks at the space that is left on the disk.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use messaging_core::error::Chain;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::connection::{self, PAGE_SIZE, Reopen};
use super::fault::Fault;
use super::health::Health;

/// Interval at which the thread looks whether a checkpoint is due, while the log holds something to move.
const EVERY: Duration = Duration::from_millis(100);

/// Interval at which the thread looks at the space on the disk, and after which it repeats a checkpoint that failed or
/// was held up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Pages of growth of the log, 4 MiB, after which the writer looks at the space on the disk itself.
const LOOK_PAGES: u64 = (4 << 20) / PAGE_SIZE.unsigned_abs();

/// Number of checkpoints in a row of a log that is past its limit. Each moves what was appended during the one before.
const PASSES: usize = 3;

/// Multiple of [`connection::WAL_LIMIT`] beyond which the thread warns that the log is too long.
const SOFT_LIMIT: i64 = 16;

/// Least time between two warnings of the same kind: of a log that is too long, or of a checkpoint that failed.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// Handle of the checkpoint thread. Where SQLite makes checkpoints by itself, there is no thread.
#[derive(Debug)]
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// State that the writer and the checkpoint thread share.
#[derive(Debug)]
struct Shared {
    health: Arc<Health>,
    /// True if something was committed since the last checkpoint began, or if a checkpoint left something to move.
    grown: AtomicBool,
    /// True if the writer is to start the log over, because it is past its limit.
    restart: AtomicBool,
    /// True if the file of the log is to be emptied, because old pages in it may hold what was erased.
    erased: AtomicBool,
    /// Pages in the log after the writer's last commit.
    pages: AtomicI64,
    /// Pages that were in the log when the writer last looked at the disk.
    pages_at_last_look: AtomicI64,
    /// True once the thread is to end; also the lock under which it sleeps on `wake`.
    closed: Mutex<bool>,
    wake: Condvar,
}

impl Shared {
    fn new(health: Arc<Health>) -> Self {
        Self {
            health,
            // An earlier process may have left something in the log.
            grown: AtomicBool::new(true),
            restart: AtomicBool::new(false),
            erased: AtomicBool::new(false),
            pages: AtomicI64::new(0),
            pages_at_last_look: AtomicI64::new(0),
            closed: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// Notes that the log was started over, so that it has no pages.
    fn note_restart(&self) {
        self.pages.store(0, Ordering::Relaxed);
        self.pages_at_last_look.store(0, Ordering::Relaxed);
    }

    /// True if the log has more than `limit` bytes.
    fn is_longer_than(&self, limit: i64) -> bool {
        self.pages.load(Ordering::Relaxed).saturating_mul(PAGE_SIZE) > limit
    }

    /// Length of the log, in bytes, beyond which it is moved without waiting for a pause in the commits.
    fn limit(&self) -> i64 {
        i64::try_from(self.health.log_limit()).unwrap_or(i64::MAX)
    }
}

impl Checkpoints {
    /// Opens a connection to the database at `path` and starts the checkpoint thread.
    /// `database` is the same file, for syncs; see [`Ownership`](super::Ownership).
    pub(super) fn start(
        path: &Path,
        database: Arc<File>,
        health: Arc<Health>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let shared = Arc::new(Shared::new(health));
        let files = Files { connection: connection::checkpointer(path)?, database };
        let mine = Arc::clone(&shared);
        let thread = thread::Builder::new().name("store-checkpoint".to_owned()).spawn(move || run(&mine, &files))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// A handle without a thread, for a connection on which SQLite makes checkpoints by itself.
    pub(super) fn without_thread(health: Arc<Health>) -> Self {
        Self { shared: Arc::new(Shared::new(health)), thread: Mutex::default() }
    }

    /// Makes the writer's connection report the length of the log after each commit. A connection on which SQLite makes
    /// checkpoints by itself is left alone, because SQLite uses the same hook for them.
    pub(super) fn install_wal_hook(&self, connection: &mut Connection, reopen: &Reopen) -> rusqlite::Result<()> {
        if !reopen.is_exclusive() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            shared.pages.store(pages.into(), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Notes that a commit made the log longer: wakes the thread, and looks at the space on the disk after each
    /// [`LOOK_PAGES`].
    pub(super) fn note_growth(&self) {
        let pages = self.shared.pages.load(Ordering::Relaxed);
        if pages.abs_diff(self.shared.pages_at_last_look.load(Ordering::Relaxed)) >= LOOK_PAGES {
            self.shared.pages_at_last_look.store(pages, Ordering::Relaxed);
            self.shared.health.look_at_space();
        }
        if !self.shared.grown.swap(true, Ordering::AcqRel) {
            // Notified under the lock, so that the thread either has yet to read `grown` or sleeps and hears of it.
            let _closed = self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.wake.notify_one();
        }
    }

    /// True if the thread has asked the writer to start the log over. The call takes the request: it answers true once.
    pub(super) fn restart_wanted(&self) -> bool {
        self.shared.restart.load(Ordering::Relaxed) && self.shared.restart.swap(false, Ordering::Relaxed)
    }

    /// Notes that the running transaction erases something that is to be in no file afterwards.
    pub(super) fn note_erasure(&self) {
        self.shared.erased.store(true, Ordering::Relaxed);
    }

    /// True if something was erased since the file of the log was last emptied. The call takes the note: whoever does
    /// not succeed in emptying the file notes it again.
    pub(super) fn take_erasure(&self) -> bool {
        self.shared.erased.swap(false, Ordering::Relaxed)
    }

    /// Notes that the writer started the log over.
    pub(super) fn note_restart(&self) {
        self.shared.note_restart();
    }

    /// Ends the thread, which empties the log first if that is safe, and waits for it.
    pub(super) fn close(&self) {
        *self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// The database as the thread opens it.
struct Files {
    connection: Connection,
    /// The database file, outside of SQLite.
    database: Arc<File>,
}

/// State that the thread keeps from one look to the next.
struct CheckpointState {
    /// Time before which a checkpoint that failed or was held up is not repeated.
    not_before: Instant,
    /// When the thread last looked at the disk.
    looked: Instant,
    /// When the thread last warned that the log is too long.
    complained: Option<Instant>,
    /// When the thread last warned of a failed checkpoint; `None` once one has succeeded.
    failure_told: Option<Instant>,
}

/// The checkpoint thread: makes checkpoints when they are due, until it is closed, and then a last one that empties
/// the log. The last one is left out if the log may have a hole after a failed write or sync, or if the disk has no
/// room for it; the next start of the program makes it then.
fn run(shared: &Shared, files: &Files) {
    let now = Instant::now();
    let mut state = CheckpointState { not_before: now, looked: now, complained: None, failure_told: None };
    let mut last = None;
    let mut closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    while !*closed {
        let has_grown = shared.grown.load(Ordering::Acquire);
        let patience = if has_grown { EVERY } else { LOOK_EVERY };
        let is_held_up = Instant::now() < state.not_before || shared.health.distrusts_log();
        if !has_grown || is_held_up || !shared.is_longer_than(shared.limit()) {
            closed = shared.wake.wait_timeout(closed, patience).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *closed {
            break;
        }
        drop(closed);
        state.look_at_disk(shared);
        // More commits probably follow the one that woke the thread. So a checkpoint is due only when the log is past
        // its limit or has not grown since the last look.
        let pages = shared.pages.load(Ordering::Relaxed);
        let is_quiet = last == Some(pages);
        last = Some(pages);
        let is_due = shared.grown.load(Ordering::Acquire) && (is_quiet || shared.is_longer_than(shared.limit()));
        if is_due && Instant::now() >= state.not_before && !shared.health.distrusts_log() {
            shared.grown.store(false, Ordering::Release);
            if !move_log(shared, files, &mut state.failure_told) {
                shared.grown.store(true, Ordering::Release);
                state.not_before = Instant::now() + LOOK_EVERY;
            }
            last = None;
        }
        closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    }
    drop(closed);
    let connection = &files.connection;
    let is_distrusted = shared.health.distrusts_log();
    if is_distrusted || !has_room(shared, connection) {
        // Otherwise SQLite would move the log when the last connection is closed.
        if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
            tracing::error!(%error, "SQLite may move the log into the database all the same");
        }
        let reason = if is_distrusted { "a sync failed" } else { "the disk is full" };
        tracing::warn!(reason, "the log is left to the next start");
    } else if let Err(error) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::warn!(%error, "the last checkpoint failed; the next start does it");
    }
}

impl CheckpointState {
    /// Looks at the space on the disk, every [`LOOK_EVERY`] at most, and warns of a log that is too long.
    fn look_at_disk(&mut self, shared: &Shared) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        shared.health.look_at_space();
        let length = i64::try_from(shared.health.gauges().wal_bytes).unwrap_or(i64::MAX);
        let is_too_long = length > connection::WAL_LIMIT.saturating_mul(SOFT_LIMIT);
        if is_too_long && is_warning_due(&mut self.complained) {
            tracing::warn!(bytes = length, "the write-ahead log is long: does another program read the database?");
        }
    }
}

/// True if a condition that lasts is to be logged now: the first time, and then every [`COMPLAIN_EVERY`]. `told` holds
/// when it was last logged, and is set to the present if the answer is true.
fn is_warning_due(told: &mut Option<Instant>) -> bool {
    let is_due = told.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY);
    if is_due {
        *told = Some(Instant::now());
    }
    is_due
}

/// Moves as much of the log as possible into the database. Answers false if the checkpoint is to be repeated: it
/// failed, a reader held it up, or the log is still past its limit and the writer was asked to start it over.
fn move_log(shared: &Shared, files: &Files, failure_told: &mut Option<Instant>) -> bool {
    let connection = &files.connection;
    if !has_room(shared, connection) {
        if is_warning_due(failure_told) {
            tracing::warn!(
                "the disk has no room to move the write-ahead log into the database; looked at every second"
            );
        }
        return false;
    }
    let mut failed = |fault: &Fault| {
        if is_warning_due(failure_told) {
            tracing::warn!(error = %Chain(fault), "a checkpoint failed and is tried again every second");
        }
        shared.health.report_of_checkpoint(fault);
        false
    };
    for _ in 0..PASSES {
        let moved = match checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)") {
            Ok(moved) => moved,
            Err(error) => return failed(&Fault::from(error)),
        };
        if !shared.is_longer_than(shared.limit()) {
            *failure_told = None;
            return moved == Moved::Complete && empty_log(shared, connection);
        }
        // Each pass moves less than the one before, so it is the last that leaves least for the writer.
        if let Err(error) = files.database.sync_data() {
            return failed(&Fault::from(failed_sync(&error)));
        }
    }
    *failure_told = None;
    shared.restart.store(true, Ordering::Relaxed);
    // If the writer is idle by now and does not see the request, the next look makes a checkpoint. It is not made at
    // once, because every try makes commits wait while a reader holds the log.
    false
}

/// Returns the error that SQLite gives when its own sync of the database fails, because this one is in its place.
fn failed_sync(error: &std::io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}

/// Empties the file of a log that was moved, where that is wanted: after an erasure, and on a nearly full disk, to which it
/// gives space back. Answers false if it has to be tried again.
fn empty_log(shared: &Shared, connection: &Connection) -> bool {
    // Taken before: what is erased meanwhile is noted anew.
    let erased = shared.erased.swap(false, Ordering::Relaxed);
    if !erased && shared.health.state().is_healthy() {
        return true;
    }
    if truncate_log(connection).is_ok() {
        shared.note_restart();
        return true;
    }
    if erased {
        shared.erased.store(true, Ordering::Relaxed);
    }
    !erased
}

/// True if the disk has room for the database in the size that it will have with the log moved into it.
fn has_room(shared: &Shared, connection: &Connection) -> bool {
    let pages = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
    pages.is_ok_and(|pages| shared.health.has_room_for(pages.unsigned_abs()))
}

/// Moves what is left in the log and starts the log over. The writer calls it on its connection between two
/// transactions; `empties` tells whether the file is emptied as well, and `busy` is the busy timeout that the connection
/// has again afterwards. Answers false if a reader stood in the way.
pub(super) fn restart(connection: &Connection, empties: bool, busy: Duration) -> rusqlite::Result<bool> {
    // The wait for readers is short, because commits wait meanwhile; the next checkpoint asks again.
    connection.busy_timeout(Duration::from_millis(20))?;
    let how = if empties { "PRAGMA wal_checkpoint(TRUNCATE)" } else { "PRAGMA wal_checkpoint(RESTART)" };
    let outcome = checkpoint(connection, how).map(|moved| moved == Moved::Complete);
    connection.busy_timeout(busy)?;
    outcome
}

/// Moves all of the log into the database and truncates its file. Fails with `SQLITE_BUSY` while somebody reads.
pub(super) fn truncate_log(connection: &Connection) -> rusqlite::Result<()> {
    match checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")? {
        Moved::Complete => Ok(()),
        Moved::Partial => {
            Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None))
        }
    }
}

/// Share of the log that a checkpoint moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    /// The whole log.
    Complete,
    /// Only a part, or nothing: somebody reads, or another program makes a checkpoint.
    Partial,
}

/// Runs a `PRAGMA wal_checkpoint` and reads its row: whether it was busy, the frames in the log, the frames moved.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<Moved> {
    connection.prepare_cached(pragma)?.query_row([], |row| {
        let (busy, frames, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(if busy == 0 && moved >= frames { Moved::Complete } else { Moved::Partial })
    })
}
