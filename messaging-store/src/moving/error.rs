//! Errors of moving an installation to PostgreSQL.

use std::path::PathBuf;

use crate::open_error::OpenError;

/// Reason why nothing was moved. The target is empty and the source unchanged, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is no database file.
    #[error("there is no database {}", .0.display())]
    NoDatabase(PathBuf),
    /// The source cannot be opened, or a server works on it.
    #[error("failed to open the source")]
    Source(#[source] OpenError),
    /// The target cannot be opened.
    #[error("failed to open the target")]
    Target(#[source] OpenError),
    /// A process uses the target.
    #[error("{0} uses the target; stop it and try again 30 s later")]
    TargetInUse(String),
    /// The target has rows.
    #[error("the target is not empty: its table {0} has rows; name a database without an installation")]
    NotEmpty(&'static str),
    /// Another program wrote to the source meanwhile.
    #[error("another program wrote to the source while it was moved; stop what uses it and try again")]
    SourceChanged,
    /// The target does not accept a value of the source.
    #[error("a row of {table} cannot be moved: {column} {problem}")]
    Unfit {
        /// Its table.
        table: &'static str,
        /// The column.
        column: String,
        /// Description of what is wrong with the value.
        problem: &'static str,
    },
    /// The target returns other rows than it was given.
    #[error("{table} is not the same on both sides: {given} rows were given, {found} found")]
    Different {
        /// The table.
        table: &'static str,
        /// Rows that the source has.
        given: u64,
        /// Rows that the target has.
        found: u64,
    },
    /// The source cannot be read, or not be fenced.
    #[error("failed to {attempt}")]
    Reading {
        /// The action that failed, put after "failed to" in the error text.
        attempt: String,
        /// The underlying error of the source database or its files.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The target does not accept what it is given.
    #[error("failed to {attempt}")]
    Writing {
        /// The action that failed, put after "failed to" in the error text.
        attempt: String,
        /// The underlying error of the target database.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The connection ended while the target committed, and it does not answer whether it did.
    #[error(
        "the target does not answer whether it has everything; the source is fenced. If the target turns out to be empty, \
         `messaging admin resume` lets the source send again"
    )]
    Unknown(#[source] tokio_postgres::Error),
}

impl MoveError {
    /// Returns true if a side is not ready to be moved from or to: in use, or not empty.
    pub const fn is_not_ready(&self) -> bool {
        matches!(
            self,
            Self::Source(OpenError::InUse | OpenError::ServerIsOlder)
                | Self::TargetInUse(_)
                | Self::NotEmpty(_)
                | Self::SourceChanged
        )
    }

    pub(crate) fn reading<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        attempt: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let attempt = attempt.into();
        move |source| Self::Reading { attempt, source: source.into() }
    }

    pub(crate) fn writing(attempt: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let attempt = attempt.into();
        move |source| Self::Writing { attempt, source }
    }
}
