//! Limits that are the installation's, of which each process knows only its own part.

use std::fmt::Debug;

use async_trait::async_trait;

use super::StoreError;

/// Tokens that were taken from a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// Whose bucket it is, by id.
    pub bucket: [u8; 16],
    /// How many tokens it holds when it is full.
    pub limit: u32,
    /// The number of tokens that were taken.
    pub tokens: u32,
}

/// Tells the processes on one database what they take from buckets which each of them keeps.
///
/// A process takes tokens from its own bucket at once, and hears within a second what others took: so the sum of all is
/// over a limit by no more than what is taken in that time. What is told is not durable; buckets are full again after a
/// minute anyway.
#[async_trait]
pub trait SharedLimits: Debug + Send + Sync {
    /// Tells what this process has taken since the last call, and answers what others have taken since then. What cannot
    /// be told is told with the next call by whoever kept it.
    async fn exchange(&self, taken: &[Taking]) -> Result<Vec<Taking>, StoreError>;
}
