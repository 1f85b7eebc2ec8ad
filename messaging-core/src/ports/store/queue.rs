//! The queue of messages, for operators who inspect and change it.

use async_trait::async_trait;

use super::{StoreError, StoredJob};
use crate::changes::JobPlace;
use crate::domain::delivery::lane::Lane;
use crate::domain::delivery::queue::Suspension;
use crate::time::Timestamp;

/// Reads of the queue by operators. All but the first read many jobs, so they are only for requests by people.
#[async_trait]
pub trait OperatorQueue {
    /// Returns all suspended parts of the queue, in no particular order.
    async fn suspensions(&self) -> Result<Vec<Suspension>, StoreError>;
    /// Sums up the jobs of a kind in each lane that has any, in the order of the lanes' text forms, from the lane after
    /// `after` on; at most `limit` lanes.
    async fn lane_summaries(
        &self,
        kind: &'static str,
        after: Option<&Lane>,
        limit: usize,
    ) -> Result<Vec<LaneSummary>, StoreError>;
    /// Returns the jobs of all lanes, claimed or not, due or not, by lane, due time and id, those after the place
    /// `after`; at most `limit`. The place need not be that of a job.
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
