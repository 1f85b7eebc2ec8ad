//! Schemas as rows of a table.

use std::collections::BTreeSet;

use serde_json::Value;

/// Depth to which members are shown; recursion would never end.
const MAX_DEPTH: usize = 6;

/// A member of a body.
pub(super) struct Member {
    /// Its name after those of its parents: `audience.list_ids`, `events[].name`.
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) about: String,
}

/// The members of a schema: required ones first, then those that an example has in its order, then the others by name.
pub(super) fn members(document: &Value, schema: &Value, example: &str) -> Vec<Member> {
    let mut rows = Vec::new();
    collect(&mut rows, document, schema, example, "", 0);
    rows
}

fn collect(rows: &mut Vec<Member>, document: &Value, schema: &Value, example: &str, above: &str, depth: usize) {
    let schema = unwrap_list(document, schema);
    let Some(properties) = schema["properties"].as_object().filter(|_| depth < MAX_DEPTH) else { return };
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut names: Vec<_> = required.iter().copied().filter(|name| properties.contains_key(*name)).collect();
    let known: BTreeSet<_> = names.iter().copied().collect();
    let mut others: Vec<_> = properties.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
    others.sort_by_key(|name| example.find(&format!("\"{name}\":")).unwrap_or(usize::MAX));
    names.extend(others);
    for name in names {
        let member = &properties[name];
        let resolved = resolve(document, member);
        let about = member["description"].as_str().or_else(|| resolved["description"].as_str()).unwrap_or_default();
        let list = if is_list(document, member) { "[]" } else { "" };
        let path = format!("{above}{name}");
        let inside = format!("{path}{list}.");
        rows.push(Member {
            path,
            kind: kind(document, member),
            is_required: required.contains(&name),
            about: about.split("\n\n").next().unwrap_or_default().replace('\n', " "),
        });
        collect(rows, document, member, example, &inside, depth + 1);
    }
}

/// Returns true if a schema is that of a list, perhaps a nullable one.
fn is_list(document: &Value, schema: &Value) -> bool {
    let schema = resolve(document, schema);
    schema.get("items").is_some()
        || one_of(schema).is_some_and(|choices| choices.len() == 1 && is_list(document, choices[0]))
}

/// The schema whose members are shown: that of an item for a list, the other one of a nullable.
fn unwrap_list<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolve(document, schema);
    if let Some(items) = schema.get("items") {
        return unwrap_list(document, items);
    }
    match one_of(schema) {
        Some(choices) if choices.len() == 1 => unwrap_list(document, choices[0]),
        _ => schema,
    }
}

/// The choices of an `anyOf` or `oneOf`, null aside.
fn one_of(schema: &Value) -> Option<Vec<&Value>> {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    Some(choices.iter().filter(|choice| choice["type"] != "null").collect())
}

/// A schema in a word or two.
pub(super) fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().map(short).collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return short(only);
    }
    if let Some(choices) = one_of(schema) {
        let mut kinds: Vec<_> = choices.iter().map(|choice| kind(document, choice)).collect();
        kinds.dedup();
        return kinds.join(" | ");
    }
    let names: Vec<_> = match &schema["type"] {
        Value::String(only) => vec![only.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any"],
    };
    let names = names.into_iter().map(|name| match (name, schema["format"].as_str()) {
        ("array", _) => format!("[{}]", kind(document, &schema["items"])),
        ("string", Some(format)) => format.to_owned(),
        (name, _) => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(" | ")
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

pub(super) fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?)) {
        Some(target) => target,
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_come_in_the_order_that_matters() {
        let document = json!({"components": {"schemas": {"Item": {
            "type": "object", "required": ["z"], "properties": {"a": {"type": "integer"}, "z": {"type": "string"}},
        }}}});
        let schema = json!({
            "required": ["to"],
            "properties": {
                "bcc": {"type": "string"},
                "items": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Item"}},
                "subject": {"type": "string"},
                "to": {"type": "string"},
            },
        });
        let rows = members(&document, &schema, r#"{"to": "x", "subject": "y"}"#);
        let paths: Vec<_> = rows.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["to", "subject", "bcc", "items", "items[].z", "items[].a"]);
        assert!(rows[0].is_required && !rows[1].is_required);
    }
}
