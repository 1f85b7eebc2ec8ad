//! Payload of an event for the receiver of a webhook.
//!
//! Contract section 15.2. It is made when it is sent, from the event and its message as they are then, so that erased
//! data is no longer sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::EventType;
use crate::domain::channel::Channel;
use crate::domain::message::{Message, MessageEvent, MessageStatus};
use crate::domain::security::redaction::Redactor;
use crate::ids::{AutomationId, CampaignId, ContactId, EventId, Id as _, MessageId, TemplateId, WorkspaceId};
use crate::time::Timestamp;

/// An event as webhooks send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WebhookEvent")]
pub struct EventPayload<D = EventData> {
    /// Its id, also in the header `webhook-id`.
    pub id: EventId,
    /// Type of the event, such as `delivered` or `open`.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Workspace that the event belongs to.
    pub workspace_id: WorkspaceId,
    /// Data of the event, its message included.
    pub data: D,
}

/// The message of an event, and the event's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WebhookEventData")]
pub struct EventData {
    /// The message.
    pub message_id: MessageId,
    /// Its state.
    pub status: MessageStatus,
    /// Its channel.
    pub channel: Channel,
    /// Its recipient; null after erasure.
    pub to: Option<String>,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// The variant of the campaign.
    pub variant: Option<String>,
    /// The sender's tags.
    pub tags: Vec<String>,
    /// The sender's data.
    pub metadata: Map<String, Value>,
    /// Data of the event, by type.
    pub meta: Map<String, Value>,
}

impl EventPayload {
    /// Returns the payload of a message's event for a reader; `variant` names the campaign's variant that the message
    /// is of. `None` for an event without a type.
    pub fn of(event: MessageEvent, message: Message, variant: Option<String>, redactor: Redactor) -> Option<Self> {
        let channel = message.channel;
        let to = Some(message.to).filter(|to| !to.is_empty());
        let data = EventData {
            message_id: message.id,
            status: message.status,
            channel,
            to: to.map(|to| redactor.address(channel, to)),
            contact_id: message.contact_id,
            campaign_id: message.campaign_id,
            automation_id: message.automation_id,
            template_id: message.template_id,
            variant,
            tags: message.tags,
            metadata: message.metadata,
            meta: redactor.meta(channel, event.meta),
        };
        Some(Self {
            id: event.id,
            event_type: EventType::of(event.kind)?,
            timestamp: event.at,
            workspace_id: event.workspace_id,
            data,
        })
    }
}

/// Returns the data of a test that brings none of its own: a message that does not exist.
pub fn sample(event_type: EventType) -> EventData {
    use EventType as E;
    let recipient = "ann@example.com";
    let (status, meta) = match event_type {
        E::Sent => (MessageStatus::Sent, json!({"recipient": recipient})),
        E::Delivered => (
            MessageStatus::Delivered,
            json!({"recipient": recipient, "smtp_code": 250, "response": "2.0.0 ok", "mx": "mx.example.com"}),
        ),
        E::Deferred => (
            MessageStatus::Deferred,
            json!({
                "recipient": recipient, "smtp_code": 451, "enhanced_code": "4.7.1", "response": "try again later",
                "attempt": 1, "next_attempt_at": "2026-01-31T09:16:00.000Z",
            }),
        ),
        E::Bounce => (
            MessageStatus::Bounced,
            json!({
                "recipient": recipient, "bounce_type": "hard", "bounce_class": "invalid_recipient", "smtp_code": 550,
                "enhanced_code": "5.1.1", "response": "no such user",
            }),
        ),
        E::Complaint => (MessageStatus::Complained, json!({"recipient": recipient, "feedback_type": "abuse"})),
        E::Open => (
            MessageStatus::Delivered,
            json!({"ip": "192.0.2.1", "user_agent": "Mozilla/5.0 (sample)", "machine": false}),
        ),
        E::Click => (
            MessageStatus::Delivered,
            json!({
                "url": "https://example.com/", "ip": "192.0.2.1", "user_agent": "Mozilla/5.0 (sample)",
                "machine": false,
            }),
        ),
        E::Unsubscribe => (MessageStatus::Delivered, json!({"method": "one_click"})),
        E::Failed => (MessageStatus::Failed, json!({"reason": "provider_error", "message": "a sample"})),
        E::Suppressed => (MessageStatus::Suppressed, json!({"recipient": recipient, "reason": "unsubscribe"})),
        E::Cancelled => (MessageStatus::Cancelled, json!({})),
        E::Test | E::AuditRecorded | E::KeyExpiring => (MessageStatus::Delivered, json!({"recipient": recipient})),
    };
    EventData {
        message_id: MessageId::from_bytes([0; 16]),
        status,
        channel: Channel::Email,
        to: Some(recipient.to_owned()),
        contact_id: None,
        campaign_id: None,
        automation_id: None,
        template_id: None,
        variant: None,
        tags: vec!["sample".to_owned()],
        metadata: Map::new(),
        meta: meta.as_object().cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::EventKind;

    fn payload(to: &str, clear: bool) -> EventPayload {
        let message_id = MessageId::from_bytes([1; 16]);
        let workspace_id = WorkspaceId::from_bytes([2; 16]);
        let at = Timestamp::from_millis(1_769_850_902_000);
        let message = Message {
            revision: 3,
            status: MessageStatus::Bounced,
            from_email: Some("shop@mail.acme.com".to_owned()),
            tags: vec!["order".to_owned()],
            metadata: json!({"order_id": 17}).as_object().cloned().unwrap(),
            ..Message::queued(message_id, workspace_id, Channel::Email, to.to_owned(), at)
        };
        let meta = json!({"bounce_type": "hard", "recipient": "ann@example.com", "smtp_code": 550});
        let event = MessageEvent {
            id: EventId::from_bytes([3; 16]),
            workspace_id,
            message_id,
            kind: EventKind::Bounce,
            at,
            meta: meta.as_object().cloned().unwrap(),
        };
        EventPayload::of(event, message, Some("B".to_owned()), Redactor::new(clear)).unwrap()
    }

    #[test]
    fn a_payload_has_every_member_of_the_contract() {
        insta::assert_json_snapshot!(payload("ann@example.com", true), @r#"
        {
          "id": "evt_030C1G60R30C1G60R30C1G60R3",
          "type": "bounce",
          "timestamp": "2026-01-31T09:15:02.000Z",
          "workspace_id": "wsp_02081040G2081040G2081040G2",
          "data": {
            "message_id": "msg_01040G2081040G2081040G2081",
            "status": "bounced",
            "channel": "email",
            "to": "ann@example.com",
            "contact_id": null,
            "campaign_id": null,
            "automation_id": null,
            "template_id": null,
            "variant": "B",
            "tags": [
              "order"
            ],
            "metadata": {
              "order_id": 17
            },
            "meta": {
              "bounce_type": "hard",
              "recipient": "ann@example.com",
              "smtp_code": 550
            }
          }
        }
        "#);
    }

    #[test]
    fn addresses_are_masked_where_they_may_not_be_seen() {
        let masked = payload("ann@example.com", false);
        assert_eq!(masked.data.to.as_deref(), Some("a***@example.com"));
        assert_eq!(masked.data.meta["recipient"], "a***@example.com");
        assert!(!serde_json::to_string(&masked).unwrap().contains("ann@"));
    }

    #[test]
    fn an_erased_recipient_is_null() {
        assert_eq!(payload("", true).data.to, None);
        assert_eq!(payload("", false).data.to, None);
    }

    #[test]
    fn every_type_has_a_sample() {
        for event_type in EventType::ALL {
            assert_eq!(sample(event_type).meta.is_empty(), event_type == EventType::Cancelled, "{event_type:?}");
        }
    }
}
