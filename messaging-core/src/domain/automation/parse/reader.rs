//! One reading of a design: what it collects, and how it notes a fault.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::domain::audience::contact::attributes;
use crate::domain::automation::graph::Send;
use crate::domain::segment::filter::Filter;
use crate::domain::segment::parse::{Purpose, Reference, parse};
use crate::ids::Id;
use crate::input::{rest_by_schema, schema_of};
use crate::violation::{At, FieldCode, Violations, escape};

/// What a draft may lack and an active automation may not.
const OF_ACTIVATION: [FieldCode; 2] = [FieldCode::Required, FieldCode::NotFound];

/// Names of members of an attribute within one another, the attribute among them.
const MAX_PATH: usize = attributes::MAX_DEPTH + 1;

/// Whether a draft may be without the members that a form requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InDrafts {
    /// Nothing could be judged without them.
    Required,
    /// They may come later.
    Optional,
}

/// One reading of a design.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// What no automation may have, not even a draft.
    pub(super) shape: Violations,
    /// What keeps it from being active.
    pub(super) gaps: Violations,
    /// Objects that the design refers to by id, each with the JSON Pointer of the member that names it.
    pub(super) references: Vec<(String, Reference)>,
    /// The templates that stand in it, and where.
    pub(super) sources: Vec<(String, String)>,
    /// The web addresses that it calls, and where.
    pub(super) urls: Vec<(String, String)>,
    /// See [`Reading::needs_pii`](super::Reading::needs_pii).
    pub(super) needs_pii: bool,
    /// Its sends, each with the place of its node.
    pub(super) sends: Vec<(usize, Send)>,
}

/// An object and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedObject<'a> {
    pub(super) members: &'a Map<String, Value>,
    pub(super) pointer: &'a str,
}

impl<'a> LocatedObject<'a> {
    /// The pointer of a member.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escape(name))
    }

    /// A member; null is as good as none.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }
}

impl Reader {
    pub(super) fn fault(&mut self, pointer: impl Into<String>, code: FieldCode, rule: &str) {
        self.shape.add(pointer, code, rule);
    }

    pub(super) fn gap(&mut self, pointer: impl Into<String>, code: FieldCode, rule: &str) {
        self.gaps.add(pointer, code, rule);
    }

    /// Notes what was found: what a draft may have apart from the rest.
    fn note(&mut self, found: Violations, in_drafts: InDrafts) {
        for violation in found.as_slice() {
            let At::Pointer(pointer) = &violation.at else { continue };
            if in_drafts == InDrafts::Optional && OF_ACTIVATION.contains(&violation.code) {
                self.gap(pointer.as_str(), violation.code, &violation.message);
            } else {
                self.fault(pointer.as_str(), violation.code, &violation.message);
            }
        }
    }

    /// Reads an object without its broken members, which are noted.
    pub(super) fn form<T: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        value: Value,
        pointer: &str,
        in_drafts: InDrafts,
    ) -> Option<T> {
        let (rest, found) = rest_by_schema(&schema_of::<T>(), value, pointer);
        self.note(found, in_drafts);
        let read = serde_json::from_value(rest?);
        if read.is_err() {
            self.fault(pointer, FieldCode::InvalidFormat, "cannot be read");
        }
        read.ok()
    }

    /// The config of a trigger or node.
    pub(super) fn config<T: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        object: LocatedObject<'_>,
    ) -> Option<T> {
        self.form(Value::Object(object.members.clone()), object.pointer, InDrafts::Optional)
    }

    /// A member that an active automation needs.
    pub(super) fn need<T>(&mut self, object: LocatedObject<'_>, name: &str, value: Option<T>) -> Option<T> {
        if object.get(name).is_none() {
            self.gap(object.at(name), FieldCode::Required, "is required");
        }
        value
    }

    /// A text that an active automation needs.
    pub(super) fn need_text(&mut self, object: LocatedObject<'_>, name: &str, text: Option<String>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty());
        if text.is_none() && object.get(name).is_none_or(|value| value == "") {
            self.gap(object.at(name), FieldCode::Required, "is required");
        }
        text
    }

    /// An id, which is noted as named.
    pub(super) fn id<I: Id>(&mut self, text: &str, pointer: String, reference: fn(I) -> Reference) -> Option<I> {
        let Ok(id) = text.parse() else {
            self.gap(pointer, FieldCode::NotFound, "nothing in this workspace has this id");
            return None;
        };
        self.references.push((pointer, reference(id)));
        Some(id)
    }

    /// An id that an active automation needs.
    pub(super) fn need_id<I: Id>(
        &mut self,
        object: LocatedObject<'_>,
        name: &str,
        text: Option<String>,
        reference: fn(I) -> Reference,
    ) -> Option<I> {
        let text = self.need_text(object, name, text)?;
        self.id(&text, object.at(name), reference)
    }

    /// A filter.
    pub(super) fn filter(&mut self, value: &Value, pointer: &str) -> Option<Filter> {
        let mut found = Violations::new();
        let parsed = parse(value, pointer, Purpose::Automation, &mut found);
        self.note(found, InDrafts::Optional);
        // Those that are malformed were noted; the others are looked up by the caller.
        self.references.extend(parsed.references);
        self.needs_pii |= parsed.needs_pii;
        parsed.filter
    }

    /// One condition: unlike a filter it says something.
    pub(super) fn condition(&mut self, value: &Value, pointer: &str) -> Option<Filter> {
        if value.as_object().is_some_and(Map::is_empty) {
            self.gap(format!("{pointer}/type"), FieldCode::Required, "is required; this is one condition");
            return None;
        }
        self.filter(value, pointer)
    }

    /// A key with dots as the keys from the outside in, as in conditions on attributes.
    pub(super) fn attribute_path(&mut self, text: &str, pointer: String) -> Option<Vec<String>> {
        let path: Vec<_> = text.split('.').map(ToOwned::to_owned).collect();
        if !attributes::is_key(&path[0]) || path.len() > MAX_PATH || path.iter().any(String::is_empty) {
            let rule = "begins with the key of an attribute; names of members follow after dots, at most three";
            self.fault(pointer, FieldCode::InvalidFormat, rule);
            return None;
        }
        Some(path)
    }

    /// A text that is a template.
    pub(super) fn source(&mut self, pointer: impl Into<String>, text: &str) {
        self.sources.push((pointer.into(), text.to_owned()));
    }

    /// A text that is a template of one line.
    pub(super) fn line(&mut self, pointer: String, text: &str) {
        if text.chars().any(char::is_control) {
            let rule = "must be one line without control characters";
            self.fault(pointer.as_str(), FieldCode::InvalidFormat, rule);
        }
        self.source(pointer, text);
    }

    /// The texts in a value, which are templates.
    pub(super) fn sources_in(&mut self, value: &Value, pointer: &str) {
        match value {
            Value::String(text) => self.source(pointer, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.sources_in(item, &format!("{pointer}/{index}"));
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.sources_in(member, &format!("{pointer}/{}", escape(name)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
