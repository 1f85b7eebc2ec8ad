//! What making a backup and putting it back have in common.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::file_error::FileError;

/// Directories of files in an archive, and beside a database.
pub(super) const DIRECTORIES: [&str; 2] = ["attachments", "uploads"];

/// How far a backup or a restore is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, for people.
    pub doing: &'static str,
    /// Bytes that are done.
    pub done: u64,
    /// Bytes in all, as far as is known.
    pub total: u64,
}

/// Why no backup was made. What was begun is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no database.
    #[error("there is no database {}", .0.display())]
    NoDatabase(PathBuf),
    /// The database is a server's, which copies it itself.
    #[error(
        "a postgres:// database is copied by its own tools: `pg_dump --format=custom` makes the file and `pg_restore` puts \
         it back (keep the secret key with it)"
    )]
    NotAFile,
    /// The name is that of a directory.
    #[error("{} is a directory; name a file in it, or use --dir", .0.display())]
    Directory(PathBuf),
    /// The file is there already.
    #[error("{} exists; name another file, or say --overwrite", .0.display())]
    Exists(PathBuf),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database cannot be read, or its copy not be written.
    #[error("failed to copy the database")]
    Database(#[source] rusqlite::Error),
    /// What the database names went again and again while it was copied, another file each time.
    #[error("files of the database kept being removed while it was copied; try again")]
    Unsettled,
}

/// Opens a file that must not be there yet, readable by its owner alone.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    crate::files::open_private(OpenOptions::new().read(true).write(true).create_new(true), path)
}

/// Removes a directory with everything in it; no error when it is gone already.
pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
