//! Numbers of product events over time.
//!
//! Contract section 17.

use std::sync::Arc;

use http::{Method, StatusCode};
use messaging_core::domain::analytics::tally::buckets::Interval;
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::product_events::EventActivity;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};

/// Largest number of names in an answer.
const MAX_NAMES: usize = 200;

/// Largest number of buckets in an answer, of all names together. One name is always shown.
const MAX_BUCKETS: usize = 100_000;

/// Selection of the product events that are counted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct EventActivityQuery {
    /// Start of the span; 30 days before `to` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// End of the span, exclusive; now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Length of the buckets, in the workspace's time zone; days unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Name of the events. Without it the names with most events are shown: at most 200, and at most 100,000 buckets in
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Input for EventActivityQuery {}

/// Numbers of product events in a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EventsOverview {
    /// Time at which the span begins.
    pub from: Timestamp,
    /// Time at which the span ends, exclusive.
    pub to: Timestamp,
    /// Length of each bucket: an hour or a day.
    pub interval: Interval,
    /// Names that have events in the span, those with most events first.
    pub data: Vec<NamedEvents>,
}

/// Numbers of the events of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NamedEvents {
    /// The name.
    pub name: String,
    /// Number of events of this name in the span.
    pub count: u64,
    /// Number of contacts that had them; an estimate where there are tens of millions of events.
    pub contacts: u64,
    /// Every bucket of the span, in order.
    pub series: Vec<EventBucket>,
}

/// Number of events in one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EventBucket {
    /// When the bucket begins.
    pub at: Timestamp,
    /// Number of events of the name within the bucket.
    pub count: u64,
}

/// `GET /workspaces/{workspace_id}/analytics/events`
pub struct GetEventActivity;

impl Operation for GetEventActivity {
    const ID: &'static str = "getAnalyticsEvents";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/analytics/events";
    const ACCESS: Access = Access::Scope(Scope::AnalyticsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "analytics events";
    const SUMMARY: &'static str = "Show how many product events happened, by name and over time";
    type Path = InWorkspace;
    type Query = EventActivityQuery;
    type Body = Empty;
    type Output = EventsOverview;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<EventsOverview, Error> {
        let EventActivityQuery { from, to, interval, name } = call.query;
        let (Span { from, to, interval }, buckets) = Span::read(cx, from, to, interval).await?;
        let buckets = Arc::new(buckets);
        let limit = (MAX_BUCKETS / buckets.starts().len().max(1)).clamp(1, MAX_NAMES);
        let found = cx.store().event_activity(call.path.workspace_id, name.as_deref(), &buckets, limit).await?;
        let redactor = cx.redactor();
        let named = |EventActivity { name, count, contacts, series }| {
            let bucket = |(at, count): (&Timestamp, u64)| EventBucket { at: *at, count };
            NamedEvents {
                name: redactor.text(name),
                count,
                contacts,
                series: buckets.starts().iter().zip(series).map(bucket).collect(),
            }
        };
        Ok(EventsOverview { from, to, interval, data: found.into_iter().map(named).collect() })
    }
}
