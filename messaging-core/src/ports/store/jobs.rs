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

/// The queue.
///
/// A claim gives a job to one claimer until its lease ends; after that it can be claimed again and the
/// first claim's [`JobHandle`] is refused. A restart of the only process may end all leases at once. Before anything
/// leaves the process the claim is confirmed by a commit: [`Hold`](crate::changes::JobWrite::Hold) does no more.
///
/// Places go to flows in turn ([`FairTurns`](crate::domain::delivery::fair_turns::FairTurns)), and within a flow to the lane that
/// waited longest. All jobs of a lane are claimed by one process at a time.
///
/// Due times are dates, and dates may be wrong: when the clock is set back, a job that was dated while it was
/// ahead would wait for that date. A store notices that and dates such jobs anew, as long after now as they were
/// due after the moment they were added. Jobs in work are left alone.
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
    /// Claims due jobs. One that another process has dated more than ten seconds before its commit may be passed over for
    /// up to a minute of the monotonic clock, so that claims need not look for it each time.
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError>;
    /// How long until the next job that nobody holds is due, or a lease ends, by what the two clocks say;
    /// `None` when nothing is waiting.
    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError>;
    /// How many jobs wait, claimed ones included; for metrics.
    async fn job_count(&self) -> Result<u64, StoreError>;
    /// Up to `limit` jobs of some kinds, claimed or not, due or not, in an order of the store's own.
    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError>;
    /// What waits, claimed or not: sums, and the `limit` longest lanes, the longest first. Looks at every job, so it is
    /// for people who ask.
    async fn queues(&self, limit: usize) -> Result<Queues, StoreError>;
    /// How many jobs of each of some lanes are due by a time, claimed ones included, in the order of the lanes. Counts no
    /// further than `most`, which the cost of a lane grows with.
    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError>;
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The key of the job: its lane, due time and id.
    pub place: JobPlace,
    /// Which job type runs it.
    pub kind: String,
    /// The job's own data.
    pub payload: Bytes,
}

/// The jobs that wait, summed up by kind of resource and by lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// By the beginning of the lanes' resources, the text before a colon, in its order: `email` sums up `email:a.example`
    /// and `email:b.example` of all workspaces.
    pub sums: BTreeMap<String, Queued>,
    /// The longest lanes.
    pub lanes: Vec<(Lane, Queued)>,
}

/// How much waits, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Jobs.
    pub jobs: u64,
    /// When the oldest was added.
    pub oldest: Timestamp,
    /// When the first of them is or was due: in the past for one that is in work, or cannot begin.
    pub due: Timestamp,
}

/// A request for due jobs, with its limits and the lanes that it leaves alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Jobs due at or before this.
    pub now: Timestamp,
    /// The same moment on the monotonic clock, which leases and holds are measured by.
    pub monotonic: Monotonic,
    /// Duration for which the jobs are claimed, from `monotonic` on.
    pub lease: Duration,
    /// At most this many in all.
    pub max: usize,
    /// At most this many bulk ones, out of `max`.
    pub bulk: usize,
    /// At most this many of one flow.
    pub per_flow: usize,
    /// Flows that may give another number of jobs than `per_flow`.
    pub flows: HashMap<Flow, usize>,
    /// How many turns a workspace has for one of another; 1 when it is not here.
    pub weights: HashMap<WorkspaceId, u32>,
    /// At most this many of one lane, all its senders together; lanes of a flow that waited longest come first.
    pub per_lane: usize,
    /// Lanes, without their senders, that may give another number of jobs than `per_lane`.
    pub shares: HashMap<Lane, usize>,
    /// Lanes, without their senders, to leave alone until a time: at their limit, or in back-off. A later claim that does
    /// not name a lane lets it go.
    pub hold: Vec<(Lane, Monotonic)>,
    /// Lanes whose resource begins with one of these are left alone. A later claim without them lets them go.
    pub withheld: &'static [&'static str],
    /// Lanes that are left alone for some workspaces only, in the same way.
    pub withheld_of: WithheldOf,
    /// Lanes of messages that are suspended are left alone, in the same way.
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
    /// Whether the claim leaves a lane alone altogether.
    pub fn withholds(&self, lane: &Lane) -> bool {
        let begins_with = |starts: &[&str]| starts.iter().any(|start| lane.resource().starts_with(start));
        let WithheldOf { workspaces, resources } = &self.withheld_of;
        begins_with(self.withheld)
            || (lane.flow().workspace.is_some_and(|of| workspaces.contains(&of)) && begins_with(resources))
            || self.suspended.of(lane).is_some()
    }

    /// Whether there may be lanes that the claim leaves alone altogether.
    pub fn withholds_some(&self) -> bool {
        !self.withheld.is_empty() || !self.withheld_of.workspaces.is_empty() || !self.suspended.is_empty()
    }

    /// A claim without limits.
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
    /// Which job type runs it.
    pub kind: String,
    /// The job's own data.
    pub payload: Bytes,
    /// How many runs in a row failed; 0 again when the job reschedules itself.
    pub failures: u32,
}
