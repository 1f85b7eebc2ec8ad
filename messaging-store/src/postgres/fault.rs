//! Classes of errors of PostgreSQL.

use tokio_postgres::error::SqlState;

pub(super) use crate::fault::Fault;

/// SQLSTATE that `expect_rows` raises if a statement did not touch the expected number of rows.
const UNEXPECTED_ROWS: &str = "MG001";

/// SQLSTATE that `expect_term` raises if the term of this process is over.
const TERM_OVER: &str = "MG002";

/// SQLSTATE that `expect_claim` raises if the row of a claimed job is gone.
const CLAIM_LOST: &str = "MG003";

impl Fault {
    /// Returns true if the same transaction may succeed on another try: it collided with a concurrent one.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Postgres(error) => is_passing(error),
            other => matches!(other, Self::NotCommitted),
        }
    }

    /// Returns true if the connection failed: the database may have executed what was sent over it.
    pub(crate) fn lost_connection(&self) -> bool {
        let error = match self {
            Self::Postgres(error) => error,
            other => return matches!(other, Self::NoAnswer),
        };
        // 57P: somebody ended the backend, which may have committed before.
        let is_lost = |code: &SqlState| ["08", "57P"].iter().any(|class| code.code().starts_with(class));
        error.code().is_none_or(is_lost)
    }

    /// Returns true if the database cannot be reached, or says that it cannot be used: it is full, read-only, starting
    /// or ending.
    pub(crate) fn is_of_database(&self) -> bool {
        match self {
            Self::Postgres(error) => is_outage(error) && !is_passing(error),
            other => matches!(other, Self::NoConnection(_) | Self::NoAnswer),
        }
    }

    /// Returns true if the database gave no answer: there was no connection, or it was lost.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, Self::NoConnection(_) | Self::OutcomeUnknown | Self::Unhealthy) || self.lost_connection()
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

/// Returns true if the same transaction may succeed on another try: it collided with a concurrent one.
fn is_passing(error: &tokio_postgres::Error) -> bool {
    [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
        .iter()
        .any(|code| error.code() == Some(code))
}

/// Returns true if the same changes will fail again.
pub(crate) fn is_refusal(error: &tokio_postgres::Error) -> bool {
    // 22: a value of no such kind; 54: one that is too large for the program; 23514: a check.
    error.code().is_some_and(|code| {
        code.code().starts_with("22") || code.code().starts_with("54") || *code == SqlState::CHECK_VIOLATION
    })
}

/// Returns true if the database cannot answer any query at the moment.
pub(crate) fn is_outage(error: &tokio_postgres::Error) -> bool {
    // 08: connection; 53: no space, memory or connections; 57P: somebody ended it; 25006: read only. Not 57014:
    // a statement that took too long takes as long again.
    let is_outage = |code: &SqlState| {
        ["08", "53", "57P"].iter().any(|class| code.code().starts_with(class)) || code.code() == "25006"
    };
    error.is_closed() || error.code().is_none_or(is_outage) || is_passing(error)
}
