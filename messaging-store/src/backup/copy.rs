//! The copy of the database, and the check that the files it names are pinned.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use messaging_core::domain::audience::import::{Import, ImportState};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::message::MessageContent;
use messaging_core::domain::message::content;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::clock::{Clock as _, SystemClock};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::parts::{BackupError, Progress};
use super::pinned::Pinned;
use crate::file_error::FileError;
use crate::sqlite::files_of_rows;

/// Number of pages copied at a time, between two reports of progress.
const PAGES: i32 = 1024;
/// Maximum number of snapshots, taken again because files were removed meanwhile.
const MAX_SNAPSHOTS: usize = 16;
/// Contents of messages with numbers this far before the newest are checked as well: a number may be used again after
/// the newest row was removed.
const SLACK: i64 = 1000;
/// Maximum number of lost files that are named.
const MAX_MISSING: usize = 100;

/// Copies the database of one moment to `target`, which is an empty file, and pins the files that it names. Also
/// returns the missing ones among those accepted last: a file is removed together with the row that names it, so one
/// that a later snapshot still names was lost before.
pub(super) fn snapshot(
    database: &Path,
    target: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Pinned, Vec<PathBuf>), BackupError> {
    let failed = BackupError::Database;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(database, flags).map_err(failed)?;
    source.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
    // Checkpoints are left to the server, if there is one.
    source.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;
    let mut pins = Pinned::new(database)?;
    let mut missing: Vec<PathBuf> = Vec::new();
    for _ in 0..MAX_SNAPSHOTS {
        let newest = newest_content(&source).map_err(failed)?;
        pins.pin(database)?;
        // The snapshot is taken by the first read.
        source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(failed)?;
        pins.pin(database)?;
        let mut named = named_files(&source, newest - SLACK).map_err(failed)?;
        named.retain(|either| !either.iter().any(|name| pins.has(name)));
        // Of the places of each file, the first is the lasting one.
        let mut now: Vec<_> = named.into_iter().filter_map(|either| either.into_iter().next()).collect();
        if now.iter().all(|name| missing.contains(name)) {
            copy_pages(&source, target, progress).map_err(failed)?;
            source.execute_batch("COMMIT").map_err(failed)?;
            leave_log(target).map_err(FileError::of("write", target))?;
            mark(target).map_err(failed)?;
            now.truncate(MAX_MISSING);
            return Ok((pins, now));
        }
        source.execute_batch("COMMIT").map_err(failed)?;
        missing = now;
    }
    Err(BackupError::Unsettled)
}

fn newest_content(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(n), 0) FROM message_contents", [], |row| row.get(0))
}

/// The files that the snapshot names and that may have come and gone while others were pinned; each with its possible
/// paths. Files from before were pinned before.
fn named_files(connection: &Connection, after: i64) -> rusqlite::Result<Vec<Vec<PathBuf>>> {
    let mut named = Vec::new();
    let mut contents =
        connection.prepare("SELECT workspace, message, request FROM message_contents WHERE n > ?1 ORDER BY n")?;
    let mut rows = contents.query([after])?;
    while let Some(row) = rows.next()? {
        let (workspace, message) = (WorkspaceId::from_bytes(row.get(0)?), MessageId::from_bytes(row.get(1)?));
        let content = MessageContent { request: row.get::<_, Vec<u8>>(2)?.into() };
        let files = content::decode(&content).map(|content| content.files).unwrap_or_default();
        named.extend(files.into_iter().map(|file| files_of_rows::of_blob(workspace, message, file.blob)));
    }
    let mut imports = connection.prepare("SELECT doc FROM imports WHERE instr(doc, '\"processing\"') > 0")?;
    let mut rows = imports.query([])?;
    while let Some(row) = rows.next()? {
        let import = serde_json::from_str::<Import>(&row.get::<_, String>(0)?).ok();
        if let Some(Import { state: ImportState::Processing { upload, .. }, id, workspace_id, .. }) = import {
            named.push(vec![files_of_rows::of_upload(workspace_id, id, upload)]);
        }
    }
    Ok(named)
}

/// Copies every page within the snapshot that the source is reading.
fn copy_pages(source: &Connection, target: &Path, progress: &mut dyn FnMut(Progress)) -> rusqlite::Result<()> {
    let mut target = Connection::open(target)?;
    // Nothing of the copy is needed after a crash.
    target.pragma_update(None, "synchronous", "off")?;
    target.pragma_update(None, "journal_mode", "memory")?;
    let page: u64 = source.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    let backup = Backup::new(source, &mut target)?;
    let mut patience = 2000;
    loop {
        let step = backup.step(PAGES)?;
        let told = backup.progress();
        let pages = |count: i32| u64::from(count.unsigned_abs()) * page;
        let (total, left) = (pages(told.pagecount), pages(told.remaining));
        progress(Progress { doing: "copying the database", done: total - left.min(total), total });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // The log is being moved, which lasts for a moment.
            _ if patience > 0 => {
                patience -= 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
        }
    }
}

/// Turns a copy that needs a write-ahead log into a single file: the versions in its header (SQLite's file format,
/// 1.3.3) become those without. A server sets them again.
fn leave_log(copy: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(copy)?;
    file.seek(SeekFrom::Start(18))?;
    file.write_all(&[1, 1])
}

/// Marks the database as a copy.
fn mark(copy: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(copy)?;
    connection.pragma_update(None, "journal_mode", "memory")?;
    put_fence(&connection, Fence::held(SystemClock.now()))
}

/// Fences a database that no server works on.
pub(super) fn put_fence(connection: &Connection, fence: Fence) -> rusqlite::Result<()> {
    let sql = "INSERT INTO installation (name, value) VALUES ('fence', ?1)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection.execute(sql, [fence.to_text()]).map(drop)
}
