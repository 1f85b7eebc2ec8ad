//! Schemas of the OpenAPI document: schemas of schemars, changed into the form that OpenAPI tools expect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// The beginning of every `$ref` to a schema of the document.
pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// Makes references to the schemas in `twice`, which differ between requests and answers, point to those for requests,
/// named `…Input`.
pub(super) fn rename(value: &mut Value, twice: &BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => {
                        if target.strip_prefix(SCHEMAS).is_some_and(|name| twice.contains(name)) {
                            target.push_str("Input");
                        }
                    }
                    other => rename(other, twice),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, twice)),
        _ => {}
    }
}

/// Sorts the schemas by name; depending on the features of the build, maps keep the order of insertion.
pub(super) fn sort(schemas: &mut Map<String, Value>) {
    let sorted: BTreeMap<_, _> = std::mem::take(schemas).into_iter().collect();
    schemas.extend(sorted);
}

/// Removes `null` from the types of a value.
pub(super) fn without_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            members.remove("anyOf");
            members.extend(only);
        }
    }
}

/// Writes choices between words as `enum`, because generators of clients make one type of it and several of a `oneOf`.
/// The meaning of each word moves into the description.
pub(super) fn plain_enums(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(words) = members.get("oneOf").and_then(Value::as_array).and_then(|choices| words(choices)) {
                let said = members.remove("description");
                let mut description = said.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
                for (word, meaning) in &words {
                    if !meaning.is_empty() {
                        let _ = write!(description, "\n* `{word}`: {}", meaning.replace('\n', " "));
                    }
                }
                members.remove("oneOf");
                members.insert("type".to_owned(), json!("string"));
                members.insert("enum".to_owned(), words.into_iter().map(|(word, _)| word).collect());
                members.insert("description".to_owned(), json!(description.trim_start()));
            }
            members.values_mut().for_each(plain_enums);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_enums),
        _ => {}
    }
}

/// Declares objects with free members as such: generators of clients take an object without named members for an empty
/// one.
pub(super) fn free_objects(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_object = match members.get("type") {
                Some(Value::String(name)) => name == "object",
                Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
                _ => false,
            };
            let is_described = ["properties", "additionalProperties", "oneOf", "anyOf", "allOf", "$ref"]
                .iter()
                .any(|name| members.contains_key(*name));
            if is_object && !is_described {
                members.insert("additionalProperties".to_owned(), json!(true));
            }
            members.values_mut().for_each(free_objects);
        }
        Value::Array(items) => items.iter_mut().for_each(free_objects),
        _ => {}
    }
}

/// Returns the words of a `oneOf` with their descriptions; `None` unless all choices are words.
fn words(choices: &[Value]) -> Option<Vec<(String, String)>> {
    let mut words = Vec::new();
    for choice in choices {
        let meaning = choice["description"].as_str().unwrap_or_default();
        match (choice["const"].as_str(), choice["enum"].as_array()) {
            (Some(word), _) => words.push((word.to_owned(), meaning.to_owned())),
            (None, Some(several)) => {
                for word in several {
                    words.push((word.as_str()?.to_owned(), meaning.to_owned()));
                }
            }
            (None, None) => return None,
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_never_null() {
        for (schema, expected) in [
            (json!({"type": ["string", "null"], "pattern": "x"}), json!({"type": "string", "pattern": "x"})),
            (json!({"type": ["string", "integer", "null"]}), json!({"type": ["string", "integer"]})),
            (
                json!({"anyOf": [{"$ref": "#/components/schemas/Channel"}, {"type": "null"}], "default": 1}),
                json!({"$ref": "#/components/schemas/Channel", "default": 1}),
            ),
            (json!({"type": "integer"}), json!({"type": "integer"})),
        ] {
            let mut found = schema;
            without_null(&mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn choices_between_words_are_enums() {
        let mut found = json!({"properties": {"kind": {"description": "The kind.", "oneOf": [
            {"const": "a", "type": "string", "description": "First."},
            {"enum": ["b", "c"], "type": "string"},
        ]}}, "oneOf": [{"$ref": "x"}, {"$ref": "y"}]});
        plain_enums(&mut found);
        let kind = json!({"type": "string", "enum": ["a", "b", "c"], "description": "The kind.\n* `a`: First."});
        assert_eq!(found, json!({"properties": {"kind": kind}, "oneOf": [{"$ref": "x"}, {"$ref": "y"}]}));
    }
}
