//! Connections and their settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How large the write-ahead log may get before the writer is made to start it over.
pub(super) const WAL_LIMIT: i64 = 128 << 20;
/// The page size of new databases; an existing one keeps its own.
pub(super) const PAGE_SIZE: i64 = 4096;

/// How long a writer waits for another program's transaction.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// In KiB, negative as SQLite wants it. Small: the operating system caches the file as well, and an
/// idle server shall not hold much memory.
const WRITER_CACHE: i64 = -16 * 1024;
const READER_CACHE: i64 = -4 * 1024;

/// Enough for every statement of this crate.
const STATEMENTS: usize = 256;

/// A connection that writes. `own_checkpoints` when a thread of ours does them.
pub(super) fn writer(path: &Path, own_checkpoints: bool) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", WAL_LIMIT)?;
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

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", READER_CACHE)?;
    common(&connection)?;
    Ok(connection)
}

/// The connection that moves the log into the database.
pub(super) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_millis(50))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", WAL_LIMIT)?;
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
