//! Errors of reads and commits.

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was done: too much work is waiting, or the store is closing or not healthy (see `Store::health`). A
    /// retry may work.
    #[error("the store takes no more work at the moment")]
    Unavailable,
    /// The disk failed while the commit was made durable, or the connection to the database was lost: whether it is
    /// stored is known after the next start. Until then it is not visible.
    #[error("the disk or the connection to the database failed during the commit")]
    OutcomeUnknown,
    /// The database failed.
    #[error("the database failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A commit failed; nothing was changed, except perhaps after [`StoreError::OutcomeUnknown`].
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Data was not as the changes expected it: read again, decide again.
    #[error("the data changed meanwhile")]
    Conflict,
    /// A claim that the changes name is no longer held: another process has the job, or it is done. Decisions under the
    /// claim are void, and deciding again is of no use.
    #[error("the claim of the job was lost")]
    LeaseLost,
    /// The store cannot store these changes, however often it is retried: for example because a value is too large.
    #[error("the store refuses the changes for good")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Not committed for another reason.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommitError {
    /// Returns the store's failure, for a caller that has handled conflicts and names no claim.
    pub fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Refused(cause) => StoreError::Failed(cause),
            other => StoreError::Failed(Box::new(other)),
        }
    }
}
