//! Errors that end an import.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use tokio::task::JoinError;

use crate::api::Answer;

/// Fault in the files of an import, or in the workspace that they are imported to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The fault, with the row if there is one.
        why: String,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}: {why}", .path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The directory of the export does not exist.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// No file of the directory has a name that the product's files have.
    #[error("{} holds no file of {product}; looked for {looked_for}", .directory.display())]
    NoFiles {
        /// The directory.
        directory: PathBuf,
        /// The product.
        product: &'static str,
        /// Patterns of the file names that would be read.
        looked_for: &'static str,
    },
    /// There is more of something than the importer reads.
    #[error("{place} has more than {most} {what}")]
    TooMany {
        /// The directory, or the export.
        place: String,
        /// The maximum that is read.
        most: usize,
        /// Name of what is counted, in the plural.
        what: &'static str,
    },
    /// Lists are found by their names, but several have the same one.
    #[error("several lists are called {name}: {ids}; rename all but one")]
    SeveralLists {
        /// The name.
        name: String,
        /// The ids of the lists.
        ids: String,
    },
}

impl Error {
    pub(crate) fn unreadable(path: &Path, why: impl Display) -> Self {
        Self::Unreadable { path: path.to_owned(), why: why.to_string() }
    }

    pub(crate) fn unwritable(path: &Path, why: impl Display) -> Self {
        Self::Unwritable { path: path.to_owned(), why: why.to_string() }
    }

    pub(crate) fn too_many(place: impl Display, most: usize, what: &'static str) -> Self {
        Self::TooMany { place: place.to_string(), most, what }
    }
}

/// Reason why an import ended early. Everything imported before stays, and the same import can be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError<E> {
    /// The files or the workspace are at fault.
    #[error(transparent)]
    Import(#[from] Error),
    /// The API refused something that does not concern a single row.
    #[error("refused by the API with status {}", .0.status)]
    Refused(Answer),
    /// A call has no answer.
    #[error("the API cannot be called")]
    Api(#[source] E),
    /// A task panicked or was canceled.
    #[error("a task of the import did not end")]
    Task(#[source] JoinError),
}
