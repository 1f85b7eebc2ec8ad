//! `--example`: a body to begin with, made from the JSON Schema of the operation's body.
//!
//! Required members are always present. Where the schema does not say which values make sense together (a graph, a
//! filter), the body is written by hand; a test sends all bodies through the checks of their operations.

use std::ffi::OsString;

use clap::Command;
use messaging_engine::ops::Endpoint;
use serde_json::{Map, Value, json};

use crate::command::operation;
use crate::members::Schemas;

/// Maximum number of levels of nesting in an example.
const MAX_DEPTH: usize = 6;

/// The part of an id that follows its prefix, such as `tpl_`.
const ULID: &str = "01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

/// Returns the operation whose example a command line requests; `None` without `--example`, or if the operation has no
/// JSON body.
pub(crate) fn requested_endpoint(root: &Command, line: &[OsString]) -> Option<&'static Endpoint> {
    let before = line.iter().skip(1).take_while(|word| *word != "--");
    if !before.clone().any(|word| word == "--example") {
        return None;
    }
    let (mut command, mut words) = (root, Vec::new());
    for word in before.filter_map(|word| word.to_str()) {
        if let Some(next) = command.find_subcommand(word) {
            command = next;
            words.push(next.get_name());
        }
    }
    operation::endpoint(&words).filter(|endpoint| endpoint.body.is_json())
}

/// Returns an example of an operation's body.
pub(crate) fn example_body(endpoint: &Endpoint) -> Value {
    by_hand(endpoint.id).unwrap_or_else(|| {
        let schemas = Schemas::new(endpoint.body_schema);
        value(&schemas, schemas.root(), "", 0)
    })
}

/// Returns the example written by hand for an operation whose schema does not suffice to make one; `None` for others.
fn by_hand(id: &str) -> Option<Value> {
    let graph = || {
        json!({"nodes": [
            {"id": "hello", "kind": "send", "config": {"template_id": format!("tpl_{ULID}")}},
            {"id": "done", "kind": "exit"},
        ], "edges": [{"from": "hello", "to": "done"}]})
    };
    let filter = || json!({"type": "contact", "field": "email", "op": "contains", "value": "@example.com"});
    Some(match id {
        "sendMessage" => json!({"channel": "email", "to": "ann@example.com", "subject": "Order 17", "text": "Thanks"}),
        "sendEvent" => {
            json!({"name": "order_placed", "contact": {"email": "ann@example.com"}, "properties": {"total": 42.5}})
        }
        "sendEvents" => json!({"events": [{"name": "order_placed", "contact": {"email": "ann@example.com"}}]}),
        "upsertContact" | "updateContact" => json!({"email": "ann@example.com", "locale": "en", "tags": ["customer"],
            "attributes": {"city": "Berlin"}, "consent": {"marketing_email": true}}),
        "bulkUpsertContacts" => json!({"contacts": [{"email": "ann@example.com", "tags": ["customer"]}]}),
        "createList" | "updateList" => json!({"name": "News"}),
        "createSegment" => json!({"name": "Customers", "filter": filter()}),
        "previewSegment" => json!({"filter": filter()}),
        "updateSegment" => json!({"name": "Customers"}),
        "createTemplate" | "updateTemplate" => {
            json!({"name": "welcome", "channel": "email", "subject": "Hello {{ contact.attributes.name }}",
            "html": "<p>Welcome.</p>", "text": "Welcome."})
        }
        "createAutomation" => {
            json!({"name": "Welcome", "trigger": {"kind": "manual"}, "graph": graph(), "re_entry": "never"})
        }
        "updateAutomation" => json!({"name": "Welcome", "graph": graph()}),
        "simulateAutomation" => {
            json!({"contact": {"email": "ann@example.com"}, "trigger": {"kind": "manual"}, "graph": graph(),
            "until": "2030-02-28T09:15:00Z"})
        }
        "triggerAutomation" => json!({"contact_id": format!("con_{ULID}"), "variables": {"order": 17}}),
        "createCampaign" => json!({"name": "Spring", "channel": "email", "template_id": format!("tpl_{ULID}"),
            "audience": {"list_ids": [format!("lst_{ULID}")]}}),
        "updateCampaign" => json!({"name": "Spring", "from_name": "Acme"}),
        "previewAudience" => json!({"channel": "email", "audience": {"list_ids": [format!("lst_{ULID}")]}}),
        "scheduleCampaign" => json!({"at": "2030-01-31T09:15:00Z"}),
        "setChannel" => {
            json!({"provider": "smtp", "config": {"host": "smtp.example.com", "port": 587, "username": "acme",
            "password": "secret", "tls": "starttls"}})
        }
        "createWebhook" => json!({"url": "https://example.com/hook", "events": ["delivered", "bounce"]}),
        "updateWebhook" => json!({"events": ["*"]}),
        "testWebhook" => json!({"event_type": "delivered"}),
        "updateForm" => json!({"name": "Newsletter", "allowed_origins": ["https://www.example.com"]}),
        "createIpPool" => json!({"name": "main", "ips": ["192.0.2.10"]}),
        "configureDns" => json!({"provider": "cloudflare", "credentials": {"api_token": "token-of-the-zone"}}),
        "createApiKey" => json!({"name": "backend", "scopes": ["messages:send"]}),
        "setPassword" => json!({"current": "the one until now", "password": "a battery staple"}),
        "createFactor" => json!({"kind": "totp", "name": "Phone"}),
        "beginPasskeyLogin" => json!({"cookie": true}),
        "confirmFactor" | "deleteFactor" | "createRecoveryCodes" => json!({"code": "123456"}),
        "loginWithFactor" => json!({"token": "mf_…", "code": "123456"}),
        "confirmSignOn" => json!({"ticket": "sealed:1:…", "password": "a battery staple"}),
        "redeemTicket" => json!({"ticket": "mt_…", "password": "a battery staple"}),
        _ => return None,
    })
}

/// Returns a value that fits a schema, for a member called `name`, which is `depth` levels below the whole body.
fn value(schemas: &Schemas, schema: &Value, name: &str, depth: usize) -> Value {
    let schema = schemas.resolve(schema, 0);
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.iter().find(|one| !one.is_null())) {
        return first.clone();
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(first) = schema[word].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null")) {
            return value(schemas, first, name, depth + 1);
        }
    }
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    let kind = match &schema["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        only => only.as_str(),
    };
    match kind {
        Some("object") => object(schemas, schema, depth),
        Some("array") => json!([value(schemas, &schema["items"], name.strip_suffix('s').unwrap_or(name), depth + 1)]),
        Some("integer") => schema.get("minimum").filter(|least| least.as_i64() > Some(0)).cloned().unwrap_or(json!(1)),
        Some("number") => json!(1),
        Some("boolean") => json!(true),
        Some("string") => text(schema, name).into(),
        _ => json!({}),
    }
}

/// Returns an object with its required members. A body that requires none gets its first member that is no object,
/// because an empty example would show nothing.
fn object(schemas: &Schemas, schema: &Value, depth: usize) -> Value {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members: Map<String, Value> = properties
        .iter()
        .filter(|(name, _)| required.contains(&name.as_str()))
        .map(|(name, member)| (name.clone(), value(schemas, member, name, depth + 1)))
        .collect();
    if members.is_empty() && depth == 0 {
        let made = properties.iter().map(|(name, member)| (name.clone(), value(schemas, member, name, depth + 1)));
        members.extend(made.filter(|(_, value)| !value.is_object() && !value.is_null()).take(1));
    }
    Value::Object(members)
}

/// Returns a text for a member, by its schema (an id or a time) or its name.
fn text(schema: &Value, name: &str) -> String {
    if let Some(prefix) = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')?.split('_').next())
        && prefix.len() == 3
    {
        return format!("{prefix}_{ULID}");
    }
    if schema["format"] == "date-time" {
        return "2030-01-31T09:15:00Z".to_owned();
    }
    let known = match name {
        "email" | "to" | "address" => "ann@example.com",
        "password" => "a battery staple",
        "url" => "https://example.com/page",
        "domain" => "example.com",
        "tracking_subdomain" => "links",
        "timezone" => "Europe/Berlin",
        "key" => "city",
        "sha256" => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "filename" => "contacts.csv",
        "html" => "<p>Hello</p>",
        "subject" => "Hello",
        "contact_id" | "primary_id" => return format!("con_{ULID}"),
        "duplicate_id" => "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ",
        "list_id" => return format!("lst_{ULID}"),
        "name" => "order_placed",
        _ => "text",
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::automation::Design;
    use messaging_engine::ops;

    use super::*;

    #[test]
    fn every_example_is_taken_by_its_operation() {
        let mut wrong = Vec::new();
        for endpoint in ops::all().iter().filter(|endpoint| endpoint.body.is_json()) {
            let example = example_body(endpoint);
            let is_empty = example.as_object().is_none_or(Map::is_empty);
            match (endpoint.check_body)(example.to_string().as_bytes()) {
                Ok(()) if !is_empty => {}
                judged => wrong.push(format!("{}: {example} {:?}", endpoint.id, judged.err())),
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn every_graph_is_complete() {
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let mut graphs = 0;
        for endpoint in ops::all().iter().filter(|endpoint| endpoint.body.is_json()) {
            let example = example_body(endpoint);
            let Some(graph) = example.get("graph").map(object) else { continue };
            let trigger = example.get("trigger").map_or_else(|| object(&json!({"kind": "manual"})), object);
            let design = Design { trigger, graph, ..Design::default() };
            let faults = design.parse().err();
            assert!(faults.is_none(), "{}: {example} {faults:?}", endpoint.id);
            graphs += 1;
        }
        assert_eq!(graphs, 3);
    }

    #[test]
    fn what_is_written_by_hand_is_of_an_operation() {
        let ids: Vec<_> = ops::all().iter().map(|endpoint| endpoint.id).collect();
        let source = include_str!("example.rs");
        let hand = source.split("fn by_hand").nth(1).unwrap().split("_ => return None").next().unwrap();
        for line in hand.lines().filter(|line| line.contains(" => json!(")) {
            for id in line.split(" => ").next().unwrap().split(" | ") {
                assert!(ids.contains(&id.trim().trim_matches('"')), "{id}");
            }
        }
    }
}
