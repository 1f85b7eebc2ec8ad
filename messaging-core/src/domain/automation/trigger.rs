//! Trigger of an automation as a typed tree (contract section 13.1).

use jiff::civil::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::segment::filter::{Filter, PropertyTest};
use crate::ids::{CampaignId, ListId, SegmentId, TemplateId};

/// Trigger of an automation: what lets a contact enter, and the filter that the contact must match.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Event, change, date or call by which a contact enters.
    pub kind: TriggerKind,
    /// Filter that the contact must match to enter; everyone by default.
    pub filter: Filter,
}

/// Event, change, date or call by which a contact enters.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerKind {
    /// A product event.
    Event {
        /// Its name.
        name: String,
        /// Tests that the properties must pass.
        properties: Vec<PropertyTest>,
        /// The conditions on properties as they were sent.
        conditions: Vec<Value>,
    },
    /// The contact became a member of a segment.
    SegmentEnter {
        /// The segment.
        segment_id: SegmentId,
        /// True if contacts that are members when the automation is activated enter as well.
        include_existing: bool,
    },
    /// The contact ceased to be a member of a segment.
    SegmentExit(SegmentId),
    /// The contact became a member of a list.
    ListAdded(ListId),
    /// The contact was created.
    ContactCreated,
    /// A moment came that is calculated from a date of the contact.
    Date(DateTrigger),
    /// A message to the contact had an event.
    MessageEvent {
        /// Event of a message by which its recipient enters.
        event: TriggerEvent,
        /// Only messages of this campaign.
        campaign_id: Option<CampaignId>,
        /// Only messages of this template.
        template_id: Option<TemplateId>,
    },
    /// Only a call of the API.
    Manual,
}

/// Events of messages by which a contact may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum TriggerEvent {
    Open,
    Click,
    Bounce,
    Complaint,
    Unsubscribe,
    Delivered,
}

/// Moment calculated from a date of the contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateTrigger {
    /// The attribute that holds the date: the keys from the outside in.
    pub attribute: Vec<String>,
    /// Days after the date; negative before.
    pub offset_days: i32,
    /// Time of that day, in the contact's time zone.
    pub time: Time,
    /// Repetition: once, or every year.
    pub repeats: Repeat,
}

/// Repetition of a date trigger: every year, or only once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Every year, from the date's own year on.
    #[default]
    Yearly,
    /// Only for the date itself, not for its anniversaries.
    Once,
}
