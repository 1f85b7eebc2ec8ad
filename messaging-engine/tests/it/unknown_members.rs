//! Contract section 1.1: unknown members are refused by name, in every operation.

use http::Method;
use messaging_core::violation::At;
use messaging_engine::Error;
use messaging_engine::caller::Caller;
use messaging_engine::ops::{self, Endpoint};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::bed::{Bed, Call};

/// The schema of an operation's body, with its definitions.
pub(crate) fn body_schema(endpoint: &Endpoint) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut schema = (endpoint.body_schema)(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    if let Some(members) = schema.as_object_mut() {
        members.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Resolves a schema: the target of a reference, or the alternative that is not null.
pub(crate) fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    if let Some(target) = schema["$ref"].as_str().and_then(|link| link.strip_prefix('#')) {
        return resolved(root, root.pointer(target).unwrap());
    }
    match schema["anyOf"].as_array() {
        Some(choices) => resolved(root, choices.iter().find(|choice| choice["type"] != "null").unwrap()),
        None => schema,
    }
}

/// Called for each object with its schema, its pointer, and a function that puts a value of it into a body.
type Visit<'a> = dyn FnMut(&Value, &str, &dyn Fn(Value) -> Value) + 'a;

/// Calls `visit` for every object that the schema describes.
fn objects(root: &Value, schema: &Value, pointer: &str, wrap: &dyn Fn(Value) -> Value, visit: &mut Visit<'_>) {
    if schema["x-judged-alone"] == true {
        return;
    }
    let schema = resolved(root, schema);
    if let Some(members) = schema["properties"].as_object() {
        visit(schema, pointer, wrap);
        for (name, member) in members {
            let outer = |value: Value| wrap(json!({ name.as_str(): value }));
            objects(root, member, &format!("{pointer}/{name}"), &outer, visit);
        }
    } else if schema.get("items").is_some() {
        let outer = |value: Value| wrap(json!([value]));
        objects(root, &schema["items"], &format!("{pointer}/0"), &outer, visit);
    }
}

/// The operations that read a body.
pub(crate) fn with_body() -> impl Iterator<Item = &'static Endpoint> {
    ops::all().iter().filter(|endpoint| endpoint.body.is_json())
}

#[test]
fn every_object_that_is_described_is_closed() {
    let mut seen = 0;
    for endpoint in with_body() {
        let root = body_schema(endpoint);
        objects(&root, &root, "", &|value| value, &mut |schema, pointer, _| {
            assert_eq!(schema["additionalProperties"], Value::Bool(false), "{endpoint:?} {pointer}");
            seen += 1;
        });
    }
    assert!(seen >= 30, "{seen}");
}

#[test]
fn a_typo_of_any_member_is_refused_and_told_the_right_name() {
    let mut tried = 0;
    for endpoint in with_body() {
        let root = body_schema(endpoint);
        objects(&root, &root, "", &|value| value, &mut |schema, pointer, wrap| {
            let members = schema["properties"].as_object().unwrap();
            for name in members.keys() {
                let typo = format!("{name}{}", name.chars().last().unwrap());
                let body = wrap(json!({ typo.as_str(): 1 })).to_string();
                let Err(Error::Validation(found)) = (endpoint.check_body)(body.as_bytes()) else {
                    panic!("{endpoint:?} takes {body}");
                };
                let at = At::Pointer(format!("{pointer}/{typo}"));
                let fault = found.as_slice().iter().find(|fault| fault.at == at);
                let fault = fault.unwrap_or_else(|| panic!("{endpoint:?} {body}: {found:?}"));
                assert_eq!(serde_json::to_value(fault.code).unwrap(), "unknown_field", "{endpoint:?} {body}");
                assert!(fault.message.ends_with(&format!("did you mean {name}?")), "{body}: {}", fault.message);
                tried += 1;
            }
        });
    }
    assert!(tried >= 120, "{tried}");
}

#[test]
fn the_nearest_name_is_told_and_nothing_that_was_sent() {
    let message = |body: Value| {
        let send = with_body().find(|endpoint| endpoint.id == "sendMessage").unwrap();
        let Err(Error::Validation(found)) = (send.check_body)(body.to_string().as_bytes()) else { panic!("{body}") };
        let fault = found.as_slice().iter().find(|fault| fault.message.contains("is not a member"));
        fault.unwrap_or_else(|| panic!("{found:?}")).message.clone()
    };
    for (sent, meant) in [
        ("replyTo", "reply_to"),
        ("Subject", "subject"),
        ("sendAt", "send"),
        ("tempate_id", "template_id"),
        ("attachment", "attachments"),
        ("from-name", "from_name"),
    ] {
        let found = message(json!({ sent: 1 }));
        if meant != "send" {
            assert!(found.contains(&format!("did you mean {meant}?")), "{sent}: {found}");
        }
        assert!(!found.contains(sent) || meant.contains(sent), "{found}");
    }
    assert!(message(json!({ "zzzzzzzzzzzz": 1 })).contains("the nearest known name is "));
    let found = message(json!({ "x".repeat(1 << 20): 1 }));
    assert!(found.len() < 200, "{found}");
}

/// Reads the resource, sends it back as it is with `method`, and finds it unchanged.
async fn comes_back(bed: &Bed, caller: &Caller, method: Method, path: &str) {
    let read = bed.get(caller, path).await;
    assert_eq!(read.status, 200, "{path} {}", read.summary());
    let again = bed.call(Call::new(caller, method, path).body(&read.body)).await;
    assert_eq!(again.summary(), "200", "{path} {}", again.body);
    let (mut before, mut after) = (read.body.clone(), bed.get(caller, path).await.body);
    for version in [&mut before, &mut after] {
        for changing in ["updated_at", "version"] {
            version.as_object_mut().unwrap().remove(changing);
        }
    }
    assert_eq!(before, after, "{path}");
}

#[tokio::test]
async fn what_was_read_can_be_sent_back() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let root = format!("/workspaces/{workspace}");
    for (method, path, body) in [
        (Method::PATCH, "contacts", json!({"email": "ann@example.com", "attributes": {"a": {"b": 1}}, "tags": ["x"]})),
        (Method::PATCH, "lists", json!({"name": "News"})),
        (Method::PATCH, "templates", json!({"name": "T", "channel": "email", "subject": "s", "html": "<p>x</p>"})),
        (Method::PATCH, "webhooks", json!({"url": "https://acme.com/hook", "events": ["sent"]})),
    ] {
        let created = bed.post(&owner, &format!("{root}/{path}"), body).await;
        assert_eq!(created.status, 201, "{path} {}", created.summary());
        let one = format!("{root}/{path}/{}", created["id"].as_str().unwrap());
        comes_back(&bed, &owner, method, &one).await;
    }
    let workspaces = bed.get(&owner, "/workspaces").await;
    let again = bed.call(Call::new(&owner, Method::PATCH, &root).body(&workspaces["data"][0])).await;
    assert_eq!((again.summary().as_str(), &again.body), ("200", &workspaces["data"][0]));
    // The same as an item of a bulk request.
    let contacts = bed.get(&owner, &format!("{root}/contacts")).await;
    let bulk = bed.post(&owner, &format!("{root}/contacts/bulk"), json!({"contacts": contacts["data"]})).await;
    assert_eq!(bulk["results"][0]["status"], "updated", "{}", bulk.body);
}

#[tokio::test]
async fn items_of_bulk_requests_are_judged_like_bodies() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/contacts/bulk");
    let body = json!({"contacts": [{"email": "a@b.co", "tag": ["x"]}, {"email": "c@b.co", "tags": ["x"]}]});
    let reply = bed.post(&owner, &path, body.clone()).await;
    assert_eq!(reply["results"][0]["status"], "error", "{}", reply.body);
    assert!(reply["results"][0].to_string().contains("did you mean tags?"), "{}", reply.body);
    assert_eq!(reply["results"][1]["status"], "created", "{}", reply.body);
    let reply = bed.call(Call::new(&owner, Method::POST, &path).body(&body).leniently()).await;
    assert_eq!(reply["results"][0]["status"], "created", "{}", reply.body);
}

#[tokio::test]
async fn a_lenient_request_ignores_what_it_does_not_know() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/lists");
    let body = json!({"name": "News", "nmae": "x", "deep": {"er": [1]}});
    let strict = bed.post(&owner, &path, body.clone()).await;
    assert_eq!(strict.summary(), "422 /deep unknown_field /nmae unknown_field");
    let lenient = bed.call(Call::new(&owner, Method::POST, &path).body(&body).leniently()).await;
    assert_eq!((lenient.summary().as_str(), &lenient["name"]), ("201", &json!("News")));
    // Known members are checked all the same.
    let wrong = bed.call(Call::new(&owner, Method::POST, &path).body(&json!({"name": 1, "x": 1})).leniently()).await;
    assert_eq!(wrong.summary(), "422 /name invalid_type");
}

/// A message that was accepted with unknown members is stored as it was sent, and must be readable.
#[tokio::test]
async fn a_message_that_was_sent_leniently_is_delivered() {
    let product = crate::support::Product::start().await;
    let mut body = Map::new();
    for (name, value) in
        [("channel", "email"), ("to", "ann@example.com"), ("subject", "s"), ("text", "t"), ("more", "x")]
    {
        body.insert(name.to_owned(), value.into());
    }
    let id = product.send_leniently(&Value::Object(body)).await;
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn a_cursor_that_nobody_made_is_no_cursor() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    for cursor in ["%00", "a%00b", "%FF", "%ED%A0%80", "", "zzz", "%F0%9F%98%80"] {
        let path = format!("/workspaces/{workspace}/contacts?cursor={cursor}");
        assert_eq!(bed.get(&owner, &path).await.summary(), "400 invalid_cursor", "{cursor}");
    }
}

#[tokio::test]
async fn bad_parameters_are_named_all_at_once() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/suppressions?limit=x&channel=fax&reason=%00&address=a%00");
    let reply = bed.get(&owner, &path).await;
    assert_eq!(
        reply.summary(),
        "422 address invalid_format channel unknown_value limit invalid_type reason unknown_value"
    );
    for fault in reply["error"]["details"]["errors"].as_array().unwrap() {
        assert!(fault.get("parameter").is_some() && fault.get("pointer").is_none(), "{fault}");
    }
}

#[test]
fn a_hundred_faults_are_told_and_the_nearest_name_for_ten() {
    let endpoint = with_body().find(|endpoint| endpoint.id == "sendMessage").unwrap();
    let members: Vec<_> = (0..1000).map(|number| format!(r#""subjekt{number}":0"#)).collect();
    let body = format!(r#"{{"channel":"email",{}}}"#, members.join(","));
    let Err(Error::Validation(faults)) = (endpoint.check_body)(body.as_bytes()) else { panic!("it was taken") };
    let suggested = faults.as_slice().iter().filter(|fault| fault.message.contains("did you mean subject?"));
    assert_eq!((faults.as_slice().len(), suggested.count()), (100, 10));
}

#[test]
fn a_fault_far_down_is_told_of_what_is_around_it() {
    let endpoint = with_body().find(|endpoint| endpoint.id == "sendMessage").unwrap();
    let name = "n".repeat(5000);
    let body = format!(
        r#"{{"channel":"email","to":"a@b.co","subject":"s","text":"t","variables":{{"{name}":{{"{name}":"\u0000"}}}}}}"#
    );
    let Err(Error::Validation(faults)) = (endpoint.check_body)(body.as_bytes()) else { panic!("it was taken") };
    let places: Vec<_> = faults.as_slice().iter().map(|fault| &fault.at).collect();
    assert_eq!(places, [&At::Pointer("/variables".to_owned())]);
}
