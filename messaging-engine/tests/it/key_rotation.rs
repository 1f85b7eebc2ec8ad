//! Rotation of API keys, and attacks on it. Contract section 2.2.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::PageRequest;
use messaging_engine::Caller;
use serde_json::{Value, json};

use crate::bed::{self, Bed, Call, Reply};
use crate::mortal::MortalStore;

const HOUR: Duration = Duration::from_hours(1);

/// A workspace with an owner and a key.
struct World {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
    key: Value,
}

impl World {
    async fn with(body: Value) -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        let reply = bed.post(&owner, &format!("/workspaces/{workspace}/api-keys"), body).await;
        assert_eq!(reply.summary(), "201");
        Self { bed, workspace, owner, key: reply.body }
    }

    async fn start() -> Self {
        Self::with(json!({"name": "backend", "scopes": ["messages:send"]})).await
    }

    fn path(&self, key: &Value) -> String {
        format!("/workspaces/{}/api-keys/{}/rotate", self.workspace, key["id"].as_str().unwrap())
    }

    async fn rotate(&self, key: &Value, body: Value) -> Reply {
        self.bed.post(&self.owner, &self.path(key), body).await
    }

    /// Keys of the workspace, newest first.
    async fn keys(&self) -> Vec<Value> {
        let page = self.bed.get(&self.owner, &format!("/workspaces/{}/api-keys", self.workspace)).await;
        page["data"].as_array().unwrap().clone()
    }

    async fn works(&self, key: &Value) -> bool {
        self.bed.app.authenticate(key["key"].as_str().unwrap()).await.is_ok()
    }
}

#[tokio::test]
async fn both_keys_work_until_the_overlap_ends() {
    let world = World::with(json!({"name": "backend", "scopes": ["messages:send", "pii:read"], "rate_limit": 70,
        "ip_allowlist": ["10.0.0.0/8"]}))
    .await;
    world.bed.clock.advance(HOUR);
    let new = world.rotate(&world.key, json!({"overlap_hours": 2})).await;
    assert_eq!(new.summary(), "201");
    for member in ["name", "scopes", "rate_limit", "ip_allowlist", "expires_at", "revoked_at"] {
        assert_eq!(new[member], world.key[member], "{member}");
    }
    assert_eq!((&new["rotated_from"], &new["replaced_by"]), (&world.key["id"], &Value::Null));
    assert_eq!(new["created_at"], "2026-01-31T10:15:00.000Z");
    assert_ne!(new["key"], world.key["key"]);
    assert_ne!(new["prefix"], world.key["prefix"]);

    let listed = world.keys().await;
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&new["id"], &world.key["id"]));
    assert_eq!((&listed[1]["replaced_by"], &listed[1]["rotated_from"]), (&new["id"], &Value::Null));
    assert_eq!(listed[1]["expires_at"], "2026-01-31T12:15:00.000Z");
    assert!(listed.iter().all(|key| key["key"].is_null()));

    world.bed.clock.advance(2 * HOUR - Duration::from_millis(1));
    assert!(world.works(&world.key).await && world.works(&new.body).await);
    world.bed.clock.advance(Duration::from_millis(1));
    assert!(!world.works(&world.key).await && world.works(&new.body).await);
}

#[tokio::test]
async fn the_new_key_lives_as_long_as_the_old_one_was_given() {
    let body = json!({"name": "a", "scopes": ["*"], "expires_at": "2026-02-10T09:15:00Z"});
    let world = World::with(body).await;
    world.bed.clock.advance(9 * 24 * HOUR + 12 * HOUR);
    let new = world.rotate(&world.key, json!({"overlap_hours": 720})).await;
    assert_eq!(new["expires_at"], "2026-02-19T21:15:00.000Z");
    // The old one ends when it would have.
    assert_eq!(world.keys().await[1]["expires_at"], "2026-02-10T09:15:00.000Z");
}

#[tokio::test]
async fn each_rule_at_its_limit() {
    let world = World::start().await;
    let mut key = world.key.clone();
    for (body, ends) in [
        (json!({}), "2026-02-01T09:15:00.000Z"),
        (json!({"overlap_hours": null}), "2026-02-01T09:15:00.000Z"),
        (json!({"overlap_hours": 0}), "2026-01-31T09:15:00.000Z"),
        (json!({"overlap_hours": 720}), "2026-03-02T09:15:00.000Z"),
    ] {
        let new = world.rotate(&key, body.clone()).await;
        assert_eq!(new.summary(), "201", "{body}");
        let old = world.keys().await.into_iter().find(|one| one["id"] == key["id"]).unwrap();
        assert_eq!(old["expires_at"], ends, "{body}");
        key = new.body;
    }
    let count = world.keys().await.len();
    for (body, refusal) in [
        (json!({"overlap_hours": 721}), "422 /overlap_hours out_of_range"),
        (json!({"overlap_hours": -1}), "422 /overlap_hours out_of_range"),
        (json!({"overlap_hours": "24"}), "422 /overlap_hours invalid_type"),
        (json!({"overlap": 1}), "422 /overlap unknown_field"),
    ] {
        assert_eq!(world.rotate(&key, body.clone()).await.summary(), refusal, "{body}");
    }
    assert_eq!(world.keys().await.len(), count);
    // Without a body as with an empty one.
    let path = world.path(&key);
    let reply = world.bed.call(Call::new(&world.owner, Method::POST, &path)).await;
    assert_eq!(reply.summary(), "201");
}

#[tokio::test]
async fn a_rotation_gives_no_other_rights_than_the_old_key_has() {
    let world = World::start().await;
    // Members that a key shows may be sent back and are ignored (contract section 1.1).
    let body = json!({"scopes": ["*"], "rate_limit": 100_000, "ip_allowlist": [], "expires_at": null});
    let new = world.rotate(&world.key, body).await;
    assert_eq!(new.summary(), "201");
    for member in ["scopes", "rate_limit", "ip_allowlist"] {
        assert_eq!(new[member], world.key[member], "{member}");
    }
}

#[tokio::test]
async fn only_a_key_that_works_and_was_not_replaced_is_rotated() {
    let world = World::start().await;
    let new = world.rotate(&world.key, json!({})).await;
    let again = world.rotate(&world.key, json!({})).await;
    assert_eq!(again.summary(), "409 invalid_state");
    assert_eq!(again["error"]["details"], json!({"status": "replaced", "allowed": ["active"]}));
    world.bed.clock.advance(24 * HOUR);
    assert_eq!(world.rotate(&world.key, json!({})).await["error"]["details"]["status"], "expired");

    let path = format!("/workspaces/{}/api-keys/{}", world.workspace, new["id"].as_str().unwrap());
    assert_eq!(world.bed.delete(&world.owner, &path).await.summary(), "204");
    let refused = world.rotate(&new.body, json!({})).await;
    assert_eq!(
        (refused.summary().as_str(), &refused["error"]["details"]["status"]),
        ("409 invalid_state", &json!("revoked"))
    );
    assert_eq!(world.keys().await.len(), 2);
}

#[tokio::test]
async fn nobody_rotates_without_the_rights_to_make_keys() {
    let world = World::start().await;
    let path = world.path(&world.key);
    let everything = world.bed.key(world.workspace, &["*"]).await;
    assert_eq!(world.bed.post(&everything, &path, json!({})).await.summary(), "403 session_required");
    let own = world.bed.app.authenticate(world.key["key"].as_str().unwrap()).await.unwrap();
    assert_eq!(world.bed.post(&own, &path, json!({})).await.summary(), "403 session_required");
    for role in ["editor", "viewer"] {
        let member = world.bed.member(world.workspace, &format!("{role}@acme.com"), role).await;
        assert_eq!(world.bed.post(&member, &path, json!({})).await.summary(), "403 role_forbidden", "{role}");
    }
    assert_eq!(world.bed.post(&Caller::Anonymous, &path, json!({})).await.summary(), "401 missing_credentials");
    assert_eq!(world.keys().await.iter().filter(|key| !key["replaced_by"].is_null()).count(), 0);
    let admin = world.bed.member(world.workspace, "admin@acme.com", "admin").await;
    assert_eq!(world.bed.post(&admin, &path, json!({})).await.summary(), "201");
}

#[tokio::test]
async fn a_key_of_another_workspace_is_not_there() {
    let world = World::start().await;
    let other = world.bed.post(&world.owner, "/workspaces", json!({"name": "Other"})).await["id"].clone();
    let owner = world.bed.sign_in("owner@acme.com").await;
    let id = world.key["id"].as_str().unwrap();
    let path = format!("/workspaces/{}/api-keys/{id}/rotate", other.as_str().unwrap());
    assert_eq!(world.bed.post(&owner, &path, json!({})).await.summary(), "404 not_found");
    let nonsense = format!("/workspaces/{}/api-keys/nonsense/rotate", world.workspace);
    assert_eq!(world.bed.post(&owner, &nonsense, json!({})).await.summary(), "404 not_found");
    // The owner of another workspace has no access to this one.
    world.bed.user("eve@evil.test").await;
    let eve = world.bed.sign_in("eve@evil.test").await;
    assert_eq!(world.bed.post(&eve, &world.path(&world.key), json!({})).await.summary(), "403 workspace_forbidden");
    assert!(world.works(&world.key).await);
    assert_eq!(world.keys().await[0]["replaced_by"], Value::Null);
}

#[tokio::test]
async fn of_rotations_at_the_same_moment_one_succeeds() {
    let world = World::start().await;
    let (path, other) = (world.path(&world.key), world.bed.another_process());
    let apps = [&world.bed.app, &other];
    let calls = (0..8).map(|n| bed::send(apps[n % 2], Call::new(&world.owner, Method::POST, &path).text("{}")));
    let mut answers: Vec<_> = futures_util::future::join_all(calls).await.iter().map(Reply::summary).collect();
    answers.sort();
    assert_eq!(answers[0], "201");
    assert!(answers[1..].iter().all(|answer| answer == "409 invalid_state"), "{answers:?}");
    assert_eq!(world.keys().await.len(), 2);
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_key() {
    let world = World::start().await;
    let path = world.path(&world.key);
    let call = || Call::new(&world.owner, Method::POST, &path).text("{\"overlap_hours\":1}").key("rotate-1");
    let first = world.bed.call(call()).await;
    assert_eq!(first.summary(), "201");
    let second = world.bed.call(call()).await;
    assert_eq!((second.summary().as_str(), &second.body), ("201 replayed", &first.body));
    assert_eq!(world.keys().await.len(), 2);
    let other = Call::new(&world.owner, Method::POST, &path).text("{\"overlap_hours\":2}").key("rotate-1");
    assert_eq!(world.bed.call(other).await.summary(), "422 idempotency_key_reused");
}

#[tokio::test]
async fn a_process_that_ends_at_the_commit_leaves_both_keys_or_one() {
    for is_kept in [false, true] {
        let world = World::start().await;
        let mortal = MortalStore::new(Arc::clone(&world.bed.store), 0, is_kept);
        let (app, path) = (world.bed.another_process_on(mortal.clone()), world.path(&world.key));
        let call = || Call::new(&world.owner, Method::POST, &path).text("{}").key("rotate-1");
        tokio::select! {
            () = mortal.died() => {}
            reply = bed::send(&app, call()) => panic!("it has no end: {reply:?}"),
        }
        drop(app);
        let keys = world.keys().await;
        assert_eq!(keys.len(), if is_kept { 2 } else { 1 });
        let old = keys.iter().find(|key| key["id"] == world.key["id"]).unwrap();
        assert_eq!(old["replaced_by"].is_string(), is_kept);
        assert!(world.works(&world.key).await);
        // A repeated request gets the new key, which nobody has seen.
        let reply = world.bed.call(call()).await;
        assert_eq!(reply.summary(), if is_kept { "201 replayed" } else { "201" });
        assert!(world.works(&reply.body).await);
        assert_eq!(world.keys().await.len(), 2);
    }
}

#[tokio::test]
async fn the_audit_log_names_both_keys_and_no_secret() {
    let world = World::start().await;
    let new = world.rotate(&world.key, json!({})).await;
    let path = format!("/workspaces/{}/audit?operation=rotateApiKey", world.workspace);
    let entries = world.bed.get(&world.owner, &path).await["data"].clone();
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["resource"], json!({"kind": "api_key", "id": world.key["id"], "name": "backend"}));
    let changes = entries[0]["changes"].as_array().unwrap();
    let linked = json!({"pointer": "/rotated_from", "before": null, "after": world.key["id"]});
    let prefix = json!({"pointer": "/prefix", "before": world.key["prefix"], "after": new["prefix"]});
    assert!(changes.contains(&linked) && changes.contains(&prefix), "{changes:?}");
    let secret = new["key"].as_str().unwrap().split_once('.').unwrap().1;
    assert!(!json!(entries).to_string().contains(secret));
    let stored = world.bed.store.api_keys(world.workspace, PageRequest { after: None, limit: 10 }).await.unwrap();
    assert!(stored.items.iter().all(|(key, _)| !format!("{key:?}").contains(secret)));
}
