//! What can go wrong between us and PostgreSQL, and what the caller is told.

use messaging_core::ports::store::{CommitError, StoreError};
use tokio_postgres::error::SqlState;

/// What `expect_rows` raises when a statement did not touch the rows that it should have.
const UNEXPECTED_ROWS: &str = "MG001";

/// What `expect_term` raises when the term of this process is over.
const TERM_OVER: &str = "MG002";

/// What `expect_claim` raises when a claimed job is not there.
const CLAIM_LOST: &str = "MG003";

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
    OutcomeUnknown,
    #[error("the database does not answer")]
    NoAnswer,
    /// The connection was lost in a transaction that is known not to be kept.
    #[error("the connection was lost before the commit")]
    NotCommitted,
    /// The term of this process is over: somebody has declared it dead.
    #[error("the term of this process is over")]
    Fenced,
    #[error("jobs are claimed by processes that were opened for work, and this is not one")]
    NotTheWorker,
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
        let error = match self {
            Self::Postgres(error) => error,
            Self::NotCommitted => return true,
            _ => return false,
        };
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
            .iter()
            .any(|code| error.code() == Some(code))
    }

    /// The failure of a connection: what was sent over it may have been done.
    pub(super) fn lost_connection(&self) -> bool {
        let error = match self {
            Self::Postgres(error) => error,
            other => return matches!(other, Self::NoAnswer),
        };
        // 57P: somebody ended the backend, which may have committed before.
        let is_lost = |code: &SqlState| ["08", "57P"].iter().any(|class| code.code().starts_with(class));
        error.code().is_none_or(is_lost)
    }

    /// Whether nothing was heard of the database: there was no connection, or it was lost.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(self, Self::NoConnection(_) | Self::OutcomeUnknown | Self::Unhealthy) || self.lost_connection()
    }

    /// Whether the same changes will fail again: what was asked for cannot be kept, and nothing is wrong with the database.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Document(_) | Self::Malformed(_) => true,
            // 22: a value of no such kind; 54: one that is too large for the program; 23514: a check.
            Self::Postgres(error) => error.code().is_some_and(|code| {
                code.code().starts_with("22") || code.code().starts_with("54") || *code == SqlState::CHECK_VIOLATION
            }),
            _ => false,
        }
    }

    /// Whether the database cannot be asked at the moment, whatever is asked.
    fn is_outage(&self) -> bool {
        match self {
            Self::NoConnection(_) | Self::NoAnswer | Self::Unhealthy | Self::NotCommitted | Self::Fenced => true,
            Self::Postgres(error) => {
                // 08: connection; 53: no space, memory or connections; 57P: somebody ended it; 25006: read only. Not 57014:
                // a statement that took too long takes as long again.
                let is_outage = |code: &SqlState| {
                    ["08", "53", "57P"].iter().any(|class| code.code().starts_with(class)) || code.code() == "25006"
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
            Some(code) if code.code() == TERM_OVER => Self::Fenced,
            Some(code) if code.code() == CLAIM_LOST => Self::LeaseLost,
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
            Fault::OutcomeUnknown => Self::OutcomeUnknown,
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
            refused if refused.is_refusal() => Self::Refused(Box::new(refused)),
            other => Self::Store(other.into()),
        }
    }
}
