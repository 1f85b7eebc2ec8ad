//! Connections and their settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How many bytes the write-ahead log may have before the writer is made to start it over. While the log is moved, commits
/// share the disk with it: with 128 MiB they waited for twice as long as with 16, and no more was accepted in all.
pub(super) const WAL_LIMIT: i64 = 16 << 20;
/// The length to which the file of the write-ahead log is cut when it starts over. Larger than [`WAL_LIMIT`], which the log
/// passes a little each time: cutting takes 10 to 20 ms, in which no commit ends, and a file that grows again is synced more
/// slowly than one that is overwritten.
const WAL_FILE_LIMIT: i64 = 4 * WAL_LIMIT;
/// The page size of new databases; an existing one keeps its own.
pub(super) const PAGE_SIZE: i64 = 4096;

/// How long a command waits for another program's transaction, and a reader for what holds it up.
const BUSY: Duration = Duration::from_secs(4);
/// How long a server does: requests wait for it, and are refused afterwards until the lock is gone.
const SERVER_BUSY: Duration = Duration::from_secs(2);
/// How many steps of a statement a reader makes before it looks at the time: some milliseconds.
const STEPS: i32 = 100_000;

/// In KiB, negative as SQLite wants it. Small: the operating system caches the file as well, and an
/// idle server shall not hold much memory.
const WRITER_CACHE: i64 = -16 * 1024;
const READER_CACHE: i64 = -4 * 1024;

/// Enough for every statement of this crate.
const STATEMENTS: usize = 256;

/// The write-ahead log of a database.
pub(super) fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// How the writer's connection is opened, again if need be.
#[derive(Debug, Clone)]
pub(super) struct Reopen {
    path: PathBuf,
    log: PathBuf,
    exclusive: bool,
    temporary: bool,
}

impl Reopen {
    /// For a server (`exclusive`), or for a command beside it; what is written need not last where the database is
    /// `temporary`.
    pub(super) fn new(path: &Path, exclusive: bool, temporary: bool) -> Self {
        Self { path: path.to_owned(), log: log_path(path), exclusive, temporary }
    }

    /// A new connection that writes.
    pub(super) fn writer(&self) -> rusqlite::Result<Connection> {
        let connection = writer(&self.path, self.exclusive)?;
        connection.execute_batch(self.durable())?;
        Ok(connection)
    }

    /// What makes commits of the writer last.
    pub(super) const fn durable(&self) -> &'static str {
        if self.temporary { "PRAGMA synchronous = off" } else { "PRAGMA synchronous = full" }
    }

    /// What lets a power cut undo them.
    pub(super) const fn undurable(&self) -> &'static str {
        if self.temporary { "PRAGMA synchronous = off" } else { "PRAGMA synchronous = normal" }
    }

    /// Whether the connection belongs to a server, and not to a command beside one.
    pub(super) const fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// The write-ahead log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// How long the connection waits for another program's transaction.
    pub(super) const fn busy(&self) -> Duration {
        if self.exclusive { SERVER_BUSY } else { BUSY }
    }
}

/// A connection that writes. `own_checkpoints` when a thread of ours does them, as in a server.
pub(super) fn writer(path: &Path, own_checkpoints: bool) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(if own_checkpoints { SERVER_BUSY } else { BUSY })?;
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", WAL_FILE_LIMIT)?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    overwrite(&connection, Overwriting::Rows)?;
    if own_checkpoints {
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    common(&connection)?;
    Ok(connection)
}

/// How thoroughly what is deleted is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwriting {
    /// Rows on their pages, which costs nearly nothing.
    Rows,
    /// Also pages that become free, which costs writing them: what people ask to be erased is in no file
    /// afterwards.
    Pages,
}

/// Sets how thoroughly what is deleted is overwritten.
pub(super) fn overwrite(connection: &Connection, how: Overwriting) -> rusqlite::Result<()> {
    let how = match how {
        Overwriting::Rows => "fast",
        Overwriting::Pages => "on",
    };
    // It answers with the new setting.
    connection.pragma_update_and_check(None, "secure_delete", how, |_| Ok(()))
}

/// A connection that only reads. A statement is interrupted when `is_over` says so: while it runs, the log
/// cannot start over.
pub(super) fn reader(path: &Path, is_over: impl FnMut() -> bool + Send + 'static) -> rusqlite::Result<Connection> {
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", READER_CACHE)?;
    common(&connection)?;
    connection.progress_handler(STEPS, Some(is_over))?;
    Ok(connection)
}

/// The connection that moves the log into the database.
pub(super) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_millis(50))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", WAL_FILE_LIMIT)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    common(&connection)?;
    Ok(connection)
}

fn common(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Plans do not depend on what is bound: otherwise a statement with a bound LIMIT is planned anew
    // every time it runs.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
