//! Graph of an automation as a typed tree (contract section 13.2).
//!
//! A tree is always complete: every node has the settings that it needs, every edge leads to a node, and every circle
//! has a wait.

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
    /// Filters of which each ends a run whose contact matches it.
    pub exit_conditions: Vec<Filter>,
    /// Filter that completes a run whose contact matches it.
    pub goal: Option<Filter>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Kind of the node, with its settings.
    pub kind: NodeKind,
    /// Node that each branch leads to; a branch that leads to no node ends the run.
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
        /// Event that ends the wait before its timeout.
        on: Awaited,
        /// Longest time that the run waits for the event.
        timeout: Delay,
    },
    /// Takes a branch by whether the contact matches.
    Condition(Filter),
    /// Draws a branch by weights.
    Split(Vec<Share>),
    /// Changes the contact.
    UpdateContact(Box<ContactUpdate>),
    /// Puts the contact on a list.
    AddToList(ListId),
    /// Takes the contact off a list.
    RemoveFromList(ListId),
    /// Gives the contact a tag, which is a template.
    AddTag(String),
    /// Takes a tag, which is a template, from the contact.
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
    /// Channel of the message; `None` for that of the template.
    pub channel: Option<Channel>,
    /// Address of the sender.
    pub from_email: Option<String>,
    /// A template of the sender's display name.
    pub from_name: Option<String>,
    /// Address to which recipients reply (`Reply-To`); email only.
    pub reply_to: Option<String>,
    /// A template of the subject, in place of the template's own.
    pub subject_override: Option<String>,
    /// True if the message is marketing, which needs consent and heeds frequency caps and quiet hours.
    pub is_marketing: bool,
    /// Hours in which the contact gets no such message.
    pub quiet_hours: Option<QuietHours>,
    /// Maximum number of marketing messages that the contact gets.
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
    /// Unit of the value.
    pub unit: DelayUnit,
}

/// Unit of a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DelayUnit {
    Seconds,
    Minutes,
    Hours,
    /// A unit of the calendar, as are those after it.
    Days,
    Weeks,
    Months,
}

/// Time that ends a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// Once this time has passed since the arrival.
    Duration(Delay),
    /// When the clock shows a time.
    Until {
        /// The time.
        time: Time,
        /// Days of the week, Monday is 1; every day when empty.
        weekdays: Vec<i8>,
        /// IANA name of the clock's time zone; `None` for the contact's.
        timezone: Option<String>,
    },
    /// At a date of the contact.
    UntilAttribute {
        /// Keys of the attribute that holds the date, from the outside in.
        key: Vec<String>,
        /// Distance from the date; `None` for the date itself.
        offset: Option<Delay>,
        /// True if the wait ends before the date, false if after it.
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
    /// Weight of the branch, in relation to those of the others.
    pub weight: Weight,
}

/// Changes to a contact; strings are templates.
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
    /// True for PUT, false for POST.
    pub is_put: bool,
    /// Headers; their values are templates.
    pub headers: BTreeMap<String, String>,
    /// Body of the request: a text that is a template, or JSON whose strings are templates.
    pub body: Option<Value>,
}

impl Graph {
    /// Returns the place of the node with an id.
    pub fn find(&self, id: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.id == id)
    }
}
