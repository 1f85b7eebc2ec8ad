//! Backup of an installation in one file, made while a server works on it, and restoring from it.
//!
//! **Consistency.** The database is copied from one snapshot. The files that it names are pinned around the moment of
//! that snapshot by hard links (`pinned.rs`), so that later sweeps and erasures take nothing away from the copy. If a
//! file is removed between the pinning and the snapshot, the snapshot is taken again: the database no longer names it.
//! Files that the snapshot does not name yet, or no longer, may be in the copy as well; a server removes them as it
//! removes what a crash leaves.
//!
//! **Cost.** A copy of the database beside the file while that is made, and the write-ahead log, which cannot start
//! over while the snapshot is read. The writer waits for nothing.
//!
//! **Format.** A tar archive (`archive.rs`) whose last entry is the SHA-256 of all before it, so other programs can
//! read and unpack it. The database in it is marked as a copy: a server that works on it is fenced.

mod archive;
mod copy;
mod parts;
pub(crate) mod pinned;
mod restore;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use messaging_core::ports::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

use self::archive::ArchiveWriter;
use self::pinned::{Pinned, UnfinishedFile};
use crate::file_error::FileError;
use crate::files::{database_directory, directory_above, sync_directory};

pub use self::parts::{BackupError, Progress};
pub use self::restore::{RestoreError, RestoreReport, VerifyReport, restore, verify};

/// Name of the first entry, the manifest.
const MANIFEST: &str = "messaging-backup.json";
/// Name of the database in an archive, and in a data directory.
const DATABASE: &str = "messaging.db";
/// Name of the secret key in an archive, and in a data directory.
const SECRET_KEY: &str = "secret.key";
/// Name of the file with the number of the latest start in a data directory. An archive has none, since it is a copy.
const EPOCH: &str = "epoch";
/// Version of the format of archives; readers refuse another one.
const FORMAT: u32 = 1;

/// Source and target of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupOptions {
    /// The database file; attachments and uploads are beside it.
    pub database: PathBuf,
    /// The file with the secret key.
    pub secret_key: PathBuf,
    /// The file to create.
    pub file: PathBuf,
    /// True if an existing file is replaced.
    pub overwrite: bool,
}

/// Summary of a backup file that was made: its size, its content and its checksum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackupReport {
    /// The file that was created.
    pub file: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Size of the database in the backup, in bytes.
    pub database_bytes: u64,
    /// Number of attachments, captured sources and uploads in it.
    pub files: u64,
    /// Files that the database names and that were lost before, among those of the newest messages and imports; the
    /// backup has none of them. At most a hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<PathBuf>,
    /// SHA-256 of the archive up to its last entry, in hexadecimal digits.
    pub sha256: String,
}

/// The first entry of a backup archive, as JSON: the versions of format and program, and the time of the backup.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// Version of the program that made it.
    version: String,
    /// Time of the backup, in seconds since 1970.
    created_at: u64,
}

/// Copies an installation into one file, readable by its owner alone, that is there completely or not at all. Blocks for
/// as long as it takes to read everything once and write it twice.
pub fn back_up(options: &BackupOptions, progress: &mut dyn FnMut(Progress)) -> Result<BackupReport, BackupError> {
    let BackupOptions { database, secret_key, file, overwrite } = options;
    match fs::metadata(database) {
        Ok(found) if found.is_file() => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(FileError::of("read", database)(error).into());
        }
        _ => return Err(BackupError::NoDatabase(database.clone())),
    }
    if file.is_dir() {
        return Err(BackupError::Directory(file.clone()));
    }
    if !overwrite && file.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(file.clone()));
    }
    let directory = directory_above(file);
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    UnfinishedFile::remove_left_behind(directory);
    pinned::remove_left_behind(database_directory(database));

    let copied = UnfinishedFile::create(directory, &name, "db").map_err(FileError::of_named("make", file))?;
    let (pins, missing) = copy::snapshot(database, copied.path(), progress)?;
    let unfinished = UnfinishedFile::create(directory, &name, "tar").map_err(FileError::of_named("make", file))?;
    let failed = |error| BackupError::from(FileError::of_named("write", file)(error));
    let written = write(&unfinished, copied.path(), secret_key, &pins, file, progress)?;
    let report = BackupReport { missing, ..written };
    drop(copied);
    unfinished.place(file, *overwrite).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(file.clone()),
        _ => failed(error),
    })?;
    sync_directory(directory).map_err(failed)?;
    Ok(report)
}

fn write(
    unfinished: &UnfinishedFile,
    copied: &Path,
    secret_key: &Path,
    pins: &Pinned,
    file: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<BackupReport, BackupError> {
    let failed = |error| BackupError::from(FileError::of_named("write", file)(error));
    let open = |path: &Path| File::open(path).map_err(FileError::of("read", path));
    let created_at = u64::try_from(SystemClock.now().as_seconds()).unwrap_or(0);
    let manifest = Manifest { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), created_at };
    let manifest = serde_json::to_vec(&manifest).map_err(|error| failed(error.into()))?;
    let mut archive = ArchiveWriter::new(BufWriter::with_capacity(1 << 20, unfinished.file()), created_at);
    archive.add(MANIFEST, manifest.len() as u64, &manifest[..]).map_err(failed)?;
    let total = pins.bytes() + copied.metadata().map_err(failed)?.len();
    let mut add = |archive: &mut ArchiveWriter<_>, name: &str, path: &Path| {
        let source = open(path)?;
        let length = source.metadata().map_err(FileError::of("read", path))?.len();
        archive.add(name, length, BufReader::with_capacity(1 << 18, source)).map_err(failed)?;
        progress(Progress { doing: "writing", done: archive.written().min(total), total });
        Ok::<_, BackupError>(length)
    };
    let database_bytes = add(&mut archive, DATABASE, copied)?;
    add(&mut archive, SECRET_KEY, secret_key)?;
    let mut files = 0;
    pins.each(&mut |name, path| {
        add(&mut archive, name, path)?;
        files += 1;
        Ok(())
    })?;
    let (mut writer, sha256) = archive.finish().map_err(failed)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    unfinished.file().sync_all().map_err(failed)?;
    let bytes = unfinished.file().metadata().map_err(failed)?.len();
    Ok(BackupReport { file: file.to_owned(), bytes, database_bytes, files, missing: Vec::new(), sha256 })
}
