//! Restoring an installation from the file of a backup.
//!
//! Everything is unpacked into a directory within the data directory and checked to its last byte; only then it is
//! moved to its place, the database last. Until the database is there, nothing takes the data directory for an
//! installation.

use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use messaging_core::domain::installation::fence::Fence;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

use super::archive::{ArchiveReader, Damage, Entry};
use super::copy;
use super::parts::{DIRECTORIES, Progress, create_new, remove_directory};
use super::pinned::{is_abandoned, is_plain, make_locked};
use super::{DATABASE, EPOCH, FORMAT, MANIFEST, Manifest, SECRET_KEY};
use crate::file_error::FileError;
use crate::files::{directory_above, make_directory, names, random_name, sync_directory};

/// Prefix of the name of the directory that a restore unpacks into; a random name follows.
const UNPACKING: &str = ".restoring-";
/// Name of that directory once its content is checked and is being moved to its place.
const READY_DIRECTORY: &str = ".restored";
/// The longest first entry, [`MANIFEST`], in bytes.
const MAX_MANIFEST: u64 = 64 << 10;
/// The most parts, separated by `/`, of an entry's name.
const MAX_PARTS: usize = 4;

/// Summary of a restored installation: its data directory, and the size of its database and number of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The data directory.
    pub data: PathBuf,
    /// When the backup was begun.
    pub created_at: Timestamp,
    /// Length of the database in bytes.
    pub database_bytes: u64,
    /// Number of attachments, captured sources and uploads that were put back.
    pub files: u64,
}

/// Summary of a backup that was read to its last byte and whose checksum is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The file of the backup.
    pub file: PathBuf,
    /// When the backup was begun.
    pub created_at: Timestamp,
    /// Length of the database in it, in bytes.
    pub database_bytes: u64,
    /// Number of attachments, captured sources and uploads in it.
    pub files: u64,
}

/// Reason why [`restore`] or [`verify`] failed. The data directory is as it was, unless its names could not be synced
/// to the disk after files had been moved into it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// There is an installation already, or parts of one.
    #[error("{} holds an installation already ({found}); name a directory that is empty or not there yet", directory.display())]
    Occupied {
        /// The data directory.
        directory: PathBuf,
        /// Name of the entry found there that belongs to an installation.
        found: String,
    },
    /// The file is no backup, was cut, was changed, has a format that this version does not know, or holds a database
    /// that cannot be used.
    #[error("{} is no backup that can be used: {problem}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Description of the damage, put after "is no backup that can be used" in the error text.
        problem: String,
    },
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Restores an installation from the file of a backup into a data directory that holds none, and that is made if need
/// be. The restored database is fenced (contract section 22): a server that works on it sends nothing until an operator
/// resumes it.
pub fn restore(file: &Path, data: &Path, progress: &mut dyn FnMut(Progress)) -> Result<RestoreReport, RestoreError> {
    // A file that cannot be read is refused before a directory is made.
    File::open(file).map_err(FileError::of_named("read", file))?;
    let is_made = !data.is_dir();
    make_directory(data).map_err(FileError::of("make the directory", data))?;
    let restored = Unpacking::begin(data).and_then(|unpacking| {
        let Contents { created_at, database_bytes, files } = read_archive(file, Some(&unpacking.root), progress)?;
        unpacking.move_into_place(file, RestoreReport { data: data.to_owned(), created_at, database_bytes, files })
    });
    if restored.is_err() && is_made {
        // This fails, as it should, if somebody has put something into the directory.
        let _ = fs::remove_dir(data);
    }
    restored
}

/// Reads the file of a backup to its last byte and compares its checksum. Writes nothing.
pub fn verify(file: &Path, progress: &mut dyn FnMut(Progress)) -> Result<VerifyReport, RestoreError> {
    let Contents { created_at, database_bytes, files } = read_archive(file, None, progress)?;
    Ok(VerifyReport { file: file.to_owned(), created_at, database_bytes, files })
}

/// Summary of an archive that was read to its end and checked.
struct Contents {
    created_at: Timestamp,
    database_bytes: u64,
    files: u64,
}

/// Reads an archive to its last byte, and checks it; unpacks it into the directory `root`, if one is given. The
/// database and the secret key must be in it once each; what else is in it must be a file below [`DIRECTORIES`].
fn read_archive(
    file: &Path,
    root: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Contents, RestoreError> {
    let open = File::open(file).map_err(FileError::of_named("read", file))?;
    let total = open.metadata().map_err(FileError::of_named("read", file))?.len();
    let damaged = |problem: &str| RestoreError::Damaged { file: file.to_owned(), problem: problem.to_owned() };
    let to_restore_error = |target: &Path, damage| match damage {
        Damage::Malformed(problem) => damaged(problem),
        Damage::Unreadable(error) => FileError::of_named("read", file)(error).into(),
        Damage::Unwritten(error) => FileError::of("write", target)(error).into(),
    };
    let doing = if root.is_some() { "unpacking" } else { "reading" };
    let mut note = |done| progress(Progress { doing, done, total });
    let mut archive = ArchiveReader::new(BufReader::with_capacity(1 << 20, open));
    let first = archive.next().map_err(|damage| to_restore_error(file, damage))?;
    let first = first.ok_or_else(|| damaged("it is no backup, or damaged"))?;
    let created_at = read_manifest(&first, &mut archive).map_err(|damage| to_restore_error(file, damage))?;
    let created_at = created_at.map_err(|problem| damaged(&problem))?;
    let mut contents = Contents { created_at, database_bytes: 0, files: 0 };
    let mut seen_single_entries = Vec::new();
    while let Some(entry) = archive.next().map_err(|damage| to_restore_error(file, damage))? {
        let is_single = [DATABASE, SECRET_KEY].contains(&entry.name.as_str());
        if !is_ours(&entry.name) || (is_single && seen_single_entries.contains(&entry.name)) {
            return Err(damaged("it holds what no backup holds"));
        }
        match root.map(|root| root.join(&entry.name)) {
            None => {
                archive.copy(&entry, &mut io::sink(), &mut note).map_err(|damage| to_restore_error(file, damage))?;
            }
            Some(target) => {
                let mut unpacked = make_directory(directory_above(&target))
                    .and_then(|()| create_new(&target))
                    .map_err(FileError::of("make", &target))?;
                archive.copy(&entry, &mut unpacked, &mut note).map_err(|damage| to_restore_error(&target, damage))?;
                // Small files are many: on Linux `sync_all` syncs them together.
                if is_single || !cfg!(target_os = "linux") {
                    unpacked.sync_all().map_err(FileError::of("write", &target))?;
                }
            }
        }
        if entry.name == DATABASE {
            contents.database_bytes = entry.length;
        }
        if is_single {
            seen_single_entries.push(entry.name);
        } else {
            contents.files += 1;
        }
    }
    if seen_single_entries.len() < 2 {
        return Err(damaged("it holds no database or no secret key"));
    }
    Ok(contents)
}

/// The directory that a restore unpacks into, within the data directory. Removed when dropped.
struct Unpacking {
    /// The data directory.
    data: PathBuf,
    /// The directory that is unpacked into.
    root: PathBuf,
    /// Locked, so that nobody takes the directory for one that a killed restore left behind.
    _lock: File,
}

impl Drop for Unpacking {
    fn drop(&mut self) {
        let _ = remove_directory(&self.root);
    }
}

impl Unpacking {
    /// Makes the directory, after what killed restores left behind is removed. Refused when the data directory holds an
    /// installation.
    fn begin(data: &Path) -> Result<Self, RestoreError> {
        finish_left_behind(data)?;
        if let Some(found) = occupied(data)? {
            return Err(RestoreError::Occupied { directory: data.to_owned(), found });
        }
        let root = data.join(format!("{UNPACKING}{}", random_name()));
        match make_locked(&root) {
            Ok(lock) => Ok(Self { data: data.to_owned(), root, _lock: lock }),
            Err(error) => {
                let _ = remove_directory(&root);
                Err(FileError::of("make the directory", &root)(error).into())
            }
        }
    }

    /// Fences the unpacked database, syncs everything, and moves it to its place in the data directory, the database
    /// last. Answers `report`. `file` is the backup, which errors name.
    fn move_into_place(mut self, file: &Path, report: RestoreReport) -> Result<RestoreReport, RestoreError> {
        let database = self.root.join(DATABASE);
        let epoch = fence(&database).map_err(|error| RestoreError::Damaged {
            file: file.to_owned(),
            problem: format!("its database cannot be used: {error}"),
        })?;
        if let Some(epoch) = epoch {
            let path = self.root.join(EPOCH);
            create_new(&path)
                .and_then(|mut file| file.write_all(format!("{epoch}\n").as_bytes()))
                .map_err(FileError::of("write", &path))?;
        }
        sync_all(&self.root).map_err(FileError::of("sync", &self.root))?;
        if let Some(found) = occupied(&self.data)? {
            return Err(RestoreError::Occupied { directory: self.data.clone(), found });
        }
        let ready = self.data.join(READY_DIRECTORY);
        fs::rename(&self.root, &ready).map_err(FileError::of("rename", &self.root))?;
        self.root = ready;
        if let Err(error) = self.move_parts() {
            // What is at these places came from this restore: `occupied` found nothing there.
            let _ = remove_moved(&self.data);
            return Err(error.into());
        }
        sync_directory(&self.data).map_err(FileError::of("sync", &self.data))?;
        Ok(report)
    }

    /// Moves each part that was unpacked to its place in the data directory, the database last. What was moved before a
    /// failure stays there.
    fn move_parts(&self) -> Result<(), FileError> {
        for name in DIRECTORIES.iter().chain(&[SECRET_KEY, EPOCH, DATABASE]) {
            let (from, to) = (self.root.join(name), self.data.join(name));
            if *name == DATABASE {
                // The database says that the installation is complete, so what was moved before must be on the disk
                // first.
                sync_directory(&self.data).map_err(FileError::of("sync", &self.data))?;
            }
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(FileError::of("make", &to)(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the first entry. Answers when the backup was begun, or the problem with which it cannot be used, for
/// [`RestoreError::Damaged`].
fn read_manifest<R: io::Read>(
    entry: &Entry,
    archive: &mut ArchiveReader<R>,
) -> Result<Result<Timestamp, String>, Damage> {
    if entry.name != MANIFEST || entry.length > MAX_MANIFEST {
        return Err(Damage::Malformed("it is no backup, or damaged"));
    }
    let mut text = Vec::new();
    archive.copy(entry, &mut text, &mut |_| {})?;
    Ok(match serde_json::from_slice::<Manifest>(&text) {
        Ok(Manifest { format: FORMAT, created_at, .. }) => {
            Ok(Timestamp::from_millis(i64::try_from(created_at).unwrap_or_default().saturating_mul(1000)))
        }
        Ok(manifest) => Err(format!("messaging {} made it, and this version does not know its form", manifest.version)),
        Err(_) => Err("it is no backup, or damaged".to_owned()),
    })
}

/// True if a backup may hold an entry of this name.
fn is_ours(name: &str) -> bool {
    if name == DATABASE || name == SECRET_KEY {
        return true;
    }
    let parts: Vec<_> = name.split('/').collect();
    let is_below = parts.len() > 1 && parts.len() <= MAX_PARTS && DIRECTORIES.contains(&parts[0]);
    is_below && parts.iter().all(|part| !part.is_empty() && is_plain(part))
}

/// Puts a fence of the present time on an unpacked database. Answers the number of its latest start, for the file
/// [`EPOCH`]; `None` when it tells none.
fn fence(database: &Path) -> rusqlite::Result<Option<String>> {
    let connection = Connection::open(database)?;
    connection.pragma_update(None, "journal_mode", "memory")?;
    connection.pragma_update(None, "synchronous", "full")?;
    copy::put_fence(&connection, Fence::held(SystemClock.now()))?;
    connection.query_row("SELECT value FROM installation WHERE name = 'epoch'", [], |row| row.get(0)).optional()
}

/// Name of something in a directory that belongs to an installation, the first by the alphabet; `None` when there is
/// nothing. An empty directory for files does not count.
fn occupied(data: &Path) -> Result<Option<String>, FileError> {
    let found = names(data).map_err(FileError::of("read the directory", data))?;
    let is_ours = |name: &&String| {
        let is_single = [SECRET_KEY, EPOCH].contains(&name.as_str()) || name.starts_with(DATABASE);
        let holds_something = |name: &str| !names(&data.join(name)).is_ok_and(|names| names.is_empty());
        is_single || (DIRECTORIES.contains(&name.as_str()) && holds_something(name))
    };
    Ok(found.iter().filter(is_ours).min().cloned())
}

/// Removes what restores that were killed left behind. A directory [`READY_DIRECTORY`] without a database beside it
/// means that its content was being moved: what was moved already is removed, too.
fn finish_left_behind(data: &Path) -> Result<(), RestoreError> {
    for name in names(data).map_err(FileError::of("read the directory", data))? {
        let left = data.join(&name);
        if (name != READY_DIRECTORY && !name.starts_with(UNPACKING)) || !is_abandoned(&left) {
            continue;
        }
        if name == READY_DIRECTORY && !data.join(DATABASE).exists() {
            remove_moved(data).map_err(FileError::of("remove what a restore left in", data))?;
        }
        remove_directory(&left).map_err(FileError::of("remove", &left))?;
    }
    Ok(())
}

/// Removes what a restore moves to its place before the database.
fn remove_moved(data: &Path) -> io::Result<()> {
    for name in DIRECTORIES {
        remove_directory(&data.join(name))?;
    }
    for name in [SECRET_KEY, EPOCH] {
        crate::files::remove_file(&data.join(name))?;
    }
    Ok(())
}

/// Makes everything below a directory outlast a power cut. On Linux its whole file system is synced; elsewhere each
/// file was synced when it was written, and only the names in the directory are left.
fn sync_all(root: &Path) -> io::Result<()> {
    let directory = File::open(root)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&directory)?;
    directory.sync_all()
}
