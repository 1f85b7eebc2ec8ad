//! Errors of reads and commits.

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was done: too much work is waiting, the store is closing or not healthy (see
    /// `Store::health`). A later try may work.
    #[error("the store takes no more work at the moment")]
    Unavailable,
    /// The disk failed while the commit was made durable, or the connection to the database was lost: whether it is kept
    /// is known after the next start. Until then it is not seen.
    #[error("the disk or the connection to the database failed during the commit")]
    OutcomeUnknown,
    /// The database failed.
    #[error("the database failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A commit failed; nothing was changed, except perhaps after [`StoreError::OutcomeUnknown`].
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Something was not as the changes expected it: read again, decide again.
    #[error("the data changed meanwhile")]
    Conflict,
    /// A claim that the changes name is not held any more: somebody else has the job, or it is done. Nothing that was
    /// decided under the claim counts, and deciding again is of no use.
    #[error("the claim of the job was lost")]
    LeaseLost,
    /// The store cannot keep these changes, however often it is asked: a value is too large for it, for example.
    #[error("the store refuses the changes for good")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Not committed for another reason.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommitError {
    /// Why the store failed, for whoever has dealt with conflicts and names no claim.
    pub fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Refused(cause) => StoreError::Failed(cause),
            other => StoreError::Failed(Box::new(other)),
        }
    }
}
