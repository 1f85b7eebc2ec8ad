//! Delivery of one event to one webhook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EventType;
use crate::ids::{DeliveryId, EventId, MessageId, WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// Status of the delivery of an event to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Will be attempted.
    Pending,
    /// The receiver answered 2xx.
    Delivered,
    /// Given up.
    Failed,
    /// Waits for its paused webhook.
    Held,
    /// Waited for too long.
    Expired,
}

impl DeliveryStatus {
    /// Every status, in the order of the stored numbers.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Delivered, Self::Failed, Self::Held, Self::Expired];

    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Expired => "expired",
        }
    }

    /// True if no further attempt follows.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Pending | Self::Held)
    }
}

/// Reason for which an attempt to deliver an event to a webhook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryError {
    /// There was no complete answer in time.
    Timeout,
    /// No connection, or it broke.
    ConnectionFailed,
    /// The receiver or this server refused TLS.
    TlsError,
    /// The name does not resolve.
    DnsError,
    /// The address may not be called.
    BlockedAddress,
    /// The answer was not 2xx.
    HttpStatus,
}

impl DeliveryError {
    /// Every error, in the order of the stored numbers.
    pub const ALL: [Self; 6] =
        [Self::Timeout, Self::ConnectionFailed, Self::TlsError, Self::DnsError, Self::BlockedAddress, Self::HttpStatus];
}

/// Content of a delivery: an event of a message, an entry of the audit log, or a test.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// An event of a message.
    Event {
        /// The message of the event.
        message_id: MessageId,
        /// When it happened; with message and id the event's key.
        at: Timestamp,
    },
    /// An entry of the audit log.
    Record(Map<String, Value>),
    /// A test with data of the caller, or with a sample.
    Test(Option<Map<String, Value>>),
}

/// Delivery of one event to one webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Workspace that owns the webhook.
    pub workspace_id: WorkspaceId,
    /// Webhook that receives it.
    pub webhook_id: WebhookId,
    /// The event; the same for retries and replays.
    pub event_id: EventId,
    /// Type of the event, such as delivered or open.
    pub event_type: EventType,
    /// Content of the delivery: an event of a message, or a test.
    pub subject: Subject,
    /// Status of the delivery, such as pending or delivered.
    pub status: DeliveryStatus,
    /// Attempts made.
    pub attempts: u32,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// HTTP status of the last attempt's answer.
    pub response_status: Option<u16>,
    /// The beginning of that answer's body.
    pub response_body: Option<String>,
    /// Reason for which the last attempt failed; `None` if it succeeded or there was none yet.
    pub error: Option<DeliveryError>,
    /// Duration of the last attempt, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The delivery that this one repeats.
    pub replay_of: Option<DeliveryId>,
    /// True if it waits in the webhook's backlog instead of having a job of its own.
    pub in_backlog: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the receiver answered 2xx.
    pub delivered_at: Option<Timestamp>,
}

impl Delivery {
    /// Returns a delivery that is due at once.
    pub fn new(
        id: DeliveryId,
        (workspace_id, webhook_id): (WorkspaceId, WebhookId),
        (event_id, event_type): (EventId, EventType),
        subject: Subject,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            workspace_id,
            webhook_id,
            event_id,
            event_type,
            subject,
            status: DeliveryStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(now),
            response_status: None,
            response_body: None,
            error: None,
            duration_ms: None,
            replay_of: None,
            in_backlog: false,
            created_at: now,
            delivered_at: None,
        }
    }

    /// Returns a new delivery of the same event, due at once.
    pub fn replay(&self, id: DeliveryId, now: Timestamp) -> Self {
        let receiver = (self.workspace_id, self.webhook_id);
        let event = (self.event_id, self.event_type);
        Self { replay_of: Some(self.id), ..Self::new(id, receiver, event, self.subject.clone(), now) }
    }

    /// True if the delivery is a test of the webhook, not an event of a message.
    pub const fn is_test(&self) -> bool {
        matches!(self.subject, Subject::Test(_))
    }

    /// True if the receiver did not get the event by this delivery.
    pub const fn is_missed(&self) -> bool {
        !self.is_test() && matches!(self.status, DeliveryStatus::Failed | DeliveryStatus::Expired)
    }

    /// Returns the delivery as held until its paused webhook is resumed.
    pub fn hold(mut self) -> Self {
        self.status = DeliveryStatus::Held;
        self.next_attempt_at = None;
        self.in_backlog = true;
        self
    }

    /// Returns the delivery as expired, because it was held for too long.
    pub fn expire(self) -> Self {
        Self { status: DeliveryStatus::Expired, ..self.give_up() }
    }

    /// Returns the delivery as failed: no further attempt follows.
    pub fn give_up(mut self) -> Self {
        self.status = DeliveryStatus::Failed;
        self.next_attempt_at = None;
        self.in_backlog = false;
        self
    }
}

/// Deliveries to replay (an extension of contract section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ReplayScope")]
pub enum Replayed {
    /// Those that the receiver did not get and that were not replayed.
    Failed,
    /// Every event once, whatever its status.
    All,
}
