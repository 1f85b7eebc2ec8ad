//! Notes: records of events of contacts, for the automations that listen for them.
//!
//! A store keeps a note in the transaction of its cause, for each automation that listens for it: an active one with
//! such a trigger, and one that the contact is going through and whose run may continue or end by it. So nothing is
//! missed, and the cause need not wait for any automation. The trigger's conditions on a product event are tested
//! before that, so that an event by which nobody enters costs no row.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::audience::product_event::ProductEvent;
use crate::domain::segment::matching::MessageFact;
use crate::ids::{CampaignId, ContactId, EventId, ListId, MessageId, SegmentId, TemplateId};
use crate::time::Timestamp;

use super::trigger::TriggerEvent;

/// Note that something happened to a contact, kept for an automation that listens for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The contact that it happened to.
    pub contact_id: ContactId,
    /// Kind of event, with the id that identifies it.
    pub cause: Cause,
    /// When it was accepted.
    pub at: Timestamp,
    /// Number of automations that caused one another up to the event; 0 when it came from outside.
    pub depth: u8,
    /// True if the automation was active then, so that the contact may enter by the event.
    pub may_enter: bool,
}

/// Cause of a note: what happened to the contact, with the id that identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A product event.
    Event(EventId),
    /// Something that a person, not a machine, did with a message, or an outcome of its delivery.
    Message {
        /// The event of the message.
        event_id: EventId,
        /// The message.
        message_id: MessageId,
    },
    /// The contact was created.
    Created,
    /// The contact, its lists, tags, consent or suppressions changed; joining a list is a cause of its own.
    Changed,
    /// The contact became a member of a list.
    ListAdded(ListId),
    /// The contact became a member of a segment.
    SegmentEntered(SegmentId),
    /// The contact ceased to be a member of a segment.
    SegmentLeft(SegmentId),
    /// A moment calculated from a date of the contact, which the trigger has to check again.
    Date(Timestamp),
}

/// Stored event that a note refers to.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A product event.
    Event(Box<ProductEvent>),
    /// Event of a message to the contact, such as an open or a click.
    Message(Box<MessageFact>),
}

/// Events that an automation listens for, so that a store knows which notes to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSubscription {
    /// Events and changes by which contacts may enter; `None` where nobody can enter, as in a draft.
    pub entry: Option<EntrySubscription>,
    /// Events that runs of the version wait for or may end by.
    pub runs: RunSubscription,
}

/// Event or change by which contacts enter. A note matches if it has the same values as all fields that are not `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntrySubscription {
    /// Product events of a name.
    Event(String),
    /// Product events of a name whose properties meet conditions, as a trigger has them.
    EventWhere(String, Vec<Value>),
    /// New members of a segment.
    SegmentEnter {
        /// The segment.
        segment_id: SegmentId,
        /// True if members found by the first calculation of the segment, or by one after its filter was edited, count
        /// as well.
        include_existing: bool,
    },
    /// Former members of a segment.
    SegmentExit(SegmentId),
    /// New members of a list.
    ListAdded(ListId),
    /// New contacts.
    ContactCreated,
    /// Events of messages.
    MessageEvent(TriggerEvent, Option<CampaignId>, Option<TemplateId>),
    /// Dates of contacts: new contacts, and those whose attributes or time zone change.
    Date,
    /// Nothing that happens to a contact.
    Nothing,
}

/// Events by which the runs of a version may continue or end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSubscription {
    /// True if the graph has a goal or exit conditions: every product event, event of a message and change of the
    /// contact then counts.
    pub everything: bool,
    /// Product events of these names.
    pub events: Vec<String>,
    /// True if any event of a message counts.
    pub messages: bool,
}
