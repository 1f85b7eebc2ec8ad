//! Opening a database: its files, its lock, its schema, its threads.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use messaging_core::ports::clock::{Entropy as _, SystemEntropy};
use rusqlite::ErrorCode;
use tokio::sync::watch;

use super::batch::WriteBatch;
use super::blob_files::BlobFiles;
use super::checkpoint::Checkpoints;
use super::connection::Reopen;
use super::epoch;
use super::health::{Health, free_bytes};
use super::installation_values;
use super::log_repair;
use super::news::ForeignCommits;
use super::readers::Readers;
use super::schema::{self, State};
use super::upload_files::UploadFiles;
use super::write_connection::WriteConnection;
use super::writer::Writer;
use super::{DueTables, Ownership, Sqlite, SqliteStore, Stop};
use crate::backup::pinned;
use crate::database::SqlStore;
use crate::file_error::FileError;
use crate::files::{beside, database_directory, make_directory, open_private};
use crate::observed::Observed;
use crate::open_error::{OpenError, failed};

/// Time that a program which may not migrate waits for the one that does.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(10);

/// Options for opening a SQLite database as a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The database file; it and its directory are created if they do not exist.
    pub path: PathBuf,
    /// Directory of attachments; `attachments` beside the database unless given.
    pub blobs: Option<PathBuf>,
    /// Directory in which uploaded files are kept until they are read; `uploads` beside the database unless given.
    pub uploads: Option<PathBuf>,
    /// True if this program does the jobs. Only one such program may work on a database at a time; others (the command
    /// line) may read and write while it runs.
    pub exclusive: bool,
    /// Number of threads that only read. With 0, reads run on the calling thread, for programs that wait for them
    /// anyway.
    pub readers: usize,
    /// Maximum number of commits that wait; further ones are refused as `Unavailable`.
    pub queue_capacity: usize,
    /// Bytes to be kept free on the disk of the database; with less, writes that add data are refused. Unless given, 32
    /// MiB or twice the length of the write-ahead log, whichever is more.
    pub disk_reserve: Option<u64>,
    /// The file with the number of the latest start, by which a copy of the database is recognized: see
    /// [`Installation::fence`](messaging_core::ports::store::Installation::fence). Unless given, copies are not
    /// noticed, except for those that [`back_up`](crate::backup::back_up) made. Only the program that does the jobs
    /// keeps it.
    pub epoch: Option<PathBuf>,
    /// True if the database need not outlive the process: nothing waits for the disk, nor for further commits to share
    /// a batch.
    pub temporary: bool,
}

impl SqliteOptions {
    /// A server's options for a database file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            blobs: None,
            uploads: None,
            exclusive: true,
            readers: 2,
            queue_capacity: 8192,
            disk_reserve: None,
            epoch: None,
            temporary: false,
        }
    }
}

impl SqliteStore {
    /// Opens a database, creates it if it does not exist, and brings its schema up to date. Blocks for a few
    /// milliseconds.
    pub fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let SqliteOptions { path, blobs, uploads, exclusive, readers, queue_capacity, disk_reserve, epoch, temporary } =
            options;
        let blobs = blobs.unwrap_or_else(|| beside(&path, "attachments"));
        let uploads = uploads.unwrap_or_else(|| beside(&path, "uploads"));
        make_files(&path)?;
        let ownership = if exclusive { Some(own(&path)?) } else { None };
        let reopen = Reopen::new(&path, exclusive, temporary);
        let mut connection = reopen.writer().map_err(|error| unusable(error, &path))?;
        if exclusive {
            // The process before may have ended after a failed sync.
            log_repair::rewrite(&connection, reopen.log()).map_err(failed("write the write-ahead log again"))?;
        }
        let is_new = schema::is_absent(&connection)?;
        bring_up_to_date(&mut connection, &path, exclusive)?;

        let health = Arc::new(Health::new(&path, disk_reserve));
        let checkpoints = if let Some(Ownership { database, .. }) = &ownership {
            let checkpoints = Checkpoints::start(&path, Arc::clone(database), Arc::clone(&health))
                .map_err(failed("start the checkpoint thread"))?;
            checkpoints.install_wal_hook(&mut connection, &reopen).map_err(failed("watch the write-ahead log"))?;
            checkpoints
        } else {
            Checkpoints::without_thread(Arc::clone(&health))
        };
        let checkpoints = Arc::new(checkpoints);
        let owner = if exclusive { Some(take_over(&connection)?) } else { None };
        let epoch = epoch.filter(|_| exclusive);
        if let Some(epoch) = &epoch {
            epoch::begin(&connection, epoch, is_new).map_err(failed("find out whether the database is a copy"))?;
        }
        if exclusive {
            pinned::remove_left_behind(database_directory(&path));
        }
        let stop = epoch.zip(owner.clone()).map(|(epoch, owner)| Stop { epoch, owner, reopen: reopen.clone() });
        let blobs = BlobFiles::new(blobs);
        let observed = Arc::<Observed>::default();
        let mut batch = WriteBatch::new(Arc::clone(&observed));
        let news = watch::Sender::default();
        let others = ForeignCommits::new(news.clone());
        let writing =
            WriteConnection::new(connection, owner, Arc::clone(&checkpoints), Arc::clone(&health), others, reopen);
        let commit = move |writing: &mut WriteConnection, requests: &mut _, rest: &mut _| {
            batch.commit(writing, requests, rest);
        };
        let writer =
            Writer::start(writing, commit, queue_capacity, temporary).map_err(failed("start the writer thread"))?;
        let scans = readers.min(1);
        let start = |threads| Readers::start(&path, threads, queue_capacity).map(Arc::new);
        let readers = start(readers).map_err(failed("start the reader threads"))?;
        let scans = start(scans).map_err(failed("start the thread for scans"))?;
        Ok(SqlStore(Sqlite {
            writer: Arc::new(writer),
            readers,
            scans,
            checkpoints,
            health,
            observed,
            news,
            due: DueTables::default(),
            blobs,
            uploads: UploadFiles::new(uploads),
            ownership: Arc::new(Mutex::new(ownership)),
            stop: Arc::new(Mutex::new(stop)),
        }))
    }
}

/// Makes this process the owner of the database: a former owner that still runs, past the lock file, finds another
/// token and stops.
fn take_over(connection: &rusqlite::Connection) -> Result<String, OpenError> {
    let mut random = [0_u8; 16];
    SystemEntropy::default().fill(&mut random);
    let token = format!("{:032x}", u128::from_be_bytes(random));
    installation_values::set(connection, installation_values::OWNER, &token)
        .and_then(|()| installation_values::remove(connection, installation_values::OWN_SOURCES))
        .map_err(failed("become the owner of the database"))?;
    Ok(token)
}

/// Creates directory and file, readable by the owner alone. SQLite gives its other files the mode of the database.
fn make_files(path: &Path) -> Result<(), OpenError> {
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_directory(directory).map_err(FileError::of("make the directory", directory))?;
    }
    if !path.exists() {
        open_private(OpenOptions::new().write(true).create(true).truncate(false), path)
            .map_err(FileError::of("make the file", path))?;
    }
    Ok(())
}

/// Error for a database file that SQLite cannot work with, with a remedy if the cause is known: on a full or a
/// read-only disk SQLite itself only reports a failed read or a file that cannot be opened.
fn unusable(error: rusqlite::Error, path: &Path) -> OpenError {
    // Less than a page and what SQLite keeps beside it.
    const NOTHING: u64 = 64 << 10;
    let cause = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => None,
        Some(_) if is_read_only(path) => Some(ErrorKind::ReadOnlyFilesystem),
        Some(_) if free_bytes(path).is_some_and(|free| free < NOTHING) => Some(ErrorKind::StorageFull),
        _ => return failed("use its file")(error),
    };
    match cause {
        Some(kind) => FileError::of("use the file", path)(io::Error::new(kind, error)).into(),
        None => failed(
            "use its file, which is damaged or no database: put the newest backup back with `messaging restore`",
        )(error),
    }
}

/// Returns true if the file system of a path is mounted read-only.
fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Takes the lock of the program that does the jobs.
fn own(database: &Path) -> Result<Ownership, OpenError> {
    let lock = lock(database)?.ok_or(OpenError::InUse)?;
    let file = File::open(database).map_err(FileError::of("open the file", database))?;
    Ok(Ownership { _lock: lock, database: Arc::new(file) })
}

/// Takes the lock of the program that works on the database; `None` if another one has it. The lock file stands beside
/// the database itself, whatever links lead there.
fn lock(database: &Path) -> Result<Option<File>, OpenError> {
    let mut path = database.canonicalize().map_err(failed("find the database"))?.into_os_string();
    path.push(".lock");
    let path = PathBuf::from(path);
    loop {
        let file = open_private(OpenOptions::new().write(true).create(true).truncate(false), &path)
            .map_err(FileError::of("open the lock file", &path))?;
        match file.try_lock() {
            // A lock on a file that was removed meanwhile locks nothing.
            Ok(()) if is_at(&file, &path).map_err(failed("look at the lock file"))? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed("lock the database")(error)),
        }
    }
}

/// Returns true if the open file is the one at the path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true if the open file is the one at the path: open files cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// Migrates under the lock, so that a running server never finds another schema under its feet.
fn bring_up_to_date(connection: &mut rusqlite::Connection, path: &Path, exclusive: bool) -> Result<(), OpenError> {
    const STEP: Duration = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    loop {
        match schema::state(connection)? {
            State::Current => return Ok(()),
            State::Older if exclusive => return schema::migrate(connection),
            State::Older => {
                if let Some(_held) = lock(path)? {
                    // Another program may have migrated just before we got the lock; that is then a no-op.
                    return schema::migrate(connection);
                }
            }
        }
        // Whoever holds the lock may be about to migrate.
        if waited >= MIGRATION_PATIENCE {
            return Err(OpenError::ServerIsOlder);
        }
        thread::sleep(STEP);
        waited += STEP;
    }
}
