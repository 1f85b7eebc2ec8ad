//! Connections and their settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Bytes of the write-ahead log above which the writer is made to start it over. While the log is moved, commits share
/// the disk with it: with 128 MiB they waited for twice as long as with 16, and the throughput was no higher.
pub(super) const WAL_LIMIT: i64 = 16 << 20;
/// The length to which the file of the write-ahead log is cut when it starts over. Larger than [`WAL_LIMIT`], which the log
/// passes a little each time: cutting takes 10 to 20 ms, in which no commit ends, and a file that grows again is synced more
/// slowly than one that is overwritten.
const WAL_FILE_LIMIT: i64 = 4 * WAL_LIMIT;
/// The page size of new databases; an existing one keeps its own.
pub(super) const PAGE_SIZE: i64 = 4096;

/// Time that a command waits for a transaction of another program, and a reader for a lock.
const BUSY: Duration = Duration::from_secs(4);
/// Time that a server waits for such a transaction: requests wait as well, and are then refused until the lock is gone.
const SERVER_BUSY: Duration = Duration::from_secs(2);
/// Number of instructions of a statement after which a reader checks the time: some milliseconds.
const STEPS: i32 = 100_000;

/// Page caches in KiB, negative as SQLite expects. Small: the operating system caches the file as well, and an idle
/// server shall not hold much memory.
const WRITER_CACHE: i64 = -16 * 1024;
const READER_CACHE: i64 = -4 * 1024;

/// Number of prepared statements kept; enough for every statement of this crate.
const STATEMENTS: usize = 256;

/// Path of the write-ahead log of a database.
pub(super) fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// Parameters for opening the connection of the writer, also again after a failure.
#[derive(Debug, Clone)]
pub(super) struct Reopen {
    path: PathBuf,
    log: PathBuf,
    exclusive: bool,
    temporary: bool,
}

impl Reopen {
    /// For a server (`exclusive`), or for a command beside it. A `temporary` database does not have to survive the
    /// process.
    pub(super) fn new(path: &Path, exclusive: bool, temporary: bool) -> Self {
        Self { path: path.to_owned(), log: log_path(path), exclusive, temporary }
    }

    /// A new connection that writes.
    pub(super) fn writer(&self) -> rusqlite::Result<Connection> {
        let connection = writer(&self.path, self.exclusive)?;
        connection.execute_batch(self.durable())?;
        Ok(connection)
    }

    /// Pragma that makes commits of the writer durable, unless the database is temporary.
    pub(super) const fn durable(&self) -> &'static str {
        if self.temporary { "PRAGMA synchronous = off" } else { "PRAGMA synchronous = full" }
    }

    /// Pragma that lets a power cut undo commits of the writer.
    pub(super) const fn undurable(&self) -> &'static str {
        if self.temporary { "PRAGMA synchronous = off" } else { "PRAGMA synchronous = normal" }
    }

    /// Returns true if the connection belongs to a server, and not to a command beside one.
    pub(super) const fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Path of the write-ahead log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Time that the connection waits for a transaction of another program.
    pub(super) const fn busy(&self) -> Duration {
        if self.exclusive { SERVER_BUSY } else { BUSY }
    }
}

/// Opens a connection that writes. `own_checkpoints` if a thread of this process does them, as in a server.
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

/// Extent to which deleted data is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwriting {
    /// Deleted rows are overwritten on their pages, at almost no cost.
    Rows,
    /// Pages that become free are overwritten too, at the cost of writing them: erased personal data is in no file
    /// afterwards.
    Pages,
}

/// Sets the extent to which deleted data is overwritten.
pub(super) fn overwrite(connection: &Connection, how: Overwriting) -> rusqlite::Result<()> {
    let how = match how {
        Overwriting::Rows => "fast",
        Overwriting::Pages => "on",
    };
    // The pragma returns the new setting.
    connection.pragma_update_and_check(None, "secure_delete", how, |_| Ok(()))
}

/// Opens a connection that only reads. A statement is interrupted as soon as `is_over` returns true: while the
/// statement runs, the log cannot start over.
pub(super) fn reader(path: &Path, is_over: impl FnMut() -> bool + Send + 'static) -> rusqlite::Result<Connection> {
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", READER_CACHE)?;
    common(&connection)?;
    connection.progress_handler(STEPS, Some(is_over))?;
    Ok(connection)
}

/// Opens the connection that moves the log into the database.
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
