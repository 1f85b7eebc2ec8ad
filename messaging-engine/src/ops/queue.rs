//! Operations on the queue by hand: an operator lists what waits, by destination, and retries, cancels, suspends or
//! resumes a part of it.
//!
//! Contract section 26. A request names a part of the queue: the messages that fit all members that are given.

use std::cmp::Reverse;
use std::collections::HashMap;

use http::{Method, StatusCode};
use messaging_core::changes::{JobWrite, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::{MAX_SUSPENSIONS, QueueScope, Suspension, Suspensions, messages_of};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::LaneSummary;
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::work_on_queue::{QueueAction, WorkOnQueue};
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// Name of the listing's order, which cursors are bound to. Such a cursor holds the number of items before the page,
/// because the store has no such order.
const CURSOR_PART: &str = "by length";

/// Messages that wait for one destination: a recipient domain of email, or another channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueuedDestination")]
#[non_exhaustive]
pub struct QueueView {
    /// Domain of the recipients; null off email.
    pub domain: Option<String>,
    /// The channel.
    pub channel: Channel,
    /// Messages that wait for their first attempt, or are in it; one with recipients in several domains counts in each.
    pub queued: u64,
    /// Messages that were put off and wait for another attempt.
    pub deferred: u64,
    /// When the oldest of them was added to the queue.
    pub oldest_at: Timestamp,
    /// When the first of them is due.
    pub next_attempt_at: Timestamp,
    /// True when some of it is suspended.
    pub suspended: bool,
}

/// Query of `GET /system/queue`: the part of the queue to list, and the page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct QueueQuery {
    /// Only messages to recipients in this domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Only messages of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Only messages of this campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for QueueQuery {}

/// `GET /system/queue`
pub struct ListQueue;

impl Operation for ListQueue {
    const ID: &'static str = "listQueue";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/system/queue";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "queue list";
    const SUMMARY: &'static str =
        "List what waits to be sent by recipient domain, or by channel off email; the longest first";
    type Path = Empty;
    type Query = QueueQuery;
    type Body = Empty;
    type Output = Page<QueueView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<QueueView>, Error> {
        let QueueQuery { domain, workspace_id, campaign_id, limit, cursor } = call.query;
        let scope = QueueScope { domain: domain.map(|domain| lane_domain(&domain)), workspace_id, campaign_id };
        let from = match cursor {
            Some(text) => cx.read_cursor_in(CURSOR_PART, &text).ok_or(Error::InvalidCursor)?,
            None => [0; 16],
        };
        let from = usize::try_from(u128::from_be_bytes(from)).unwrap_or(usize::MAX);
        let limit = cx.page(&PageQuery::of(limit, None))?.limit;
        let all = destinations(cx, &scope).await?;
        let next = from.saturating_add(limit);
        let next_cursor = (all.len() > next).then(|| cx.cursor_in(CURSOR_PART, (next as u128).to_be_bytes()));
        Ok(Page { data: all.into_iter().skip(from).take(limit).collect(), next_cursor })
    }
}

/// The destinations in a part of the queue for which something waits, those with the longest queues first.
async fn destinations(cx: &Context<'_>, scope: &QueueScope) -> Result<Vec<QueueView>, Error> {
    let suspensions = cx.app.suspensions().await?;
    let mut found: HashMap<(Channel, Option<String>), QueueView> = HashMap::new();
    let add = |summary: LaneSummary| {
        let Some((channel, domain)) = messages_of(&summary.lane) else { return };
        let domain = domain.map(ToOwned::to_owned);
        let view = found.entry((channel, domain.clone())).or_insert_with(|| QueueView {
            domain,
            channel,
            queued: 0,
            deferred: 0,
            oldest_at: summary.oldest,
            next_attempt_at: summary.next_due,
            suspended: false,
        });
        view.queued += summary.jobs - summary.deferred;
        view.deferred += summary.deferred;
        view.oldest_at = view.oldest_at.min(summary.oldest);
        view.next_attempt_at = view.next_attempt_at.min(summary.next_due);
        view.suspended |= suspensions.of(&summary.lane).is_some();
    };
    cx.app.each_lane(scope, add).await?;
    let mut views: Vec<_> = found.into_values().collect();
    views.sort_by_cached_key(|view| {
        (Reverse(view.queued + view.deferred), view.channel.as_str().to_owned(), view.domain.clone())
    });
    Ok(views)
}

/// A part of the queue: the messages that fit all members that are given, at least one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct QueueInput {
    /// Mail to recipients in this domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Messages of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Messages of this campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
}

impl Input for QueueInput {
    fn check(&self, violations: &mut Violations) {
        if self.domain.is_none() && self.workspace_id.is_none() && self.campaign_id.is_none() {
            violations.add("/domain", FieldCode::Required, "name a domain, a workspace_id or a campaign_id");
        }
        if self.domain.as_deref().is_some_and(|domain| address::ascii_domain(domain).is_none()) {
            violations.add("/domain", FieldCode::InvalidFormat, "is not a domain name");
        }
    }
}

impl QueueInput {
    fn scope(self) -> QueueScope {
        let Self { domain, workspace_id, campaign_id } = self;
        QueueScope { domain: domain.map(|domain| lane_domain(&domain)), workspace_id, campaign_id }
    }
}

/// A domain as lanes spell it: in lower-case A-labels. A text that is no domain name is only put into lower case.
fn lane_domain(domain: &str) -> String {
    address::ascii_domain(domain).unwrap_or_else(|| domain.to_ascii_lowercase())
}

/// The size of an action on the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueueAction")]
#[non_exhaustive]
pub struct QueueReport {
    /// Number of messages that the action is about; one with recipients in several domains counts in each.
    pub messages: u64,
}

/// Adds up `count` over the lanes of a part of the queue.
async fn count_jobs(
    cx: &Context<'_>,
    scope: &QueueScope,
    count: impl Fn(&LaneSummary) -> u64 + Send + Sync,
) -> Result<QueueReport, Error> {
    let mut messages = 0;
    cx.app.each_lane(scope, |summary| messages += count(&summary)).await?;
    Ok(QueueReport { messages })
}

/// `POST /system/queue/retry`
pub struct RetryQueue;

impl Operation for RetryQueue {
    const ID: &'static str = "retryQueue";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/system/queue/retry";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "queue retry";
    const SUMMARY: &'static str = "Try deferred messages again now, in the background; answers how many there are";
    type Path = Empty;
    type Query = Empty;
    type Body = QueueInput;
    type Output = QueueReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<QueueReport, Error> {
        let scope = call.body.scope();
        let report = count_jobs(cx, &scope, |summary| summary.deferred).await?;
        enqueue_action(cx, scope, QueueAction::Retry);
        Ok(report)
    }
}

/// `POST /system/queue/cancel`
pub struct CancelQueue;

impl Operation for CancelQueue {
    const ID: &'static str = "cancelQueue";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/system/queue/cancel";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "queue cancel";
    const SUMMARY: &'static str = "Cancel messages that wait, in the background; answers how many there are. What is being \
                                   attempted goes on";
    type Path = Empty;
    type Query = Empty;
    type Body = QueueInput;
    type Output = QueueReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<QueueReport, Error> {
        let scope = call.body.scope();
        let report = count_jobs(cx, &scope, |summary| summary.jobs).await?;
        enqueue_action(cx, scope, QueueAction::Cancel);
        Ok(report)
    }
}

/// Enqueues the job that does an action on each message of a part of the queue.
fn enqueue_action(cx: &mut Context<'_>, scope: QueueScope, action: QueueAction) {
    let job = WorkOnQueue::new(scope, action, cx.now).enqueue(cx.new_id(), cx.now);
    cx.change(Write::Job(JobWrite::Enqueue(job)));
}

/// `POST /system/queue/suspend`
pub struct SuspendQueue;

impl Operation for SuspendQueue {
    const ID: &'static str = "suspendQueue";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/system/queue/suspend";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "queue suspend";
    const SUMMARY: &'static str =
        "Hold messages back until they are resumed, also those that come later; answers how many wait now";
    type Path = Empty;
    type Query = Empty;
    type Body = QueueInput;
    type Output = QueueReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<QueueReport, Error> {
        let scope = call.body.scope();
        if cx.store().suspensions().await?.len() >= MAX_SUSPENSIONS {
            let rule =
                format!("at most {MAX_SUSPENSIONS} parts of the queue are suspended at one time; resume one first");
            return Err(refuse("", FieldCode::TooManyItems, rule).into());
        }
        let report = count_jobs(cx, &scope, |summary| summary.jobs).await?;
        cx.change(Write::Suspend(Suspension { scope, since: cx.now }));
        Ok(report)
    }
}

/// `POST /system/queue/resume`
pub struct ResumeQueue;

impl Operation for ResumeQueue {
    const ID: &'static str = "resumeQueue";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/system/queue/resume";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "queue resume";
    const SUMMARY: &'static str =
        "Lift the suspensions that name all these members, or more; answers how many messages are sent again";
    type Path = Empty;
    type Query = Empty;
    type Body = QueueInput;
    type Output = QueueReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<QueueReport, Error> {
        let scope = call.body.scope();
        let all = cx.store().suspensions().await?;
        let (lifted, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|known| scope.includes(&known.scope));
        let kept: Suspensions = kept.into_iter().collect();
        // What another suspension still holds back is not counted.
        let is_released = |lane: &Lane| lifted.iter().any(|one| one.scope.covers(lane)) && kept.of(lane).is_none();
        let count = |summary: &LaneSummary| if is_released(&summary.lane) { summary.jobs } else { 0 };
        let report = count_jobs(cx, &scope, count).await?;
        cx.changes.extend(lifted.into_iter().map(|suspension| Write::LiftSuspension(suspension.scope)));
        Ok(report)
    }
}
