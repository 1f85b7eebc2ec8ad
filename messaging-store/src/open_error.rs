//! Errors of opening a database.

use std::error::Error;

use crate::file_error::FileError;

/// Reason why a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another program that does the jobs has it open.
    #[error("another messaging server works on this database: stop it first, or use another directory")]
    InUse,
    /// A later version of this program has changed the schema.
    #[error(
        "written by a newer version (schema {found}, this program knows {known}); install the newer program, \
         or put the backup back that was made before it"
    )]
    Newer {
        /// The schema of the database.
        found: i64,
        /// The latest schema of this program.
        known: i64,
    },
    /// A development version from before the first release created the schema; its migrations are no longer known.
    #[error(
        "made by a development version of messaging from before 0.1.0, whose schema this program cannot bring up to date; \
         export its data with that version and import it into an empty database, or start with an empty database"
    )]
    BeforeFirstRelease,
    /// The schema is older than this program's, and cannot be changed under a running server.
    #[error("a server of an older version works on this database; restart it with this version first")]
    ServerIsOlder,
    /// The database has no installation yet.
    #[error("the database has no tables of messaging yet; `messaging serve` makes them when it starts")]
    Empty,
    /// The database cannot store every text.
    #[error(
        "its encoding is {0} and has to be UTF8: make the database with `createdb --encoding UTF8 --template template0`"
    )]
    Encoding(String),
    /// The server of the database cannot be reached, or takes no connections at the moment.
    #[error("the database does not answer")]
    NoAnswer {
        /// The underlying error of the connection.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file or directory of the database cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Anything else.
    #[error("failed to {attempt}")]
    Failed {
        /// The action that failed, put after "failed to" in the error text.
        attempt: &'static str,
        /// The underlying error that made the action fail.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Names the attempted action, for `map_err`.
pub(crate) fn failed<E: Into<Box<dyn Error + Send + Sync>>>(attempt: &'static str) -> impl FnOnce(E) -> OpenError {
    move |source| OpenError::Failed { attempt, source: source.into() }
}
