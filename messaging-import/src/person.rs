//! Builds the body of a contact from the data that every product has.

use std::collections::BTreeMap;

use messaging_core::domain::audience::contact::attributes;
use serde_json::{Map, Value, json};

/// Returns the attribute key for a column or a foreign key: letters, digits and underscores, in lower case.
pub(crate) fn key(name: &str) -> String {
    let mut key = String::new();
    for letter in name.trim().chars() {
        let letter = if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
        if letter != '_' || !key.ends_with('_') {
            key.push(letter);
        }
    }
    let key = key.trim_matches('_');
    let key = if key.starts_with(|first: char| first.is_ascii_digit()) { format!("_{key}") } else { key.to_owned() };
    if key.is_empty() { "unnamed".to_owned() } else { key.chars().take(attributes::MAX_KEY_LENGTH).collect() }
}

/// Returns attributes from columns.
pub(crate) fn texts<'a>(cells: impl IntoIterator<Item = (String, &'a str)>) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, cell) in cells {
        // Of several columns with one name the first counts.
        all.entry(key).or_insert_with(|| json!(cell));
    }
    all
}

/// Returns attributes from another product's JSON: invalid keys are changed to valid ones, and values nested in a way
/// that is not allowed become texts.
pub(crate) fn attributes_of(foreign: &Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in foreign.iter().filter(|(_, value)| !value.is_null()) {
        let name = if attributes::is_key(name) { name.clone() } else { key(name) };
        all.entry(name).or_insert_with(|| fitting(value, 0));
    }
    all
}

fn fitting(value: &Value, depth: usize) -> Value {
    match value {
        Value::Array(items) if items.iter().any(|item| item.is_array() || item.is_object()) => json!(value.to_string()),
        Value::Object(_) if depth >= attributes::MAX_DEPTH => json!(value.to_string()),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), fitting(member, depth + 1))).collect()
        }
        other => other.clone(),
    }
}

/// Adds `name`, `first_name` and `last_name` from a whole name, unless they are there.
pub(crate) fn add_names(all: &mut Map<String, Value>, name: &str) {
    let words: Vec<_> = name.split_whitespace().collect();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            all.entry(key).or_insert_with(|| json!(value));
        }
    };
    add("name", name.trim());
    if let [first, rest @ ..] = words.as_slice() {
        add("first_name", first);
        add("last_name", rest.last().copied().unwrap_or_default());
    }
}

/// Returns the body of a contact.
pub(crate) fn body(email: &str, consent: Option<bool>, attributes: Map<String, Value>) -> Map<String, Value> {
    let mut body = Map::from_iter([("email".to_owned(), json!(email))]);
    if let Some(agreed) = consent {
        body.insert("consent".to_owned(), json!({"marketing_email": agreed}));
    }
    if !attributes.is_empty() {
        body.insert("attributes".to_owned(), Value::Object(attributes));
    }
    body
}

/// Converts texts to the types of custom fields if possible; otherwise the API reports the fault.
pub(crate) fn coerce(body: &mut Map<String, Value>, types: &BTreeMap<String, String>) {
    let Some(Value::Object(attributes)) = body.get_mut("attributes") else { return };
    for (key, kind) in types {
        let Some(value) = attributes.get_mut(key) else { continue };
        let Value::String(text) = &value else { continue };
        let typed = match kind.as_str() {
            "number" => serde_json::from_str(text.trim()).ok().filter(Value::is_number),
            "boolean" => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => Some(json!(true)),
                "false" | "0" | "no" => Some(json!(false)),
                _ => None,
            },
            "string_array" => {
                Some(text.split([';', '|', ',']).map(str::trim).filter(|item| !item.is_empty()).collect())
            }
            _ => None,
        };
        if let Some(typed) = typed {
            *value = typed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelled_such_that_they_can_be() {
        for (name, expected) in [
            ("First Name", "first_name"),
            ("What's your size? (EU)", "what_s_your_size_eu"),
            ("2nd address", "_2nd_address"),
            ("Größe", "gr_e"),
            ("名前", "unnamed"),
            ("FAVORITE-COLOR", "favorite_color"),
        ] {
            assert_eq!(key(name), expected);
            assert!(attributes::is_key(&key(name)));
        }
        assert!(attributes::is_key(&key(&"x".repeat(200))));
    }

    #[test]
    fn foreign_attributes_fit_and_own_types_are_met() {
        let foreign = json!({"city": "Oslo", "shoe size": 43, "gone": null, "tags": ["a", 1], "orders": [{"id": 1}],
            "a": {"b": {"c": {"d": {"e": 1}}}}});
        let fitted = attributes_of(foreign.as_object().unwrap());
        let expected = json!({"city": "Oslo", "shoe_size": 43, "tags": ["a", 1], "orders": "[{\"id\":1}]",
            "a": {"b": {"c": {"d": "{\"e\":1}"}}}});
        assert_eq!(Value::Object(fitted), expected);
        let mut names = Map::from_iter([("last_name".to_owned(), json!("X"))]);
        add_names(&mut names, " Ann  Mary Smith ");
        assert_eq!(Value::Object(names), json!({"name": "Ann  Mary Smith", "first_name": "Ann", "last_name": "X"}));
        let types = [("age", "number"), ("vip", "boolean"), ("likes", "string_array"), ("city", "string")];
        let types = types.map(|(key, kind)| (key.to_owned(), kind.to_owned())).into();
        let mut body = json!({"attributes": {"age": "31", "vip": "Yes", "likes": "a; b", "city": "7"}})
            .as_object()
            .unwrap()
            .clone();
        coerce(&mut body, &types);
        assert_eq!(body["attributes"], json!({"age": 31, "vip": true, "likes": ["a", "b"], "city": "7"}));
        let mut wrong = json!({"attributes": {"age": "old", "vip": "maybe"}}).as_object().unwrap().clone();
        coerce(&mut wrong, &types);
        assert_eq!(wrong["attributes"], json!({"age": "old", "vip": "maybe"}));
    }
}
