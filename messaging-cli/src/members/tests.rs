use serde_json::json;

use super::*;

/// Checks the kind of a property whose schema may refer to some definitions.
#[track_caller]
fn check(property: Value, expected: &Kind) {
    let definitions = json!({
        "Word": {"type": "string", "enum": ["a", "b"]},
        "Documented": {"oneOf": [{"const": "a", "description": "A."}, {"type": "string", "enum": ["b", "c"]}]},
        "Id": {"type": "string", "pattern": "^wsp_"},
        "Deep": {"$ref": "#/$defs/Id"},
        "Loop": {"$ref": "#/$defs/Loop"},
    });
    let Value::Object(definitions) = definitions else { unreachable!() };
    let schemas = Schemas { root: json!({"properties": {"x": property}}), definitions };
    let members = schemas.members();
    assert_eq!(members[0].kind, *expected, "{}", schemas.root);
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn scalars() {
    check(json!({"type": "string"}), &Kind::Text);
    check(json!({"type": ["string", "null"], "format": "date-time"}), &Kind::Time);
    check(json!({"type": ["integer", "null"]}), &Kind::Number { whole: true });
    check(json!({"type": "number"}), &Kind::Number { whole: false });
    check(json!({"type": "boolean"}), &Kind::Boolean);
}

#[test]
fn references_and_nullable_wrappers_are_followed() {
    check(json!({"$ref": "#/$defs/Deep"}), &Kind::Text);
    check(json!({"anyOf": [{"$ref": "#/$defs/Id"}, {"type": "null"}]}), &Kind::Text);
    check(json!({"allOf": [{"$ref": "#/$defs/Word"}], "description": "x"}), &Kind::Choice(words(&["a", "b"])));
    check(json!({"$ref": "#/$defs/Documented"}), &Kind::Choice(words(&["a", "b", "c"])));
    check(json!({"type": ["string", "null"], "enum": ["a", null]}), &Kind::Choice(words(&["a"])));
    check(json!({"$ref": "#/$defs/Loop"}), &Kind::Json);
    check(json!({"$ref": "#/$defs/Missing"}), &Kind::Json);
}

#[test]
fn what_takes_null_is_known() {
    let nullable = |property: Value| {
        let schemas = Schemas { root: json!({"properties": {"x": property}}), definitions: Map::new() };
        schemas.members()[0].nullable
    };
    assert!(nullable(json!({"type": ["string", "null"]})));
    assert!(nullable(json!({"anyOf": [{"$ref": "#/$defs/Id"}, {"type": "null"}]})));
    assert!(!nullable(json!({"type": "string"})));
    assert!(!nullable(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})));
}

#[test]
fn lists() {
    check(json!({"type": "array", "items": {"type": "string"}}), &Kind::Texts);
    check(json!({"type": ["array", "null"], "items": {"$ref": "#/$defs/Word"}}), &Kind::Choices(words(&["a", "b"])));
    check(json!({"type": "array", "items": {"type": "integer"}}), &Kind::Json);
    check(json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}), &Kind::Json);
}

#[test]
fn everything_else_is_json() {
    check(json!({"type": "object"}), &Kind::Json);
    check(json!(true), &Kind::Json);
    check(json!({"type": ["string", "number"]}), &Kind::Json);
    check(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), &Kind::Json);
}

#[test]
fn help_default_and_need() {
    let root = json!({"required": ["x"], "properties": {
        "x": {"type": "string", "description": "First line\nof it.\n\nMore."},
        "y": {"type": "integer", "default": 600},
        "z": {"type": "array", "default": []},
    }});
    let members = Schemas { root, definitions: Map::new() }.members();
    assert_eq!(members[0].help.as_deref(), Some("First line of it"));
    assert!(members[0].required && !members[1].required);
    assert_eq!(members[1].default.as_deref(), Some("600"));
    assert_eq!(members[2].default, None);
}
