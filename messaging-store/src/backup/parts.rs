//! Types and functions shared by making a backup and restoring it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::file_error::FileError;

/// Directories of files in an archive, and beside a database.
pub(super) const DIRECTORIES: [&str; 2] = ["attachments", "uploads"];

/// Progress of a backup or a restore, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Description of the current step, for people.
    pub doing: &'static str,
    /// Bytes done so far.
    pub done: u64,
    /// Total number of bytes, as far as it is known.
    pub total: u64,
}

/// Reason why no backup was made. Unfinished files are removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no database.
    #[error("there is no database {}", .0.display())]
    NoDatabase(PathBuf),
    /// The database is on a server, which has its own tools for copies.
    #[error(
        "a postgres:// database is copied by its own tools: `pg_dump --format=custom` makes the file and `pg_restore` puts \
         it back (keep the secret key with it)"
    )]
    NotAFile,
    /// The name is the name of a directory.
    #[error("{} is a directory; name a file in it, or use --dir", .0.display())]
    Directory(PathBuf),
    /// The file exists already.
    #[error("{} exists; name another file, or say --overwrite", .0.display())]
    Exists(PathBuf),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database cannot be read, or its copy not be written.
    #[error("failed to copy the database")]
    Database(#[source] rusqlite::Error),
    /// Files that the database names were removed again and again while it was copied, different ones each time.
    #[error("files of the database kept being removed while it was copied; try again")]
    Unsettled,
}

/// Opens a file that must not exist yet, readable by its owner alone.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    crate::files::open_private(OpenOptions::new().read(true).write(true).create_new(true), path)
}

/// Removes a directory with everything in it; no error if it does not exist.
pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
