//! Uses of API keys by operation, and the scopes that follow from them.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::changes::{AccountWrite, Write};
use messaging_core::ids::WorkspaceId;
use messaging_engine::Caller;
use serde_json::{Value, json};

use crate::bed::{self, Bed, Call};
use crate::mortal::MortalStore;

const DAY: Duration = Duration::from_hours(24);

struct World {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
    key: Caller,
}

impl World {
    async fn with(scopes: &[&str]) -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        let key = bed.key(workspace, scopes).await;
        Self { bed, workspace, owner, key }
    }

    async fn get(&self, path: &str) -> String {
        let target = format!("/workspaces/{}{path}", self.workspace);
        self.bed.call(Call::new(&self.key, Method::GET, &target).from("192.0.2.9")).await.summary()
    }

    /// The key as its owner sees it.
    async fn view(&self) -> Value {
        let path = format!("/workspaces/{}/api-keys", self.workspace);
        self.bed.get(&self.owner, &path).await["data"][0].clone()
    }

    async fn operations(&self) -> Vec<String> {
        let view = self.view().await;
        let uses = view["recent_use"].as_array().unwrap();
        uses.iter().map(|used| used["operation"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn the_last_use_of_each_operation_is_shown() {
    let world = World::with(&["contacts:read", "templates:read"]).await;
    for path in ["/contacts", "/lists", "/contacts"] {
        assert_eq!(world.get(path).await, "200");
        world.bed.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(world.get("/webhooks").await, "403 scope required: webhooks:read");
    // Nothing is written while they are gathered.
    assert_eq!(world.view().await["recent_use"], json!([]));
    world.bed.app.write_key_uses().await;
    assert_eq!(
        world.view().await["recent_use"],
        json!([{"operation": "listContacts", "at": "2026-01-31T09:15:02.000Z", "ip": "192.0.2.9"},
            {"operation": "listLists", "at": "2026-01-31T09:15:01.000Z", "ip": "192.0.2.9"}])
    );
    // A use that another process noted before is no newer one.
    world.bed.clock.set(bed::START);
    assert_eq!(world.get("/contacts").await, "200");
    world.bed.app.write_key_uses().await;
    assert_eq!(world.view().await["recent_use"][0]["at"], "2026-01-31T09:15:02.000Z");
}

#[tokio::test]
async fn scopes_that_nothing_asked_for_are_named_after_thirty_days() {
    let world = World::with(&["contacts:write", "templates:read", "pii:read"]).await;
    for _ in 0..30 {
        assert_eq!(world.get("/contacts").await, "200");
        world.bed.app.write_key_uses().await;
        let view = world.view().await;
        assert_eq!((&view["unused_scopes"], &view["needed_scopes"]), (&Value::Null, &Value::Null));
        world.bed.clock.advance(DAY);
    }
    assert_eq!(world.get("/contacts").await, "200");
    world.bed.app.write_key_uses().await;
    let view = world.view().await;
    assert_eq!(view["unused_scopes"], json!(["contacts:write", "templates:read"]));
    assert_eq!(view["needed_scopes"], json!(["contacts:read", "pii:read"]));
    // A scope that is used later is needed again.
    assert_eq!(world.get("/templates").await, "200");
    world.bed.app.write_key_uses().await;
    assert_eq!(world.view().await["unused_scopes"], json!(["contacts:write"]));
    // And a key that rests is not judged.
    world.bed.clock.advance(31 * DAY);
    let view = Caller::Operator(Some(world.workspace));
    let listed = world.bed.get(&view, &format!("/workspaces/{}/api-keys", world.workspace)).await;
    assert_eq!(listed["data"][0]["unused_scopes"], Value::Null);
}

#[tokio::test]
async fn uses_that_the_store_does_not_take_are_lost_without_harm() {
    let world = World::with(&["contacts:read"]).await;
    let is_use = |write: &Write| matches!(write, Write::Account(AccountWrite::NoteKeyUses(_)));
    let app = world.bed.another_process_on(MortalStore::refusing(Arc::clone(&world.bed.store), is_use));
    let target = format!("/workspaces/{}/contacts", world.workspace);
    assert_eq!(bed::send(&app, Call::new(&world.key, Method::GET, &target)).await.summary(), "200");
    app.write_key_uses().await;
    assert_eq!(world.operations().await, [] as [&str; 0]);
    assert_eq!(world.get("/contacts").await, "200");
    world.bed.app.write_key_uses().await;
    assert_eq!(world.operations().await, ["listContacts"]);
}

#[tokio::test]
async fn uses_of_another_workspaces_key_are_not_shown() {
    let world = World::with(&["contacts:read"]).await;
    let other = world.bed.post(&world.owner, "/workspaces", json!({"name": "Other"})).await["id"].clone();
    let other: WorkspaceId = other.as_str().unwrap().parse().unwrap();
    let stranger = world.bed.key(other, &["contacts:read"]).await;
    let target = format!("/workspaces/{other}/contacts");
    assert_eq!(world.bed.get(&stranger, &target).await.summary(), "200");
    // A key that tries another workspace has not used anything there.
    assert_eq!(world.bed.get(&world.key, &target).await.summary(), "403 workspace_forbidden");
    world.bed.app.write_key_uses().await;
    assert_eq!(world.operations().await, [] as [&str; 0]);
}
