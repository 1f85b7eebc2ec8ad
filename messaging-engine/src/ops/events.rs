//! Product events: actions of contacts, reported by the workspace's own programs.
//!
//! Contract section 5. The contact of an event is found in [`messaging_core::domain::audience::product_event`].

mod bulk;

use http::{Method, StatusCode};
use messaging_core::domain::audience::product_event::input::ProductEventInput;
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::input::Empty;
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

pub use bulk::{BulkEventsInput, BulkEventsReport, RefusedEvent, SendEvents};

/// Answer to a product event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TakenEvent {
    /// Id of the event; of the first one if this repeats it.
    pub event_id: EventId,
    /// Contact of the event.
    pub contact_id: ContactId,
    /// Result: whether the event is new or repeats an earlier one.
    pub status: TakenStatus,
}

/// Result of sending an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakenStatus {
    /// The event is stored.
    Accepted,
    /// An event with the same `unique_id` came within the last 7 days; this one has no effect.
    Duplicate,
}

/// Returns the workspace of a call. The operator can name any, also one that does not exist.
async fn workspace(cx: &Context<'_>) -> Result<WorkspaceId, Error> {
    Ok(cx.app.workspace(cx.workspace()?).await?.ok_or(Error::WorkspaceForbidden)?.id)
}

/// `POST /events`
pub struct SendEvent;

impl Operation for SendEvent {
    const ID: &'static str = "sendEvent";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/events";
    const ACCESS: Access = Access::Scope(Scope::EventsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "event send";
    const SUMMARY: &'static str = "Tell what a contact did";
    const LOOKS_UP: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = ProductEventInput;
    type Output = TakenEvent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TakenEvent, Error> {
        let workspace = workspace(cx).await?;
        let sent = (call.body, std::mem::take(&mut cx.violations));
        let (writes, mut results) = cx.app.take_events(workspace, vec![Ok(sent)], cx.now).await?;
        let result = results.pop().ok_or(Error::NotFound)??;
        cx.changes.extend(writes);
        let status = if result.is_duplicate { TakenStatus::Duplicate } else { TakenStatus::Accepted };
        Ok(TakenEvent { event_id: result.event_id, contact_id: result.contact_id, status })
    }
}
