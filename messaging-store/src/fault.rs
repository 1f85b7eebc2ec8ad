//! Faults of a database, and the errors that callers get for them.

use std::sync::Arc;

use messaging_core::ports::store::{CommitError, StoreError};

/// Reason why a read or a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A record is not as the changes expected it.
    #[error("a record is not as expected")]
    Conflict,
    /// The job is not claimed by the claimer that the changes name.
    #[error("a claim was lost")]
    LeaseLost,
    #[error("sqlite failed")]
    Sqlite(#[source] rusqlite::Error),
    /// `COMMIT` failed after its frames may have been written.
    #[error("the commit may not be durable")]
    NotDurable(#[source] rusqlite::Error),
    /// The transaction failed for a reason that these changes did not cause.
    #[error("the transaction failed")]
    Transaction(#[source] Arc<Fault>),
    #[error("a file failed")]
    File(#[from] std::io::Error),
    #[cfg(feature = "postgres")]
    #[error("the database refused a statement")]
    Postgres(#[source] tokio_postgres::Error),
    /// The connection was lost while `COMMIT` was on its way.
    #[cfg(feature = "postgres")]
    #[error("the commit may or may not be kept")]
    OutcomeUnknown,
    #[cfg(feature = "postgres")]
    #[error("the database does not answer")]
    NoAnswer,
    /// The connection was lost in a transaction that is known not to be kept.
    #[cfg(feature = "postgres")]
    #[error("the connection was lost before the commit")]
    NotCommitted,
    /// The transaction relied on data that may be out of date; nothing of it is kept.
    #[cfg(feature = "postgres")]
    #[error("something was not as it was seen last")]
    Outdated,
    /// The term of this process is over: another process has declared it dead.
    #[cfg(feature = "postgres")]
    #[error("the term of this process is over")]
    Fenced,
    #[cfg(feature = "postgres")]
    #[error("no connection to the database")]
    NoConnection(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("a document could not be read or written")]
    Document(#[from] serde_json::Error),
    #[error("a stored row is malformed: {0}")]
    Malformed(&'static str),
    #[error("jobs are claimed by processes that opened the database for work, and this is not one")]
    NotTheWorker,
    #[error("a thread or task of the store panicked")]
    Panicked,
    /// The store accepts no writes at the moment; see `health`.
    #[error("the store is not healthy")]
    Unhealthy,
}

impl Fault {
    /// Returns true if it is unknown whether the commit is kept.
    fn is_unknown(&self) -> bool {
        match self {
            Self::NotDurable(_) => true,
            Self::Transaction(cause) => cause.is_unknown(),
            #[cfg(feature = "postgres")]
            Self::OutcomeUnknown => true,
            _ => false,
        }
    }

    /// Returns true if the same changes will fail again: the data cannot be stored, and the store itself is sound.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Document(_) | Self::Malformed(_) => true,
            Self::Sqlite(error) => crate::sqlite::fault::is_refusal(error),
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => crate::postgres::fault::is_refusal(error),
            _ => false,
        }
    }

    /// Returns true if the database cannot answer any query at the moment.
    fn is_outage(&self) -> bool {
        match self {
            Self::Unhealthy => true,
            #[cfg(feature = "postgres")]
            Self::NoConnection(_) | Self::NoAnswer | Self::NotCommitted | Self::Outdated | Self::Fenced => true,
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => crate::postgres::fault::is_outage(error),
            other => other.is_interrupted() || other.trouble().is_some(),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        if fault.is_unknown() {
            return Self::OutcomeUnknown;
        }
        if fault.is_outage() { Self::Unavailable } else { Self::Failed(Box::new(fault)) }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict => Self::Conflict,
            Fault::LeaseLost => Self::LeaseLost,
            refused if refused.is_refusal() => Self::Refused(Box::new(refused)),
            other => Self::Store(other.into()),
        }
    }
}

/// Turns "no row was touched" into a conflict.
pub(crate) fn expect_one(rows: usize) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Conflict) }
}
