//! What can go wrong between us and SQLite, and what the caller is told.

use std::sync::Arc;

use messaging_core::ports::store::{CommitError, StoreError};
use rusqlite::ErrorCode;

/// Why a read or a write did not happen.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A record is not as the changes expected it.
    #[error("a record is not as expected")]
    Conflict,
    #[error("sqlite failed")]
    Sqlite(#[source] rusqlite::Error),
    #[error("a document could not be read or written")]
    Document(#[from] serde_json::Error),
    #[error("a file failed")]
    File(#[from] std::io::Error),
    #[error("a stored row is malformed: {0}")]
    Malformed(&'static str),
    #[error("jobs are claimed by the server that works on the database, and this is not it")]
    NotTheWorker,
    #[error("a thread of the store panicked")]
    Panicked,
    /// What failed was not this work but the transaction it was in.
    #[error("the transaction failed")]
    Transaction(#[source] Arc<Fault>),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // The schema's constraints are keys: somebody else was first.
            Some(ErrorCode::ConstraintViolation) => Self::Conflict,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        let busy = |fault: &Fault| match fault {
            Fault::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy),
            _ => false,
        };
        match &fault {
            Fault::Transaction(cause) if busy(cause) => Self::Unavailable,
            _ if busy(&fault) => Self::Unavailable,
            _ => Self::Failed(Box::new(fault)),
        }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict => Self::Conflict,
            other => Self::Store(other.into()),
        }
    }
}

/// Turns "no row was touched" into a conflict.
pub(super) fn expect_one(rows: usize) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Conflict) }
}
