//! Deliveries of a webhook: listed, tested, replayed.
//!
//! Contract section 15. Replaying all deliveries of a period and listing those of a message are extensions.

use http::{Method, StatusCode};
use messaging_core::changes::{JobWrite, WebhookWrite, Write};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryError, DeliveryStatus, Replayed, Subject};
use messaging_core::domain::webhook::{EventType, Webhook, WebhookStatus};
use messaging_core::ids::{DeliveryId, EventId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::input::{BodyKind, Empty, Input, PageQuery};
use messaging_core::ports::store::ReplayRange;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{WebhookPath, find};
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::replay_webhook::ReplayWebhook;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::page::Page;

/// Largest number of deliveries that one call replays.
const MAX_REPLAYED: usize = 100_000;

/// Bytes of the data of a test, as JSON.
const MAX_PAYLOAD: usize = 64 << 10;

/// A delivery as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivery")]
#[non_exhaustive]
pub struct DeliveryView {
    /// Its id.
    pub id: DeliveryId,
    /// Webhook that the delivery is sent to.
    pub webhook_id: WebhookId,
    /// Id of the event; sent in the header `webhook-id`.
    pub event_id: EventId,
    /// Type of the event that is delivered.
    pub event_type: EventType,
    /// Status of the delivery, such as `pending`, `delivered` or `failed`.
    pub status: DeliveryStatus,
    /// Number of attempts made.
    pub attempts: u32,
    /// Time when the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// Status code of the answer to the last attempt.
    pub response_status: Option<u16>,
    /// First 4 KiB of that answer's body; an address that was sent is crossed out, others are masked without
    /// `pii:read`.
    pub response_body: Option<String>,
    /// Reason why the last attempt failed; null if it did not.
    pub error: Option<DeliveryError>,
    /// Duration of the last attempt in milliseconds.
    pub duration_ms: Option<u64>,
    /// True if the delivery is a test of the webhook, not of an event that happened.
    pub is_test: bool,
    /// Delivery that this one repeats.
    pub replay_of: Option<DeliveryId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time when the receiver answered 2xx.
    pub delivered_at: Option<Timestamp>,
}

impl DeliveryView {
    fn of(delivery: Delivery, redactor: Redactor) -> Self {
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            event_id: delivery.event_id,
            event_type: delivery.event_type,
            status: delivery.status,
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            response_status: delivery.response_status,
            is_test: delivery.is_test(),
            response_body: delivery.response_body.map(|body| redactor.text(body)),
            error: delivery.error,
            duration_ms: delivery.duration_ms,
            replay_of: delivery.replay_of,
            created_at: delivery.created_at,
            delivered_at: delivery.delivered_at,
        }
    }
}

/// A test of a webhook.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookTestInput {
    /// Type of the event that the test sends; `test` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<EventType>,
    /// `data` of the event; a sample unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
}

impl Input for WebhookTestInput {
    const BODY: BodyKind = BodyKind::Optional;

    fn check(&self, violations: &mut Violations) {
        let length = |payload| serde_json::to_vec(payload).map_or(usize::MAX, |text| text.len());
        if self.payload.as_ref().is_some_and(|payload| length(payload) > MAX_PAYLOAD) {
            violations.add("/payload", FieldCode::TooLarge, "at most 64 KiB as JSON");
        }
    }
}

/// `POST /workspaces/{workspace_id}/webhooks/{id}/test`
pub struct TestWebhook;

impl Operation for TestWebhook {
    const ID: &'static str = "testWebhook";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/test";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "webhook test";
    const SUMMARY: &'static str = "Call a webhook with a made-up event, once, whatever its state";
    // An unknown webhook is 404 before an invalid body is 422.
    const LOOKS_UP: bool = true;
    type Path = WebhookPath;
    type Query = Empty;
    type Body = WebhookTestInput;
    type Output = DeliveryView;

    // The webhook is not changed.
    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<DeliveryView, Error> {
        let webhook = find(cx, call.path).await?.record;
        let event_type = call.body.event_type.unwrap_or(EventType::Test);
        let subject = Subject::Test(call.body.payload);
        let receiver = (webhook.workspace_id, webhook.id);
        let delivery = Delivery::new(cx.new_id(), receiver, (cx.new_id(), event_type), subject, cx.now);
        cx.changes.extend(cx.app.start_delivery(webhook.status, delivery.clone()));
        Ok(DeliveryView::of(delivery, cx.redactor()))
    }
}

/// Filter and page of a listing of deliveries.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct DeliveryQuery {
    /// Deliveries with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DeliveryStatus>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for DeliveryQuery {}

/// `GET /workspaces/{workspace_id}/webhooks/{id}/deliveries`
pub struct ListDeliveries;

impl Operation for ListDeliveries {
    const ID: &'static str = "listDeliveries";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/deliveries";
    const ACCESS: Access = Access::Scope(Scope::WebhooksRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook deliveries";
    const SUMMARY: &'static str = "List what was sent to a webhook in the last 30 days, newest first";
    type Path = WebhookPath;
    type Query = DeliveryQuery;
    type Body = Empty;
    type Output = Page<DeliveryView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<DeliveryView>, Error> {
        let WebhookPath { workspace_id, id } = call.path;
        find(cx, call.path).await?;
        let DeliveryQuery { status, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let slice = cx.store().deliveries(workspace_id, id, status, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |delivery| DeliveryView::of(delivery, redactor)))
    }
}

/// A page of the deliveries of a message.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct MessageDeliveryQuery {
    /// Message whose events were delivered; must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for MessageDeliveryQuery {
    fn check(&self, violations: &mut Violations) {
        if self.message_id.is_none() {
            violations.add("/message_id", FieldCode::Required, "the message whose deliveries are wanted");
        }
    }
}

/// `GET /workspaces/{workspace_id}/webhooks/deliveries`
pub struct ListMessageDeliveries;

impl Operation for ListMessageDeliveries {
    const ID: &'static str = "listMessageDeliveries";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/deliveries";
    const ACCESS: Access = Access::Scope(Scope::WebhooksRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook message-deliveries";
    const SUMMARY: &'static str = "List what any webhook was told of a message in the last 30 days, newest first";
    type Path = InWorkspace;
    type Query = MessageDeliveryQuery;
    type Body = Empty;
    type Output = Page<DeliveryView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<DeliveryView>, Error> {
        let workspace = call.path.workspace_id;
        let MessageDeliveryQuery { message_id, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let message = message_id.ok_or(Error::NotFound)?;
        let slice = cx.store().deliveries_of_message(workspace, message, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |delivery| DeliveryView::of(delivery, redactor)))
    }
}

/// The path of a delivery.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The delivery.
    pub delivery_id: DeliveryId,
}

/// `POST /workspaces/{workspace_id}/webhooks/deliveries/{delivery_id}/replay`
pub struct ReplayDelivery;

impl Operation for ReplayDelivery {
    const ID: &'static str = "replayDelivery";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/deliveries/{delivery_id}/replay";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "webhook replay-delivery";
    const SUMMARY: &'static str = "Deliver an event once more";
    type Path = DeliveryPath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeliveryView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<DeliveryView, Error> {
        let DeliveryPath { workspace_id, delivery_id } = call.path;
        let original = cx.store().delivery(workspace_id, delivery_id).await?.ok_or(Error::NotFound)?;
        let webhook = cx.store().webhook(workspace_id, original.webhook_id).await?.ok_or(Error::NotFound)?.record;
        if !original.status.is_settled() {
            let allowed = &["delivered", "failed", "expired"];
            return Err(Error::InvalidState { status: original.status.as_str(), allowed });
        }
        if !original.is_test() {
            require_recorded(&webhook)?;
        }
        let replay = original.replay(cx.new_id(), cx.now);
        let writes = cx.app.start_delivery(webhook.status, replay.clone());
        // The stored delivery may be held already.
        let shown = writes.iter().find_map(|write| match write {
            Write::Webhook(WebhookWrite::InsertDelivery(delivery)) => Some((**delivery).clone()),
            _ => None,
        });
        cx.changes.extend(writes);
        cx.change(Write::Webhook(WebhookWrite::MarkReplayed(workspace_id, original.id)));
        Ok(DeliveryView::of(shown.unwrap_or(replay), cx.redactor()))
    }
}

/// Refuses a replay for a disabled webhook, for which no deliveries are recorded.
fn require_recorded(webhook: &Webhook) -> Result<(), Error> {
    match webhook.status {
        WebhookStatus::Disabled => {
            Err(Error::InvalidState { status: webhook.status.as_str(), allowed: &["active", "paused"] })
        }
        WebhookStatus::Active | WebhookStatus::Paused => Ok(()),
    }
}

/// Selection of the deliveries that are to be replayed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReplayInput {
    /// Deliveries created at this time or later.
    pub since: Timestamp,
    /// Deliveries created before this time; all since then unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Status of the deliveries: `failed`, the default, for events that the receiver never got; `all` for every event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Replayed>,
}

impl Input for ReplayInput {
    fn check(&self, violations: &mut Violations) {
        if self.until.is_some_and(|until| until <= self.since) {
            violations.add("/until", FieldCode::OutOfRange, "must be later than since");
        }
    }
}

/// Answer to a replay: the number of deliveries that it makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Number of new deliveries, at most 100000; they are sent in the order of their events.
    pub replayed: u64,
}

/// `POST /workspaces/{workspace_id}/webhooks/{id}/replay`
pub struct ReplayWebhookEvents;

impl Operation for ReplayWebhookEvents {
    const ID: &'static str = "replayWebhook";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/replay";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "webhook replay";
    const SUMMARY: &'static str = "Deliver what a webhook missed since some time, in the order of events";
    const LOOKS_UP: bool = true;
    type Path = WebhookPath;
    type Query = Empty;
    type Body = ReplayInput;
    type Output = ReplayReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ReplayReport, Error> {
        let WebhookPath { workspace_id, id } = call.path;
        let webhook = find(cx, call.path).await?.record;
        std::mem::take(&mut cx.violations).into_result()?;
        require_recorded(&webhook)?;
        let replayed = call.body.status.unwrap_or(Replayed::Failed);
        let until = call.body.until.map_or(DeliveryId::from_bytes([0xFF; 16]), before);
        let range = ReplayRange { replayed, after: before(call.body.since), until };
        let counted = cx.store().count_replayable(workspace_id, id, &range, MAX_REPLAYED).await?;
        let Some((count, until)) = counted else { return Ok(ReplayReport { replayed: 0 }) };
        let job = ReplayWebhook { workspace_id, webhook_id: id, replayed, after: range.after, until };
        cx.change(Write::Job(JobWrite::Enqueue(job.enqueue(cx.new_id(), cx.now))));
        Ok(ReplayReport { replayed: count })
    }
}

/// Returns an id below all ids of a time: ids begin with the milliseconds of their making.
fn before(time: Timestamp) -> DeliveryId {
    let millis = u128::from(time.as_millis().max(0).unsigned_abs()) & ((1 << 48) - 1);
    DeliveryId::from_bytes((millis << 80).saturating_sub(1).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_core::ids::IdSource;
    use messaging_core::ports::clock::SystemEntropy;

    #[test]
    fn ids_of_a_time_come_after_it_and_not_before() {
        let time = Timestamp::from_millis(1_700_000_000_000);
        let id = |at| IdSource::default().next::<DeliveryId>(at, &SystemEntropy::default());
        assert!(before(time) < id(time));
        assert!(id(Timestamp::from_millis(1_699_999_999_999)) < before(time));
        assert_eq!(before(Timestamp::from_millis(-5)).to_bytes(), [0; 16]);
    }
}
