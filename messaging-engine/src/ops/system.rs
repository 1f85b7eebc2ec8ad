//! State of the installation, for its operator (contract section 22).

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::queue::{QueueScope, Suspension, Suspensions};
use messaging_core::domain::installation::checkup::CheckReport;
use messaging_core::domain::installation::quarantine::Quarantined;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::input::Empty;
use messaging_core::ports::store::{self, LaneSummary, Queues};
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::jobs::lanes;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// Longest time a request waits for the first results of the checks.
const CHECKS_WITHIN: Duration = Duration::from_secs(3);

/// Number of lanes shown, the longest.
const MAX_LANES: usize = 50;

/// Number of quarantined items shown, the newest.
const MAX_QUARANTINED: usize = 50;

/// State of the installation: its queues, nodes, database, disk and checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "System")]
#[non_exhaustive]
pub struct SystemReport {
    /// The version of the server.
    pub version: String,
    /// Name of the installation, the right side of Message-IDs; null before its first server has begun to work.
    pub name: Option<String>,
    /// The fence that keeps everything from leaving; null as long as messages are sent.
    pub fenced: Option<FencedView>,
    /// Numbers of messages that are held back, by reason.
    pub held: Vec<HeldView>,
    /// Parts of the queue that are suspended until an operator resumes them, the oldest first.
    pub suspended: Vec<SuspensionView>,
    /// Work that was put aside because the database refuses its outcome for good.
    pub quarantined: QuarantineView,
    /// Length and age of the queue of each channel.
    pub channels: Vec<ChannelQueue>,
    /// The longest queues for messages, of all workspaces together; at most 50.
    pub lanes: Vec<LaneQueue>,
    /// The processes that work on the database.
    pub nodes: Vec<NodeView>,
    /// The places by which their work is divided; only on PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<PlacesView>,
    /// The job that has been due for longest; null if none is. Only on PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_due_job: Option<OldestDueJob>,
    /// Milliseconds that the event log has waited for an open transaction; only on PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_log_lag_ms: Option<u64>,
    /// The server of the database; only on PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseView>,
    /// The disk of the database.
    pub disk: DiskView,
    /// Results of the checks of `messaging doctor`, at most some minutes old; empty while none have run.
    pub checks: Vec<CheckReport>,
}

/// Fence that keeps everything from leaving the installation: its reason, its start and its cure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fenced")]
#[non_exhaustive]
pub struct FencedView {
    /// `restored`: the database is a copy.
    pub reason: String,
    /// Start of the fence.
    pub since: Timestamp,
    /// Advice on how to end the fence, for people.
    pub cure: String,
}

/// Work that was put aside so that nothing else waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Quarantine")]
#[non_exhaustive]
pub struct QuarantineView {
    /// Number of records; the newest 1,000 are kept.
    pub count: u64,
    /// The newest records; at most 50.
    pub newest: Vec<QuarantinedView>,
}

/// Item of work that was put aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Quarantined")]
#[non_exhaustive]
pub struct QuarantinedView {
    /// Kind of the work, such as `deliver_message`, `message_outcome` or `automation_run`.
    pub kind: String,
    /// The id of the item.
    pub subject: String,
    /// Error with which the database refused the outcome of the work.
    pub reason: String,
    /// When it was put aside.
    pub at: Timestamp,
}

impl QuarantinedView {
    fn of(quarantined: Quarantined) -> Self {
        let Quarantined { kind, subject, reason, at, .. } = quarantined;
        Self { kind, subject, reason, at }
    }
}

/// A part of the queue that is suspended: the messages that fit all members that are not null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Suspension")]
#[non_exhaustive]
pub struct SuspensionView {
    /// Recipient domain of mail.
    pub domain: Option<String>,
    /// Workspace that owns the messages.
    pub workspace_id: Option<WorkspaceId>,
    /// Campaign that the messages belong to.
    pub campaign_id: Option<CampaignId>,
    /// When it was suspended.
    pub since: Timestamp,
}

impl SuspensionView {
    fn of(suspension: &Suspension) -> Self {
        let Suspension { scope: QueueScope { domain, workspace_id, campaign_id }, since } = suspension.clone();
        Self { domain, workspace_id, campaign_id, since }
    }
}

/// Number of messages that are held back for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Held")]
#[non_exhaustive]
pub struct HeldView {
    /// Reason for which the messages are held back.
    pub reason: HoldReason,
    /// Number of them; a message counts once for each domain of its recipients.
    pub count: u64,
}

/// Length and age of the queue of one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChannelQueue {
    /// The channel.
    pub channel: Channel,
    /// Number of messages that wait or are being sent; each counts once for each domain of its recipients.
    pub queued: u64,
    /// Time when the oldest of them was accepted; null when none wait.
    pub oldest_at: Option<Timestamp>,
}

/// Queue for one recipient domain, or one channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LaneQueue {
    /// Name of the lane: `email:example.org`, or another channel.
    pub lane: String,
    /// Messages that wait or are being sent.
    pub queued: u64,
    /// Largest number of messages a minute while its servers ask for fewer; null while they do not.
    pub pace: Option<f64>,
    /// Response to the last attempt if it was refused, by the lane's server or the provider account; null while nothing
    /// is refused.
    pub last_refusal: Option<String>,
    /// Time until which nothing is sent; null if sending is not known to be paused.
    pub until: Option<Timestamp>,
}

/// A process that works on the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Node")]
#[non_exhaustive]
pub struct NodeView {
    /// Host name of the process.
    pub hostname: String,
    /// Version of the process.
    pub version: String,
    /// Number under which the process writes, where several work on one database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<i64>,
    /// State of the process: `working`; `idle`: it answers requests alone; `draining`: it stops; `fenced`: the others
    /// took its work because it was not heard of; `clock`: its clock is wrong, so it does no work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Number of places, by which work is divided, that the process holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u64>,
    /// Time of its last sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// Milliseconds by which the database's clock is ahead of the process's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
}

/// The places by which work is divided among nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Places")]
#[non_exhaustive]
pub struct PlacesView {
    /// Number of places in all.
    pub total: u64,
    /// Number of places that no node holds.
    pub free: u64,
}

/// The job that has been due for longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OldestDueJob")]
#[non_exhaustive]
pub struct OldestDueJob {
    /// Lane of the queue in which the job waits.
    pub lane: String,
    /// Milliseconds since the job became due.
    pub age_ms: u64,
}

/// The database server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Database")]
#[non_exhaustive]
pub struct DatabaseView {
    /// `postgresql`.
    pub kind: String,
    /// Version of the server.
    pub version: String,
    /// Timeline of the server, which rises with every promotion of a standby.
    pub timeline: i64,
}

/// The disk of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Disk")]
#[non_exhaustive]
pub struct DiskView {
    /// Bytes that are free; null when the system does not say.
    pub free_bytes: Option<u64>,
}

/// `GET /system`
pub struct GetSystem;

impl Operation for GetSystem {
    const ID: &'static str = "getSystem";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/system";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "system get";
    const SUMMARY: &'static str = "Tell how the installation is: whether it sends, what waits, and the disk";
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = SystemReport;

    async fn run(cx: &mut Context<'_>, _: Call<Self>) -> Result<SystemReport, Error> {
        let app = cx.app;
        let queues = cx.store().queues(4 * MAX_LANES).await?;
        let queued = |channel: Channel| queues.sums.get(channel.as_str());
        let channels = Channel::ALL.map(|channel| ChannelQueue {
            channel,
            queued: queued(channel).map_or(0, |queued| queued.jobs),
            oldest_at: queued(channel).map(|queued| queued.oldest),
        });
        let fenced = app.fence();
        let waiting: u64 = channels.iter().map(|channel| channel.queued).sum();
        let suspensions = app.suspensions().await?;
        // A fence holds everything, whatever else does.
        let held = match fenced {
            Some(_) => HeldView { reason: HoldReason::Held, count: waiting },
            None => HeldView { reason: HoldReason::Paused, count: suspended_messages(cx, &suspensions).await? },
        };
        let mut suspended: Vec<_> = suspensions.iter().map(SuspensionView::of).collect();
        suspended.sort_by_key(|suspension| suspension.since);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let cluster = cx.store().cluster().await?;
        let (count, newest) = cx.store().quarantined(MAX_QUARANTINED).await?;
        let newest = newest.into_iter().map(QuarantinedView::of).collect();
        let this = || NodeView {
            hostname: app.settings().hostname.clone(),
            version: version.clone(),
            term: None,
            state: None,
            places: None,
            seen_at: None,
            clock_offset_ms: None,
        };
        Ok(SystemReport {
            name: cx.store().installation_name().await?,
            fenced: fenced.map(|fence| FencedView {
                reason: "restored".to_owned(),
                since: fence.since,
                cure: fence.state.cure().to_owned(),
            }),
            held: (held.count > 0).then_some(held).into_iter().collect(),
            suspended,
            quarantined: QuarantineView { count, newest },
            channels: channels.into(),
            lanes: lane_queues(cx, &queues).await?,
            nodes: cluster.as_ref().map_or_else(|| vec![this()], |cluster| cluster.nodes.iter().map(node).collect()),
            places: cluster.as_ref().map(|cluster| PlacesView { total: cluster.places, free: cluster.free_places }),
            oldest_due_job: cluster
                .as_ref()
                .and_then(|cluster| cluster.oldest_due_job.as_ref())
                .map(|(lane, age)| OldestDueJob { lane: lane.to_string(), age_ms: millis(*age) }),
            event_log_lag_ms: cluster.as_ref().map(|cluster| millis(cluster.event_log_lag)),
            database: cluster.map(|cluster| DatabaseView {
                kind: "postgresql".to_owned(),
                version: cluster.server_version,
                timeline: cluster.timeline,
            }),
            version,
            disk: DiskView { free_bytes: cx.store().gauges().disk_free_bytes },
            checks: app.checks_within(CHECKS_WITHIN).await.to_vec(),
        })
    }
}

/// Number of the messages that are suspended.
async fn suspended_messages(cx: &Context<'_>, suspensions: &Suspensions) -> Result<u64, Error> {
    let mut count = 0;
    if !suspensions.is_empty() {
        let add = |summary: LaneSummary| count += suspensions.of(&summary.lane).map_or(0, |_| summary.jobs);
        cx.app.each_lane(&QueueScope::default(), add).await?;
    }
    Ok(count)
}

fn node(node: &store::NodeView) -> NodeView {
    NodeView {
        hostname: node.name.clone(),
        version: node.version.clone(),
        term: Some(node.term),
        state: Some(node.state.to_owned()),
        places: Some(node.places),
        seen_at: Some(node.seen_at),
        clock_offset_ms: Some(node.clock_offset_ms),
    }
}

fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the lanes of messages; those of several workspaces to one resource count as one.
async fn lane_queues(cx: &Context<'_>, queues: &Queues) -> Result<Vec<LaneQueue>, Error> {
    let mut shown: Vec<LaneQueue> = Vec::new();
    for (lane, queued) in &queues.lanes {
        let resource = lane.resource();
        let domain = resource.strip_prefix(lanes::EMAIL);
        let Some(channel) = domain.map(|_| Channel::Email).or_else(|| lanes::channel_of(resource)) else { continue };
        let resource = domain.map_or(channel.as_str(), |_| resource);
        let at = match shown.iter().position(|known| known.lane == resource) {
            Some(at) => at,
            None if shown.len() == MAX_LANES => continue,
            None => {
                let lane = resource.to_owned();
                shown.push(LaneQueue { lane, queued: 0, pace: None, last_refusal: None, until: None });
                shown.len() - 1
            }
        };
        let entry = &mut shown[at];
        entry.queued += queued.jobs;
        // The first workspace shows whether something stands in the way of all of them or of this one alone.
        if let Some(workspace) = lane.flow().workspace.filter(|_| entry.last_refusal.is_none()) {
            let (pace, words, until) = state_of(cx, workspace, channel, domain).await?;
            entry.pace = entry.pace.or(pace);
            entry.last_refusal = words.map(|words| cx.redactor().text(words));
            entry.until = until;
        }
    }
    shown.sort_by_key(|lane| std::cmp::Reverse(lane.queued));
    Ok(shown)
}

/// Returns the pace of a workspace's lane in messages a minute, its last refusal, and the time of its next attempt.
async fn state_of(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    channel: Channel,
    domain: Option<&str>,
) -> Result<(Option<f64>, Option<String>, Option<Timestamp>), Error> {
    if let Some(obstacle) = cx.app.obstacle_on(workspace, channel).await? {
        return Ok((None, obstacle.words, obstacle.until));
    }
    let Some(domain) = domain else { return Ok((None, None, None)) };
    let state = cx.app.state_of_domain(workspace, domain).await?;
    Ok((
        state.per_minute,
        state.last_refusal.map(|refusal| refusal.text),
        state.rests_for.map(|wait| cx.app.now() + wait),
    ))
}
