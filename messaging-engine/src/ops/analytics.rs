//! Statistics over time: messages sent, delivered, opened, clicked, bounced and the like.
//!
//! Contract section 17. All numbers are sums of stored counters, so the cost of an answer depends on the span that is
//! asked for and not on the number of messages.

pub mod campaigns;
pub mod events;
pub mod span;

use http::{Method, StatusCode};
use messaging_core::domain::analytics::tally::buckets::{Buckets, Interval};
use messaging_core::domain::analytics::tally::{Counter, Counts, rate};
use messaging_core::domain::channel::Channel;
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::SeriesOf;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::span::Span;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};

/// Counts of a span or of one bucket. An event counts in the bucket in which it happened; a message that bounces after
/// its delivery is subtracted from the bucket in which it was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Activity {
    /// Messages that were handed to the provider or the recipient's server.
    pub sent: u64,
    /// Messages that were delivered and did not bounce afterwards.
    pub delivered: u64,
    /// Opens by people, every one counted.
    pub opens: u64,
    /// Messages that were opened for the first time.
    pub unique_opens: u64,
    /// Clicks by people, every one counted.
    pub clicks: u64,
    /// Messages in which a link was clicked for the first time.
    pub unique_clicks: u64,
    /// Messages that bounced: refused by the recipient's server or returned later.
    pub bounces: u64,
    /// Messages that were reported as spam.
    pub complaints: u64,
    /// Messages through which people unsubscribed.
    pub unsubscribes: u64,
    /// Unique opens for each delivered message, rounded to 4 decimals.
    pub open_rate: f64,
    /// Unique clicks for each delivered message, rounded to 4 decimals.
    pub click_rate: f64,
}

impl Activity {
    fn of(counts: &Counts) -> Self {
        let total = |counter| counts.total(counter);
        let delivered = total(Counter::Delivered);
        Self {
            sent: total(Counter::Sent),
            delivered,
            opens: total(Counter::Opens),
            unique_opens: total(Counter::UniqueOpens),
            clicks: total(Counter::Clicks),
            unique_clicks: total(Counter::UniqueClicks),
            bounces: total(Counter::Bounces),
            complaints: total(Counter::Complaints),
            unsubscribes: total(Counter::Unsubscribes),
            open_rate: rate(total(Counter::UniqueOpens), delivered),
            click_rate: rate(total(Counter::UniqueClicks), delivered),
        }
    }
}

/// Counts of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ActivityBucket {
    /// Time at which the bucket begins.
    pub at: Timestamp,
    /// Counts of the bucket.
    #[serde(flatten)]
    pub activity: Activity,
}

/// Totals of all buckets, and the counts of each.
async fn activity(cx: &Context<'_>, of: SeriesOf, buckets: &Buckets) -> Result<(Activity, Vec<ActivityBucket>), Error> {
    let (from, to) = buckets.quarters();
    let sums = buckets.sum(cx.store().series(cx.workspace()?, of, from, to).await?);
    let totals: Counts = sums.iter().copied().sum();
    let bucket = |(at, counts): (&Timestamp, &Counts)| ActivityBucket { at: *at, activity: Activity::of(counts) };
    Ok((Activity::of(&totals), buckets.starts().iter().zip(&sums).map(bucket).collect()))
}

/// Span, length of buckets and channel of an overview.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct OverviewQuery {
    /// Begin of the span; 30 days before `to` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// End of the span, exclusive; now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Length of buckets, which begin at full hours or days of the workspace's time zone; days unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Only messages of this channel; all channels unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}

impl Input for OverviewQuery {}

/// Statistics of a span, in total and by bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Overview {
    /// Time at which the span begins.
    pub from: Timestamp,
    /// Time at which the span ends, exclusive.
    pub to: Timestamp,
    /// Length of each bucket: an hour or a day.
    pub interval: Interval,
    /// Sums over all buckets.
    pub totals: Activity,
    /// Every bucket of the span, in order.
    pub series: Vec<ActivityBucket>,
}

/// `GET /workspaces/{workspace_id}/analytics/overview`
pub struct GetOverview;

impl Operation for GetOverview {
    const ID: &'static str = "getAnalyticsOverview";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/analytics/overview";
    const ACCESS: Access = Access::Scope(Scope::AnalyticsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "analytics overview";
    const SUMMARY: &'static str = "Show what was sent and what came of it, over time";
    type Path = InWorkspace;
    type Query = OverviewQuery;
    type Body = Empty;
    type Output = Overview;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Overview, Error> {
        let OverviewQuery { from, to, interval, channel } = call.query;
        let (Span { from, to, interval }, buckets) = Span::read(cx, from, to, interval).await?;
        let (totals, series) = activity(cx, SeriesOf::Workspace(channel), &buckets).await?;
        Ok(Overview { from, to, interval, totals, series })
    }
}
