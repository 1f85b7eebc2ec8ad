//! Generator and test of `operations.js`, `schemas.js` and `providers.js`, by which the console knows the API.
//!
//! They are made from the table of operations, the OpenAPI document and the table of providers. They are checked in, so
//! that the build compresses and names them like the other files of the console; the tests here fail if one differs
//! from its sources. `UPDATE=1 cargo test -p messaging-http --lib console` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, Form, Member};
use messaging_core::scope::{Access, Role};
use messaging_engine::ops;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::openapi;

/// Depth to which members of members get a dotted name: `settings.utm`, but not `settings.utm.source`.
const DEPTH: usize = 1;

/// An operation, as a row of `operations.js`.
#[derive(Serialize)]
struct OperationRow {
    /// HTTP method in upper case.
    method: String,
    path: &'static str,
    /// The command of `messaging` for it, such as `key list`.
    command: &'static str,
    access: RequiredRights,
}

/// Rights that the caller of an operation needs, from its [`Access`]. Where no member is set, any session or API
/// key is enough.
#[derive(Default, Serialize)]
struct RequiredRights {
    /// True if no credentials are needed.
    #[serde(skip_serializing_if = "is_false")]
    public: bool,
    /// Scopes, all of which are needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<&'static str>,
    /// Least role in the workspace that a session needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// True if only operators of the installation may call it.
    #[serde(skip_serializing_if = "is_false")]
    operator: bool,
    /// True if only a session may call it and API keys are refused.
    #[serde(skip_serializing_if = "is_false")]
    session: bool,
}

/// The input of an operation, as a row of `schemas.js`.
#[derive(Serialize)]
struct OperationInput {
    /// Members of the body by their dotted names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    body: BTreeMap<String, MemberFacts>,
    /// Parameters of the query whose values are a choice of words; others are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    query: BTreeMap<String, MemberFacts>,
}

/// Facts about a member that a form needs to offer and check a control for it: keywords of its JSON Schema.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemberFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    r#enum: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    /// The facts about each item, if the member is an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<MemberFacts>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The text of `operations.js`.
fn operations() -> String {
    let row = |endpoint: &ops::Endpoint| OperationRow {
        method: (endpoint.method)().as_str().to_owned(),
        path: endpoint.path,
        command: endpoint.cli,
        access: needed(endpoint.access),
    };
    let rows = ops::all().iter().map(|endpoint| (endpoint.id.to_owned(), row(endpoint)));
    module("Every operation of the API, by its id.", "operations", rows)
}

/// The rights in the form in which the console reads them.
fn needed(access: Access) -> RequiredRights {
    let nothing = RequiredRights::default();
    match access {
        Access::Public => RequiredRights { public: true, ..nothing },
        Access::AnyCredential => nothing,
        Access::Scope(scope) => RequiredRights { scopes: vec![scope.as_str()], ..nothing },
        Access::Scopes(first, second) => RequiredRights { scopes: vec![first.as_str(), second.as_str()], ..nothing },
        Access::Session => RequiredRights { session: true, ..nothing },
        Access::SessionRole(role) => RequiredRights { session: true, role: Some(role), ..nothing },
        Access::Operator => RequiredRights { session: true, operator: true, ..nothing },
        // An API key with the scope `*` may call it as well; the console only has sessions, so the role is enough.
        Access::Administration | Access::ScopeOrAdmin(_) => RequiredRights { role: Some(Role::Admin), ..nothing },
    }
}

/// The text of `schemas.js`. An operation that takes neither a JSON body nor a choice in its query has no row.
fn schemas() -> String {
    let document = openapi::document();
    let inputs = ops::all().iter().filter_map(|endpoint| {
        let method = (endpoint.method)().as_str().to_lowercase();
        let operation = &document["paths"][endpoint.path][&method];
        let mut body = BTreeMap::new();
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        add_members(&mut body, "", DEPTH, schema, &document);
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let query: BTreeMap<_, _> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| {
                let schema = resolved(&parameter["schema"], &document);
                // A parameter that takes several words is an array; the console lets people choose one of them.
                let schema = schema.get("items").map(|items| resolved(items, &document)).unwrap_or(schema);
                let facts = facts(&schema, false, &document);
                (!facts.r#enum.is_empty()).then(|| Some((parameter["name"].as_str()?.to_owned(), facts)))?
            })
            .collect();
        let is_free = body.is_empty() && query.is_empty();
        (!is_free).then(|| (endpoint.id.to_owned(), OperationInput { body, query }))
    });
    module("What can be given to operations: members of bodies by their dotted names, and choices.", "schemas", inputs)
}

/// Adds the facts about the members of an object under their dotted names, and about members of these down to
/// `depth` levels.
fn add_members(
    members: &mut BTreeMap<String, MemberFacts>,
    prefix: &str,
    depth: usize,
    schema: &Value,
    document: &Value,
) {
    let schema = resolved(schema, document);
    let required: Vec<_> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let resolved = resolved(member, document);
        members.insert(path.clone(), facts(&resolved, required.contains(&name.as_str()), document));
        if depth > 0 {
            add_members(members, &format!("{path}."), depth - 1, member, document);
        }
    }
}

/// The members of a schema with those of the schemas that it refers to, where `anyOf` offers one choice besides null.
///
/// Null is dropped because an empty control in a form means it.
fn resolved(schema: &Value, document: &Value) -> Map<String, Value> {
    let mut members = schema.as_object().cloned().unwrap_or_default();
    loop {
        let target = match members.remove("$ref") {
            Some(reference) => {
                let pointer = reference.as_str().unwrap_or_default().trim_start_matches('#').to_owned();
                document.pointer(&pointer).cloned().unwrap_or_default()
            }
            None => match members.get("anyOf").and_then(Value::as_array) {
                Some(choices) => {
                    let mut choices = choices.iter().filter(|choice| choice["type"] != "null");
                    let (Some(only), None) = (choices.next().cloned(), choices.next()) else { return members };
                    members.remove("anyOf");
                    only
                }
                None => return members,
            },
        };
        for (name, value) in target.as_object().into_iter().flatten() {
            // A keyword beside the reference, such as the description, is more exact than that of the referenced type.
            members.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// The facts about a member, from its resolved schema.
fn facts(schema: &Map<String, Value>, required: bool, document: &Value) -> MemberFacts {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let number = |name: &str| schema.get(name).and_then(Value::as_u64);
    let words = |name: &str| {
        let words = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let types: Vec<_> = words("type").into_iter().chain(text("type")).filter(|name| name != "null").collect();
    // Formats of numbers, such as `uint32`, tell how a program stores them, which is of no use in a form.
    let format = text("format").filter(|_| types.iter().all(|name| name == "string"));
    let items = schema.get("items").map(|items| Box::new(facts(&resolved(items, document), false, document)));
    MemberFacts {
        r#type: match types.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
        required,
        r#enum: words("enum"),
        format,
        min_length: number("minLength"),
        max_length: number("maxLength"),
        minimum: schema.get("minimum").and_then(Value::as_i64),
        maximum: schema.get("maximum").and_then(Value::as_i64),
        min_items: number("minItems"),
        max_items: number("maxItems"),
        items,
    }
}

/// The text of a JavaScript module that exports `rows` as one constant object. Each row is on a separate line, so that
/// diffs are short. `about` becomes the first comment.
fn module<T: Serialize>(about: &str, name: &str, rows: impl Iterator<Item = (String, T)>) -> String {
    let mut text = format!("// {about}\n// Made by messaging-http/src/console/operations.rs; not to be edited.\n");
    let _ = writeln!(text, "export const {name} = {{");
    for (id, row) in rows {
        let _ = writeln!(text, "{id}:{},", as_script(&serde_json::to_string(&row).unwrap()));
    }
    text.push_str("};\n");
    text
}

/// JSON with the names of members as scripts write them, which is shorter: without quotes where a name is an identifier.
fn as_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    // A name begins with a quote after `{` or `,` and ends with `":`. Quotes within a text stand after a backslash.
    while let Some(at) = rest.find(['{', ',']) {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        rest = after;
        let name = after.strip_prefix('"').and_then(|name| name.split_once("\":")).map(|(name, _)| name);
        if let Some(name) = name.filter(|name| is_identifier(name)) {
            text.push_str(name);
            text.push(':');
            rest = &after[name.len() + 3..];
        }
    }
    text + rest
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Fails if `made` differs from the checked-in file of the console; under `UPDATE` writes it instead.
fn assert_checked_in(file: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(file);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let difference = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "console/{file} is not what the operations say (first difference: {difference:?}); run \
         `UPDATE=1 cargo test -p messaging-http --lib console` and look at the diff"
    );
}

/// A setting of a provider, as the console asks for it.
#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    /// Kind of control: `textarea`, `select`, or a `type` of the HTML element `input`.
    kind: &'static str,
    help: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    options: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    maxlength: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'a Value>,
    #[serde(skip_serializing_if = "is_false")]
    required: bool,
    #[serde(skip_serializing_if = "is_false")]
    secret: bool,
    #[serde(skip_serializing_if = "is_false")]
    /// True if the server makes the value itself, so that forms have no field for it.
    made: bool,
}

impl<'a> Setting<'a> {
    /// The setting as a field of a form; `None` for a secret that the server makes itself, which users neither enter
    /// nor see, and for `routes`, which holds the settings of other providers.
    fn of(member: &'a Member) -> Option<Self> {
        let secret = member.is_secret();
        let (field, options): (_, &[_]) = match member.form {
            Form::Routes => return None,
            Form::Pem | Form::Document => ("textarea", &[]),
            Form::Port | Form::Rate => ("number", &[]),
            Form::Flag => ("checkbox", &[]),
            Form::Tls => ("select", &["starttls", "tls", "none"]),
            Form::OneOf(words) => ("select", words),
            _ if secret => ("password", &[]),
            _ => ("text", &[]),
        };
        let maxlength = if let Form::TextUpTo(most) = member.form { Some(most) } else { None };
        member.is_shown().then(|| Self {
            name: &member.name,
            kind: field,
            help: &member.meaning,
            options,
            maxlength,
            default: member.default.as_ref(),
            required: member.required,
            secret,
            made: member.is_made_by_us,
        })
    }
}

/// The text of `providers.js`: the providers of each channel with their settings, the default provider first.
fn providers() -> String {
    let rows = Channel::ALL.into_iter().map(|channel| {
        let kinds: Vec<(&str, Vec<Setting<'_>>)> = provider::all()
            .iter()
            .filter(|kind| kind.channel == channel)
            .map(|kind| (kind.name.as_str(), kind.members.iter().filter_map(Setting::of).collect()))
            .collect();
        (channel.to_string(), kinds)
    });
    module("The providers of each channel with their settings, the usual one first.", "providers", rows)
}

#[test]
fn only_names_of_members_lose_their_quotes() {
    let json = r#"{"a":{"b_c":"x,\"y\":1,","d.e":[{"f":"{"}],"2":["g","h,"]}}"#;
    assert_eq!(as_script(json), r#"{a:{b_c:"x,\"y\":1,","d.e":[{f:"{"}],"2":["g","h,"]}}"#);
}

#[test]
fn the_checked_in_providers_are_those_of_the_table() {
    assert_checked_in("providers.js", &providers());
}

#[test]
fn the_checked_in_operations_are_those_of_the_table() {
    assert_checked_in("operations.js", &operations());
}

#[test]
fn the_checked_in_schemas_are_those_of_the_api() {
    assert_checked_in("schemas.js", &schemas());
}

#[test]
fn members_of_members_have_dotted_names() {
    let document = openapi::document();
    let body = |path: &str, method: &str| {
        let mut members = BTreeMap::new();
        let schema = &document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"];
        add_members(&mut members, "", DEPTH, schema, &document);
        members
    };
    let template = body("/workspaces/{workspace_id}/templates", "post");
    assert_eq!((template["name"].required, template["name"].max_length), (true, Some(200)));
    assert!(template["channel"].r#enum.contains(&"viber".to_owned()));
    assert_eq!(template["subject"].r#type.as_deref(), Some("string"));
    let campaign = body("/workspaces/{workspace_id}/campaigns", "post");
    assert_eq!(campaign["audience.list_ids"].r#type.as_deref(), Some("array"));
    assert!(!campaign.keys().any(|name| name.split('.').count() > 2));
}
