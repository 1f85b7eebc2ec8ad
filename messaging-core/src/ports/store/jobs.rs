//! Jobs waiting to be done.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::StoreError;
use crate::changes::{JobHandle, JobPlace};
use crate::domain::delivery::lane::{Flow, Lane};
use crate::domain::delivery::queue::Suspensions;
use crate::ids::WorkspaceId;
use crate::time::{Monotonic, Timestamp};

/// The job queue.
///
/// A claim gives a job to one claimer until its lease ends; after that it can be claimed again, and the first claim's
/// [`JobHandle`] is refused. A restart of the only process may end all leases at once. Before anything leaves the
/// process the claim is confirmed by a commit, which may consist of [`Hold`](crate::changes::JobWrite::Hold) alone.
///
/// Flows get places in turn ([`FairTurns`](crate::domain::delivery::fair_turns::FairTurns)), and within a flow the lane
/// that waited longest comes first. All jobs of a lane are claimed by one process at a time.
///
/// Due times are dates, and dates may be wrong: if the clock is set back, a job that was dated while it was ahead would
/// wait for that date. A store notices that and dates such jobs anew, as long after now as they were due after the
/// moment they were added. Claimed jobs are left alone.
///
/// ```
/// use std::time::Duration;
/// use messaging_core::changes::{Changes, JobWrite, Write};
/// use messaging_core::ports::store::{Claim, CommitError, Priority};
/// use messaging_core::ports::{Clock, Store};
///
/// /// Does what is due, one job at a time.
/// async fn work(store: &dyn Store, clock: &dyn Clock) -> Result<(), CommitError> {
///     loop {
///         let mut claim = Claim::new(clock.now(), clock.monotonic(), Duration::from_secs(60));
///         claim.max = 1;
///         let Some(job) = store.claim(claim).await?.pop() else { return Ok(()) };
///         println!("{}: {} bytes", job.kind, job.payload.len());
///         // Its end and what it changes are one commit, which fails when the claim was lost meanwhile.
///         let done = Changes::from_iter([Write::Job(JobWrite::Finish(job.handle))]);
///         store.commit(done, Priority::Background).await?;
///     }
/// }
/// ```
#[async_trait]
pub trait Jobs {
    /// Claims due jobs. A job that another process dated more than ten seconds before its commit may be missed for up
    /// to a minute of the monotonic clock, so that claims need not look for such jobs each time.
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError>;
    /// Returns the time until the next unclaimed job is due or a lease ends, by the two clocks; `None` if no job waits.
    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError>;
    /// Counts the waiting jobs, claimed ones included; for metrics.
    async fn job_count(&self) -> Result<u64, StoreError>;
    /// Returns up to `limit` jobs of some kinds, claimed or not, due or not, in an order of the store's own.
    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError>;
    /// Sums up the waiting jobs, claimed or not, and returns the `limit` longest lanes, the longest first. Reads every
    /// job, so it is only for requests by people.
    async fn queues(&self, limit: usize) -> Result<Queues, StoreError>;
    /// Counts the jobs of each lane that are due by a time, claimed ones included, in the order of the lanes. Counts at
    /// most `most`, to which the cost of a lane is proportional.
    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError>;
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The key of the job: its lane, due time and id.
    pub place: JobPlace,
    /// Name of the job type that runs it.
    pub kind: String,
    /// The job's own data.
    pub payload: Bytes,
}

/// The jobs that wait, summed up by kind of resource and by lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// Sums by the beginning of the lanes' resources, the text before a colon, in the order of these texts: `email`
    /// sums up `email:a.example` and `email:b.example` of all workspaces.
    pub sums: BTreeMap<String, Queued>,
    /// The longest lanes.
    pub lanes: Vec<(Lane, Queued)>,
}

/// Number of waiting jobs, and their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Number of jobs.
    pub jobs: u64,
    /// Time at which the oldest was added.
    pub oldest: Timestamp,
    /// Earliest due time: in the past for a job that is being run or cannot begin.
    pub due: Timestamp,
}

/// A request for due jobs, with its limits and the lanes that it leaves alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Claims jobs that are due at or before this time.
    pub now: Timestamp,
    /// The same moment on the monotonic clock, which measures leases and holds.
    pub monotonic: Monotonic,
    /// Duration for which the jobs are claimed, from `monotonic` on.
    pub lease: Duration,
    /// Maximum number of jobs in all.
    pub max: usize,
    /// Maximum number of bulk jobs, out of `max`.
    pub bulk: usize,
    /// Maximum number of jobs of one flow.
    pub per_flow: usize,
    /// Flows with another limit than `per_flow`.
    pub flows: HashMap<Flow, usize>,
    /// Turns of a workspace for each turn of another; 1 if it is not here.
    pub weights: HashMap<WorkspaceId, u32>,
    /// Maximum number of jobs of one lane, all its senders together; the lanes of a flow that waited longest come
    /// first.
    pub per_lane: usize,
    /// Lanes, without their senders, with another limit than `per_lane`.
    pub shares: HashMap<Lane, usize>,
    /// Lanes, without their senders, to leave alone until a time: at their limit, or in back-off. A later claim without
    /// a lane releases it.
    pub hold: Vec<(Lane, Monotonic)>,
    /// Prefixes of resources whose lanes are left alone. A later claim without them releases them.
    pub withheld: &'static [&'static str],
    /// Lanes that are left alone for some workspaces only; released in the same way.
    pub withheld_of: WithheldOf,
    /// Suspended lanes of messages, which are left alone; released in the same way.
    pub suspended: Arc<Suspensions>,
}

/// Lanes of some workspaces that a claim leaves alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithheldOf {
    /// The workspaces.
    pub workspaces: Arc<HashSet<WorkspaceId>>,
    /// Prefixes of the resources of the lanes.
    pub resources: &'static [&'static str],
}

impl Claim {
    /// True if the claim leaves a lane alone altogether.
    pub fn withholds(&self, lane: &Lane) -> bool {
        let begins_with = |starts: &[&str]| starts.iter().any(|start| lane.resource().starts_with(start));
        let WithheldOf { workspaces, resources } = &self.withheld_of;
        begins_with(self.withheld)
            || (lane.flow().workspace.is_some_and(|of| workspaces.contains(&of)) && begins_with(resources))
            || self.suspended.of(lane).is_some()
    }

    /// True if there may be lanes that the claim leaves alone altogether.
    pub fn withholds_some(&self) -> bool {
        !self.withheld.is_empty() || !self.withheld_of.workspaces.is_empty() || !self.suspended.is_empty()
    }

    /// Returns a claim without limits.
    pub fn new(now: Timestamp, monotonic: Monotonic, lease: Duration) -> Self {
        Self {
            now,
            monotonic,
            lease,
            max: usize::MAX,
            bulk: usize::MAX,
            per_flow: usize::MAX,
            flows: HashMap::new(),
            weights: HashMap::new(),
            per_lane: usize::MAX,
            shares: HashMap::new(),
            hold: Vec::new(),
            withheld: &[],
            withheld_of: WithheldOf::default(),
            suspended: Arc::default(),
        }
    }
}

/// A job that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The handle by which the job is finished or rescheduled.
    pub handle: JobHandle,
    /// Name of the job type that runs it.
    pub kind: String,
    /// The job's own data.
    pub payload: Bytes,
    /// Number of consecutive failed runs; 0 again when the job reschedules itself.
    pub failures: u32,
}
