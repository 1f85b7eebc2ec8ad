//! The keywords of JSON Schema, each as a rule about one value.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::domain::channel::address::EmailAddress;
use crate::domain::security::ip_block::IpBlock;
use crate::domain::security::user_email::UserEmail;
use crate::time::Timestamp;

/// Deepest nesting of a value that is checked; the JSON parser refuses deeper documents.
pub(super) const MAX_DEPTH: usize = 128;

/// Compiled patterns by their text. All patterns come from the schemas of our own types, so the map stays small.
static PATTERNS: LazyLock<Mutex<HashMap<String, Option<Arc<Regex>>>>> = LazyLock::new(Mutex::default);

/// True if a schema permits any members in an object and describes none, so that the members are the caller's data.
pub(super) fn is_data(schema: &Value) -> bool {
    let is_free = schema.get("additionalProperties").is_none_or(|rule| *rule == Value::Bool(true));
    is_free && ["properties", "required"].iter().all(|word| schema.get(*word).is_none())
}

/// True if a name or string in an object contains U+0000, which PostgreSQL cannot store. Also true for nesting beyond
/// [`MAX_DEPTH`], which is not searched.
pub(super) fn holds_nul(members: &Map<String, Value>, depth: usize) -> bool {
    fn of_value(value: &Value, depth: usize) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => depth > MAX_DEPTH || items.iter().any(|item| of_value(item, depth + 1)),
            Value::Object(members) => holds_nul(members, depth + 1),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    depth > MAX_DEPTH || members.iter().any(|(name, member)| name.contains('\0') || of_value(member, depth))
}

/// True for a value that counts as missing in a required member: `null` (contract section 1.1) or an empty string (1.4).
pub(super) fn is_missing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// True if a value has one of the types of the keyword `type`, a name or a list of names.
pub(super) fn type_fits(types: &Value, value: &Value) -> bool {
    let fits = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    match types {
        Value::String(only) => fits(only),
        Value::Array(several) => several.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    }
}

/// Converts a number such as `600.0` or `6e2` to an integer if the schema wants one: these are integers in JSON Schema,
/// but not for serde.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked")]
pub(super) fn as_integer(schema: &Value, value: Value) -> Value {
    let is_integer = schema["type"] == "integer"
        || schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == "integer"));
    match value.as_f64() {
        Some(number) if is_integer && value.is_f64() && number.fract() == 0.0 && number.abs() < i64::MAX as f64 => {
            Value::from(number as i64)
        }
        _ => value,
    }
}

/// Least and greatest value of the integer type of a member, which schemars writes as the keyword `format`. Unbounded for
/// other formats.
#[expect(clippy::cast_precision_loss, reason = "at the ends of 64 bits the next number is far away")]
pub(super) fn representable(schema: &Value) -> (f64, f64) {
    match schema["format"].as_str() {
        Some("uint8") => (0.0, f64::from(u8::MAX)),
        Some("uint16") => (0.0, f64::from(u16::MAX)),
        Some("uint32") => (0.0, f64::from(u32::MAX)),
        Some("uint" | "uint64") => (0.0, u64::MAX as f64),
        Some("int8") => (f64::from(i8::MIN), f64::from(i8::MAX)),
        Some("int16") => (f64::from(i16::MIN), f64::from(i16::MAX)),
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        Some("int" | "int64") => (i64::MIN as f64, i64::MAX as f64),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The type with its article for error messages: `an integer`. The first of several that is not null.
pub(super) fn type_name(types: &Value) -> String {
    let name = match types {
        Value::String(only) => only.as_str(),
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("null")
        }
        _ => "of another type",
    };
    match name {
        "array" | "object" | "integer" => format!("an {name}"),
        "string" | "number" | "boolean" => format!("a {name}"),
        other => other.to_owned(),
    }
}

/// The values that an enumeration permits, from `enum`, `const`, or a `oneOf` of constants (variants with documentation).
/// `None` if the schema is no enumeration.
pub(super) fn allowed_values(schema: &Value) -> Option<Vec<&Value>> {
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().collect());
    }
    if let Some(value) = schema.get("const") {
        return Some(vec![value]);
    }
    let mut allowed = Vec::new();
    for choice in schema["oneOf"].as_array()? {
        match (choice.get("const"), choice["enum"].as_array()) {
            (Some(value), _) => allowed.push(value),
            (None, Some(values)) => allowed.extend(values),
            (None, None) => return None,
        }
    }
    Some(allowed)
}

/// True if a text has a format that we check; true for all other formats.
pub(super) fn format_fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<Timestamp>().is_ok(),
        "email" => EmailAddress::parse(text).is_ok(),
        "user-email" => text.parse::<UserEmail>().is_ok(),
        "ip-block" => text.parse::<IpBlock>().is_ok(),
        _ => true,
    }
}

/// The prefix of the ids that a pattern describes, such as `con_`; `None` if it is not the pattern of an id.
pub(super) fn id_prefix(pattern: &str) -> Option<&str> {
    let (prefix, rest) = pattern.strip_prefix('^')?.split_once('[')?;
    (rest == "0-9A-HJKMNP-TV-Z]{26}$").then_some(prefix)
}

/// True if a text matches a pattern; false for a pattern that does not compile.
pub(super) fn pattern_fits(pattern: &str, text: &str) -> bool {
    let regex = {
        let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
        match patterns.get(pattern) {
            Some(known) => known.clone(),
            // Our own patterns compile; one that does not is found by the test over all operations.
            None => patterns.entry(pattern.to_owned()).or_insert(Regex::new(pattern).ok().map(Arc::new)).clone(),
        }
    };
    regex.is_some_and(|regex| regex.is_match(text))
}
