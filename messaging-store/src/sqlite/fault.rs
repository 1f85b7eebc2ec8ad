//! What can go wrong between us and SQLite, and what the caller is told.

use std::io::ErrorKind;
use std::sync::Arc;

use messaging_core::ports::store::{CommitError, StoreError, StoreHealth};
use rusqlite::{ErrorCode, ffi};

/// Why a read or a write did not happen.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A record is not as the changes expected it.
    #[error("a record is not as expected")]
    Conflict,
    /// A job is not claimed by whom the changes say.
    #[error("a claim was lost")]
    LeaseLost,
    #[error("sqlite failed")]
    Sqlite(#[source] rusqlite::Error),
    /// `COMMIT` failed after its frames may have been written.
    #[error("the commit may not be durable")]
    OutcomeUnknown(#[source] rusqlite::Error),
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
    /// Nothing is written at the moment; see `health`.
    #[error("the store is not healthy")]
    Unhealthy,
    /// What failed was not this work but the transaction it was in.
    #[error("the transaction failed")]
    Transaction(#[source] Arc<Fault>),
}

impl Fault {
    /// The failure of a `COMMIT`. A full disk stops it before its last frame, and a lock before its first;
    /// after any other failure of the disk the frames may be there, or come to be.
    pub(super) fn of_commit(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure) => Self::OutcomeUnknown(error),
            _ => error.into(),
        }
    }

    /// What the failure says about the store as a whole; `None` when it concerns this work alone.
    pub(super) fn trouble(&self) -> Option<StoreHealth> {
        match self {
            Self::Sqlite(error) | Self::OutcomeUnknown(error) => trouble(error),
            Self::File(error) => match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Some(StoreHealth::Full),
                _ => None,
            },
            Self::Transaction(cause) => cause.trouble(),
            _ => None,
        }
    }

    fn is_unknown(&self) -> bool {
        match self {
            Self::OutcomeUnknown(_) => true,
            Self::Transaction(cause) => cause.is_unknown(),
            _ => false,
        }
    }

    /// Whether the same changes will fail again: what was asked for cannot be kept, and nothing is wrong with the store.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Document(_) | Self::Malformed(_) => true,
            Self::Sqlite(error) => match error.sqlite_error_code() {
                // Of constraints only checks come here.
                Some(code) => matches!(
                    code,
                    ErrorCode::TooBig
                        | ErrorCode::TypeMismatch
                        | ErrorCode::ParameterOutOfRange
                        | ErrorCode::ConstraintViolation
                ),
                None => matches!(error, rusqlite::Error::ToSqlConversionFailure(_)),
            },
            _ => false,
        }
    }

    fn is_interrupted(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
    }
}

fn trouble(error: &rusqlite::Error) -> Option<StoreHealth> {
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some(StoreHealth::Full),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(StoreHealth::Locked),
        ErrorCode::SystemIoFailure => match error.sqlite_error()?.extended_code {
            ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => Some(StoreHealth::SyncFailed),
            // The index of the log, which is in memory on no disk but the database's.
            ffi::SQLITE_IOERR_SHMSIZE => Some(StoreHealth::Full),
            _ => Some(StoreHealth::IoError),
        },
        ErrorCode::CannotOpen | ErrorCode::ReadOnly => Some(StoreHealth::IoError),
        _ => None,
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let is_check = error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_CHECK);
        match error.sqlite_error_code() {
            // The schema's other constraints are keys: somebody else was first.
            Some(ErrorCode::ConstraintViolation) if !is_check => Self::Conflict,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        if fault.is_unknown() {
            return Self::OutcomeUnknown;
        }
        if matches!(fault, Fault::Unhealthy) || fault.is_interrupted() || fault.trouble().is_some() {
            return Self::Unavailable;
        }
        Self::Failed(Box::new(fault))
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
pub(super) fn expect_one(rows: usize) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Conflict) }
}
