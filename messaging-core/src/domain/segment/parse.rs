//! Parsing of a filter from JSON into its typed tree, with a pointer for every violation.
//!
//! Contract section 9.1. All rules that need no lookup are checked here; the ids that a filter names are returned
//! beside the tree. The work is bounded: nothing is read below the allowed nesting, and no more conditions are read
//! than a filter may have.

mod counted;
mod members;
mod reader;
mod value_conditions;

use serde_json::{Map, Value};

use self::members::Members;
use self::reader::{GROUPS, Reader};
use self::value_conditions::takes_parts;
use super::filter::{Condition, ConsentKind, Filter, FilterField, FromEvent, Leaf, Positive, TagsNeeded, ValueKind};
use crate::domain::audience::contact::attributes;
use crate::domain::audience::contact::fields::{CONTACT_FIELDS, ContactField};
use crate::domain::audience::subscription::SubscriptionStatus;
use crate::domain::channel::Channel;
use crate::domain::limits::MAX_TAG;
use crate::ids::Id;
use crate::violation::{FieldCode, Violations};

pub(crate) use self::reader::{MAX_GROUPS, MAX_LEAVES, MAX_VALUES};
pub use self::reader::{MAX_TEXT, Purpose, Reference};

/// Maximum number of conditions that are read, groups included: more than a filter within its limits can need.
const MAX_CONDITIONS: usize = MAX_LEAVES * (MAX_GROUPS + 1);
/// Maximum number of keys of a path: an attribute may be an object, three deep.
const MAX_PATH: usize = attributes::MAX_DEPTH + 1;

/// Result of reading a filter from JSON: its tree and the objects that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The tree; `None` if there is a violation.
    pub filter: Option<Filter>,
    /// Pointers of the leaves of the tree, in their order.
    pub leaves: Vec<String>,
    /// Resources that the filter names, with pointers; also if there are other violations.
    pub references: Vec<(String, Reference)>,
    /// Pointers of unknown members that were ignored; see [`parse_ignoring_unknown`].
    pub ignored: Vec<String>,
    /// True if an email or phone is compared otherwise than by `eq`, `in` and `exists`: a caller without access to
    /// addresses could guess one letter by letter (contract section 2.4).
    pub needs_pii: bool,
}

/// Parses a filter that stands at `pointer` of a request. Adds its violations.
pub fn parse(value: &Value, pointer: &str, purpose: Purpose, violations: &mut Violations) -> Parsed {
    read(value, pointer, purpose, None, violations)
}

/// Parses a filter and ignores members that no condition has: `Prefer: handling=lenient` (contract section 1.1). Two
/// groups in one object are refused all the same, because without one of them the filter would match other people.
pub fn parse_ignoring_unknown(value: &Value, pointer: &str, purpose: Purpose, violations: &mut Violations) -> Parsed {
    read(value, pointer, purpose, Some(Vec::new()), violations)
}

fn read(
    value: &Value,
    pointer: &str,
    purpose: Purpose,
    ignored: Option<Vec<String>>,
    violations: &mut Violations,
) -> Parsed {
    let mut reader = Reader::new(purpose, ignored, violations);
    let filter = match value {
        Value::Object(object) if object.is_empty() => Some(Filter::Everyone),
        value => reader.condition(value, pointer, pointer, 0).map(Filter::Where),
    };
    let Reader { is_broken, leaves, references, ignored, needs_pii, .. } = reader;
    let (filter, ignored) = (filter.filter(|_| !is_broken), ignored.unwrap_or_default());
    Parsed { filter, leaves, references, ignored, needs_pii }
}

/// Returns the test that an operator makes with a value of an event; `None` if the operator does not apply to such a
/// value.
pub(super) fn test_with(from: &FromEvent, value: &Value) -> Option<Positive> {
    let mut violations = Violations::new();
    let mut reader = Reader::new(Purpose::Automation, None, &mut violations);
    let positive = reader.positive(from.op, value, "", from.values);
    positive.filter(|_| !reader.is_broken)
}

impl Reader<'_> {
    /// Parses a condition within `groups` groups; `array` is the innermost list that contains it.
    fn condition(&mut self, value: &Value, pointer: &str, array: &str, groups: usize) -> Option<Condition> {
        if self.is_full {
            return None;
        }
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            self.is_full = true;
            self.fault(array, FieldCode::TooManyItems, "a filter has at most 100 conditions besides its groups");
            return None;
        }
        let Value::Object(object) = value else {
            self.fault(pointer, FieldCode::InvalidType, "a condition is an object");
            return None;
        };
        let Some(kind) = GROUPS.into_iter().find(|kind| object.contains_key(*kind)) else {
            return self.leaf(object, pointer, array);
        };
        if groups == MAX_GROUPS {
            self.fault(pointer, FieldCode::TooManyItems, "groups nest at most 8 deep");
            return None;
        }
        self.no_members_but(object, pointer, &[kind]);
        let (parts, place) = (&object[kind], format!("{pointer}/{kind}"));
        if kind == "not" {
            let part = self.condition(parts, &place, array, groups + 1)?;
            return Some(Condition::Not(Box::new(part)));
        }
        let Value::Array(parts) = parts else {
            self.fault(place, FieldCode::InvalidType, "a group is an array of conditions");
            return None;
        };
        if parts.is_empty() {
            self.fault(place, FieldCode::TooShort, "a group has at least one condition");
            return None;
        }
        let mut read = Vec::with_capacity(parts.len().min(MAX_LEAVES));
        for (index, part) in parts.iter().enumerate() {
            if self.is_full {
                return None;
            }
            read.extend(self.condition(part, &format!("{place}/{index}"), &place, groups + 1));
        }
        Some(if kind == "and" { Condition::And(read) } else { Condition::Or(read) })
    }

    fn leaf(&mut self, object: &Map<String, Value>, pointer: &str, array: &str) -> Option<Condition> {
        if self.leaves.len() == MAX_LEAVES {
            self.is_full = true;
            self.fault(array, FieldCode::TooManyItems, "a filter has at most 100 conditions besides its groups");
            return None;
        }
        self.leaves.push(pointer.to_owned());
        let members = Members { object, pointer };
        let Some(kind) = self.text(&members, "type", MAX_TEXT) else {
            if !object.contains_key("type") {
                self.no_members_but(object, pointer, KNOWN_MEMBERS);
            }
            return None;
        };
        let leaf = match kind {
            "contact" => self.field(&members),
            "attribute" => self.attribute(&members),
            "tag" => self.tags(&members),
            "list" => self.list(&members),
            "segment" => self
                .membership(&members, &["type", "op", "id"], Reference::Segment)
                .map(|(id, member)| Leaf::Segment { id, member }),
            "consent" => self.consent(&members),
            "suppression" => self.suppression(&members),
            "event" => self.event(&members).map(Leaf::Event),
            "message" => self.message(&members).map(Leaf::Message),
            _ => {
                let rule =
                    "must be one of contact, attribute, tag, list, segment, consent, suppression, event, message";
                self.fault(members.at("type"), FieldCode::UnknownValue, rule);
                None
            }
        };
        leaf.map(Condition::Leaf)
    }

    fn field(&mut self, members: &Members<'_>) -> Option<Leaf> {
        self.no_members_but(members.object, members.pointer, &["type", "field", "op", "value", "value_from"]);
        let field = self.one_of(members, "field", FIELDS);
        let values = match field {
            Some(FilterField::CreatedAt | FilterField::UpdatedAt) => ValueKind::Dates,
            Some(FilterField::Text(ContactField::Email)) => ValueKind::Emails,
            Some(_) => ValueKind::Texts,
            None => ValueKind::Any,
        };
        let is_address = matches!(field, Some(FilterField::Text(ContactField::Email | ContactField::Phone)));
        self.needs_pii |= is_address && members.object.get("op").is_some_and(takes_parts);
        let test = self.test(members, values);
        Some(Leaf::Field(field?, test?))
    }

    fn attribute(&mut self, members: &Members<'_>) -> Option<Leaf> {
        self.no_members_but(members.object, members.pointer, &["type", "key", "op", "value", "value_from"]);
        let path = self.path(members, "key");
        if let Some(path) = &path
            && (!attributes::is_key(&path[0]) || path.len() > MAX_PATH)
        {
            let rule = "begins with the key of an attribute; names of members follow after dots, at most three";
            self.fault(members.at("key"), FieldCode::InvalidFormat, rule);
        }
        let test = self.test(members, ValueKind::Any);
        Some(Leaf::Attribute(path?, test?))
    }

    fn tags(&mut self, members: &Members<'_>) -> Option<Leaf> {
        self.no_members_but(members.object, members.pointer, &["type", "op", "values"]);
        let ops = &[("has_any", TagsNeeded::Any), ("has_all", TagsNeeded::All), ("has_none", TagsNeeded::None)];
        let needs = self.one_of(members, "op", ops);
        let values = self.array(members, "values", MAX_VALUES)?;
        let mut tags = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            tags.extend(self.string(value, &members.item("values", index), MAX_TAG).map(ToOwned::to_owned));
        }
        Some(Leaf::Tags { needs: needs?, values: tags })
    }

    fn list(&mut self, members: &Members<'_>) -> Option<Leaf> {
        let statuses = &[
            ("unconfirmed", SubscriptionStatus::Unconfirmed),
            ("confirmed", SubscriptionStatus::Confirmed),
            ("left", SubscriptionStatus::Left),
        ];
        let named = self.membership(members, &["type", "op", "id", "status"], Reference::List);
        let status = if members.object.contains_key("status") {
            self.one_of(members, "status", statuses)?
        } else {
            SubscriptionStatus::Confirmed
        };
        named.map(|(id, member)| Leaf::List { id, member, status })
    }

    fn membership<I: Id>(
        &mut self,
        members: &Members<'_>,
        known: &[&str],
        reference: fn(I) -> Reference,
    ) -> Option<(I, bool)> {
        self.no_members_but(members.object, members.pointer, known);
        let member = self.one_of(members, "op", &[("member", true), ("not_member", false)]);
        let id = self.required(members, "id")?;
        let id = self.id(id, &members.at("id"), reference)?;
        Some((id, member?))
    }

    fn consent(&mut self, members: &Members<'_>) -> Option<Leaf> {
        self.no_members_but(members.object, members.pointer, &["type", "channel", "value"]);
        let channels = &[("marketing_email", ConsentKind::MarketingEmail), ("sms", ConsentKind::Sms)];
        let channel = self.one_of(members, "channel", channels);
        let value = match members.object.get("value") {
            Some(Value::Null) => None,
            Some(Value::Bool(value)) => Some(*value),
            Some(_) => {
                self.fault(members.at("value"), FieldCode::InvalidType, "must be true, false or null");
                return None;
            }
            None => {
                self.fault(members.at("value"), FieldCode::Required, "is required; null means not asked yet");
                return None;
            }
        };
        Some(Leaf::Consent(channel?, value))
    }

    fn suppression(&mut self, members: &Members<'_>) -> Option<Leaf> {
        self.no_members_but(members.object, members.pointer, &["type", "channel", "value"]);
        let channel = self.one_of(members, "channel", &CHANNELS);
        let Value::Bool(value) = self.required(members, "value")? else {
            self.fault(members.at("value"), FieldCode::InvalidType, "must be true or false");
            return None;
        };
        Some(Leaf::Suppression(channel?, *value))
    }

    /// Splits a key with dots into the keys from the outside in.
    fn path(&mut self, members: &Members<'_>, name: &str) -> Option<Vec<String>> {
        let text = self.text(members, name, MAX_TEXT)?;
        let path: Vec<_> = text.split('.').map(ToOwned::to_owned).collect();
        if path.iter().any(String::is_empty) {
            self.fault(members.at(name), FieldCode::InvalidFormat, "has nothing before, between or after dots");
            return None;
        }
        Some(path)
    }

    /// Parses an id, and records the reference.
    fn id<I: Id>(&mut self, value: &Value, pointer: &str, reference: fn(I) -> Reference) -> Option<I> {
        let Value::String(text) = value else {
            self.fault(pointer, FieldCode::InvalidType, "an id is a text");
            return None;
        };
        match text.parse() {
            Ok(id) => {
                self.references.push((pointer.to_owned(), reference(id)));
                Some(id)
            }
            Err(_) if text.is_empty() => {
                self.fault(pointer, FieldCode::Required, "is required");
                None
            }
            Err(_) => {
                self.fault(pointer, FieldCode::NotFound, "nothing in this workspace has this id");
                None
            }
        }
    }
}

/// Members of all conditions, for an object that does not tell which one it is.
const KNOWN_MEMBERS: &[&str] = &[
    "type",
    "field",
    "key",
    "op",
    "value",
    "value_from",
    "values",
    "id",
    "status",
    "channel",
    "name",
    "count",
    "within",
    "where",
    "event",
    "campaign_id",
    "automation_id",
    "template_id",
    "url_contains",
];

/// Texts of contacts, and their times.
const FIELDS: &[(&str, FilterField)] = &{
    let mut fields = [("", FilterField::CreatedAt); CONTACT_FIELDS.len() + 2];
    let mut at = 0;
    while at < CONTACT_FIELDS.len() {
        fields[at] = (CONTACT_FIELDS[at].name(), FilterField::Text(CONTACT_FIELDS[at]));
        at += 1;
    }
    fields[at] = ("created_at", FilterField::CreatedAt);
    fields[at + 1] = ("updated_at", FilterField::UpdatedAt);
    fields
};

const CHANNELS: [(&str, Channel); 6] = [
    ("email", Channel::Email),
    ("sms", Channel::Sms),
    ("push", Channel::Push),
    ("telegram", Channel::Telegram),
    ("whatsapp", Channel::Whatsapp),
    ("viber", Channel::Viber),
];

#[cfg(test)]
mod tests;
