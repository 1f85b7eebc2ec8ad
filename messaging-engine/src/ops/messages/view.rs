//! Messages as the API shows them.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::channel::sms::Encoding;
use messaging_core::domain::message::explanation::{self, Explanation, Facts, telling_kind};
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageStatus};
use messaging_core::ids::{AutomationId, CampaignId, ContactId, MessageId, SuppressionId, TemplateId};
use messaging_core::ports::store::{PageRequest, StoreError};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::ops::context::Context;
use crate::services::message_content::Outline;

/// Maximum number of stored events that a report shows; most messages have a handful, and opens and clicks add more.
const MAX_EVENTS_SHOWN: usize = 1000;

/// Maximum number of events that are searched for the one that explains the state of a listed message; each recipient
/// has one, and there may be a few dozen deferrals.
const MAX_TELLING: usize = 1000;

/// A message as listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MessageSummary {
    /// Id of the message.
    pub message_id: MessageId,
    /// Status of the message.
    pub status: MessageStatus,
    /// Channel of the message.
    pub channel: Channel,
    /// The recipient; masked without `pii:read`.
    pub to: String,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// The sender's tags.
    pub tags: Vec<String>,
    /// The sender's data.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// Subject of an email or title of a push message, as it was sent or would be; addresses in it are masked without
    /// `pii:read`. Null once the content is no longer kept, and if it cannot be rendered.
    pub subject: Option<String>,
    /// Number of parts in which a text message is sent, each of which is paid for; null on other channels, once the
    /// content is no longer kept, and if it cannot be rendered.
    pub segments: Option<u32>,
    /// Encoding of a text message; null if `segments` is.
    pub encoding: Option<Encoding>,
    /// Message that this one is a fallback of.
    pub fallback_of: Option<MessageId>,
    /// Provider of the last attempt; null before an attempt, and if its record is no longer kept.
    pub provider: Option<String>,
    /// Message id at the provider.
    pub provider_message_id: Option<String>,
    /// Name of the campaign's variant that it is.
    pub variant: Option<String>,
    /// Time at which it is due, if it is scheduled.
    pub scheduled_for: Option<Timestamp>,
    /// Reason for which the message is held back, and until when; null while nothing holds it back.
    pub hold: Option<HoldView>,
    /// Explanation of the message's state: its reason, and what happens next.
    pub explanation: Explanation,
}

/// A message with its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageStatusReport")]
#[non_exhaustive]
pub struct MessageReport {
    /// Id of the message.
    pub message_id: MessageId,
    /// Status of the message.
    pub status: MessageStatus,
    /// Channel of the message.
    pub channel: Channel,
    /// The recipient; masked without `pii:read`.
    pub to: String,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// The sender's tags.
    pub tags: Vec<String>,
    /// The sender's data.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// Subject of an email or title of a push message, as it was sent or would be; addresses in it are masked without
    /// `pii:read`. Null once the content is no longer kept, and if it cannot be rendered.
    pub subject: Option<String>,
    /// Number of parts in which a text message is sent, each of which is paid for; null on other channels, once the
    /// content is no longer kept, and if it cannot be rendered.
    pub segments: Option<u32>,
    /// Encoding of a text message; null if `segments` is.
    pub encoding: Option<Encoding>,
    /// Message that this one is a fallback of.
    pub fallback_of: Option<MessageId>,
    /// Provider of the last attempt; null before an attempt, and if its record is no longer kept.
    pub provider: Option<String>,
    /// Message id at the provider.
    pub provider_message_id: Option<String>,
    /// Name of the campaign's variant that it is.
    pub variant: Option<String>,
    /// Time at which it is due, if it is scheduled.
    pub scheduled_for: Option<Timestamp>,
    /// Reason for which the message is held back, and until when; null while nothing holds it back.
    pub hold: Option<HoldView>,
    /// Explanation of the message's state: its reason, and what happens next.
    pub explanation: Explanation,
    /// Events of the message, ordered by time; at most 1000.
    pub events: Vec<EventView>,
}

/// Event of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageEvent")]
#[non_exhaustive]
pub struct EventView {
    /// Kind of the event, such as `sent`, `delivered` or `bounce`.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// Details of the event, by kind; addresses in it are masked without `pii:read`.
    pub meta: Map<String, Value>,
}

/// Reason for which a message is held back, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageHold")]
#[non_exhaustive]
pub struct HoldView {
    /// Reason for which the message is held back, such as `scheduled` or `quiet_hours`.
    pub reason: HoldReason,
    /// Time when the message is checked again; null if a person has to act first.
    pub until: Option<Timestamp>,
}

impl From<Hold> for HoldView {
    fn from(hold: Hold) -> Self {
        Self { reason: hold.reason, until: hold.until }
    }
}

/// Values shown of a message that are not stored in it.
struct State {
    subject: Option<String>,
    segments: Option<u32>,
    encoding: Option<Encoding>,
    provider: Option<String>,
    provider_message_id: Option<String>,
    variant: Option<String>,
    scheduled_for: Option<Timestamp>,
    hold: Option<HoldView>,
    explanation: Explanation,
}

impl State {
    async fn of(
        cx: &Context<'_>,
        message: &Message,
        event: Option<&MessageEvent>,
        suppression: Option<SuppressionId>,
    ) -> Result<Self, StoreError> {
        let campaign = match message.campaign_id {
            Some(id) => cx.app.campaign(message.workspace_id, id).await?,
            None => None,
        };
        let paused = campaign.as_ref().filter(|campaign| campaign.status == CampaignStatus::Paused);
        let paused_since = paused.map(|campaign| campaign.updated_at);
        // A fence holds all unsettled messages, whatever else would hold them.
        let fence = cx.app.fence().filter(|_| !message.status.is_settled());
        let fenced = fence.map(|fence| Hold { reason: HoldReason::Held, until: None, since: fence.since });
        let turn = campaign.as_ref().and_then(|campaign| explanation::turn_of(message, campaign.status));
        let held = fenced.or(turn).map(|hold| Message { hold: Some(hold), ..message.clone() });
        let scheduled_for = explanation::scheduled_for(message);
        let Outline { subject, sms } = cx.app.outline_of(message, cx.redactor()).await?;
        let (provider, provider_message_id) = provider_of(cx, message).await?;
        // The campaign's own pause has precedence.
        let suspension = match paused_since {
            None if !message.status.is_settled() => cx.app.suspension_of(message).await?,
            _ => None,
        };
        let suspended_since = suspension.as_ref().map(|suspension| suspension.since);
        let paused_since = paused_since.or(suspended_since).filter(|_| fence.is_none());
        let message = held.as_ref().unwrap_or(message);
        let obstacle = match message.status {
            MessageStatus::Queued | MessageStatus::Deferred if !message.is_redacted() => {
                let found = cx.app.obstacle_of(message).await?;
                found.map(|obstacle| obstacle.shown_to(cx.redactor()))
            }
            _ => None,
        };
        let event = event.map(|event| {
            let meta = cx.redactor().meta(message.channel, event.meta.clone());
            MessageEvent { meta, ..event.clone() }
        });
        let path = message.hold.filter(|hold| matches!(hold.reason, HoldReason::WarmingUp | HoldReason::Braked));
        let path = path.and_then(|_| cx.app.paths().sentence_for(&domain_of(&message.to)));
        let facts = Facts {
            path: path.as_deref(),
            event: event.as_ref(),
            paused_since,
            suppression,
            obstacle: obstacle.as_ref(),
            suspension: suspension.as_ref(),
            is_captured: is_captured(cx, message, provider.as_deref()).await?,
        };
        Ok(Self {
            subject,
            segments: sms.and_then(|size| u32::try_from(size.segments).ok()),
            encoding: sms.map(|size| size.encoding),
            provider,
            provider_message_id,
            variant: cx.app.variant_name(message).await?,
            scheduled_for,
            hold: explanation::hold_of(message, paused_since).map(HoldView::from),
            explanation: explanation::explain(message, facts),
        })
    }
}

/// Returns the domain of an email recipient.
fn domain_of(to: &str) -> String {
    Recipient::new(RecipientKind::To, to.to_owned()).domain()
}

/// Returns true if the sandbox captured a message: by its provider or, if the provider is not known any more, by the
/// capture.
async fn is_captured(cx: &Context<'_>, message: &Message, provider: Option<&str>) -> Result<bool, StoreError> {
    if !matches!(message.status, MessageStatus::Sent | MessageStatus::Delivered) {
        return Ok(false);
    }
    match provider {
        Some(provider) => Ok(cx.app.captures(message.channel, provider)),
        None => Ok(cx.store().capture(message.workspace_id, message.id).await?.is_some()),
    }
}

/// Returns the provider of a message and the message's id there. Email has no such id; its provider is the one of the
/// last attempt, as for other messages without a stored id.
async fn provider_of(cx: &Context<'_>, message: &Message) -> Result<(Option<String>, Option<String>), StoreError> {
    let (workspace, id) = (message.workspace_id, message.id);
    // Nothing is looked up for messages that were not attempted: most of a long queue.
    if message.status == MessageStatus::Queued || message.is_redacted() {
        return Ok((None, None));
    }
    if message.channel != Channel::Email
        && let Some(link) = cx.store().provider_of_message(workspace, id).await?
    {
        return Ok((Some(link.provider), Some(link.provider_message_id)));
    }
    let last = cx.store().attempts(workspace, id, PageRequest { after: None, limit: 1 }).await?;
    Ok((last.items.into_iter().next().and_then(|attempt| attempt.provider), None))
}

/// Returns the event that explains a message's status: the last of the kind for that status that is about no copy.
fn telling<'a>(message: &Message, events: impl Iterator<Item = &'a MessageEvent>) -> Option<&'a MessageEvent> {
    let kind = telling_kind(message.status)?;
    let is_about_copy = |event: &MessageEvent| {
        let recipient = event.meta.get("recipient").and_then(Value::as_str);
        recipient.is_some_and(|recipient| recipient != message.to && !message.is_redacted())
    };
    events.filter(|event| event.kind == kind && !is_about_copy(event)).last()
}

/// Returns the suppressions of the recipients of messages with status `suppressed`, by channel and address.
async fn suppressions(
    cx: &Context<'_>,
    messages: &[Message],
) -> Result<HashMap<(Channel, String), SuppressionId>, StoreError> {
    let mut found = HashMap::new();
    let suppressed = messages.iter().filter(|message| message.status == MessageStatus::Suppressed);
    let mut addresses: HashMap<_, Vec<String>> = HashMap::new();
    for message in suppressed.filter(|message| !message.is_redacted()) {
        let asked = addresses.entry((message.workspace_id, message.channel)).or_default();
        asked.push(address::normalize(message.channel, &message.to));
    }
    for ((workspace, channel), asked) in addresses {
        let listed = cx.store().suppressed(workspace, channel, &asked).await?;
        found.extend(listed.into_iter().map(|stored| ((channel, stored.record.address), stored.record.id)));
    }
    Ok(found)
}

/// Returns the views of listed messages.
pub(super) async fn summaries(cx: &Context<'_>, messages: Vec<Message>) -> Result<Vec<MessageSummary>, Error> {
    let listed = suppressions(cx, &messages).await?;
    let told = messages.iter().map(async |message| match telling_kind(message.status) {
        Some(kind) => cx.store().message_events_of_kind(message.workspace_id, message.id, kind, MAX_TELLING).await,
        None => Ok(Vec::new()),
    });
    let told = try_join_all(told).await?;
    let redactor = cx.redactor();
    let mut shown = Vec::with_capacity(messages.len());
    for (message, events) in messages.into_iter().zip(told) {
        let entry = listed.get(&(message.channel, address::normalize(message.channel, &message.to))).copied();
        let State {
            subject,
            segments,
            encoding,
            provider,
            provider_message_id,
            variant,
            scheduled_for,
            hold,
            explanation,
        } = State::of(cx, &message, telling(&message, events.iter()), entry).await?;
        shown.push(MessageSummary {
            message_id: message.id,
            status: message.status,
            channel: message.channel,
            to: redactor.address(message.channel, message.to),
            contact_id: message.contact_id,
            campaign_id: message.campaign_id,
            automation_id: message.automation_id,
            template_id: message.template_id,
            tags: message.tags,
            metadata: message.metadata,
            created_at: message.created_at,
            updated_at: message.updated_at,
            subject,
            segments,
            encoding,
            fallback_of: message.fallback_of,
            provider,
            provider_message_id,
            variant,
            scheduled_for,
            hold,
            explanation,
        });
    }
    Ok(shown)
}

/// Returns a message with its events.
pub(in super::super) async fn report(cx: &Context<'_>, message: Message) -> Result<MessageReport, Error> {
    let events = cx.store().message_events(message.workspace_id, message.id, MAX_EVENTS_SHOWN).await?;
    let listed = suppressions(cx, std::slice::from_ref(&message)).await?;
    let State { subject, segments, encoding, provider, provider_message_id, variant, scheduled_for, hold, explanation } =
        State::of(cx, &message, telling(&message, events.iter()), listed.into_values().next()).await?;
    let redactor = cx.redactor();
    // The first event is not stored: it is the message's creation.
    let queued = EventView { kind: EventKind::Queued, at: message.created_at, meta: Map::new() };
    let happened = events.into_iter().map(|event| EventView {
        kind: event.kind,
        at: event.at,
        meta: redactor.meta(message.channel, event.meta),
    });
    Ok(MessageReport {
        message_id: message.id,
        status: message.status,
        channel: message.channel,
        to: redactor.address(message.channel, message.to),
        contact_id: message.contact_id,
        campaign_id: message.campaign_id,
        automation_id: message.automation_id,
        template_id: message.template_id,
        created_at: message.created_at,
        updated_at: message.updated_at,
        subject,
        segments,
        encoding,
        fallback_of: message.fallback_of,
        provider,
        provider_message_id,
        variant,
        scheduled_for,
        hold,
        explanation,
        events: std::iter::once(queued).chain(happened).collect(),
        tags: message.tags,
        metadata: message.metadata,
    })
}
