//! Reasons why an installation cannot be opened.

use messaging_core::ports::store::{CommitError, StoreError};
use messaging_engine::KeyRefused;
use messaging_store::key_file::KeyFileError;

/// Reason why an installation cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The database cannot be opened.
    #[error("failed to open the database")]
    Database(#[from] messaging_store::OpenError),
    /// The secret key cannot be read or made.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The database belongs to another secret key.
    #[error(transparent)]
    WrongKey(#[from] KeyRefused),
    /// The sender is no email address.
    #[error("the sender is no email address: give one such as hello@example.com")]
    Sender,
    /// The database refused what an installation needs.
    #[error("failed to prepare the database")]
    Store(#[from] StoreError),
    /// The database refused to write what an installation needs.
    #[error("failed to prepare the database")]
    Commit(#[from] CommitError),
    /// The settings of the sender or of a channel are refused; the source says what to change.
    #[error("the settings are refused")]
    Settings(#[from] messaging_engine::Error),
}
