//! What happens to contacts that automations may listen for.

use std::sync::OnceLock;

use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::automation::note::{EntrySubscription, RunSubscription};
use messaging_core::domain::automation::trigger::TriggerEvent;
use messaging_core::domain::automation::{AutomationStatus, SHARDS};
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::filter::{MessageEventKind, PropertyTest};
use messaging_core::ids::{CampaignId, EventId, Id as _, ListId, MessageId, SegmentId, TemplateId};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::pages::number;

/// The kinds of notes, as stored.
pub(crate) mod kinds {
    pub(crate) const EVENT: i64 = 0;
    pub(crate) const MESSAGE: i64 = 1;
    pub(crate) const CREATED: i64 = 2;
    pub(crate) const CHANGED: i64 = 3;
    pub(crate) const LIST_ADDED: i64 = 4;
    pub(crate) const SEGMENT_ENTERED: i64 = 5;
    pub(crate) const SEGMENT_LEFT: i64 = 6;
}

/// The share of the contacts that a contact belongs to, by its number; the schema says the same.
#[expect(clippy::cast_possible_truncation, reason = "less than the number of shares")]
pub(crate) const fn shard(contact: i64) -> u8 {
    contact.rem_euclid(SHARDS as i64) as u8
}

/// Something that happened to a contact.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Happened<'a> {
    /// A product event.
    Event(&'a EventHappened<'a>),
    /// An event of a message, which no machine caused.
    Message(&'a MessageHappened),
    Created,
    Changed {
        /// Whether it may have another date than before, or another zone.
        dates: bool,
    },
    ListAdded(ListId),
    /// It became a member of a segment, or ceased to be one; whether a calculation found it that is silent otherwise.
    Segment {
        id: SegmentId,
        member: bool,
        is_silent: bool,
    },
}

/// A product event, with its number.
#[derive(Debug)]
pub(crate) struct EventHappened<'a> {
    event: &'a ProductEvent,
    n: i64,
    /// Its properties, read when somebody asks.
    members: OnceLock<Map<String, Value>>,
}

impl<'a> EventHappened<'a> {
    pub(crate) const fn new(event: &'a ProductEvent, n: i64) -> Self {
        Self { event, n, members: OnceLock::new() }
    }
}

/// What enters contacts into an automation, as it is listened for.
#[derive(Debug)]
pub(crate) struct EntersBy {
    subscription: EntrySubscription,
    /// What must hold for the properties of a product event.
    tests: Vec<PropertyTest>,
}

impl EntersBy {
    /// Reads what is stored of an automation, an [`EntrySubscription`] as JSON.
    pub(crate) fn read(entry: &str) -> Result<Self, serde_json::Error> {
        let subscription: EntrySubscription = serde_json::from_str(entry)?;
        Ok(Self { tests: subscription.tests(), subscription })
    }

    /// Whether a contact may enter by a product event. An automation that many events miss costs them no row: only who
    /// may enter is noted.
    fn admits(&self, happened: &EventHappened<'_>) -> bool {
        let (EntrySubscription::Event(name) | EntrySubscription::EventWhere(name, _)) = &self.subscription else {
            return false;
        };
        *name == happened.event.name
            && !happened.event.starts_nothing()
            && (self.tests.is_empty() || {
                let members = happened.members.get_or_init(|| happened.event.properties.members());
                self.tests.iter().all(|test| test.may_hold(members))
            })
    }
}

/// An event of a message.
#[derive(Debug)]
pub(crate) struct MessageHappened {
    pub(crate) event_id: EventId,
    pub(crate) message_id: MessageId,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// `None` when no contact enters by it.
    pub(crate) trigger: Option<TriggerEvent>,
    pub(crate) campaign_id: Option<CampaignId>,
    pub(crate) template_id: Option<TemplateId>,
}

impl Happened<'_> {
    /// Whether a contact may enter an automation by it.
    pub(crate) fn enters(self, entry: &EntersBy) -> bool {
        match (self, &entry.subscription) {
            (Self::Event(event), _) => entry.admits(event),
            (Self::Message(message), EntrySubscription::MessageEvent(event, campaign, template)) => {
                message.trigger == Some(*event)
                    && campaign.is_none_or(|id| message.campaign_id == Some(id))
                    && template.is_none_or(|id| message.template_id == Some(id))
            }
            (Self::Created, EntrySubscription::ContactCreated | EntrySubscription::Date)
            | (Self::Changed { dates: true }, EntrySubscription::Date) => true,
            (Self::ListAdded(list), EntrySubscription::ListAdded(wanted)) => list == *wanted,
            (
                Self::Segment { id, member: true, is_silent },
                EntrySubscription::SegmentEnter { segment_id, include_existing },
            ) => id == *segment_id && (!is_silent || *include_existing),
            (Self::Segment { id, member: false, is_silent: false }, EntrySubscription::SegmentExit(wanted)) => {
                id == *wanted
            }
            _ => false,
        }
    }

    /// Whether a run may go on or end by it.
    pub(crate) fn moves(self, subscription: &RunSubscription) -> bool {
        match self {
            Self::Event(one) => subscription.everything || subscription.events.contains(&one.event.name),
            Self::Message(_) => subscription.everything || subscription.messages,
            Self::Changed { .. } | Self::ListAdded(_) => subscription.everything,
            // Nobody is on the way who has just been made, and members of segments follow from other changes.
            Self::Created | Self::Segment { .. } => false,
        }
    }

    /// The kind and the ids of a note, and what finds its event, as stored.
    pub(crate) fn stored(self) -> (i64, Vec<u8>, Option<i64>) {
        match self {
            Self::Event(one) => (kinds::EVENT, one.event.id.to_bytes().to_vec(), Some(one.n)),
            Self::Message(message) => {
                let ids = [message.event_id.to_bytes(), message.message_id.to_bytes()];
                (kinds::MESSAGE, ids.concat(), Some(message.at.as_millis()))
            }
            Self::Created => (kinds::CREATED, Vec::new(), None),
            Self::Changed { .. } => (kinds::CHANGED, Vec::new(), None),
            Self::ListAdded(id) => (kinds::LIST_ADDED, id.to_bytes().to_vec(), None),
            Self::Segment { id, member: true, .. } => (kinds::SEGMENT_ENTERED, id.to_bytes().to_vec(), None),
            Self::Segment { id, member: false, .. } => (kinds::SEGMENT_LEFT, id.to_bytes().to_vec(), None),
        }
    }
}

/// The state of an automation, as stored.
pub(crate) fn status_number(status: AutomationStatus) -> i64 {
    number(&AutomationStatus::ALL, &status)
}

/// The kinds of events of messages that filters and automations know.
pub(crate) const fn counted_kind(kind: EventKind) -> Option<MessageEventKind> {
    Some(match kind {
        EventKind::Sent => MessageEventKind::Sent,
        EventKind::Delivered => MessageEventKind::Delivered,
        EventKind::Open => MessageEventKind::Open,
        EventKind::Click => MessageEventKind::Click,
        EventKind::Bounce => MessageEventKind::Bounce,
        EventKind::Complaint => MessageEventKind::Complaint,
        EventKind::Unsubscribe => MessageEventKind::Unsubscribe,
        _ => return None,
    })
}

/// What enters contacts of such events.
pub(crate) const fn trigger(kind: MessageEventKind) -> Option<TriggerEvent> {
    Some(match kind {
        MessageEventKind::Sent => return None,
        MessageEventKind::Delivered => TriggerEvent::Delivered,
        MessageEventKind::Open => TriggerEvent::Open,
        MessageEventKind::Click => TriggerEvent::Click,
        MessageEventKind::Bounce => TriggerEvent::Bounce,
        MessageEventKind::Complaint => TriggerEvent::Complaint,
        MessageEventKind::Unsubscribe => TriggerEvent::Unsubscribe,
    })
}

/// Whether a machine opened the message or followed a link, by what is known of it.
pub(crate) fn is_machine(meta: &Map<String, Value>) -> bool {
    meta.get("machine") == Some(&Value::Bool(true))
}
