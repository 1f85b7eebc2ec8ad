//! Check of a JSON value against a JSON Schema, which reports every fault with its pointer.
//!
//! Covers the keywords that `schemars` writes for our input types: `type`, `enum`, `const`, `oneOf` of constants,
//! `required`, `properties`, `items`, `additionalProperties`, lengths, counts, ranges, `pattern`, `format`, `$ref`,
//! `anyOf` (of optional members), `allOf`. Values under other keywords pass, and the input type then refuses them.

mod rules;
mod spot;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::violation::{FieldCode, NO_MEMBER, Violations};

use self::rules::{
    MAX_DEPTH, allowed_values, as_integer, format_fits, holds_nul, id_prefix, is_data, is_missing, pattern_fits,
    representable, type_fits, type_name,
};
use self::spot::Spot;

/// Keyword in the schema of a value that is validated on its own, such as a segment filter or a list item
/// ([`Items`](super::items::Items)): the check of the whole body skips the value.
pub const JUDGED_ALONE: &str = "x-judged-alone";

/// The rule for members of a body that its type does not have (contract section 1.1).
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownMembers {
    /// True if all unknown members are ignored, which `Prefer: handling=lenient` asks for (RFC 7240 section 4.4).
    pub ignored: bool,
    /// Schema of the resource in answers, whose members are ignored, so that an answer may be sent back.
    pub resource: Option<fn() -> Arc<Value>>,
    /// True if the nearest known name ("did you mean …?") is left out of the violations.
    pub without_suggestions: bool,
}

impl UnknownMembers {
    /// Ignores every unknown member.
    pub const LENIENT: Self = Self { ignored: true, resource: None, without_suggestions: false };
}

/// Source of the value; decides whether faults carry pointers or parameter names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputSource {
    /// The body.
    Body,
    /// The query.
    Query,
}

/// Number of faults, repeated ones of one place included, at which the walk ends; each place is reported once.
const MAX_NOTED: usize = 1000;

/// One walk over a value, beside its schema.
pub(super) struct SchemaCheck<'a> {
    root: &'a Value,
    source: InputSource,
    found: Violations,
    /// Number of faults so far, repeated ones of one place included.
    noted: usize,
    unknown: UnknownMembers,
    read_only: &'static [&'static str],
    /// True if empty values are put in place of broken ones.
    stands_in: bool,
    /// True if a member of the current item was removed without an empty value in its place: the rest may mean
    /// something else.
    has_lost: bool,
}

impl<'a> SchemaCheck<'a> {
    /// Returns a walk beside the schema `root`.
    pub(super) fn new(root: &'a Value, source: InputSource) -> Self {
        Self {
            root,
            source,
            found: Violations::new(),
            noted: 0,
            unknown: UnknownMembers::default(),
            read_only: &[],
            stands_in: false,
            has_lost: false,
        }
    }

    /// Makes the walk ignore unknown members as `unknown` says, and `read_only` in the outermost object.
    pub(super) fn ignoring(self, unknown: UnknownMembers, read_only: &'static [&'static str]) -> Self {
        Self { unknown, read_only, ..self }
    }

    /// Returns true if the walk is over: as many faults were found as are reported, or `MAX_NOTED` with repeated ones.
    const fn is_done(&self) -> bool {
        self.found.is_full() || self.noted >= MAX_NOTED
    }

    /// Makes the walk put empty values in place of broken items and of broken members that an inner object requires, so
    /// that the meaning of the values beside them is checked. Violations of these empty values are not reported: see
    /// [`Violations::merge`].
    pub(super) fn standing_in(self) -> Self {
        Self { stands_in: true, ..self }
    }

    /// Returns the emptiest value of a type; `None` if the type has none (such as an enumeration, on which the rules
    /// for other members may depend), or if the walk does not stand in.
    fn empty(&self, schema: &Value, depth: usize) -> Option<Value> {
        let schema = resolved(self.root, schema);
        let bounds = ["enum", "const", "oneOf", "anyOf", "allOf", "pattern", "format", JUDGED_ALONE];
        let is_number = schema["type"] == "integer" || schema["type"] == "number";
        if !self.stands_in || depth > MAX_DEPTH || bounds.iter().any(|word| schema.get(word).is_some() && !is_number) {
            return None;
        }
        match schema["type"].as_str()? {
            "string" => Some(Value::String(String::new())),
            "array" => Some(Value::Array(Vec::new())),
            "integer" | "number" => Some(schema.get("minimum").cloned().unwrap_or_else(|| Value::from(1))),
            "object" => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let members =
                    required.map(|name| Some((name.to_owned(), self.empty(&schema["properties"][name], depth + 1)?)));
                members.collect::<Option<Map<_, _>>>().map(Value::Object)
            }
            _ => None,
        }
    }

    /// Returns the faults that the walk has found.
    pub(super) fn finish(self) -> Violations {
        self.found
    }

    /// Walks the outermost object, and returns the object without its broken members.
    pub(super) fn object(&mut self, object: Map<String, Value>) -> Map<String, Value> {
        match self.value(self.root, Value::Object(object), &Spot::Top(""), 0) {
            Some(Value::Object(rest)) => rest,
            _ => Map::new(),
        }
    }

    /// Walks a value at a pointer, and returns the value without its broken members.
    pub(super) fn at(&mut self, value: Value, pointer: &str) -> Option<Value> {
        self.value(self.root, value, &Spot::Top(pointer), 0)
    }

    /// Returns true if an unknown member is ignored: all are, the input ignores it as read-only, or the resource has
    /// it.
    fn is_ignored(&self, outer: &Spot<'_>, at: &Spot<'_>, name: &str) -> bool {
        self.unknown.ignored
            || (outer.is_body() && self.read_only.contains(&name))
            || self.unknown.resource.is_some_and(|resource| describes(&resource(), &at.pointer()))
    }

    /// Reports every U+0000 in a value of any form. Returns true if there is one, if the value is nested too deeply, or
    /// if the walk is over.
    fn has_nul(&mut self, value: &Value, spot: &Spot<'_>, depth: usize) -> bool {
        match value {
            _ if depth > MAX_DEPTH || self.is_done() => true,
            Value::String(text) if text.contains('\0') => {
                self.fault(spot, FieldCode::InvalidFormat, "must not contain U+0000");
                true
            }
            Value::Array(items) => {
                let judged = items.iter().enumerate();
                judged.fold(false, |found, (index, item)| {
                    self.has_nul(item, &Spot::Item(spot, index), depth + 1) || found
                })
            }
            Value::Object(members) => members.iter().fold(false, |found, (name, member)| {
                if name.contains('\0') {
                    self.fault(spot, FieldCode::InvalidFormat, "must not contain U+0000");
                    return true;
                }
                self.has_nul(member, &Spot::Member(spot, name), depth + 1) || found
            }),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn fault(&mut self, spot: &Spot<'_>, code: FieldCode, message: &str) {
        if self.is_done() {
            return;
        }
        self.noted += 1;
        let pointer = spot.pointer();
        match self.source {
            InputSource::Body => self.found.add(pointer, code, message),
            // The parameter is named, also for a fault in an item of its list.
            InputSource::Query => {
                self.found.add_parameter(pointer.split('/').nth(1).unwrap_or_default(), code, message);
            }
        }
    }

    /// Refuses an unknown member.
    fn unknown(&mut self, spot: &Spot<'_>, schema: &Value, name: &str) {
        if self.unknown.without_suggestions || self.source == InputSource::Query {
            return self.fault(spot, FieldCode::UnknownField, NO_MEMBER);
        }
        self.noted += 1;
        let known = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        self.found.add_unknown(spot.pointer(), known.map(String::as_str), name);
    }

    fn value(&mut self, schema: &Value, value: Value, spot: &Spot<'_>, depth: usize) -> Option<Value> {
        if self.is_done() {
            // No more is reported, so no more is looked for.
            return None;
        }
        if schema[JUDGED_ALONE] == true {
            return Some(value);
        }
        let schema = self.resolve(schema, &value);
        if depth > MAX_DEPTH || schema.as_bool() == Some(true) {
            return Some(value);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut value = value;
            for part in parts {
                value = self.value(part, value, spot, depth + 1)?;
            }
            return Some(value);
        }
        if value.is_array() && is_object_only(self.root, schema) {
            self.fault(spot, FieldCode::InvalidType, "must be an object");
            return None;
        }
        if !type_fits(&schema["type"], &value) {
            let message = format!("must be {}", type_name(&schema["type"]));
            self.fault(spot, FieldCode::InvalidType, &message);
            return None;
        }
        if let Some(allowed) = allowed_values(schema)
            && !allowed.contains(&&value)
            && !(value.is_null() && schema.get("type").is_some())
        {
            if !value.is_string() {
                self.fault(spot, FieldCode::InvalidType, "must be a string");
                return None;
            }
            let texts: Vec<_> = allowed.iter().filter_map(|one| one.as_str()).collect();
            self.fault(spot, FieldCode::UnknownValue, &format!("must be one of {}", texts.join(", ")));
            return None;
        }
        match value {
            Value::String(text) => self.string(schema, text, spot),
            Value::Number(_) => self.number(schema, value, spot),
            Value::Array(items) => self.array(schema, items, spot, depth),
            Value::Object(members) => self.members(schema, members, spot, depth),
            Value::Null | Value::Bool(_) => Some(value),
        }
    }

    /// Follows references, and picks the first alternative of an `anyOf` that suits the value: the `null` one for
    /// `null`, else one that is not `null`.
    fn resolve<'s>(&self, schema: &'s Value, value: &Value) -> &'s Value
    where
        'a: 's,
    {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            if let Some(target) = schema["$ref"].as_str().and_then(|link| link.strip_prefix('#')) {
                match self.root.pointer(target) {
                    Some(found) => schema = found,
                    None => return schema,
                }
            } else if let Some(choices) = schema["anyOf"].as_array() {
                let wanted = if value.is_null() { "null" } else { "" };
                match choices.iter().find(|choice| (choice["type"] == "null") == (wanted == "null")) {
                    Some(found) => schema = found,
                    None => return schema,
                }
            } else {
                return schema;
            }
        }
        schema
    }

    /// Returns true if an optional member cannot be cleared by `missing`, which is `null` or an empty text: the schema
    /// does not allow `null`, nor, if `missing` is a text, an empty text.
    fn refuses_missing(&self, schema: &Value, missing: &Value) -> bool {
        let schema = self.resolve(schema, &Value::Null);
        let allowed = allowed_values(schema);
        let nullable = match (schema.get("type"), &allowed) {
            (Some(types), _) => type_fits(types, &Value::Null),
            (None, Some(values)) => values.contains(&&Value::Null),
            (None, None) => true,
        };
        let is_text = allowed.is_some() || schema["type"] == "string";
        let needs_text = allowed.is_some()
            || schema["minLength"].as_u64().is_some_and(|least| least > 0)
            || schema.get("format").is_some()
            || schema.get("pattern").is_some();
        !nullable && (missing.is_null() || (is_text && needs_text))
    }

    fn string(&mut self, schema: &Value, text: String, spot: &Spot<'_>) -> Option<Value> {
        let length = text.chars().count() as u64;
        if text.contains('\0') {
            self.fault(spot, FieldCode::InvalidFormat, "must not contain U+0000");
        } else if schema["minLength"].as_u64().is_some_and(|least| length < least) {
            self.fault(spot, FieldCode::TooShort, &format!("must have at least {} characters", schema["minLength"]));
        } else if schema["maxLength"].as_u64().is_some_and(|most| length > most) {
            self.fault(spot, FieldCode::TooLong, &format!("must have at most {} characters", schema["maxLength"]));
        } else if schema["format"].as_str().is_some_and(|format| !format_fits(format, &text)) {
            let format = schema["format"].as_str().unwrap_or_default();
            let rule = match format {
                "date-time" => "must be a time with its zone, such as 2026-01-31T09:15:00Z".to_owned(),
                "email" | "user-email" => "must be one email address, without a display name".to_owned(),
                "ip-block" => "must be an IP address or a block such as 192.0.2.0/24".to_owned(),
                other => format!("must be in the format {other}"),
            };
            self.fault(spot, FieldCode::InvalidFormat, &rule);
        } else if schema["pattern"].as_str().is_some_and(|pattern| !pattern_fits(pattern, &text)) {
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            let rule = match id_prefix(pattern) {
                Some(prefix) => format!("must be an id that begins with {prefix}, as answers show it"),
                None => format!("must match {}", schema["pattern"]),
            };
            self.fault(spot, FieldCode::InvalidFormat, &rule);
        } else {
            return Some(Value::String(text));
        }
        None
    }

    fn number(&mut self, schema: &Value, value: Value, spot: &Spot<'_>) -> Option<Value> {
        let value = as_integer(schema, value);
        let number = value.as_f64().unwrap_or(f64::NAN);
        let low = schema["minimum"].as_f64().is_some_and(|least| number < least)
            || schema["exclusiveMinimum"].as_f64().is_some_and(|bound| number <= bound);
        let high = schema["maximum"].as_f64().is_some_and(|most| number > most)
            || schema["exclusiveMaximum"].as_f64().is_some_and(|bound| number >= bound);
        let (low, high) = (low || number < representable(schema).0, high || number > representable(schema).1);
        if low || high {
            let message = match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
                (Some(least), Some(most)) => format!("must be from {least} to {most}"),
                (Some(least), None) => format!("must be at least {least}"),
                (None, Some(most)) => format!("must be at most {most}"),
                (None, None) => "is out of range".to_owned(),
            };
            self.fault(spot, FieldCode::OutOfRange, &message);
            return None;
        }
        Some(value)
    }

    fn array(&mut self, schema: &Value, items: Vec<Value>, spot: &Spot<'_>, depth: usize) -> Option<Value> {
        let is_too_long = schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 > most);
        if is_too_long {
            self.fault(spot, FieldCode::TooManyItems, &format!("at most {} items", schema["maxItems"]));
        }
        if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
            self.fault(spot, FieldCode::TooShort, &format!("at least {} items", schema["minItems"]));
            return None;
        }
        let has_lost = std::mem::take(&mut self.has_lost);
        let kept: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                let kept = self.value(&schema["items"], item, &Spot::Item(spot, index), depth + 1);
                kept.or_else(|| self.empty(&schema["items"], depth + 1))
            })
            .collect();
        let has_lost = std::mem::replace(&mut self.has_lost, has_lost);
        // A list without one of its items would shift the pointers of later checks.
        let kept = kept.into_iter().collect::<Option<_>>().map(Value::Array);
        kept.filter(|_| !is_too_long && !has_lost)
    }

    fn members(&mut self, schema: &Value, members: Map<String, Value>, spot: &Spot<'_>, depth: usize) -> Option<Value> {
        if schema["maxProperties"].as_u64().is_some_and(|most| members.len() as u64 > most) {
            self.fault(spot, FieldCode::TooManyItems, &format!("at most {} members", schema["maxProperties"]));
            return None;
        }
        if is_data(schema) && !holds_nul(&members, depth) {
            return Some(Value::Object(members));
        }
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for name in &required {
            if members.get(*name).is_none_or(is_missing) {
                self.fault(&Spot::Member(spot, name), FieldCode::Required, "is required");
            }
        }
        let mut kept = Map::new();
        for (name, member) in members {
            if self.is_done() {
                break;
            }
            let at = Spot::Member(spot, &name);
            if required.contains(&name.as_str()) && is_missing(&member) {
                continue;
            }
            if name.contains('\0') {
                self.fault(spot, FieldCode::InvalidFormat, "must not contain U+0000");
                continue;
            }
            let property = match schema["properties"].get(&name) {
                Some(property) => property,
                None if schema["additionalProperties"] == Value::Bool(false) => {
                    if !self.is_ignored(spot, &at, &name) {
                        self.unknown(&at, schema, &name);
                    }
                    continue;
                }
                None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
                // An object without a schema of its own members is data; elsewhere unknown members are ignored.
                None => &Value::Bool(true),
            };
            if property.as_bool() == Some(true) {
                if self.has_nul(&member, &at, 0) {
                    continue;
                }
                kept.insert(name, member);
            } else if is_missing(&member) && self.refuses_missing(property, &member) {
                // An optional member that cannot be cleared, such as a name in a PATCH.
                self.fault(&at, FieldCode::Required, "cannot be cleared");
                self.has_lost = true;
            } else if let Some(member) = self.value(property, member, &at, depth + 1) {
                kept.insert(name, member);
            } else {
                self.has_lost |= !required.contains(&name.as_str());
            }
        }
        // The outermost object is kept without its broken members; an incomplete inner one is dropped.
        if !spot.is_body() {
            for name in &required {
                if !kept.contains_key(*name)
                    && let Some(empty) = self.empty(&schema["properties"][*name], depth + 1)
                {
                    kept.insert((*name).to_owned(), empty);
                }
            }
        }
        let complete = required.iter().all(|name| kept.contains_key(*name));
        (complete || spot.is_body()).then_some(Value::Object(kept))
    }
}

/// Follows references, and picks the alternative of an optional value that is not `null`.
pub(super) fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let target = schema["$ref"].as_str().and_then(|link| root.pointer(link.strip_prefix('#')?));
        let choice = || schema["anyOf"].as_array()?.iter().find(|choice| choice["type"] != "null");
        match target.or_else(choice) {
            // Keywords beside a reference apply to the value too.
            Some(found) if schema[JUDGED_ALONE] != true => schema = found,
            _ => return schema,
        }
    }
    schema
}

/// Returns true if a value that is not null must be an object: by its type, or by each alternative of its `oneOf`.
pub(super) fn is_object_only(root: &Value, schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(only) => only == "object",
        Value::Array(several) => several.iter().all(|one| one == "object" || one == "null"),
        _ => schema["oneOf"]
            .as_array()
            .is_some_and(|choices| choices.iter().all(|choice| is_object_only(root, resolved(root, choice)))),
    }
}

/// Returns true if a schema describes the value at a pointer: a member of a member, an item of an array.
fn describes(root: &Value, pointer: &str) -> bool {
    let mut schema = root;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        match next(root, schema, &step, 0) {
            Some(Value::Bool(true)) => return true,
            Some(found) => schema = found,
            None => return false,
        }
    }
    true
}

/// Returns the schema of a member or item, through references and alternatives.
fn next<'s>(root: &'s Value, schema: &'s Value, step: &str, depth: usize) -> Option<&'s Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|link| link.strip_prefix('#')) {
        return next(root, root.pointer(target)?, step, depth + 1);
    }
    let own = schema["properties"].get(step).or_else(|| {
        let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { schema.get("items") } else { None }
    });
    own.or_else(|| {
        let parts = ["anyOf", "allOf", "oneOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten();
        parts.into_iter().find_map(|part| next(root, part, step, depth + 1))
    })
    .or_else(|| schema.get("additionalProperties").filter(|more| **more == Value::Bool(true) || more.is_object()))
}
