//! What happened to a contact that an automation has to hear of.
//!
//! A store keeps a note in the transaction of its cause, for each automation that listens for it: one that is active and
//! whose trigger it is, and one in which the contact is on its way and that may go on or end by it. So nothing is missed,
//! and whoever caused it waits for nobody. Of a product event the conditions of the trigger are tested before that, so
//! that an event that enters nobody costs no row.

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
    /// What happened, with what names it.
    pub cause: Cause,
    /// When it was accepted.
    pub at: Timestamp,
    /// How many automations caused one another up to it; 0 when it came from outside.
    pub depth: u8,
    /// Whether the automation was active then, so that the contact may enter by it.
    pub may_enter: bool,
}

/// Cause of a note: what happened to the contact, with the id that identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A product event.
    Event(EventId),
    /// Something that a person, not a machine, did with a message, or that became of it.
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
    /// It became a member of a list.
    ListAdded(ListId),
    /// It became a member of a segment.
    SegmentEntered(SegmentId),
    /// It ceased to be a member of a segment.
    SegmentLeft(SegmentId),
    /// A moment that follows from a date of the contact, to be looked at again.
    Date(Timestamp),
}

/// What a note tells of, as far as its cause is something that is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A product event.
    Event(Box<ProductEvent>),
    /// Event of a message to the contact, such as an open or a click.
    Message(Box<MessageFact>),
}

/// What an automation listens for, so that a store knows which notes to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSubscription {
    /// Events and changes by which contacts may enter; `None` where nobody can enter, as in a draft.
    pub entry: Option<EntrySubscription>,
    /// What the runs of a version wait for or may end by.
    pub runs: RunSubscription,
}

/// What enters contacts; what is not `None` must be the same.
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
        /// Whether those are heard of as well whom a first calculation finds, or one after the filter was edited.
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

/// What the runs of a version may go on or end by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSubscription {
    /// It has a goal or conditions to exit: every product event, event of a message and change of the contact.
    pub everything: bool,
    /// Product events of these names.
    pub events: Vec<String>,
    /// Any event of a message.
    pub messages: bool,
}
