//! Events of a workspace by polling, instead of calls to a URL (an extension of contract section 15).
//!
//! A long poll: the answer comes as soon as there are events, or after a while. Events are logged where they can be
//! received: in workspaces with webhooks, and for 30 days after a poll.

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::changes::Write;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::webhook::RETENTION;
use messaging_core::domain::webhook::payload::EventPayload;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};

/// Number of events of an answer by default.
const DEFAULT_LIMIT: u32 = 50;

/// Seconds that an answer waits for events by default.
const DEFAULT_WAIT: u32 = 5;

/// Interval at which the store is read again: events that another process committed announce nothing here.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Choice of the events of an answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct EventQuery {
    /// Returns events after the `next_cursor` of an earlier answer. Without it, and without `since`, from the oldest
    /// that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Returns events of this time or later; not used together with `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Seconds to wait while there are none, 0 to 30; 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 0, max = 30))]
    pub wait: Option<u32>,
    /// At most this many events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
}

impl Input for EventQuery {}

/// Events of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EventPage {
    /// Events in the order in which they were recorded, in the form that webhooks get.
    pub data: Vec<EventPayload>,
    /// Value of `after` for the events that follow.
    pub next_cursor: String,
}

/// `GET /workspaces/{workspace_id}/webhooks/events`
pub struct ListWebhookEvents;

impl Operation for ListWebhookEvents {
    const ID: &'static str = "listWebhookEvents";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/events";
    const ACCESS: Access = Access::Scope(Scope::WebhooksRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook events";
    const SUMMARY: &'static str = "Show the events of the last 30 days in order, and wait for further ones";
    type Path = InWorkspace;
    type Query = EventQuery;
    type Body = Empty;
    type Output = EventPage;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<EventPage, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let EventQuery { after, since, wait, limit } = call.query;
        let after = match (after, since) {
            (Some(text), _) => Some(cx.read_cursor(&text)?),
            (None, Some(since)) => Some(cx.store().log_position(workspace, since).await?),
            (None, None) => None,
        };
        let limit = limit.unwrap_or(DEFAULT_LIMIT) as usize;
        let is_followed = follow(cx, workspace).await?;
        // The first poll of a workspace does not wait: the note of it is committed with the answer.
        let wait = if is_followed { wait.unwrap_or(DEFAULT_WAIT) } else { 0 };
        let mut deadline = Instant::now() + Duration::from_secs(wait.into());
        // Begun before the first look, so that nothing is missed between a look and the wait.
        let mut news = cx.app.wait_for_events(workspace);
        loop {
            let found = cx.store().events_after(workspace, after, limit).await?;
            if let Some((last, _, _)) = found.last() {
                let next_cursor = cx.cursor(*last);
                let redactor = cx.redactor();
                let mut data = Vec::with_capacity(found.len());
                for (_, event, message) in found {
                    let variant = cx.app.variant_name(&message).await?;
                    data.extend(EventPayload::of(event, message, variant, redactor));
                }
                return Ok(EventPage { data, next_cursor });
            }
            if Instant::now() >= deadline {
                let place = match after {
                    Some(place) => place,
                    None => cx.store().log_position(workspace, Timestamp::from_millis(0)).await?,
                };
                return Ok(EventPage { data: Vec::new(), next_cursor: cx.cursor(place) });
            }
            tokio::select! {
                biased;
                goes_on = news.changed() => if !goes_on {
                    deadline = Instant::now();
                },
                () = sleep_until(deadline.min(Instant::now() + LOOK_AGAIN)) => {}
            }
        }
    }
}

/// Records that the events of a workspace are polled, so that they are logged from now on; returns true if they were
/// already.
async fn follow(cx: &mut Context<'_>, workspace: WorkspaceId) -> Result<bool, Error> {
    let until = cx.app.listeners(workspace).await?.followed_until;
    if until.is_none_or(|until| until < cx.now + RETENTION / 2) {
        cx.change(Write::FollowEvents(workspace, cx.now + RETENTION));
    }
    Ok(until.is_some_and(|until| cx.now < until))
}
