//! Contract section 1.1: a resource that was read can be sent back, and nothing changes.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_engine::admin;
use messaging_engine::ops::{self, Endpoint};
use messaging_testing::MemoryFetch;
use serde_json::{Value, json};

use crate::bed::{self, Call, Reply};
use crate::support::Product;

/// A workspace with one of everything.
struct World(Product);

impl World {
    async fn start() -> Self {
        let world = Self(Product::calling(Arc::new(MemoryFetch::default())).await.on_every_channel().await);
        let list = world.made("/lists", json!({"name": "News"})).await;
        world.made("/custom-fields", json!({"key": "plan", "type": "string", "label": "Plan"})).await;
        let contact = json!({"external_id": "u-1", "email": "ann@example.com", "phone": "+14155550123",
            "attributes": {"plan": "pro", "address": {"city": "Rome"}}, "tags": ["vip"], "locale": "en-US",
            "timezone": "Europe/Rome", "list_ids": [list["id"]], "consent": {"marketing_email": true, "sms": null}});
        world.made("/contacts", contact).await;
        let filter = json!({"and": [{"type": "tag", "op": "has_any", "values": ["vip"]},
            {"not": {"type": "list", "op": "not_member", "id": list["id"]}}]});
        world.made("/segments", json!({"name": "Vip", "kind": "static", "filter": filter})).await;
        let template = json!({"name": "t", "channel": "email", "subject": "s {{ order.id }}", "preheader": "p",
            "html": "<p>h</p>", "text": "x", "from_name": "Acme"});
        let template = world.made("/templates", template).await;
        let campaign = json!({"name": "c", "channel": "email", "template_id": template["id"], "kind": "ab_test",
            "audience": {"list_ids": [list["id"]]}, "variants": [{"name": "A", "subject": "a"}, {"name": "B"}],
            "settings": {"quiet_hours": {"start": "22:00", "end": "08:00"}, "frequency_cap": {"per_day": 1},
                "ab_test": {"test_percent": 20, "wait_minutes": 60, "winner_metric": "open_rate"}, "rate_limit": 600}});
        world.made("/campaigns", campaign).await;
        let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": template["id"]}}]});
        let automation = json!({"name": "a", "trigger": {"kind": "event", "config": {"name": "x"}}, "graph": graph,
            "re_entry": "after_exit", "re_entry_key": "event.id"});
        world.made("/automations", automation).await;
        world.made("/webhooks", json!({"url": "https://acme.com/hook", "events": ["sent", "bounce"]})).await;
        world.made("/suppressions", json!({"channel": "email", "address": "x@example.com", "reason": "manual"})).await;
        world.made("/api-keys", json!({"name": "k", "scopes": ["messages:send"], "rate_limit": 5})).await;
        world.0.user("bob@acme.com").await;
        world.made("/members", json!({"email": "bob@acme.com", "role": "viewer"})).await;
        let source = IpAddr::from([203, 0, 113, 7]);
        admin::grant_ip(&world.0.app, world.0.workspace, &source.to_string()).await.unwrap();
        let public = world.made("/lists", json!({"name": "Public", "visibility": "public"})).await;
        world.made("/forms", json!({"name": "Footer", "list_ids": [public["id"]]})).await;
        world.made("/ip-pools", json!({"name": "p", "ips": [source]})).await;
        let named = NamedSource { ip: source.into(), name: "mx.service.test".to_owned() };
        world.0.store.announce_sources(&[named]).await.unwrap();
        world.0.work().await;
        world
    }

    fn filled(&self, path: &str) -> String {
        path.replace("{workspace_id}", &self.0.workspace.to_string())
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Reply {
        let call = Call::new(&self.0.caller, method, path);
        bed::send(&self.0.app, if body.is_null() { call } else { call.body(body) }).await
    }

    async fn made(&self, path: &str, body: Value) -> Value {
        let reply =
            self.send(Method::POST, &format!("{}{path}", self.filled("/workspaces/{workspace_id}")), &body).await;
        assert!(reply.status < 300, "{path}: {}", reply.summary());
        reply.body
    }

    /// The newest resource of a listing: its path and, where it is shown alone, as it is shown there.
    async fn newest(&self, collection: &str, parameter: &str) -> (String, Value) {
        let member = if parameter == "{workspace_id}" { "id" } else { parameter.trim_matches(['{', '}']) };
        let page = self.send(Method::GET, &self.filled(collection), &Value::Null).await;
        let item = page["data"][0].clone();
        let name = [member, "user_id"].into_iter().find_map(|member| item[member].as_str());
        let name = name.unwrap_or_else(|| panic!("{collection} lists nothing with {member}"));
        let path = format!("{}/{name}", self.filled(collection));
        if endpoint(&Method::GET, &format!("{collection}/{parameter}")).is_some() {
            let item = self.send(Method::GET, &path, &Value::Null).await.body;
            return (path, item);
        }
        (path, item)
    }
}

fn endpoint(method: &Method, path: &str) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| (endpoint.method)() == *method && endpoint.path == path)
}

#[tokio::test]
async fn every_resource_is_changed_by_nothing_that_was_read_of_it() {
    let world = World::start().await;
    let mut changed = Vec::new();
    let changes = |endpoint: &&Endpoint| [Method::PATCH, Method::PUT].contains(&(endpoint.method)());
    for endpoint in ops::all().iter().filter(changes) {
        // Paths are listed within their sources alone.
        if endpoint.id == "updateSourcePath" {
            continue;
        }
        let (collection, parameter) = endpoint.path.rsplit_once('/').unwrap();
        let (path, before) = world.newest(collection, parameter).await;
        let reply = world.send((endpoint.method)(), &path, &before).await;
        assert_eq!(reply.summary(), "200", "{}: {before}", endpoint.id);
        assert_eq!(world.newest(collection, parameter).await.1, before, "{}", endpoint.id);
        changed.push(endpoint.id);
    }
    assert!(changed.len() >= 12, "{changed:?}");
}

#[tokio::test]
async fn every_resource_that_was_read_can_be_made_once_more_of_it() {
    let world = World::start().await;
    let mut made = 0;
    for endpoint in ops::all().iter().filter(|endpoint| (endpoint.method)() == Method::POST) {
        // A listed message shows its outcome, not its request, and a listed list its contacts. A workspace belongs to
        // the person who makes it, an image is made from a file, and a factor belongs to a person.
        let others = ["sendMessage", "addListContacts", "createWorkspace", "createImage", "createFactor"];
        let is_other = others.contains(&endpoint.id);
        if is_other || self::endpoint(&Method::GET, endpoint.path).is_none() {
            continue;
        }
        let (_, item) = world.newest(endpoint.path, "{id}").await;
        let reply = world.send(Method::POST, &world.filled(endpoint.path), &item).await;
        let is_there = reply.summary().starts_with("409 already_exists");
        assert!(reply.status < 300 || is_there, "{}: {} {item}", endpoint.id, reply.summary());
        made += 1;
    }
    assert!(made >= 10, "{made}");
}

#[tokio::test]
async fn what_cannot_be_changed_is_told_where_it_differs() {
    let world = World::start().await;
    for (collection, changes, expected) in [
        ("segments", json!({"kind": "dynamic"}), "422 /kind immutable"),
        ("segments", json!({"kind": null}), "422 /kind immutable"),
        ("custom-fields", json!({"key": "other", "type": "number"}), "422 /key immutable /type immutable"),
        ("templates", json!({"name": "t", "channel": "sms"}), "422 /channel immutable"),
    ] {
        let collection = format!("/workspaces/{{workspace_id}}/{collection}");
        let (path, _) = world.newest(&collection, "{id}").await;
        assert_eq!(world.send(Method::PATCH, &path, &changes).await.summary(), expected, "{path}");
    }
}
