//! A file or directory that cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// What was attempted on which file, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {attempt} {}", path.display())]
pub struct FileError {
    /// What was attempted: a verb and its object, which the path follows.
    pub attempt: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// For `map_err`: the system's error becomes that of an attempt on a path.
    pub fn of(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { attempt, path, source }
    }
}
