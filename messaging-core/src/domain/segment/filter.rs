//! The typed tree of a filter (contract section 9.1).
//!
//! Whoever holds a tree holds a valid one: it is within its limits, every operator has a value of its type,
//! and the operators that are complements of others are those others, negated.

use crate::domain::audience::contact::fields::ContactField;
use crate::domain::audience::subscription::SubscriptionStatus;
use crate::domain::channel::Channel;
use crate::ids::{AutomationId, CampaignId, ListId, SegmentId, TemplateId};
use crate::time::Timestamp;

/// Condition that a contact has to meet to belong to a segment.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Every contact: `{}`.
    Everyone,
    /// Those for whom the condition holds.
    Where(Condition),
}

/// One condition, alone or made of others.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// All of them hold; at least one.
    And(Vec<Self>),
    /// Any of them holds; at least one.
    Or(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// A statement about the contact.
    Leaf(Leaf),
}

/// A statement about a contact.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    /// About a field of the contact.
    Field(FilterField, Test),
    /// About an attribute: the keys from the outside in.
    Attribute(Vec<String>, Test),
    /// About its tags; compared with case.
    Tags {
        /// Quantifier: any of the tags, all, or none.
        needs: TagsNeeded,
        /// At least one.
        values: Vec<String>,
    },
    /// It is a member of the list, or not.
    List {
        /// The list.
        id: ListId,
        /// Whether membership is asked for, or its absence.
        member: bool,
        /// Status that counts as membership; only confirmed contacts are members of private lists.
        status: SubscriptionStatus,
    },
    /// It is a member of the segment, or not.
    Segment {
        /// The segment.
        id: SegmentId,
        /// Whether membership is asked for, or its absence.
        member: bool,
    },
    /// What it agreed to is exactly this.
    Consent(ConsentKind, Option<bool>),
    /// Whether any of its addresses for the channel is on the suppression list.
    Suppression(Channel, bool),
    /// How many product events it has.
    Event(EventLeaf),
    /// How many events messages to it have.
    Message(MessageLeaf),
}

/// The fields of a contact that a filter can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum FilterField {
    Text(ContactField),
    CreatedAt,
    UpdatedAt,
}

/// Which of some tags a contact needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagsNeeded {
    /// At least one.
    Any,
    /// Each.
    All,
    /// Not one of them.
    None,
}

/// Kind of consent: to marketing by email, or by SMS, WhatsApp and Viber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum ConsentKind {
    MarketingEmail,
    Sms,
}

/// A test of a value: a positive one, or its exact complement.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// Whether the outcome is turned around: `neq`, `not_in`, `not_contains`, `not_exists`.
    pub negated: bool,
    /// What is looked at. A value that is missing, null or of another type does not pass.
    pub positive: Positive,
}

/// Test of a value, without negation.
///
/// Texts are compared without regard to case: by Unicode lower case, both sides. Numbers are compared as 64-bit
/// floating point. A stored text is a date if it reads as RFC 3339 or as YYYY-MM-DD; then a day means its
/// first moment in the workspace's time zone.
#[derive(Debug, Clone, PartialEq)]
pub enum Positive {
    /// Present and not null.
    Exists,
    /// Equal to one of these, of the same JSON type: `eq` and `in`.
    OneOf(Vec<Scalar>),
    /// A text that contains the text, or an array that has an element equal to the value.
    Contains(Scalar),
    /// A text that begins so.
    StartsWith(String),
    /// A text that ends so.
    EndsWith(String),
    /// A number greater than this.
    GreaterThan(f64),
    /// A number at least this.
    AtLeast(f64),
    /// A number less than this.
    LessThan(f64),
    /// A number at most this.
    AtMost(f64),
    /// A number in the range, both ends included.
    Between(f64, f64),
    /// A date, tested by time.
    Date(DateTest),
    /// Only in automations: what a value of the event that entered the contact says. [`Filter::bind`] replaces it,
    /// so that no store meets it; until then nothing passes.
    FromEvent(Box<FromEvent>),
}

impl Positive {
    /// Test that no value passes: equality with one of an empty set.
    pub const NEVER: Self = Self::OneOf(Vec::new());
}

/// A test whose value stands in the event that entered a contact: `value_from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromEvent {
    /// Where it stands in the properties of the event: the keys from the outside in.
    pub path: Vec<String>,
    /// Operator that is applied with the value from the event.
    pub op: Operator,
    /// Kind of the tested values, as far as it is known.
    pub values: ValueKind,
}

/// What an operator does, but for its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the contract, or say what the contract's say")]
pub enum Operator {
    Exists,
    Equal,
    In,
    Contains,
    StartsWith,
    EndsWith,
    GreaterThan,
    AtLeast,
    LessThan,
    AtMost,
    Between,
    Before,
    After,
    On,
    Last,
    Next,
    OlderThan,
    Anniversary,
}

/// What is known of the values that a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Nothing.
    Any,
    /// They are texts.
    Texts,
    /// They are email addresses, in their one spelling.
    Emails,
    /// They are dates.
    Dates,
}

/// A JSON value that is neither an array nor an object nor null.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A text, lower case already.
    Text(String),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
}

/// Test of a date, such as before a day or within the last 30 days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DateTest {
    /// Before a moment or a day begins.
    Before(When),
    /// After a moment, or when a day is over.
    After(When),
    /// On the day of this, in the workspace's time zone.
    On(When),
    /// From the first to the second; both included, days as a whole.
    Between(When, When),
    /// Within so much time up to now.
    Last(Span),
    /// Within so much time from now on.
    Next(Span),
    /// Longer ago than this.
    OlderThan(Span),
    /// Its month and day are those of today minus so many days: positive means so many days after.
    Anniversary(i32),
}

/// A moment, or a day of the workspace's calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// A moment.
    Moment(Timestamp),
    /// A day.
    Day(jiff::civil::Date),
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Number of units that the length of time has, at least 1.
    pub value: u32,
    /// Of what.
    pub unit: SpanUnit,
}

/// What a length of time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum SpanUnit {
    Minutes,
    Hours,
    Days,
    Weeks,
    /// Of the calendar.
    Months,
}

/// A statement about the number of product events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLeaf {
    /// The event's name.
    pub name: String,
    /// Which numbers of such events make a contact match.
    pub count: Count,
    /// Span in which the events must have happened; `None` for any time.
    pub within: Option<Within>,
    /// What must hold for the properties of each of them.
    pub properties: Vec<PropertyTest>,
}

/// What must hold for a property of an event: the keys from the outside in, and the test.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyTest {
    /// The keys from the outside in.
    pub path: Vec<String>,
    /// The test.
    pub test: Test,
}

/// A statement about the number of events of messages. Those of machines do not count.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageLeaf {
    /// Kind of event that is counted.
    pub event: MessageEventKind,
    /// Of messages of this channel.
    pub channel: Option<Channel>,
    /// Of messages of this campaign.
    pub campaign_id: Option<CampaignId>,
    /// Of messages of this automation.
    pub automation_id: Option<AutomationId>,
    /// Of messages of this template.
    pub template_id: Option<TemplateId>,
    /// Clicks on a URL that contains this text, lower case already.
    pub url_contains: Option<String>,
    /// Which numbers of such events make a contact match.
    pub count: Count,
    /// Span in which the events must have happened; `None` for any time.
    pub within: Option<Within>,
}

/// The events of messages that a filter can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum MessageEventKind {
    Sent,
    Delivered,
    Open,
    Click,
    Bounce,
    Complaint,
    Unsubscribe,
}

/// Condition on the number of a contact's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Count {
    /// At least so many.
    AtLeast(u32),
    /// At most so many.
    AtMost(u32),
    /// Exactly so many.
    Exactly(u32),
}

/// When something must have happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// In so much time up to now.
    Last(Span),
    /// After this.
    After(When),
    /// Before this.
    Before(When),
    /// From the first to the second; both included, days as a whole.
    Between(When, When),
    /// Since the contact entered the automation; only there.
    SinceEntry,
}
