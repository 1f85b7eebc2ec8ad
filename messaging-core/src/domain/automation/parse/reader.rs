//! Reader of a design, which collects its faults and references.

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

/// Codes of faults that a draft may have and an active automation may not.
const OF_ACTIVATION: [FieldCode; 2] = [FieldCode::Required, FieldCode::NotFound];

/// Maximum number of keys in the path of an attribute, that of the attribute included.
const MAX_PATH: usize = attributes::MAX_DEPTH + 1;

/// Rule for members that a form requires when a draft lacks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InDrafts {
    /// A draft needs them, too: nothing could be judged without them.
    Required,
    /// A draft may lack them.
    Optional,
}

/// Faults and references collected while a design is read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Faults that no automation may have, not even a draft.
    pub(super) shape: Violations,
    /// Faults that keep the automation from being active.
    pub(super) gaps: Violations,
    /// Objects that the design refers to by id, each with the JSON Pointer of the member that names it.
    pub(super) references: Vec<(String, Reference)>,
    /// Texts of the design that are templates, each with its JSON Pointer.
    pub(super) sources: Vec<(String, String)>,
    /// Web addresses that the design calls, each with its JSON Pointer.
    pub(super) urls: Vec<(String, String)>,
    /// See [`Reading::needs_pii`](super::Reading::needs_pii).
    pub(super) needs_pii: bool,
    /// Settings of the send nodes, each with the place of its node.
    pub(super) sends: Vec<(usize, Send)>,
}

/// A JSON object with its JSON Pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedObject<'a> {
    pub(super) members: &'a Map<String, Value>,
    pub(super) pointer: &'a str,
}

impl<'a> LocatedObject<'a> {
    /// Returns the pointer of a member.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escape(name))
    }

    /// Returns a member; null counts as absent.
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

    /// Adds the faults found in a form to `gaps` if a draft may have them, else to `shape`.
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

    /// Reads an object without its broken members, which are reported.
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

    /// Reads the config of a trigger or node.
    pub(super) fn config<T: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        object: LocatedObject<'_>,
    ) -> Option<T> {
        self.form(Value::Object(object.members.clone()), object.pointer, InDrafts::Optional)
    }

    /// Returns the value of a member, and reports it as a gap if it is missing: an active automation needs it.
    pub(super) fn need<T>(&mut self, object: LocatedObject<'_>, name: &str, value: Option<T>) -> Option<T> {
        if object.get(name).is_none() {
            self.gap(object.at(name), FieldCode::Required, "is required");
        }
        value
    }

    /// Returns a text, and reports it as a gap if it is missing or empty: an active automation needs it.
    pub(super) fn need_text(&mut self, object: LocatedObject<'_>, name: &str, text: Option<String>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty());
        if text.is_none() && object.get(name).is_none_or(|value| value == "") {
            self.gap(object.at(name), FieldCode::Required, "is required");
        }
        text
    }

    /// Parses an id and adds it to the references.
    pub(super) fn id<I: Id>(&mut self, text: &str, pointer: String, reference: fn(I) -> Reference) -> Option<I> {
        let Ok(id) = text.parse() else {
            self.gap(pointer, FieldCode::NotFound, "nothing in this workspace has this id");
            return None;
        };
        self.references.push((pointer, reference(id)));
        Some(id)
    }

    /// Like `id`, and reports a missing id as a gap: an active automation needs it.
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

    /// Parses a filter and adds its references.
    pub(super) fn filter(&mut self, value: &Value, pointer: &str) -> Option<Filter> {
        let mut found = Violations::new();
        let parsed = parse(value, pointer, Purpose::Automation, &mut found);
        self.note(found, InDrafts::Optional);
        // Malformed ids were reported; the caller looks the others up.
        self.references.extend(parsed.references);
        self.needs_pii |= parsed.needs_pii;
        parsed.filter
    }

    /// Parses a filter that may not be empty.
    pub(super) fn condition(&mut self, value: &Value, pointer: &str) -> Option<Filter> {
        if value.as_object().is_some_and(Map::is_empty) {
            self.gap(format!("{pointer}/type"), FieldCode::Required, "is required; this is one condition");
            return None;
        }
        self.filter(value, pointer)
    }

    /// Splits a key with dots into keys from the outside in, as in conditions on attributes.
    pub(super) fn attribute_path(&mut self, text: &str, pointer: String) -> Option<Vec<String>> {
        let path: Vec<_> = text.split('.').map(ToOwned::to_owned).collect();
        if !attributes::is_key(&path[0]) || path.len() > MAX_PATH || path.iter().any(String::is_empty) {
            let rule = "begins with the key of an attribute; names of members follow after dots, at most three";
            self.fault(pointer, FieldCode::InvalidFormat, rule);
            return None;
        }
        Some(path)
    }

    /// Adds a text that is a template.
    pub(super) fn source(&mut self, pointer: impl Into<String>, text: &str) {
        self.sources.push((pointer.into(), text.to_owned()));
    }

    /// Adds a text that is a template and must be one line.
    pub(super) fn line(&mut self, pointer: String, text: &str) {
        if text.chars().any(char::is_control) {
            let rule = "must be one line without control characters";
            self.fault(pointer.as_str(), FieldCode::InvalidFormat, rule);
        }
        self.source(pointer, text);
    }

    /// Adds all texts in a value as templates.
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
