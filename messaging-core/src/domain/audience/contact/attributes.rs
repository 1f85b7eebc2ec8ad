//! Attributes: custom data of a contact.
//!
//! Contract section 6.1: keys and kinds of values, with their numbers and sizes; section 8: the types of declared ones.
//! Where the contract leaves a choice: members of objects may have any name, and `null` inside an array or object is a
//! scalar like others.

use std::ops::Deref;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::domain::audience::custom_field::FieldTypes;
use crate::violation::{FieldCode, Violations, escape};

/// Maximum number of attributes of a contact.
pub(crate) const MAX_ATTRIBUTES: usize = 200;
/// Maximum size of all attributes of a contact as JSON, in bytes.
pub(crate) const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;
/// Maximum nesting depth of objects.
pub const MAX_DEPTH: usize = 3;
/// Maximum length of a key, in characters.
pub const MAX_KEY_LENGTH: usize = 64;

/// The attributes of a contact, by key.
///
/// The JSON is made at most once between two edits: both the size check and storing need it.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    members: Map<String, Value>,
    json: OnceLock<String>,
}

impl Attributes {
    /// Reads the result of [`Attributes::json`].
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        Ok(Self { members: serde_json::from_str(json)?, json: OnceLock::from(json.to_owned()) })
    }

    /// Returns the attributes as a JSON object.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| serde_json::to_string(&self.members).expect("plain data serializes"))
    }

    /// Returns the members for changing; drops the JSON.
    pub fn edit(&mut self) -> &mut Map<String, Value> {
        self.json = OnceLock::new();
        &mut self.members
    }

    /// Returns the members.
    pub fn into_members(self) -> Map<String, Value> {
        self.members
    }
}

impl Deref for Attributes {
    type Target = Map<String, Value>;
    fn deref(&self) -> &Map<String, Value> {
        &self.members
    }
}

impl From<Map<String, Value>> for Attributes {
    fn from(members: Map<String, Value>) -> Self {
        Self { members, json: OnceLock::new() }
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

/// Returns true if a text is a valid key: `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`.
pub fn is_key(text: &str) -> bool {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts
        && text.len() <= MAX_KEY_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Checks the attributes of a request: the keys, and the values that are not `null`.
pub fn check(sent: &Map<String, Value>, violations: &mut Violations) {
    for (key, value) in sent {
        if is_key(key) {
            check_value(value, &|| format!("/attributes/{}", escape(key)), 0, violations);
        } else {
            let rule = "a key has 1 to 64 letters, digits, underscores and hyphens and does not begin with a digit";
            violations.add(format!("/attributes/{}", escape(key)), FieldCode::InvalidFormat, rule);
        }
    }
}

fn check_value(value: &Value, place: &dyn Fn() -> String, depth: usize, violations: &mut Violations) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if item.is_array() || item.is_object() {
                    let rule = "an array holds texts, numbers and booleans";
                    violations.add(format!("{}/{index}", place()), FieldCode::InvalidType, rule);
                }
            }
        }
        Value::Object(_) if depth == MAX_DEPTH => {
            violations.add(place(), FieldCode::InvalidType, "objects nest at most 3 deep");
        }
        Value::Object(members) => {
            for (name, member) in members {
                check_value(member, &|| format!("{}/{}", place(), escape(name)), depth + 1, violations);
            }
        }
    }
}

/// Checks the declared attributes of a request against their types.
pub(crate) fn check_types(sent: &Map<String, Value>, types: &FieldTypes, violations: &mut Violations) {
    if types.is_empty() {
        return;
    }
    for (key, value) in sent {
        if let Some(fault) = types.get(key).filter(|_| !value.is_null()).and_then(|kind| kind.fault(value)) {
            violations.add(format!("/attributes/{}", escape(key)), fault.0, fault.1);
        }
    }
}

/// Merges the attributes of a request into the stored ones, key by key; `null` deletes a key. Adds a violation if the
/// result exceeds a limit.
pub fn merge(held: &mut Attributes, sent: Map<String, Value>, violations: &mut Violations) {
    let members = held.edit();
    if members.is_empty() && !sent.values().any(Value::is_null) {
        *members = sent;
    } else {
        for (key, value) in sent {
            if value.is_null() {
                members.remove(&key);
            } else {
                members.insert(key, value);
            }
        }
    }
    check_size(held, "/attributes", violations);
}

/// Checks that all attributes of a contact together are within their limits.
pub(super) fn check_size(attributes: &Attributes, pointer: &str, violations: &mut Violations) {
    if attributes.len() > MAX_ATTRIBUTES {
        violations.add(pointer, FieldCode::TooManyItems, "a contact has at most 200 attributes");
    } else if attributes.json().len() > MAX_ATTRIBUTE_BYTES {
        violations.add(pointer, FieldCode::TooLarge, "all attributes together are at most 64 KiB of JSON");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn texts(violations: &Violations) -> Vec<String> {
        let text = |one: &crate::violation::Violation| {
            let one = serde_json::to_value(one).unwrap();
            format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
        };
        violations.as_slice().iter().map(text).collect()
    }

    #[track_caller]
    fn check_sent(sent: Value, expected: &[&str]) {
        let mut violations = Violations::new();
        check(&object(sent.clone()), &mut violations);
        assert_eq!(texts(&violations), expected, "{sent}");
    }

    #[test]
    fn keys_at_their_limits() {
        let (longest, too_long) = ("k".repeat(64), "k".repeat(65));
        for good in ["a", "_", "A-1", "plan", longest.as_str()] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "1a", "-a", "a b", "a.b", "ä", too_long.as_str()] {
            assert!(!is_key(bad), "{bad}");
        }
        check_sent(json!({"a/b": 1}), &["/attributes/a~1b invalid_format"]);
    }

    #[test]
    fn values_are_scalars_arrays_of_scalars_and_shallow_objects() {
        check_sent(json!({"a": "x", "b": 1.5, "c": true, "d": null, "e": [1, "x", null], "f": []}), &[]);
        check_sent(json!({"a": {"b": {"c": {"d": 1}}}}), &[]);
        check_sent(json!({"a": {"b": {"c": {"d": {}}}}}), &["/attributes/a/b/c/d invalid_type"]);
        check_sent(json!({"a": {"b": {"c": {"d": [1]}}}}), &[]);
        check_sent(
            json!({"a": [[1]], "b": [1, {}]}),
            &["/attributes/a/0 invalid_type", "/attributes/b/1 invalid_type"],
        );
        check_sent(json!({"a": {"x.y": [[]]}}), &["/attributes/a/x.y/0 invalid_type"]);
    }

    #[test]
    fn merging_is_per_key_and_null_deletes() {
        let mut held = Attributes::from(object(json!({"plan": "free", "age": 31, "home": {"city": "Riga"}})));
        let mut violations = Violations::new();
        assert!(held.json().contains("free"));
        merge(&mut held, object(json!({"plan": "pro", "age": null, "home": {}, "none": null})), &mut violations);
        assert_eq!(Attributes::parse(held.json()).unwrap(), held);
        assert_eq!(Value::Object(held.into_members()), json!({"plan": "pro", "home": {}}));
        assert!(violations.is_empty());
    }

    #[test]
    fn the_result_is_bounded() {
        let many = |count: usize| object((0..count).map(|n| (format!("k{n}"), json!(n))).collect());
        let mut violations = Violations::new();
        let mut held = Attributes::from(many(MAX_ATTRIBUTES));
        merge(&mut held, many(MAX_ATTRIBUTES), &mut violations);
        assert!(violations.is_empty());
        merge(&mut held, object(json!({"one_more": 1})), &mut violations);
        assert_eq!(texts(&violations), ["/attributes too_many_items"]);

        // {"text":"…"}
        let of_length = |bytes: usize| object(json!({"text": "x".repeat(bytes - 11)}));
        let mut violations = Violations::new();
        merge(&mut Attributes::default(), of_length(MAX_ATTRIBUTE_BYTES), &mut violations);
        assert!(violations.is_empty());
        merge(&mut Attributes::default(), of_length(MAX_ATTRIBUTE_BYTES + 1), &mut violations);
        assert_eq!(texts(&violations), ["/attributes too_large"]);
    }
}
