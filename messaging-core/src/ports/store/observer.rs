//! The port through which a store reports its commits, for metrics.

use std::fmt::Debug;
use std::time::Duration;

use crate::changes::Changes;

/// Observer of commits, for metrics. Called on the thread that commits, which others wait for: it must not block.
pub trait CommitObserver: Debug + Send + Sync {
    /// Called when changes are durable: once for each commit, whether or not its caller still waits; not for refused
    /// ones.
    fn committed(&self, changes: &Changes, waited: Duration);
    /// Called when commits were made durable together.
    fn synced(&self, batch: CommitBatch);
}

/// Commits that were made durable together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitBatch {
    /// The number of commits, at least one.
    pub commits: usize,
    /// The time that the sync to the disk took.
    pub sync: Duration,
}
