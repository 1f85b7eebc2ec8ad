//! Moving the write-ahead log into the database, beside the writer.
//!
//! A checkpoint inside a commit would be most of that commit's time. So the writer never does one; this
//! thread does: when the log has become long, and when nothing was committed for a moment. Not more
//! often, because every one makes the disk busy while commits wait for it, and a long log holds many
//! versions of a page of which only the last is moved.
//!
//! Under load the log is never moved completely, because the writer goes on appending, so it would
//! never start over: past [`WAL_LIMIT`] the thread moves until little is left, and asks the writer to
//! move that and start over.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection::{self, PAGE_SIZE, WAL_LIMIT};

/// How often the thread looks while there is something in the log.
const EVERY: Duration = Duration::from_millis(100);

/// How often a long log is moved in a row: each time what was appended during the last is left.
const PASSES: usize = 3;

/// The checkpoint thread, or its absence.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Something was committed since the last checkpoint began.
    grown: AtomicBool,
    /// The log is too long: the writer is to start it over.
    restart: AtomicBool,
    /// Pages in the log, as the writer sees it.
    pages: AtomicI64,
    closed: Mutex<bool>,
    wake: Condvar,
}

impl Checkpoints {
    /// Starts the thread.
    pub(super) fn start(path: &Path) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let shared = Arc::<Shared>::default();
        let connection = connection::checkpointer(path)?;
        let mine = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("store-checkpoint".to_owned()).spawn(move || run(&mine, &connection))?;
        // What an earlier process left in the log.
        shared.grown.store(true, Ordering::Relaxed);
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// No thread: SQLite checkpoints by itself now and then.
    pub(super) fn left_to_sqlite() -> Self {
        Self { shared: Arc::new(Shared { grown: AtomicBool::new(true), ..Shared::default() }), ..Self::default() }
    }

    /// Has the writer's connection tell how long the log is.
    pub(super) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let shared = Arc::clone(&self.shared);
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            shared.pages.store(pages.into(), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// The log has grown.
    pub(super) fn note_growth(&self) {
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

    /// Empties the log and ends the thread.
    pub(super) fn close(&self) {
        *self.shared.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, connection: &Connection) {
    let mut closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while !*closed && !shared.grown.load(Ordering::Acquire) {
            closed = shared.wake.wait(closed).unwrap_or_else(PoisonError::into_inner);
        }
        // Whoever woke us is probably not done: wait until the log is long, or as long as at the last look.
        let mut last = None;
        while !*closed && !is_long(shared) && last != Some(shared.pages.load(Ordering::Relaxed)) {
            last = Some(shared.pages.load(Ordering::Relaxed));
            closed = shared.wake.wait_timeout(closed, EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *closed {
            break;
        }
        drop(closed);
        shared.grown.store(false, Ordering::Release);
        move_log(shared, connection);
        closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    }
    drop(closed);
    if let Err(error) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::warn!(%error, "the last checkpoint failed; the next start does it");
    }
}

fn is_long(shared: &Shared) -> bool {
    shared.pages.load(Ordering::Relaxed) > WAL_LIMIT / PAGE_SIZE
}

fn move_log(shared: &Shared, connection: &Connection) {
    for _ in 0..PASSES {
        if let Err(error) = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)") {
            tracing::warn!(%error, "a checkpoint failed; the next one tries again");
            return;
        }
        if !is_long(shared) {
            return;
        }
    }
    shared.restart.store(true, Ordering::Relaxed);
    // The writer may be idle by now; the next look then finds the log quiet.
    shared.pages.store(0, Ordering::Relaxed);
}

/// Moves what is left and starts the log over; for the writer, between two transactions.
pub(super) fn restart(connection: &Connection) -> rusqlite::Result<()> {
    // A reader that takes long is not waited for: the next checkpoint asks again.
    connection.busy_timeout(Duration::from_millis(20))?;
    let outcome = checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)");
    connection.busy_timeout(connection::BUSY)?;
    outcome
}

fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(pragma)?.query_row([], |_| Ok(()))
}
