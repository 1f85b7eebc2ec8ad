//! What enters a contact into an automation, as a typed tree (contract section 13.1).

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
    /// Who may enter then; everyone unless something else is said.
    pub filter: Filter,
}

/// What must happen for a contact to enter.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerKind {
    /// A product event.
    Event {
        /// Its name.
        name: String,
        /// What must hold for its properties.
        properties: Vec<PropertyTest>,
        /// The conditions on properties as they were sent.
        conditions: Vec<Value>,
    },
    /// It became a member of a segment.
    SegmentEnter {
        /// The segment.
        segment_id: SegmentId,
        /// Whether those enter who are members when the automation is activated.
        include_existing: bool,
    },
    /// It ceased to be a member of a segment.
    SegmentExit(SegmentId),
    /// It became a member of a list.
    ListAdded(ListId),
    /// It was created.
    ContactCreated,
    /// A day of its own came.
    Date(DateTrigger),
    /// Something happened to a message to it.
    MessageEvent {
        /// Which event of a message enters its recipient.
        event: TriggerEvent,
        /// Only messages of this campaign.
        campaign_id: Option<CampaignId>,
        /// Only messages of this template.
        template_id: Option<TemplateId>,
    },
    /// Only somebody's call.
    Manual,
}

/// The events of messages that enter a contact.
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

/// A moment that follows from a date of the contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateTrigger {
    /// The attribute that holds the date: the keys from the outside in.
    pub attribute: Vec<String>,
    /// Days after the date; negative before.
    pub offset_days: i32,
    /// The time of that day, by the contact's clock.
    pub time: Time,
    /// Repetition: once, or every year.
    pub repeats: Repeat,
}

/// Whether a date trigger fires every year or only once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Every year, from the date's own year on.
    #[default]
    Yearly,
    /// Never.
    Once,
}
