//! What happens to a contact in an automation, as a typed tree (contract section 13.2).
//!
//! Whoever holds a tree holds a complete one: every node has what it needs, every edge leads somewhere, and whoever goes
//! in a circle waits on the way.

use std::collections::BTreeMap;

use jiff::civil::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::campaign::settings::{FrequencyCap, QuietHours, Weight};
use crate::domain::channel::Channel;
use crate::domain::segment::filter::{EventLeaf, Filter, MessageLeaf};
use crate::ids::{ListId, TemplateId};

/// Place of a node among the nodes of its graph.
pub type NodeIndex = usize;

/// A graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Its nodes, in the order in which they were sent.
    pub nodes: Vec<Node>,
    /// Index of the node at which contacts begin.
    pub entry: NodeIndex,
    /// Each ends a run that meets it.
    pub exit_conditions: Vec<Filter>,
    /// Completes a run that meets it.
    pub goal: Option<Filter>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Kind of the node, with its settings.
    pub kind: NodeKind,
    /// Where each branch leads; one that leads nowhere ends the run.
    pub branches: BTreeMap<String, NodeIndex>,
}

/// Kind of a node, with its settings: the action, wait or choice that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// Sends a message.
    Send(Box<Send>),
    /// Waits.
    Wait(Wait),
    /// Waits for something that the contact does.
    WaitEvent {
        /// What ends the wait before its timeout.
        on: Awaited,
        /// Longest time that the run waits for the event.
        timeout: Delay,
    },
    /// Asks whether the contact matches.
    Condition(Filter),
    /// Draws a branch.
    Split(Vec<Share>),
    /// Changes the contact.
    UpdateContact(Box<ContactUpdate>),
    /// Puts the contact on a list.
    AddToList(ListId),
    /// Takes the contact off a list.
    RemoveFromList(ListId),
    /// Gives the contact a tag; a template.
    AddTag(String),
    /// Takes a tag from the contact; a template.
    RemoveTag(String),
    /// Calls a web address.
    Webhook(Box<Call>),
    /// Ends the run, for a reason.
    Exit(Option<String>),
}

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    /// Template that holds the content of the message.
    pub template_id: TemplateId,
    /// On which channel; the template's.
    pub channel: Option<Channel>,
    /// The sender.
    pub from_email: Option<String>,
    /// A template of the sender's display name.
    pub from_name: Option<String>,
    /// Address to which recipients reply (`Reply-To`); email only.
    pub reply_to: Option<String>,
    /// A template of the subject, in place of the template's own.
    pub subject_override: Option<String>,
    /// Whether it needs consent and heeds caps and quiet hours.
    pub is_marketing: bool,
    /// When the contact is not disturbed.
    pub quiet_hours: Option<QuietHours>,
    /// How much marketing the contact gets at most.
    pub frequency_cap: Option<FrequencyCap>,
    /// Values for the template; strings are templates themselves.
    pub variables: Map<String, Value>,
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Number of units that the length of time has, at least 1.
    #[validate(range(min = 1))]
    pub value: u32,
    /// Of what.
    pub unit: DelayUnit,
}

/// What a length of time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DelayUnit {
    Seconds,
    Minutes,
    Hours,
    /// Of the calendar, as are those after it.
    Days,
    Weeks,
    Months,
}

/// Until when to wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// For so long.
    Duration(Delay),
    /// Until the clock shows a time.
    Until {
        /// The time.
        time: Time,
        /// On which days, Monday is 1; all when empty.
        weekdays: Vec<i8>,
        /// Whose clock: a zone of the IANA, the contact's when there is none.
        timezone: Option<String>,
    },
    /// Until a date of the contact.
    UntilAttribute {
        /// The attribute: the keys from the outside in.
        key: Vec<String>,
        /// Distance from the date; `None` for the date itself.
        offset: Option<Delay>,
        /// Whether that is before the date, else after it.
        is_before: bool,
    },
}

/// Event of the contact that ends the wait of a run before its timeout.
#[derive(Debug, Clone, PartialEq)]
pub enum Awaited {
    /// A product event.
    Event(EventLeaf),
    /// An event of a message.
    Message(MessageLeaf),
}

/// A branch of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// Its share, in relation to the others' weights.
    pub weight: Weight,
}

/// What of a contact to change; strings are templates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContactUpdate {
    /// Attributes to merge; null removes one.
    pub attributes: Map<String, Value>,
    /// The locale.
    pub locale: Option<String>,
    /// The time zone.
    pub timezone: Option<String>,
    /// Tags to give.
    pub tags_add: Vec<String>,
    /// Tags to take.
    pub tags_remove: Vec<String>,
}

/// A web address to call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The address.
    pub url: String,
    /// Whether with PUT instead of POST.
    pub is_put: bool,
    /// Headers; their values are templates.
    pub headers: BTreeMap<String, String>,
    /// What is sent: a text that is a template, or JSON whose strings are.
    pub body: Option<Value>,
}

impl Graph {
    /// The place of the node with an id.
    pub fn find(&self, id: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.id == id)
    }
}
