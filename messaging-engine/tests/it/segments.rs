//! Contract section 9: segments and their members.

mod nesting;
mod refusals;
mod upkeep;

use std::time::Duration;

use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};

/// A workspace with contacts and segments.
pub(crate) struct Audience {
    pub(crate) bed: Bed,
    pub(crate) workspace: WorkspaceId,
    pub(crate) key: Caller,
}

impl Audience {
    pub(crate) async fn start() -> Self {
        let (bed, workspace, _) = Bed::with_owner().await;
        let key = bed.key(workspace, &["*"]).await;
        Self { bed, workspace, key }
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}/{rest}", self.workspace)
    }

    pub(crate) async fn get(&self, rest: &str) -> Reply {
        self.bed.get(&self.key, &self.path(rest)).await
    }

    pub(crate) async fn post(&self, rest: &str, body: Value) -> Reply {
        self.bed.post(&self.key, &self.path(rest), body).await
    }

    pub(crate) async fn patch(&self, rest: &str, body: Value) -> Reply {
        self.bed.patch(&self.key, &self.path(rest), body).await
    }

    pub(crate) async fn delete(&self, rest: &str) -> Reply {
        self.bed.delete(&self.key, &self.path(rest)).await
    }

    pub(crate) async fn work(&self) {
        self.bed.app.run_until_idle().await.unwrap();
    }

    /// Creates a contact with an external id and further members; returns its id.
    pub(crate) async fn contact(&self, external_id: &str, more: Value) -> String {
        let mut body = json!({"external_id": external_id});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = self.post("contacts", body).await;
        assert!(reply.status < 300, "{}", reply.summary());
        reply["id"].as_str().unwrap().to_owned()
    }

    /// Creates a segment; returns its id.
    pub(crate) async fn segment(&self, filter: Value) -> String {
        let reply = self.post("segments", json!({"name": "S", "filter": filter})).await;
        assert_eq!(reply.summary(), "201", "{filter}");
        reply["id"].as_str().unwrap().to_owned()
    }

    /// The segment's status and size, and the external ids of its members in alphabetical order.
    pub(crate) async fn members(&self, segment: &str) -> String {
        let shown = self.get(&format!("segments/{segment}")).await;
        let reply = self.get(&format!("segments/{segment}/contacts?limit=200")).await;
        let mut ids: Vec<_> =
            reply["data"].as_array().unwrap().iter().map(|contact| contact["external_id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        format!("{} {}: {}", shown["status"].as_str().unwrap(), shown["size"], ids.join(" "))
    }
}

fn pro() -> Value {
    json!({"type": "attribute", "key": "plan", "op": "eq", "value": "pro"})
}

#[tokio::test]
async fn a_segment_is_created_calculated_shown_changed_and_deleted() {
    let audience = Audience::start().await;
    let ann = audience.contact("ann", json!({"attributes": {"plan": "Pro"}})).await;
    audience.contact("bob", json!({"attributes": {"plan": "free"}})).await;
    let filter = json!({"and": [pro(), {"not": {"type": "tag", "op": "has_any", "values": ["staff"]}}]});
    let created = audience.post("segments", json!({"name": "Pro users", "filter": filter})).await;
    assert_eq!(created.summary(), "201");
    let id = created["id"].as_str().unwrap();
    let mut expected = json!({"id": id, "name": "Pro users", "kind": "dynamic", "filter": filter,
        "status": "recalculating", "size": null, "calculated_at": null,
        "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    audience.work().await;
    expected["status"] = json!("ready");
    expected["size"] = json!(1);
    expected["calculated_at"] = json!("2026-01-31T09:15:00.000Z");
    let path = format!("segments/{id}");
    assert_eq!(audience.get(&path).await.body, expected);
    assert_eq!(audience.get("segments").await.body, json!({"data": [expected], "next_cursor": null}));
    assert_eq!(audience.members(id).await, "ready 1: ann");
    let found = audience.get(&format!("contacts?segment_id={id}")).await;
    assert_eq!(found["data"], json!([audience.get(&format!("contacts/{ann}")).await.body]));

    audience.bed.clock.advance(Duration::from_mins(1));
    let renamed = audience.patch(&path, json!({"name": "Paying", "filter": filter})).await;
    expected["name"] = json!("Paying");
    expected["updated_at"] = json!("2026-01-31T09:16:00.000Z");
    assert_eq!((renamed.summary().as_str(), &renamed.body), ("200", &expected), "the same filter is no change");
    let changed = audience.patch(&path, json!({"filter": {}})).await;
    assert_eq!((changed["status"].clone(), changed["filter"].clone()), (json!("recalculating"), json!({})));
    audience.work().await;
    assert_eq!(audience.members(id).await, "ready 2: ann bob");

    assert_eq!(audience.delete(&path).await.summary(), "204");
    for gone in [
        audience.get(&path).await,
        audience.delete(&path).await,
        audience.patch(&path, json!({"name": 5})).await,
        audience.get(&format!("{path}/contacts")).await,
        audience.post(&format!("{path}/recalculate"), json!({})).await,
    ] {
        assert_eq!(gone.summary(), "404 not_found");
    }
    assert_eq!(audience.get(&format!("contacts?segment_id={id}")).await["data"], json!([]));
}

#[tokio::test]
async fn members_follow_every_kind_of_change() {
    let audience = Audience::start().await;
    let list = audience.post("lists", json!({"name": "News"})).await;
    let list = list["id"].as_str().unwrap();
    let ann = audience.contact("ann", json!({"email": "ann@example.com"})).await;
    let path = format!("contacts/{ann}");
    let mut segments = Vec::new();
    for filter in [
        pro(),
        json!({"type": "tag", "op": "has_any", "values": ["vip"]}),
        json!({"type": "list", "op": "member", "id": list}),
        json!({"type": "consent", "channel": "sms", "value": true}),
        json!({"type": "suppression", "channel": "email", "value": true}),
        json!({"type": "contact", "field": "locale", "op": "starts_with", "value": "DE"}),
        json!({"type": "event", "name": "order"}),
    ] {
        segments.push(audience.segment(filter).await);
    }
    audience.work().await;
    let members = async || {
        audience.work().await;
        let mut held = String::new();
        for segment in &segments {
            let members = audience.members(segment).await;
            held.push(match members.as_str() {
                "ready 1: ann" => '1',
                "ready 0: " => '0',
                other => panic!("{other}"),
            });
        }
        held
    };
    assert_eq!(members().await, "0000000");
    audience.patch(&path, json!({"attributes": {"plan": "PRO"}})).await;
    assert_eq!(members().await, "1000000");
    audience.patch(&path, json!({"tags": ["vip"]})).await;
    assert_eq!(members().await, "1100000");
    audience.post(&format!("lists/{list}/contacts"), json!({"contact_ids": [ann]})).await;
    assert_eq!(members().await, "1110000");
    audience.patch(&path, json!({"consent": {"sms": true}})).await;
    assert_eq!(members().await, "1111000");
    let suppression = json!({"channel": "email", "address": "Ann@example.com", "reason": "manual"});
    let suppressed = audience.post("suppressions", suppression).await;
    assert_eq!(suppressed.summary(), "201");
    assert_eq!(members().await, "1111100");
    audience.patch(&path, json!({"locale": "de-AT"})).await;
    assert_eq!(members().await, "1111110");
    let event = json!({"name": "order", "contact": {"id": ann}});
    assert_eq!(audience.bed.post(&audience.key, "/events", event).await.summary(), "202");
    assert_eq!(members().await, "1111111");

    audience.patch(&path, json!({"attributes": {"plan": null}, "tags": [], "consent": {"sms": false}})).await;
    assert_eq!(members().await, "0010111");
    let id = suppressed["id"].as_str().unwrap();
    assert_eq!(audience.delete(&format!("suppressions/{id}")).await.summary(), "204");
    audience.delete(&format!("lists/{list}")).await;
    assert_eq!(members().await, "0000011");
    audience.delete(&path).await;
    assert_eq!(members().await, "0000000");
}
