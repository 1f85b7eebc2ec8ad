//! An import: a file of contacts that is read into a workspace.
//!
//! Contract section 6.4. First the file is uploaded, then a job reads it. Its format is in submodules: [`table`] splits
//! its bytes into rows, [`columns`] maps its columns to fields, [`row`] reads a contact from a row, [`report`] lists
//! the refused rows.

pub mod columns;
pub mod report;
#[cfg(feature = "imports")]
pub mod row;
#[cfg(feature = "imports")]
pub mod table;
mod unreadable;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::columns::Mapping;
use crate::domain::audience::contact::IdentifierKind;
use crate::domain::audience::subscription::NewStatus;
use crate::error::DomainError;
use crate::ids::{BlobId, ImportId, WorkspaceId};
use crate::time::Timestamp;

pub use unreadable::Unreadable;

/// Maximum size of a file, in bytes (contract section 20).
pub const MAX_BYTES: u64 = 100 << 20;
/// Maximum number of rows of a file, the header not counted (contract section 20).
pub const MAX_ROWS: u64 = 1_000_000;
/// Lifetime of an upload link.
pub(crate) const UPLOAD_WITHIN: Duration = Duration::from_hours(1);

/// A file of contacts, and the progress of its import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Its id.
    pub id: ImportId,
    /// Workspace that owns the import.
    pub workspace_id: WorkspaceId,
    /// Name of the file, as given in the request.
    pub filename: String,
    /// Size that the request announced, in bytes.
    pub size_bytes: u64,
    /// SHA-256 digest that the request announced, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Meaning of columns, by header; other columns mean what their headers say.
    pub mapping: Mapping,
    /// Identifiers by which a contact is looked up, in this order.
    pub dedup_keys: Vec<IdentifierKind>,
    /// Status that contacts get on public lists.
    #[serde(default, skip_serializing_if = "NewStatus::is_confirmed")]
    pub status_on_lists: NewStatus,
    /// State of the import, such as waiting for the upload or completed.
    pub state: ImportState,
    /// Rows in the file, the header not counted; `None` until they are counted.
    pub total_rows: Option<u64>,
    /// Rows that created a contact.
    pub created: u64,
    /// Rows that matched an existing contact, whether or not they changed it.
    pub updated: u64,
    /// Rows that were refused.
    pub failed: u64,
    /// When it was requested.
    pub created_at: Timestamp,
}

/// State of an import, from waiting for the upload to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ImportState {
    /// There is no file yet.
    AwaitingUpload,
    /// The file is being read.
    Processing {
        /// Id of the uploaded file that is read; further uploads for the import are not.
        upload: BlobId,
        /// Position before which all rows are done.
        cursor: Cursor,
    },
    /// All rows are done.
    Completed {
        /// When the last row was done.
        at: Timestamp,
    },
    /// The file cannot be read.
    Failed {
        /// When it failed.
        at: Timestamp,
        /// Reason why the file cannot be read, and what to do about it, for people.
        reason: String,
    },
    /// No file came in time.
    Expired,
}

/// A position in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Bytes from the beginning.
    pub offset: u64,
    /// Number of the row that ends there; the header is row 1, the beginning of the file 0.
    pub row: u64,
}

/// Status of an import, for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportStatus {
    /// The file is to be sent to `upload_url`.
    AwaitingUpload,
    /// The file is being read.
    Processing,
    /// All rows are done; those that were refused are counted in `failed`.
    Completed,
    /// The file cannot be read; `failure_reason` says why.
    Failed,
    /// No file came in time.
    Expired,
}

impl Import {
    /// Returns the status at a time: expired if the file did not come in time, recorded or not.
    pub fn status(&self, now: Timestamp) -> ImportStatus {
        match self.state {
            ImportState::AwaitingUpload if now >= self.expires_at() => ImportStatus::Expired,
            ImportState::AwaitingUpload => ImportStatus::AwaitingUpload,
            ImportState::Processing { .. } => ImportStatus::Processing,
            ImportState::Completed { .. } => ImportStatus::Completed,
            ImportState::Failed { .. } => ImportStatus::Failed,
            ImportState::Expired => ImportStatus::Expired,
        }
    }

    /// Returns the time at which the upload link expires.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at + UPLOAD_WITHIN
    }

    /// Returns the time at which the import ended, if it has, and the reason if it failed.
    pub fn end(&self) -> (Option<Timestamp>, Option<&str>) {
        match &self.state {
            ImportState::Completed { at } => (Some(*at), None),
            ImportState::Failed { at, reason } => (Some(*at), Some(reason)),
            ImportState::Expired => (Some(self.expires_at()), None),
            _ => (None, None),
        }
    }

    /// Checks that a file may be uploaded: none was, and the link has not expired. Otherwise `LinkExpired`.
    pub fn admits_upload(&self, now: Timestamp) -> Result<(), DomainError> {
        if self.status(now) == ImportStatus::AwaitingUpload { Ok(()) } else { Err(DomainError::LinkExpired) }
    }

    /// Returns the import after its file was uploaded; `LinkExpired` if none may be uploaded any more.
    pub fn uploaded(self, upload: BlobId, now: Timestamp) -> Result<Self, DomainError> {
        self.admits_upload(now)?;
        Ok(Self { state: ImportState::Processing { upload, cursor: Cursor::default() }, ..self })
    }

    /// Returns the import as expired, because no file came in time; `None` if one did, or still may.
    pub fn expire(self, now: Timestamp) -> Option<Self> {
        let is_late = self.state == ImportState::AwaitingUpload && now >= self.expires_at();
        is_late.then_some(Self { state: ImportState::Expired, ..self })
    }

    /// Returns the import as failed, because the file cannot be read any further.
    pub fn fail(self, why: &impl std::fmt::Display, now: Timestamp) -> Self {
        Self { state: ImportState::Failed { at: now, reason: why.to_string() }, ..self }
    }

    /// Returns the file that is being read, and the position in it.
    pub const fn reading(&self) -> Option<(BlobId, Cursor)> {
        match self.state {
            ImportState::Processing { upload, cursor } => Some((upload, cursor)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
