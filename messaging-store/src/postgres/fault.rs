//! What can go wrong between us and PostgreSQL, and what the caller is told.

use messaging_core::ports::store::{CommitError, StoreError};
use tokio_postgres::error::SqlState;

/// What `expect_rows` raises when a statement did not touch the rows that it should have (see V0001).
const UNEXPECTED_ROWS: &str = "MG001";

/// Why a read or a write did not happen.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A record is not as the changes expected it.
    #[error("a record is not as expected")]
    Conflict,
    /// A job is not claimed by whom the changes say.
    #[error("a claim was lost")]
    LeaseLost,
    #[error("the database refused a statement")]
    Postgres(#[source] tokio_postgres::Error),
    /// The connection was lost while `COMMIT` was on its way.
    #[error("the commit may or may not be kept")]
    OutcomeUnknown(#[source] tokio_postgres::Error),
    #[error("no connection to the database")]
    NoConnection(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("a document could not be read or written")]
    Document(#[from] serde_json::Error),
    #[error("a stored row is malformed: {0}")]
    Malformed(&'static str),
    #[error("a task of the store panicked")]
    Panicked,
    /// Nothing is written at the moment; see `health`.
    #[error("the store is not healthy")]
    Unhealthy,
}

impl Fault {
    /// Whether the same transaction may succeed when it is tried again: it met another one.
    pub(super) fn is_passing(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
            .iter()
            .any(|code| error.code() == Some(code))
    }

    /// Whether the database cannot be asked at the moment, whatever is asked.
    fn is_outage(&self) -> bool {
        match self {
            Self::NoConnection(_) | Self::Unhealthy => true,
            Self::Postgres(error) => {
                // 08: connection; 53: no space, memory or connections; 57: somebody ended it; 25006: read only.
                let is_outage = |code: &SqlState| {
                    ["08", "53", "57"].iter().any(|class| code.code().starts_with(class)) || code.code() == "25006"
                };
                error.is_closed() || error.code().is_none_or(is_outage) || self.is_passing()
            }
            _ => false,
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            // The schema's constraints are keys: somebody else was first.
            Some(code) if *code == SqlState::UNIQUE_VIOLATION || code.code() == UNEXPECTED_ROWS => Self::Conflict,
            _ => Self::Postgres(error),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::NoConnection(Box::new(error))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::OutcomeUnknown(_) => Self::OutcomeUnknown,
            fault if fault.is_outage() => Self::Unavailable,
            fault => Self::Failed(Box::new(fault)),
        }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict => Self::Conflict,
            Fault::LeaseLost => Self::LeaseLost,
            other => Self::Store(other.into()),
        }
    }
}

/// Turns "no row was touched" into a conflict.
pub(super) fn expect_one(rows: u64) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Conflict) }
}
