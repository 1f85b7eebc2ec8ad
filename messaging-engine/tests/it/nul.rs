//! Contract section 1.1: no accepted text holds U+0000, wherever it stands. Some stores cannot keep such a text.

use http::Method;
use messaging_core::scope::Access;
use messaging_core::violation::{At, Violations};
use messaging_engine::Error;
use messaging_engine::caller::Caller;
use messaging_engine::ops::{self, BodyKind, Endpoint};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::bed::{Bed, Call};
use crate::unknown_members::{body_schema, resolved, with_body};

/// Function that puts the value of a member into a body.
type Wrap<'a> = dyn Fn(Value) -> Value + 'a;

/// Visits every place of a body where a text may stand, with the pointer of the error and a body with U+0000 there.
fn places(root: &Value, schema: &Value, pointer: &str, wrap: &Wrap<'_>, visit: &mut dyn FnMut(&str, Value)) {
    if schema["x-judged-alone"] == true {
        return;
    }
    let schema = resolved(root, schema);
    let is = |kind: &str| {
        let kinds = &schema["type"];
        kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    let is_enumeration = ["enum", "const", "oneOf"].iter().any(|word| schema.get(word).is_some());
    if is("string") || is_enumeration {
        visit(pointer, wrap(json!("a\0")));
    } else if let Some(members) = schema["properties"].as_object() {
        for (name, member) in members {
            let outer = |value: Value| wrap(json!({ name.as_str(): value }));
            places(root, member, &format!("{pointer}/{name}"), &outer, visit);
        }
    } else if schema.get("items").is_some() {
        let outer = |value: Value| wrap(json!([value]));
        places(root, &schema["items"], &format!("{pointer}/0"), &outer, visit);
    } else if schema["additionalProperties"].is_object() {
        visit(pointer, wrap(json!({ "a\0": "x" })));
        let outer = |value: Value| wrap(json!({ "a": value }));
        places(root, &schema["additionalProperties"], &format!("{pointer}/a"), &outer, visit);
    } else if is("object") || schema.as_bool() == Some(true) || schema.get("type").is_none() {
        // Data of any form.
        visit(pointer, wrap(json!({ "a\0": "x" })));
        visit(&format!("{pointer}/a"), wrap(json!({ "a": "\0" })));
        visit(&format!("{pointer}/a/0/b"), wrap(json!({ "a": [{ "b": "x\0y" }] })));
        visit(&format!("{pointer}/a"), wrap(json!({ "a": { "b\0": 1 } })));
    }
}

fn has_fault_at(found: &Violations, pointer: &str) -> bool {
    found.as_slice().iter().any(|fault| fault.at == At::Pointer(pointer.to_owned()))
}

#[test]
fn every_text_of_every_body_is_refused_where_it_stands() {
    let mut tried = 0;
    for endpoint in with_body() {
        let root = body_schema(endpoint);
        places(&root, &root, "", &|value| value, &mut |pointer, body| {
            let text = body.to_string();
            assert!(text.contains(r"\u0000"), "{endpoint:?} {text}");
            let Err(Error::Validation(found)) = (endpoint.check_body)(text.as_bytes()) else {
                panic!("{endpoint:?} takes {text}");
            };
            assert!(has_fault_at(&found, pointer), "{endpoint:?} {text}: {found:?}");
            tried += 1;
        });
    }
    assert!(tried >= 120, "{tried}");
}

/// Items of bulk requests are checked one by one.
#[tokio::test]
async fn items_of_bulk_requests_are_refused_one_by_one() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let caller = Caller::Operator(Some(workspace));
    for (path, body) in [
        (
            format!("/workspaces/{workspace}/contacts/bulk"),
            json!({"contacts": [
                {"email": "ann@example.com", "attributes": {"a": {"b": ["\0"]}}},
                {"email": "bob@example.com", "attributes": {"a\0": 1}},
                {"external_id": "a\0"},
                {"email": "carl@example.com"},
            ]}),
        ),
        (
            "/events/bulk".to_owned(),
            json!({"events": [
                {"name": "a\0", "contact": {"external_id": "x"}},
                {"name": "a", "contact": {"external_id": "x\0"}},
                {"name": "a", "contact": {"external_id": "x"}, "properties": {"a": {"b\0": 1}}},
                {"name": "a", "contact": {"external_id": "x"}},
            ]}),
        ),
    ] {
        let reply = bed.post(&caller, &path, body).await;
        // Each of them lists its refused items in its own way.
        let listed = reply.body.get("results").or_else(|| reply.body.get("errors"));
        let refused: Vec<_> =
            listed.and_then(Value::as_array).into_iter().flatten().filter(|one| one.get("error").is_some()).collect();
        let indexes: Vec<_> = refused.iter().map(|one| one["index"].as_u64().unwrap()).collect();
        assert_eq!(indexes, [0, 1, 2], "{path} {}", reply.body);
        assert!(refused.iter().all(|one| one.to_string().contains("U+0000")), "{path} {}", reply.body);
    }
}

fn parameters(schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut schema = schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    if let Some(members) = schema.as_object_mut() {
        members.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Every text in a query is refused, and a cursor is not accepted either.
#[tokio::test]
async fn every_parameter_of_every_query_is_refused() {
    let (bed, workspace, ann) = Bed::with_owner().await;
    let caller = Caller::Operator(Some(workspace));
    let is_reached = |endpoint: &&Endpoint| {
        (endpoint.method)() == Method::GET && endpoint.path.replace("{workspace_id}", "").find('{').is_none()
    };
    let mut tried = 0;
    for endpoint in ops::all().iter().filter(is_reached) {
        let schema = parameters(endpoint.query_schema);
        for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let path = endpoint.path.replace("{workspace_id}", &workspace.to_string());
            // Sessions belong to a person.
            let caller = if endpoint.access == Access::Session { &ann } else { &caller };
            let reply = bed.get(caller, &format!("{path}?{name}=a%00b")).await;
            assert!(matches!(reply.status, 400 | 422), "{endpoint:?} {name}: {}", reply.summary());
            tried += 1;
        }
    }
    assert!(tried >= 30, "{tried}");
}

/// No resource has such a name, so none is found, by any operation.
#[tokio::test]
async fn no_path_leads_to_u0000() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let caller = Caller::Operator(Some(workspace));
    let mut tried = 0;
    for endpoint in ops::all() {
        let path = endpoint.path.replace("{workspace_id}", &workspace.to_string());
        let Some((start, _)) = path.split_once('{') else { continue };
        let rest = path[start.len()..].split('/').map(|part| if part.starts_with('{') { "a\0" } else { part });
        let target = format!("{start}{}", rest.collect::<Vec<_>>().join("/"));
        let call = Call::new(&caller, (endpoint.method)(), &target);
        let call = if endpoint.body == BodyKind::None { call } else { call.text("{}") };
        let reply = bed.call(call).await;
        assert_eq!(reply.status, 404, "{endpoint:?} {target:?}: {}", reply.summary());
        tried += 1;
    }
    assert!(tried >= 50, "{tried}");
}
