//! The members of an operation's path, query or body as flags: read from their JSON Schema.

use messaging_engine::ops::Endpoint;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// Number of `$ref` and nullable wrappers that are followed, at most.
const MAX_DEPTH: usize = 8;

/// Member of the path, the query or the body of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name in the path, query or body.
    pub(crate) name: String,
    /// The type of its value, which decides how its flag is read.
    pub(crate) kind: Kind,
    /// True if the API refuses a request without it.
    pub(crate) required: bool,
    /// True if the API takes null as its value.
    pub(crate) nullable: bool,
    /// Its description.
    pub(crate) help: Option<String>,
    /// Value that the API assumes if the member is left out.
    pub(crate) default: Option<String>,
}

/// Type of a member's value, as its flag reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string.
    Text,
    /// A string in RFC 3339 form.
    Time,
    /// One of these strings.
    Choice(Vec<String>),
    /// A number; with `whole` an integer.
    Number {
        /// True if the number has no fraction.
        whole: bool,
    },
    /// A boolean.
    Boolean,
    /// A list of strings.
    Texts,
    /// A list of some of these strings.
    Choices(Vec<String>),
    /// Anything else: given as JSON.
    Json,
}

/// Returns the members of the path, in its order, without the workspace that a command works in.
pub(crate) fn of_path(endpoint: &Endpoint) -> Vec<Member> {
    let schema = Schemas::new(endpoint.path_schema);
    let known = schema.members();
    let names = endpoint.path.split(['{', '}']).skip(1).step_by(2);
    names
        .filter(|name| *name != "workspace_id" || !endpoint.is_in_workspace())
        .map(|name| {
            known.iter().find(|member| member.name == name).cloned().unwrap_or_else(|| Member {
                name: name.to_owned(),
                kind: Kind::Text,
                required: true,
                nullable: false,
                help: None,
                default: None,
            })
        })
        .collect()
}

/// Returns the members of the query.
pub(crate) fn of_query(endpoint: &Endpoint) -> Vec<Member> {
    Schemas::new(endpoint.query_schema).members()
}

/// Returns the members of a JSON body, required ones first.
pub(crate) fn of_body(endpoint: &Endpoint) -> Vec<Member> {
    if !endpoint.body.is_json() {
        return Vec::new();
    }
    let mut members = Schemas::new(endpoint.body_schema).members();
    members.sort_by_key(|member| !member.required);
    members
}

/// A schema and the definitions that it refers to.
pub(crate) struct Schemas {
    root: Value,
    definitions: Map<String, Value>,
}

impl Schemas {
    /// Generates a schema with its definitions.
    pub(crate) fn new(schema: fn(&mut SchemaGenerator) -> schemars::Schema) -> Self {
        let mut generator = SchemaGenerator::default();
        let root = schema(&mut generator).to_value();
        let mut definitions = generator.take_definitions(true);
        if let Some(Value::Object(more)) = root.get("$defs") {
            definitions.extend(more.clone());
        }
        Self { root, definitions }
    }

    fn members(&self) -> Vec<Member> {
        let root = self.resolve(&self.root, 0);
        let required: Vec<_> = root["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect();
        let properties = root["properties"].as_object();
        properties
            .into_iter()
            .flatten()
            .map(|(name, property)| Member {
                name: name.clone(),
                kind: self.kind(property, 0),
                required: required.contains(name),
                nullable: is_nullable(property),
                help: self.description(property),
                default: shown_default(&property["default"]),
            })
            .collect()
    }

    /// Returns the schema itself.
    pub(crate) const fn root(&self) -> &Value {
        &self.root
    }

    /// Follows references, and leaves out the `null` of a nullable member.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value, depth: usize) -> &'a Value {
        if depth > MAX_DEPTH {
            return schema;
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            return self.definitions.get(name).map_or(schema, |definition| self.resolve(definition, depth + 1));
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            let Some(choices) = schema[word].as_array() else { continue };
            let mut solid = choices.iter().filter(|choice| choice["type"] != "null");
            if let (Some(only), None) = (solid.next(), solid.next()) {
                return self.resolve(only, depth + 1);
            }
        }
        schema
    }

    fn kind(&self, schema: &Value, depth: usize) -> Kind {
        let schema = self.resolve(schema, 0);
        if let Some(choices) = choices(schema) {
            return Kind::Choice(choices);
        }
        match type_of(schema) {
            Some("string") if schema["format"] == "date-time" => Kind::Time,
            Some("string") => Kind::Text,
            Some("integer") => Kind::Number { whole: true },
            Some("number") => Kind::Number { whole: false },
            Some("boolean") => Kind::Boolean,
            Some("array") if depth == 0 => match self.kind(&schema["items"], 1) {
                Kind::Text | Kind::Time => Kind::Texts,
                Kind::Choice(choices) => Kind::Choices(choices),
                _ => Kind::Json,
            },
            _ => Kind::Json,
        }
    }

    fn description(&self, property: &Value) -> Option<String> {
        let text = property["description"].as_str().or_else(|| self.resolve(property, 0)["description"].as_str())?;
        // The doc comment's first paragraph, on one line.
        let paragraph = text.split("\n\n").next()?.split_whitespace().collect::<Vec<_>>().join(" ");
        // As clap does with doc comments: a sentence on its own has no full stop.
        let text = paragraph.strip_suffix('.').unwrap_or(&paragraph);
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }
}

/// Returns true if a schema allows null: by its types, or as one of several schemas.
fn is_nullable(schema: &Value) -> bool {
    let is_null = |value: &Value| value == "null" || value["type"] == "null";
    ["type", "anyOf", "oneOf"].iter().any(|word| schema[word].as_array().is_some_and(|all| all.iter().any(is_null)))
}

/// Returns the type of a schema, apart from `null`; `None` if it has several or none.
fn type_of(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(only) => Some(only),
        Value::Array(several) => {
            let mut solid = several.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            solid.next().filter(|_| solid.next().is_none())
        }
        _ => None,
    }
}

/// Returns the strings of an enumeration: `enum`, `const`, or a `oneOf` of those (documented variants); `None` for
/// another schema.
fn choices(schema: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|value| !value.is_null()).map(text).collect();
    }
    if let Some(value) = schema.get("const") {
        return text(value).map(|only| vec![only]);
    }
    let mut all = Vec::new();
    for choice in schema["oneOf"].as_array()? {
        if choice["type"] != "null" {
            all.extend(choices(choice)?);
        }
    }
    Some(all).filter(|all| !all.is_empty())
}

fn shown_default(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
