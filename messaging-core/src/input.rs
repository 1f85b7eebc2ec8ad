//! Reading a request into a checked input: types and shapes by JSON Schema, meaning by the input's own `check`.
//!
//! The common case is one pass of serde, one of [`Validate`], one of `check`. Only if one of them refuses, the slow way
//! is taken: the body is walked beside its own JSON Schema, which knows every rule of the types and of their `validate`
//! attributes, so that all faults are found at once, with pointers and without the rejected values. Broken members are
//! cut out, and the meaning of the others is still checked.

mod extent;
mod file_body;
pub mod items;
mod lists;
mod schema_check;

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::domain::limits::MAX_PAGE_SIZE;
use crate::error::{DomainError, JsonFault};
use crate::input::lists::ObjectPlaces;
use crate::input::schema_check::{InputSource, SchemaCheck};
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations, escape};

pub use extent::{MAX_LEVELS, MAX_VALUES, count_values};
pub use file_body::FileBody;
pub use schema_check::{JUDGED_ALONE, UnknownMembers};

/// Body of an operation's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// No body; one that is sent is ignored.
    None,
    /// A body may be left out and then counts as `{}`.
    Optional,
    /// A JSON object.
    Required,
    /// A file as it is, of one of these media types.
    File(&'static [&'static str]),
}

impl BodyKind {
    /// True for an operation that reads JSON, required or not.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Optional | Self::Required)
    }
}

/// Input of an operation, read from the body or from the query.
pub trait Input: Serialize + DeserializeOwned + JsonSchema + Validate + Clone + Send + 'static {
    /// Kind of the body: none, optional JSON, required JSON or a file.
    const BODY: BodyKind = BodyKind::Required;

    /// Members of the outermost object that are accepted and ignored, besides those of the operation's answer: members
    /// of the resource that only the server sets.
    const READ_ONLY: &'static [&'static str] = &[];

    /// Returns the input for a body that is a file; `None` for inputs that are JSON.
    fn of_file(_bytes: &[u8]) -> Option<Self> {
        None
    }

    /// Returns the file that the input consists of; `None` for inputs that are JSON.
    fn as_file(&self) -> Option<&FileBody> {
        None
    }

    /// Checks rules that concern more than one member, or that no schema can express, and adds their violations.
    fn check(&self, _violations: &mut Violations) {}
}

/// An input without members.
#[derive(Debug, Clone, Copy, Default, Serialize, serde::Deserialize, JsonSchema, Validate)]
pub struct Empty {}

impl Input for Empty {
    const BODY: BodyKind = BodyKind::None;
}

/// The query of a listing (contract section 1.5).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct PageQuery {
    /// Maximum number of items on the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl PageQuery {
    /// Returns the page part of a query with more parameters.
    pub const fn of(limit: Option<u32>, cursor: Option<String>) -> Self {
        Self { limit, cursor }
    }
}

impl Input for PageQuery {}

/// Reads a body.
pub fn body<T: Input>(bytes: &[u8]) -> Result<T, DomainError> {
    let (input, violations) = body_with_faults(bytes, UnknownMembers::default())?;
    violations.into_result()?;
    Ok(input)
}

/// Reads a body as far as possible: returns the input without its broken members, and their violations. For operations
/// that find more faults by looking things up.
pub fn body_with_faults<T: Input>(bytes: &[u8], unknown: UnknownMembers) -> Result<(T, Violations), DomainError> {
    if let Some(input) = T::of_file(bytes) {
        let mut violations = Violations::new();
        input.check(&mut violations);
        return Ok((input, violations));
    }
    let bytes = match T::BODY {
        BodyKind::None => b"{}",
        BodyKind::Optional if bytes.trim_ascii().is_empty() => b"{}",
        BodyKind::Optional | BodyKind::Required | BodyKind::File(_) => bytes,
    };
    // serde_json would accept an array for a struct.
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_object
        && !has_nul_escape(bytes)
        // All at once: string by string takes longer.
        && let Ok(text) = std::str::from_utf8(bytes)
        && !(text.contains('[') && object_places_of::<T>().has_list(text))
        && let Ok(input) = serde_json::from_str::<T>(text)
        && input.is_valid()
    {
        let mut violations = Violations::new();
        input.check(&mut violations);
        return Ok((input, violations));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => {
            let again = || serde_json::from_slice(bytes).unwrap_or_default();
            explain(object, &again, InputSource::Body, unknown)
        }
        Ok(_) => Err(DomainError::NotAnObject(None)),
        Err(error) => Err(DomainError::NotAnObject(JsonFault::of(&error))),
    }
}

/// Checks a body that a program made by the rules for received ones: returns it without its broken members, and their
/// violations.
pub fn made_body<T: Input>(input: T) -> Result<(T, Violations), DomainError> {
    made(input, InputSource::Body)
}

/// Checks a query that a program made by the rules for received ones.
pub fn made_query<T: Input>(input: T) -> Result<T, DomainError> {
    let (input, violations) = made(input, InputSource::Query)?;
    violations.into_result()?;
    Ok(input)
}

fn made<T: Input>(input: T, source: InputSource) -> Result<(T, Violations), DomainError> {
    if !has_nul(&input) && input.is_valid() {
        let mut violations = Violations::new();
        input.check(&mut violations);
        return Ok((input, if source == InputSource::Query { violations.of_parameters() } else { violations }));
    }
    match serde_json::to_value(&input) {
        Ok(Value::Object(object)) => explain(object.clone(), &|| object.clone(), source, UnknownMembers::default()),
        _ => Err(DomainError::NotAnObject(None)),
    }
}

/// Reads a body that was accepted and stored as it was received: members that its type does not know are ignored, and
/// nothing is checked.
pub fn kept<T: Input>(bytes: &[u8]) -> serde_json::Result<T> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(input) = serde_json::from_str(text)
    {
        return Ok(input);
    }
    let object = serde_json::from_slice::<Map<String, Value>>(bytes)?;
    let schema = schema_of::<T>();
    let rest = SchemaCheck::new(&schema, InputSource::Body).ignoring(UnknownMembers::LENIENT, &[]).object(object);
    serde_json::from_str(&Value::Object(rest).to_string())
}

/// Reads an input from its remaining members. It is read from text, like the original input: reading from values as
/// well would be compiled once more for every input.
fn read<T: Input>(members: &Map<String, Value>) -> Option<T> {
    serde_json::from_str(&serde_json::to_string(members).ok()?).ok()
}

/// Reads a query string. Unknown parameters are ignored, and of repeated ones the last counts. The items of a list are
/// separated by commas. The plus sign of a phone number need not be encoded.
pub fn query<T: Input>(query: &str) -> Result<T, DomainError> {
    let schema = schema_of::<T>();
    let mut object = Map::new();
    let mut has_nul = false;
    for (name, value) in form_urlencoded::parse(with_plus_signs(query).as_bytes()) {
        let Some(property) = schema["properties"].get(name.as_ref()) else { continue };
        // No cursor holds U+0000: it is refused as an unknown cursor, not as a text that breaks a rule.
        let value = if is_cursor(&name) { value.replace('\0', "\u{fffd}").into() } else { value };
        has_nul |= value.contains('\0');
        let value = if accepts(property, "array") {
            value.split(',').collect()
        } else if accepts(property, "integer") || accepts(property, "number") || accepts(property, "boolean") {
            // Not a number or boolean: stays a string and is refused as one.
            serde_json::from_str::<Value>(&value)
                .ok()
                .filter(|parsed| parsed.is_number() || parsed.is_boolean())
                .unwrap_or_else(|| Value::String(value.into_owned()))
        } else {
            Value::String(value.into_owned())
        };
        object.insert(name.into_owned(), value);
    }
    if !has_nul
        && let Some(input) = read::<T>(&object)
        && input.is_valid()
    {
        let mut violations = Violations::new();
        input.check(&mut violations);
        violations.of_parameters().into_result()?;
        return Ok(input);
    }
    let unknown = UnknownMembers::default();
    let (input, violations) = explain(object.clone(), &|| object.clone(), InputSource::Query, unknown)?;
    violations.into_result()?;
    Ok(input)
}

/// Encodes a plus sign at the beginning of a value and before a digit. In a query it means a space, and a phone number
/// that was not encoded would silently find nobody.
fn with_plus_signs(query: &str) -> Cow<'_, str> {
    let is_phone = |at: usize| query.as_bytes().get(at + 2).is_some_and(u8::is_ascii_digit);
    let mut encoded = String::new();
    let mut done = 0;
    for (at, _) in query.match_indices("=+").filter(|(at, _)| is_phone(*at)) {
        encoded.push_str(&query[done..=at]);
        encoded.push_str("%2B");
        done = at + 2;
    }
    if done == 0 {
        return query.into();
    }
    encoded.push_str(&query[done..]);
    encoded.into()
}

/// True if a query parameter is a cursor into a listing.
fn is_cursor(name: &str) -> bool {
    matches!(name, "cursor" | "after")
}

/// Finds all violations. Returns the input if there are none after all: serde's derived code is stricter than the
/// contract in two points, duplicate members and unknown members that are ignored. `again` makes the object once more.
fn explain<T: Input>(
    object: Map<String, Value>,
    again: &dyn Fn() -> Map<String, Value>,
    source: InputSource,
    unknown: UnknownMembers,
) -> Result<(T, Violations), DomainError> {
    let schema = schema_of::<T>();
    let check = || SchemaCheck::new(&schema, source).ignoring(unknown, T::READ_ONLY);
    let mut input = None::<T>;
    let mut reads = |members: &Map<String, Value>| {
        input = read(members);
        input.is_some()
    };
    let (mut rest, mut violations, is_read) = readable(&schema, &check, (object, again), &mut reads);
    if !is_read && !violations.is_full() {
        name_unreadable(&schema, &mut rest, source, &mut violations, &mut reads);
        reads(&rest);
    }
    let Some(input) = input else {
        if violations.is_empty() {
            violations.add("", FieldCode::InvalidType, "has a member of the wrong type");
        }
        return Err(DomainError::Invalid(violations));
    };
    let mut meaning = Violations::new();
    input.check(&mut meaning);
    if meaning.is_empty()
        && violations.is_empty()
        && let Some(member) = input.broken_member()
    {
        // A rule that the schema does not show; name the member at least.
        meaning.add(format!("/{member}"), FieldCode::InvalidFormat, "breaks a rule of this member");
    }
    violations.merge(if source == InputSource::Query { meaning.of_parameters() } else { meaning });
    Ok((input, violations))
}

/// Returns an input without its broken members, the violations, and whether the rest can be read. Not generic, because
/// there are some hundred inputs.
fn readable<'a>(
    schema: &Value,
    walk: &dyn Fn() -> SchemaCheck<'a>,
    (object, again): (Map<String, Value>, &dyn Fn() -> Map<String, Value>),
    reads: &mut dyn FnMut(&Map<String, Value>) -> bool,
) -> (Map<String, Value>, Violations, bool) {
    let mut check = walk().standing_in();
    let mut rest = check.object(object);
    stand_in(schema, &mut rest);
    if reads(&rest) {
        return (rest, check.finish(), true);
    }
    // A type that takes none of the empty values.
    let mut check = walk();
    let mut rest = check.object(again());
    stand_in(schema, &mut rest);
    let is_read = reads(&rest);
    (rest, check.finish(), is_read)
}

/// Removes the members that their type refuses although the schema allows them, and adds a violation for each.
fn name_unreadable(
    schema: &Value,
    rest: &mut Map<String, Value>,
    source: InputSource,
    violations: &mut Violations,
    reads: &mut dyn FnMut(&Map<String, Value>) -> bool,
) {
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let (base, optional): (Map<_, _>, Map<_, _>) = rest.clone().into_iter().partition(|(name, _)| is_required(name));
    if !reads(&base) {
        return;
    }
    let mut alone = base;
    for (name, member) in optional {
        alone.insert(name.clone(), member);
        let reads = reads(&alone);
        alone.remove(&name);
        if !reads {
            rest.remove(&name);
            let message = "cannot be read";
            match source {
                InputSource::Body => {
                    violations.add(format!("/{}", escape(&name)), FieldCode::InvalidFormat, message);
                }
                InputSource::Query => violations.add_parameter(name, FieldCode::InvalidFormat, message),
            }
        }
    }
}

/// Puts empty values in place of required members that were cut out, so that the meaning of the others is checked.
///
/// Violations of an empty value are not reported: its place has one already. Where no value is empty, as in an
/// enumeration, none is put in, because the rules for other members may depend on it.
fn stand_in(schema: &Value, rest: &mut Map<String, Value>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let property = &schema["properties"][name];
        let empty = match property["type"].as_str() {
            Some("string") if property.get("enum").is_none() => Value::String(String::new()),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ => continue,
        };
        rest.entry(name).or_insert(empty);
    }
}

/// Returns the violations of a JSON Schema by a value at a pointer. Unknown keywords are ignored.
pub fn faults_by_schema(schema: &Value, value: Value, pointer: &str) -> Violations {
    rest_by_schema(schema, value, pointer).1
}

/// Returns a value at a pointer without its broken members, and their violations. `None` if the value has the wrong
/// type or lacks a required member.
pub fn rest_by_schema(schema: &Value, value: Value, pointer: &str) -> (Option<Value>, Violations) {
    let mut check = SchemaCheck::new(schema, InputSource::Body);
    let rest = check.at(value, pointer);
    (rest, check.finish())
}

/// Returns the JSON Schema of a type, made once.
pub fn schema_of<T: JsonSchema + 'static>() -> Arc<Value> {
    schema_by(TypeId::of::<T>(), |generator| generator.into_root_schema_for::<T>().to_value())
}

/// Returns the schema that is cached under a type, made once.
pub fn schema_by(kind: TypeId, make: fn(SchemaGenerator) -> Value) -> Arc<Value> {
    static SCHEMAS: LazyLock<Mutex<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(Mutex::default);
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(schemas.entry(kind).or_insert_with(|| Arc::new(make(SchemaGenerator::default()))))
}

/// Returns the parts of a type's body that must be objects, computed once.
fn object_places_of<T: JsonSchema + 'static>() -> Arc<ObjectPlaces> {
    static PLACES: LazyLock<Mutex<HashMap<TypeId, Arc<ObjectPlaces>>>> = LazyLock::new(Mutex::default);
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || Arc::new(ObjectPlaces::of(&schema_of::<T>()));
    Arc::clone(places.entry(TypeId::of::<T>()).or_insert_with(make))
}

fn accepts(property: &Value, wanted: &str) -> bool {
    match &property["type"] {
        Value::String(only) => only == wanted,
        Value::Array(several) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// True if a text of the input holds U+0000, or if the input cannot be serialized.
fn has_nul<T: Serialize>(input: &T) -> bool {
    /// Searches the pieces that `serde_json` writes: an escaped character is a piece of its own.
    struct Search(bool);
    impl io::Write for Search {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.0 |= has_nul_escape(piece);
            Ok(piece.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut search = Search(false);
    let searcher: &mut dyn io::Write = &mut search;
    let written = serde_json::to_writer(searcher, input);
    written.is_err() || search.0
}

/// True if a JSON text may hold U+0000, which no string may (contract section 1.1). JSON can only write it as the
/// escape `\u0000`; escapes are skipped in pairs, because after an escaped backslash `u0000` is plain text.
fn has_nul_escape(bytes: &[u8]) -> bool {
    // Most texts hold no escape at all, which this finds fastest.
    if !bytes.contains(&b'\\') {
        return false;
    }
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        if rest[at + 1..].starts_with(b"u0000") {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plus_signs_of_phone_numbers_stay() {
        for (query, expected) in [
            ("phone=+14155550123", "phone=%2B14155550123"),
            ("a=1&to=+1&phone=+49", "a=1&to=%2B1&phone=%2B49"),
            ("q=+ann", "q=+ann"),
            ("q=a+1", "q=a+1"),
            ("phone=%2B1", "phone=%2B1"),
            ("phone=+", "phone=+"),
            ("", ""),
        ] {
            assert_eq!(with_plus_signs(query), expected);
        }
    }
}
