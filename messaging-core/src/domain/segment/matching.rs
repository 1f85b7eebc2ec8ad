//! Matching of one contact against a filter, in memory.
//!
//! Stores find members in their own ways; this is the reference for all of them, and it is written to be plainly right,
//! not to be fast.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::filter::{
    Condition, ConsentKind, Count, EventLeaf, Filter, FilterField, Leaf, MessageEventKind, MessageLeaf, Positive,
    PropertyTest, Scalar, TagsNeeded, Test, When,
};
use super::values::{self, Dates, Moments, Present};
use crate::domain::audience::contact::Contact;
use crate::domain::audience::contact::fields::ContactField;
use crate::domain::audience::subscription::SubscriptionStatus;
use crate::domain::channel::Channel;
use crate::ids::{AutomationId, CampaignId, ListId, SegmentId, TemplateId};
use crate::time::Timestamp;

/// Everything that a filter can ask about a contact.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The contact, with its lists.
    pub contact: &'a Contact,
    /// Channels of which an address of the contact is suppressed.
    pub suppressed: &'a HashSet<Channel>,
    /// Public lists on which the contact is recorded as unconfirmed or unsubscribed.
    pub subscriptions: &'a HashSet<(ListId, SubscriptionStatus)>,
    /// Static segments that contain the contact.
    pub segments: &'a HashSet<SegmentId>,
    /// Product events of the contact.
    pub events: &'a [EventFact],
    /// Events of messages to the contact.
    pub messages: &'a [MessageFact],
}

/// A product event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFact {
    /// Its name.
    pub name: String,
    /// When it happened.
    pub at: Timestamp,
    /// Properties of the event, a JSON object.
    pub properties: Map<String, Value>,
}

/// An event of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageFact {
    /// Kind of the event, such as an open or a click.
    pub event: MessageEventKind,
    /// When it happened.
    pub at: Timestamp,
    /// True if a machine caused the event, not a person.
    pub is_machine: bool,
    /// URL of the clicked link.
    pub url: Option<String>,
    /// The channel of the message.
    pub channel: Channel,
    /// The campaign of the message.
    pub campaign_id: Option<CampaignId>,
    /// The automation of the message.
    pub automation_id: Option<AutomationId>,
    /// The template of the message.
    pub template_id: Option<TemplateId>,
}

impl Filter {
    /// True if a contact matches. Nobody is a member of a dynamic segment here: resolve the filter first.
    pub fn matches(&self, facts: Facts<'_>, present: &Present) -> bool {
        match self {
            Self::Everyone => true,
            Self::Where(condition) => holds(condition, facts, present),
        }
    }
}

fn holds(condition: &Condition, facts: Facts<'_>, present: &Present) -> bool {
    match condition {
        Condition::And(parts) => parts.iter().all(|part| holds(part, facts, present)),
        Condition::Or(parts) => parts.iter().any(|part| holds(part, facts, present)),
        Condition::Not(part) => !holds(part, facts, present),
        Condition::Leaf(leaf) => leaf_holds(leaf, facts, present),
    }
}

fn leaf_holds(leaf: &Leaf, facts: Facts<'_>, present: &Present) -> bool {
    let contact = facts.contact;
    match leaf {
        Leaf::Field(field, test) => test.holds(field_value(*field, contact), present),
        Leaf::Attribute(path, test) => test.holds(TestedValue::of(at_path(&contact.attributes, path)), present),
        Leaf::Tags { needs, values } => match needs {
            TagsNeeded::Any => values.iter().any(|tag| contact.tags.contains(tag)),
            TagsNeeded::All => values.iter().all(|tag| contact.tags.contains(tag)),
            TagsNeeded::None => !values.iter().any(|tag| contact.tags.contains(tag)),
        },
        Leaf::List { id, member, status: SubscriptionStatus::Confirmed } => contact.list_ids.contains(id) == *member,
        Leaf::List { id, member, status } => facts.subscriptions.contains(&(*id, *status)) == *member,
        Leaf::Segment { id, member } => facts.segments.contains(id) == *member,
        Leaf::Consent(ConsentKind::MarketingEmail, value) => contact.consent.marketing_email == *value,
        Leaf::Consent(ConsentKind::Sms, value) => contact.consent.sms == *value,
        Leaf::Suppression(channel, value) => facts.suppressed.contains(channel) == *value,
        Leaf::Event(event) => event.count.holds(facts.events.iter().filter(|fact| event.is(fact, present)).count()),
        Leaf::Message(message) => {
            message.count.holds(facts.messages.iter().filter(|fact| message.is(fact, present)).count())
        }
    }
}

/// A value that is tested.
#[derive(Debug, Clone, Copy)]
enum TestedValue<'a> {
    /// Missing, or null.
    Nothing,
    Json(&'a Value),
    Text(&'a str),
    /// An email address in its one spelling, which is case-sensitive outside of ASCII.
    Email(&'a str),
    Moment(Timestamp),
}

impl<'a> TestedValue<'a> {
    fn of(value: Option<&'a Value>) -> Self {
        value.filter(|value| !value.is_null()).map_or(Self::Nothing, Self::Json)
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Json(Value::String(text)) => Some(text),
            Self::Text(text) | Self::Email(text) => Some(text),
            Self::Json(_) | Self::Nothing | Self::Moment(_) => None,
        }
    }

    /// Returns the text as it is compared with others.
    fn folded(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Email(text) => Some(Cow::Borrowed(text)),
            other => other.text().map(values::fold),
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::Json(Value::Number(number)) => number.as_f64(),
            _ => None,
        }
    }

    fn when(self) -> Option<When> {
        match self {
            Self::Moment(moment) => Some(When::Moment(moment)),
            other => other.text().and_then(values::read_when),
        }
    }
}

fn field_value(field: FilterField, contact: &Contact) -> TestedValue<'_> {
    match field {
        FilterField::CreatedAt => TestedValue::Moment(contact.created_at),
        FilterField::UpdatedAt => TestedValue::Moment(contact.updated_at),
        FilterField::Text(ContactField::Email) => {
            contact.email.as_deref().map_or(TestedValue::Nothing, TestedValue::Email)
        }
        FilterField::Text(field) => contact.field(field).as_deref().map_or(TestedValue::Nothing, TestedValue::Text),
    }
}

fn at_path<'a>(members: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(members.get(first)?, |value, key| value.as_object()?.get(key))
}

impl Test {
    fn holds(&self, value: TestedValue<'_>, present: &Present) -> bool {
        self.positive.holds(value, present) != self.negated
    }
}

impl Positive {
    fn holds(&self, value: TestedValue<'_>, present: &Present) -> bool {
        let text = |holds: &dyn Fn(&str) -> bool| value.folded().is_some_and(|text| holds(&text));
        let number = |holds: &dyn Fn(f64) -> bool| value.number().is_some_and(holds);
        match self {
            Self::Exists => !matches!(value, TestedValue::Nothing),
            // Not evaluated before it is replaced.
            Self::FromEvent(_) => false,
            Self::OneOf(scalars) => scalars.iter().any(|scalar| scalar.is(value)),
            Self::Contains(scalar) => match (value, scalar) {
                (TestedValue::Json(Value::Array(items)), scalar) => {
                    items.iter().any(|item| scalar.is(TestedValue::Json(item)))
                }
                (_, Scalar::Text(part)) => text(&|text| text.contains(part.as_str())),
                _ => false,
            },
            Self::StartsWith(start) => text(&|text| text.starts_with(start.as_str())),
            Self::EndsWith(end) => text(&|text| text.ends_with(end.as_str())),
            Self::GreaterThan(bound) => number(&|number| number > *bound),
            Self::AtLeast(bound) => number(&|number| number >= *bound),
            Self::LessThan(bound) => number(&|number| number < *bound),
            Self::AtMost(bound) => number(&|number| number <= *bound),
            Self::Between(first, last) => number(&|number| (*first..=*last).contains(&number)),
            Self::Date(test) => value.when().is_some_and(|when| {
                let dates = Dates::of(*test, present.now, &present.zone);
                dates.contain(when, &present.zone)
            }),
        }
    }
}

impl Scalar {
    /// True if a value equals this one and has the same JSON type.
    fn is(&self, value: TestedValue<'_>) -> bool {
        match self {
            Self::Text(text) => value.folded().is_some_and(|value| value == *text),
            Self::Number(number) => value.number() == Some(*number),
            Self::Boolean(boolean) => matches!(value, TestedValue::Json(Value::Bool(value)) if value == boolean),
        }
    }
}

impl Count {
    /// True if the number found satisfies the condition.
    pub fn holds(self, found: usize) -> bool {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        match self {
            Self::AtLeast(number) => found >= number,
            Self::AtMost(number) => found <= number,
            Self::Exactly(number) => found == number,
        }
    }
}

impl PropertyTest {
    /// True if the test holds for the properties of an event.
    pub fn holds(&self, properties: &Map<String, Value>, present: &Present) -> bool {
        self.test.holds(TestedValue::of(at_path(properties, &self.path)), present)
    }

    /// True if the test may hold at any time and in any time zone: tests of dates, which depend on both, always may.
    pub fn may_hold(&self, properties: &Map<String, Value>) -> bool {
        let anywhere = || Present { now: Timestamp::from_millis(0), zone: jiff::tz::TimeZone::UTC };
        matches!(self.test.positive, Positive::Date(_)) || self.holds(properties, &anywhere())
    }
}

impl EventLeaf {
    fn is(&self, fact: &EventFact, present: &Present) -> bool {
        fact.name == self.name
            && is_within(fact.at, self.within.map(|within| within.moments(present.now, &present.zone)))
            && self.properties.iter().all(|property| property.holds(&fact.properties, present))
    }
}

impl MessageLeaf {
    /// True if the event is one of those counted; at any time if `within` is `None`.
    pub fn is(&self, fact: &MessageFact, present: &Present) -> bool {
        let has_url = |part: &String| fact.url.as_deref().is_some_and(|url| values::fold(url).contains(part.as_str()));
        fact.event == self.event
            && !fact.is_machine
            && self.channel.is_none_or(|channel| fact.channel == channel)
            && self.campaign_id.is_none_or(|id| fact.campaign_id == Some(id))
            && self.automation_id.is_none_or(|id| fact.automation_id == Some(id))
            && self.template_id.is_none_or(|id| fact.template_id == Some(id))
            && self.url_contains.as_ref().is_none_or(has_url)
            && is_within(fact.at, self.within.map(|within| within.moments(present.now, &present.zone)))
    }
}

fn is_within(at: Timestamp, moments: Option<Moments>) -> bool {
    moments.is_none_or(|moments| moments.contains(&at.as_millis()))
}

#[cfg(test)]
mod tests;
