//! Limits of the whole installation, of which each process knows only its own use.

use std::fmt::Debug;

use async_trait::async_trait;

use super::StoreError;

/// Tokens that were taken from a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// Id of the bucket's owner.
    pub bucket: [u8; 16],
    /// Capacity of the bucket, in tokens.
    pub limit: u32,
    /// The number of tokens that were taken.
    pub tokens: u32,
}

/// Shares among the processes on one database the tokens taken from buckets that each of them keeps.
///
/// A process takes tokens from its own bucket at once, and learns within a second what others took: so the sum of all
/// exceeds a limit by no more than is taken in that time. The exchange is not durable; buckets are full again after a
/// minute anyway.
#[async_trait]
pub trait SharedLimits: Debug + Send + Sync {
    /// Sends the tokens that this process has taken since the last call, and returns those that others have taken since
    /// then. The caller sends tokens again with the next call if this one fails.
    async fn exchange(&self, taken: &[Taking]) -> Result<Vec<Taking>, StoreError>;
}
