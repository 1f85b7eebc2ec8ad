//! The queue of messages, for operators who look at it and act on it.

use async_trait::async_trait;

use super::{StoreError, StoredJob};
use crate::changes::JobPlace;
use crate::domain::delivery::lane::Lane;
use crate::domain::delivery::queue::Suspension;
use crate::time::Timestamp;

/// Reads of the queue by hand. All but the first look at many jobs, so they are for people who ask.
#[async_trait]
pub trait OperatorQueue {
    /// All parts of the queue that are suspended, in no particular order.
    async fn suspensions(&self) -> Result<Vec<Suspension>, StoreError>;
    /// What waits in the lanes that have jobs of a kind, in the order of their text forms, from the lane after `after` on;
    /// at most `limit` lanes.
    async fn lane_summaries(
        &self,
        kind: &'static str,
        after: Option<&Lane>,
        limit: usize,
    ) -> Result<Vec<LaneSummary>, StoreError>;
    /// Jobs of all lanes, claimed or not, due or not, by lane, due time and id, those after the place `after`; at most
    /// `limit`. The place need not be that of a job.
    async fn jobs_after(&self, after: Option<&JobPlace>, limit: usize) -> Result<Vec<DatedJob>, StoreError>;
}

/// Jobs that wait in a lane, summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSummary {
    /// The lane.
    pub lane: Lane,
    /// Number of jobs of the kind, claimed ones included.
    pub jobs: u64,
    /// Number of those whose payload has an `attempt` above 1.
    pub deferred: u64,
    /// Time at which the oldest job was added.
    pub oldest: Timestamp,
    /// Earliest time at which a job is due.
    pub next_due: Timestamp,
}

/// A job with the time at which its due time was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedJob {
    /// The job.
    pub job: StoredJob,
    /// Time by the clock when its due time was set.
    pub dated_at: Timestamp,
}
