//! Parsing of conditions on the number and time of product events and of message events.

use serde_json::Value;

use super::members::Members;
use super::{CHANNELS, MAX_TEXT, Purpose, Reader, Reference};
use crate::domain::segment::filter::{
    Count, EventLeaf, MessageEventKind, MessageLeaf, PropertyTest, Span, SpanUnit, ValueKind, Within,
};
use crate::domain::segment::values;
use crate::violation::FieldCode;

/// Maximum number of characters of the name of a product event (contract section 5).
const MAX_EVENT_NAME: usize = 128;
/// Maximum number of property tests in one condition.
const MAX_PROPERTIES: usize = 100;
/// Maximum number of events in `count`, and of units in a length of time.
const MAX_COUNT: i64 = u32::MAX as i64;

const MESSAGE_EVENTS: &[(&str, MessageEventKind)] = &[
    ("sent", MessageEventKind::Sent),
    ("delivered", MessageEventKind::Delivered),
    ("open", MessageEventKind::Open),
    ("click", MessageEventKind::Click),
    ("bounce", MessageEventKind::Bounce),
    ("complaint", MessageEventKind::Complaint),
    ("unsubscribe", MessageEventKind::Unsubscribe),
];

const UNITS: &[(&str, SpanUnit)] = &[
    ("minutes", SpanUnit::Minutes),
    ("hours", SpanUnit::Hours),
    ("days", SpanUnit::Days),
    ("weeks", SpanUnit::Weeks),
    ("months", SpanUnit::Months),
];

/// Kind of bound on the number of events.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast,
    AtMost,
    Exactly,
}

impl Reader<'_> {
    pub(super) fn event(&mut self, members: &Members<'_>) -> Option<EventLeaf> {
        self.no_members_but(members.object, members.pointer, &["type", "name", "count", "within", "where"]);
        let name = self.text(members, "name", MAX_EVENT_NAME).map(str::trim);
        if name == Some("") {
            self.fault(members.at("name"), FieldCode::Required, "must not be empty");
        }
        let count = self.count(members);
        let within = self.within(members);
        let properties = self.properties(members);
        Some(EventLeaf { name: name?.to_owned(), count: count?, within, properties: properties? })
    }

    fn properties(&mut self, members: &Members<'_>) -> Option<Vec<PropertyTest>> {
        let Some(value) = members.optional("where") else { return Some(Vec::new()) };
        let items = self.items(value, &members.at("where"), 0, MAX_PROPERTIES)?;
        let mut properties = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = members.item("where", index);
            let Some(members) = self.object(item, &at, &["property", "op", "value", "value_from"]) else { continue };
            let path = self.path(&members, "property");
            let test = self.test(&members, ValueKind::Any);
            properties.extend(path.zip(test).map(|(path, test)| PropertyTest { path, test }));
        }
        Some(properties)
    }

    pub(super) fn message(&mut self, members: &Members<'_>) -> Option<MessageLeaf> {
        let known = [
            "type",
            "event",
            "channel",
            "campaign_id",
            "automation_id",
            "template_id",
            "url_contains",
            "count",
            "within",
        ];
        self.no_members_but(members.object, members.pointer, &known);
        let event = self.one_of(members, "event", MESSAGE_EVENTS);
        let channel = members.optional("channel").and_then(|_| self.one_of(members, "channel", &CHANNELS));
        let named = |name| members.optional(name).map(|value| (value, members.at(name)));
        let (campaign, automation, template) = (named("campaign_id"), named("automation_id"), named("template_id"));
        let campaign_id = campaign.and_then(|(value, at)| self.id(value, &at, Reference::Campaign));
        let automation_id = automation.and_then(|(value, at)| self.id(value, &at, Reference::Automation));
        let template_id = template.and_then(|(value, at)| self.id(value, &at, Reference::Template));
        let url_contains = members.optional("url_contains").and_then(|value| {
            let text = self.string(value, &members.at("url_contains"), MAX_TEXT)?;
            Some(values::fold(text).into_owned())
        });
        if members.optional("url_contains").is_some() && event.is_some_and(|event| event != MessageEventKind::Click) {
            self.fault(members.at("url_contains"), FieldCode::NotAllowed, "only clicks have a URL");
        }
        let count = self.count(members);
        let within = self.within(members);
        Some(MessageLeaf {
            event: event?,
            channel,
            campaign_id,
            automation_id,
            template_id,
            url_contains,
            count: count?,
            within,
        })
    }

    /// Parses the member `count`; at least 1 if it is left out.
    fn count(&mut self, members: &Members<'_>) -> Option<Count> {
        let Some(value) = members.optional("count") else { return Some(Count::AtLeast(1)) };
        let at = members.at("count");
        let members = self.object(value, &at, &["op", "value"])?;
        let bounds = &[("gte", Bound::AtLeast), ("lte", Bound::AtMost), ("eq", Bound::Exactly)];
        let bound = self.one_of(&members, "op", bounds);
        let number = self.integer(&members, "value", 0, MAX_COUNT);
        let number = u32::try_from(number?).ok()?;
        Some(match bound? {
            Bound::AtLeast => Count::AtLeast(number),
            Bound::AtMost => Count::AtMost(number),
            Bound::Exactly => Count::Exactly(number),
        })
    }

    /// Parses the member `within`; `None` if it is left out, and if it is invalid, which is added to the violations.
    fn within(&mut self, members: &Members<'_>) -> Option<Within> {
        let value = members.optional("within")?;
        let at = members.at("within");
        let members = self.object(value, &at, &["last", "after", "before", "between", "since_entry"])?;
        let given: Vec<_> = ["last", "after", "before", "between", "since_entry"]
            .into_iter()
            .filter_map(|name| Some((name, members.optional(name)?)))
            .collect();
        let [(name, value)] = given[..] else {
            let (code, rule) = if given.is_empty() {
                (FieldCode::Required, "give one of last, after, before, between")
            } else {
                (FieldCode::Conflict, "give only one of last, after, before, between")
            };
            self.fault(at.as_str(), code, rule);
            return None;
        };
        let at = members.at(name);
        Some(match name {
            "last" => Within::Last(self.span(value, &at)?),
            "after" => Within::After(self.when(value, &at)?),
            "before" => Within::Before(self.when(value, &at)?),
            "between" => {
                let [first, last] = self.items(value, &at, 2, 2)? else { return None };
                let (first, last) = self.whens(first, last, &at)?;
                Within::Between(first, last)
            }
            _ if self.purpose == Purpose::Segment => {
                self.fault(at, FieldCode::NotAllowed, "only automations have an entry");
                return None;
            }
            _ if *value != Value::Bool(true) => {
                self.fault(at, FieldCode::InvalidType, "must be true");
                return None;
            }
            _ => Within::SinceEntry,
        })
    }

    /// Parses a length of time.
    pub(super) fn span(&mut self, value: &Value, at: &str) -> Option<Span> {
        let members = self.object(value, at, &["value", "unit"])?;
        let number = self.integer(&members, "value", 1, MAX_COUNT);
        let unit = self.one_of(&members, "unit", UNITS);
        Some(Span { value: u32::try_from(number?).ok()?, unit: unit? })
    }
}
