//! Moving the write-ahead log into the database, beside the writer.
//!
//! A checkpoint inside a commit would be most of that commit's time. So the writer never does one;
//! this thread does, a few times a second while there is something to move, and sleeps otherwise.
//! Under load the log is never moved completely, because the writer goes on appending, so it would
//! never start over: past [`WAL_LIMIT`] the writer is asked to move the little that is left itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{self, PAGE_SIZE, WAL_LIMIT};

const EVERY: Duration = Duration::from_millis(250);

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
        // Whoever woke us is probably not done.
        if !*closed {
            closed = shared.wake.wait_timeout(closed, EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *closed {
            break;
        }
        drop(closed);
        shared.grown.store(false, Ordering::Release);
        match checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)") {
            Ok(in_log) => {
                // That much was in the log, and moved, when the checkpoint began; the writer has gone on.
                if in_log > WAL_LIMIT / PAGE_SIZE {
                    shared.restart.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => tracing::warn!(%error, "a checkpoint failed; the next one tries again"),
        }
        closed = shared.closed.lock().unwrap_or_else(PoisonError::into_inner);
    }
    drop(closed);
    if let Err(error) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::warn!(%error, "the last checkpoint failed; the next start does it");
    }
}

/// Moves what is left and starts the log over; for the writer, between two transactions.
pub(super) fn restart(connection: &Connection) -> rusqlite::Result<()> {
    // A reader that takes long is not waited for: the next checkpoint asks again.
    connection.busy_timeout(Duration::from_millis(20))?;
    let outcome = checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)");
    connection.busy_timeout(connection::BUSY)?;
    outcome.map(drop)
}

/// Runs a checkpoint; answers how many pages were in the log.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(pragma)?.query_row([], |row| row.get(1))
}
