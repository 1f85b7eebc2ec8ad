//! Classes of errors of SQLite.

use std::io::ErrorKind;

use messaging_core::ports::store::StoreHealth;
use rusqlite::{ErrorCode, ffi};

pub(super) use crate::fault::{Fault, expect_one};

impl Fault {
    /// Classifies the failure of a `COMMIT`. A full disk stops it before its last frame, and a lock before its first;
    /// after any other failure of the disk the frames may be in the log, or still reach it.
    pub(crate) fn of_commit(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure) => Self::NotDurable(error),
            _ => error.into(),
        }
    }

    /// The state of the store that follows from the fault; `None` if it concerns only this operation.
    pub(crate) fn trouble(&self) -> Option<StoreHealth> {
        match self {
            Self::Sqlite(error) | Self::NotDurable(error) => trouble(error),
            Self::File(error) => match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Some(StoreHealth::Full),
                _ => None,
            },
            Self::Transaction(cause) => cause.trouble(),
            _ => None,
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
    }
}

fn trouble(error: &rusqlite::Error) -> Option<StoreHealth> {
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some(StoreHealth::Full),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(StoreHealth::Locked),
        ErrorCode::SystemIoFailure => match error.sqlite_error()?.extended_code {
            ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => Some(StoreHealth::SyncFailed),
            // The index of the log, which is on the disk of the database.
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
            // Other constraints of the schema are keys: another commit was first.
            Some(ErrorCode::ConstraintViolation) if !is_check => Self::Conflict,
            _ => Self::Sqlite(error),
        }
    }
}

/// Returns true if the same changes will fail again.
pub(crate) fn is_refusal(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        // Of constraint violations only those of checks arrive here.
        Some(code) => matches!(
            code,
            ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::ConstraintViolation
        ),
        None => matches!(error, rusqlite::Error::ToSqlConversionFailure(_)),
    }
}
