//! The job queue: claiming due jobs, and looking at those that wait.

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
/// [`JobHandle`] is refused. If there is one process only, its restart may end all leases at once. Before anything
/// leaves the process, a commit confirms the claim; it may consist of [`Hold`](crate::changes::JobWrite::Hold) alone.
///
/// Flows take turns ([`FairTurns`](crate::domain::delivery::fair_turns::FairTurns)), and within a flow the lane that
/// waited longest comes first. All jobs of a lane are claimed by one process at a time.
///
/// Due times are wall clock times, which may be wrong: if the clock was ahead and is set back, the jobs added meanwhile
/// would wait too long. A store notices that, and gives each such job a new due time, as long after now as its old one
/// was after the time at which the job was added. Claimed jobs are left alone.
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
    /// Claims due jobs. A job of another process whose due time lies more than ten seconds before its commit may be
    /// missed for up to a minute of the monotonic clock, so that claims need not look for such jobs each time.
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError>;
    /// Returns the time until the next unclaimed job is due, on the wall clock, or a lease ends, on the monotonic
    /// clock; `None` if no job waits.
    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError>;
    /// Counts the waiting jobs, claimed ones included; for metrics.
    async fn job_count(&self) -> Result<u64, StoreError>;
    /// Returns up to `limit` jobs of some kinds, claimed or not, due or not, in an order that the store chooses.
    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError>;
    /// Sums up the waiting jobs, claimed or not, and returns the `limit` longest lanes, the longest first. Reads every
    /// job, so it is only for requests by people.
    async fn queues(&self, limit: usize) -> Result<Queues, StoreError>;
    /// Counts the jobs of each lane that are due by a time, claimed ones included, in the order of `lanes`. Counts at
    /// most `most` jobs of each lane, which bounds the cost.
    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError>;
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The key of the job: its lane, due time and id.
    pub place: JobPlace,
    /// Name of the job type that runs the job.
    pub kind: String,
    /// Data of the job, as its job type encodes it.
    pub payload: Bytes,
}

/// The jobs that wait, summed up by kind of resource and by lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// Sums by kind of resource, the text before the first colon of the lane's resource, in the order of these texts:
    /// `email` sums up `email:a.example` and `email:b.example` of all workspaces.
    pub sums: BTreeMap<String, Queued>,
    /// The longest lanes, the longest first.
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

/// A request for due jobs, with limits and the lanes that it skips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Present time: jobs that are due at or before it are claimed.
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
    /// Limits of flows that differ from `per_flow`.
    pub flows: HashMap<Flow, usize>,
    /// Number of turns of a workspace for each turn of a workspace with weight 1; a workspace without an entry has 1.
    pub weights: HashMap<WorkspaceId, u32>,
    /// Maximum number of jobs of one lane with all its senders. In a flow, the lane that waited longest comes first.
    pub per_lane: usize,
    /// Limits of lanes, named without their senders, that differ from `per_lane`.
    pub shares: HashMap<Lane, usize>,
    /// Lanes, named without their senders, to skip until a time, because they are at their limit or in back-off. A
    /// later claim that does not name a lane releases it.
    pub hold: Vec<(Lane, Monotonic)>,
    /// Prefixes of resources whose lanes are skipped. A later claim that does not name a prefix releases its lanes.
    pub withheld: &'static [&'static str],
    /// Lanes that are skipped for some workspaces only; released in the same way.
    pub withheld_of: WithheldOf,
    /// Suspended lanes of messages, which are skipped; released in the same way.
    pub suspended: Arc<Suspensions>,
}

/// Lanes of some workspaces that a claim skips.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithheldOf {
    /// The workspaces.
    pub workspaces: Arc<HashSet<WorkspaceId>>,
    /// Prefixes of the resources of the lanes.
    pub resources: &'static [&'static str],
}

impl Claim {
    /// Returns true if the claim skips a lane without a time limit, by `withheld`, `withheld_of` or `suspended`.
    pub fn withholds(&self, lane: &Lane) -> bool {
        let begins_with = |starts: &[&str]| starts.iter().any(|start| lane.resource().starts_with(start));
        let WithheldOf { workspaces, resources } = &self.withheld_of;
        begins_with(self.withheld)
            || (lane.flow().workspace.is_some_and(|of| workspaces.contains(&of)) && begins_with(resources))
            || self.suspended.of(lane).is_some()
    }

    /// Returns true if there may be lanes for which `withholds` is true.
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
    /// Name of the job type that runs the job.
    pub kind: String,
    /// Data of the job, as its job type encodes it.
    pub payload: Bytes,
    /// Number of consecutive failed runs; 0 again when the job reschedules itself.
    pub failures: u32,
}
