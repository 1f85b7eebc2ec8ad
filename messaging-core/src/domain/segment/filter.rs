//! The typed tree of a segment filter (contract section 9.1).
//!
//! A tree is always valid: it is within its limits, every operator has a value of its type, and an operator that is the
//! complement of another is stored as that other, negated.

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
    /// Contacts for which the condition holds.
    Where(Condition),
}

/// One condition, alone or made of others.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// All of these conditions hold; at least one.
    And(Vec<Self>),
    /// Any of these conditions holds; at least one.
    Or(Vec<Self>),
    /// This condition does not hold.
    Not(Box<Self>),
    /// A statement about the contact.
    Leaf(Leaf),
}

/// A statement about a contact.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    /// Test of a field of the contact.
    Field(FilterField, Test),
    /// Test of an attribute, named by its keys from the outside in.
    Attribute(Vec<String>, Test),
    /// Test of the contact's tags; compared with case.
    Tags {
        /// Quantifier: any of the tags, all, or none.
        needs: TagsNeeded,
        /// The tags; at least one.
        values: Vec<String>,
    },
    /// Membership in a list, or its absence.
    List {
        /// The list.
        id: ListId,
        /// True for membership, false for its absence.
        member: bool,
        /// Status that counts as membership; only confirmed contacts are members of private lists.
        status: SubscriptionStatus,
    },
    /// Membership in a segment, or its absence.
    Segment {
        /// The segment.
        id: SegmentId,
        /// True for membership, false for its absence.
        member: bool,
    },
    /// Consent of this kind is exactly this; `None` for `null`, consent that is not known.
    Consent(ConsentKind, Option<bool>),
    /// True to ask for contacts with a suppressed address of the channel, false for contacts without one.
    Suppression(Channel, bool),
    /// Number of the contact's product events.
    Event(EventLeaf),
    /// Number of events of messages to the contact.
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

/// Quantifier of a test of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagsNeeded {
    /// At least one of the tags.
    Any,
    /// Each of the tags.
    All,
    /// None of the tags.
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
    /// True if the result is inverted: `neq`, `not_in`, `not_contains`, `not_exists`.
    pub negated: bool,
    /// The test before the inversion. A value that is missing, null or of another type does not pass.
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
    /// A text that begins with this.
    StartsWith(String),
    /// A text that ends with this.
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
    /// A comparison with a value of the event that entered the contact; only in automations. [`Filter::bind`] replaces
    /// it, so that no store meets it; until then nothing passes.
    FromEvent(Box<FromEvent>),
}

impl Positive {
    /// Test that no value passes: equality with one of an empty set.
    pub const NEVER: Self = Self::OneOf(Vec::new());
}

/// A test whose value is taken from the event that entered a contact: `value_from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromEvent {
    /// Path of the value in the properties of the event: the keys from the outside in.
    pub path: Vec<String>,
    /// Operator that is applied with the value from the event.
    pub op: Operator,
    /// Kind of the tested values, as far as it is known.
    pub values: ValueKind,
}

/// Operator of a test, without its negation.
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

/// Kind of the values that a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Not known.
    Any,
    /// Texts.
    Texts,
    /// Email addresses, in their one spelling.
    Emails,
    /// Dates.
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
    /// On this day, or the day of this moment, in the workspace's time zone.
    On(When),
    /// From the first to the second; both included, days as a whole.
    Between(When, When),
    /// Within this length of time up to now.
    Last(Span),
    /// Within this length of time from now on.
    Next(Span),
    /// Longer ago than this.
    OlderThan(Span),
    /// Its month and day are those of today minus this many days: positive means that many days after.
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
    /// Unit of the length of time.
    pub unit: SpanUnit,
}

/// Unit of a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum SpanUnit {
    Minutes,
    Hours,
    Days,
    Weeks,
    /// Months of the calendar.
    Months,
}

/// Test of the number of a contact's product events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLeaf {
    /// The event's name.
    pub name: String,
    /// Condition on the number of these events.
    pub count: Count,
    /// Span in which the events must have happened; `None` for any time.
    pub within: Option<Within>,
    /// Tests that the properties of each of these events must pass.
    pub properties: Vec<PropertyTest>,
}

/// Test of a property of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyTest {
    /// Path of the property: the keys from the outside in.
    pub path: Vec<String>,
    /// The test.
    pub test: Test,
}

/// Test of the number of events of messages to a contact. Events that machines caused do not count.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageLeaf {
    /// Kind of event that is counted.
    pub event: MessageEventKind,
    /// Channel of the messages; `None` for any.
    pub channel: Option<Channel>,
    /// Campaign of the messages; `None` for any.
    pub campaign_id: Option<CampaignId>,
    /// Automation of the messages; `None` for any.
    pub automation_id: Option<AutomationId>,
    /// Template of the messages; `None` for any.
    pub template_id: Option<TemplateId>,
    /// Text that the clicked URL contains, lower case already.
    pub url_contains: Option<String>,
    /// Condition on the number of these events.
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
    /// At least this many.
    AtLeast(u32),
    /// At most this many.
    AtMost(u32),
    /// Exactly this many.
    Exactly(u32),
}

/// Time in which something must have happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// In this length of time up to now.
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
