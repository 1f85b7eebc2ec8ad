//! Events of contacts that automations may listen for.

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

/// The shard of a contact, by its number; the schema computes the same.
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
        /// True if a date of the contact may have changed, or its time zone.
        dates: bool,
    },
    ListAdded(ListId),
    /// The contact became a member of a segment, or ceased to be one. `is_silent`: the calculation that found it only
    /// enters contacts into automations that include existing members.
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
    /// Properties, read on first use.
    members: OnceLock<Map<String, Value>>,
}

impl<'a> EventHappened<'a> {
    pub(crate) const fn new(event: &'a ProductEvent, n: i64) -> Self {
        Self { event, n, members: OnceLock::new() }
    }
}

/// The events by which contacts enter an automation, as far as the automation listens for them.
#[derive(Debug)]
pub(crate) struct EntersBy {
    subscription: EntrySubscription,
    /// Conditions on the properties of a product event.
    tests: Vec<PropertyTest>,
}

impl EntersBy {
    /// Reads the stored [`EntrySubscription`] of an automation from JSON.
    pub(crate) fn read(entry: &str) -> Result<Self, serde_json::Error> {
        let subscription: EntrySubscription = serde_json::from_str(entry)?;
        Ok(Self { tests: subscription.tests(), subscription })
    }

    /// Returns true if a contact may enter by a product event. Only such events are noted, so the others cost the
    /// automation no row.
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
    /// Time of the event.
    pub(crate) at: Timestamp,
    /// `None` if no contact enters by it.
    pub(crate) trigger: Option<TriggerEvent>,
    pub(crate) campaign_id: Option<CampaignId>,
    pub(crate) template_id: Option<TemplateId>,
}

impl Happened<'_> {
    /// Returns true if a contact may enter an automation by this event.
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

    /// Returns true if the event may move or end a run.
    pub(crate) fn moves(self, subscription: &RunSubscription) -> bool {
        match self {
            Self::Event(one) => subscription.everything || subscription.events.contains(&one.event.name),
            Self::Message(_) => subscription.everything || subscription.messages,
            Self::Changed { .. } | Self::ListAdded(_) => subscription.everything,
            // A new contact has no runs, and membership of segments follows from other changes.
            Self::Created | Self::Segment { .. } => false,
        }
    }

    /// The kind of a note, the ids in it, and the number or time by which its event is found, as stored.
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

/// Number by which the state of an automation is stored.
pub(crate) fn status_number(status: AutomationStatus) -> i64 {
    number(&AutomationStatus::ALL, &status)
}

/// Translates a kind of event to one that filters and automations know; `None` for all others.
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

/// The trigger by which contacts enter an automation through such an event, if there is one.
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

/// Returns true if a machine opened the message or followed a link, according to the metadata of the event.
pub(crate) fn is_machine(meta: &Map<String, Value>) -> bool {
    meta.get("machine") == Some(&Value::Bool(true))
}
