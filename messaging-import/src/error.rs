//! Why an import does not go on.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use tokio::task::JoinError;

use crate::api::Answer;

/// What is wrong with the files of an import, or with what they are to be brought over to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The fault, with the row where there is one.
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
    /// The directory of the export is not there.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// No file of the directory has a name that the product's files have.
    #[error("{} holds no file of {product}; looked for {looked_for}", .directory.display())]
    NoFiles {
        /// The directory.
        directory: PathBuf,
        /// The product.
        product: &'static str,
        /// The names of files that would be read.
        looked_for: &'static str,
    },
    /// There is more of something than is read.
    #[error("{place} has more than {most} {what}")]
    TooMany {
        /// The directory, or the export.
        place: String,
        /// The most that are read.
        most: usize,
        /// The things that are counted, in the plural.
        what: &'static str,
    },
    /// Lists are found by their names, and several have the same one.
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

/// Why not everything was brought over. What came before is done, and the same import can be made again.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError<E> {
    /// Something is wrong with the files or the workspace.
    #[error(transparent)]
    Import(#[from] Error),
    /// The API refused something that is not about a single row.
    #[error("refused by the API with status {}", .0.status)]
    Refused(Answer),
    /// A call has no answer.
    #[error("the API cannot be called")]
    Api(#[source] E),
    /// A task panicked or was canceled.
    #[error("a task of the import did not end")]
    Task(#[source] JoinError),
}
