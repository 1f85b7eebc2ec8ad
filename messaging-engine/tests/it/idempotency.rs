//! Contract section 1.7.

use std::time::Duration;

use http::Method;
use messaging_core::changes::ReplyKey;
use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply};

struct Keys {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
    path: String,
}

impl Keys {
    async fn start() -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        Self { bed, workspace, owner, path: format!("/workspaces/{workspace}/api-keys") }
    }

    async fn create(&self, key: &str, body: &Value) -> Reply {
        self.create_as(&self.owner, key, &body.to_string()).await
    }

    async fn create_as(&self, caller: &Caller, key: &str, body: &str) -> Reply {
        self.bed.call(Call::new(caller, Method::POST, &self.path).text(body).key(key)).await
    }

    async fn count(&self) -> usize {
        self.bed.get(&self.owner, &self.path).await["data"].as_array().unwrap().len()
    }
}

fn body() -> Value {
    json!({"name": "a", "scopes": ["messages:send"]})
}

#[tokio::test]
async fn second_request_with_same_key_gets_the_same_answer_and_has_no_effect() {
    let keys = Keys::start().await;
    let first = keys.create("k", &body()).await;
    assert_eq!(first.summary(), "201");
    // Member order, white space and quotes around the key do not matter.
    let second =
        keys.create_as(&keys.owner, "\"k\"", "{ \"scopes\" : [\"messages:send\"],\n\"name\":\"\\u0061\"}").await;
    assert_eq!(second.summary(), "201 replayed");
    assert_eq!(second.body, first.body);
    assert_eq!(keys.count().await, 1);
}

#[tokio::test]
async fn another_request_with_same_key_is_refused() {
    let keys = Keys::start().await;
    keys.create("k", &body()).await;
    let other = json!({"name": "b", "scopes": ["messages:send"]});
    assert_eq!(keys.create("k", &other).await.summary(), "422 idempotency_key_reused");
    // Also when it would be refused by itself.
    assert_eq!(keys.create("k", &json!({})).await.summary(), "422 idempotency_key_reused");
    // But not when it is no JSON: that is found first.
    assert_eq!(keys.create_as(&keys.owner, "k", "[]").await.summary(), "400 invalid_json");
    assert_eq!(keys.create_as(&keys.owner, "", "[]").await.summary(), "400 invalid_json");
    assert_eq!(keys.create("", &json!({})).await.summary(), "400 invalid_idempotency_key");
    assert_eq!(keys.create(&"k".repeat(65), &body()).await.summary(), "400 invalid_idempotency_key");
    assert_eq!(keys.create(&"k".repeat(64), &body()).await.summary(), "201");
    assert_eq!(keys.count().await, 2);
}

#[tokio::test]
async fn a_refusal_frees_the_key() {
    let keys = Keys::start().await;
    assert_eq!(keys.create("k", &json!({"name": "a"})).await.summary(), "422 /scopes required");
    assert_eq!(keys.create("k", &body()).await.summary(), "201");
    assert_eq!(keys.create("k", &json!({"name": "a"})).await.summary(), "422 idempotency_key_reused");
}

#[tokio::test]
async fn a_key_is_forgotten_after_a_day() {
    let keys = Keys::start().await;
    keys.create("k", &body()).await;
    keys.bed.clock.advance(Duration::from_hours(24) - Duration::from_millis(1));
    assert_eq!(keys.create("k", &body()).await.summary(), "201 replayed");
    keys.bed.clock.advance(Duration::from_millis(1));
    let other = json!({"name": "b", "scopes": ["*"]});
    assert_eq!(keys.create("k", &other).await.summary(), "201");
    assert_eq!(keys.create("k", &other).await.summary(), "201 replayed");
    assert_eq!(keys.count().await, 2);
}

#[tokio::test]
async fn requests_at_the_same_moment_have_one_effect() {
    let keys = Keys::start().await;
    let request = body();
    let replies = futures_util::future::join_all((0..8).map(|_| keys.create("k", &request))).await;
    let fresh = replies.iter().filter(|reply| reply.summary() == "201").count();
    assert_eq!(fresh, 1);
    for reply in &replies {
        match reply.summary().as_str() {
            "201" | "201 replayed" => {}
            "409 idempotency_in_progress" => assert_eq!(reply.retry_after, Some(1)),
            other => panic!("{other}"),
        }
    }
    assert_eq!(keys.count().await, 1);
}

#[tokio::test]
async fn a_key_belongs_to_its_credential_method_and_path() {
    let keys = Keys::start().await;
    let workspace = keys.workspace;
    keys.create("k", &body()).await;
    let admin = keys.bed.member(workspace, "admin@acme.com", "admin").await;
    assert_eq!(keys.create_as(&admin, "k", &body().to_string()).await.summary(), "201");
    let path = format!("/workspaces/{workspace}");
    let patch = Call::new(&keys.owner, Method::PATCH, &path).body(&json!({"name": "New"})).key("k");
    assert_eq!(keys.bed.call(patch).await.summary(), "200");
    let post = Call::new(&keys.owner, Method::POST, "/workspaces").body(&json!({"name": "New"})).key("k");
    assert_eq!(keys.bed.call(post).await.summary(), "201");
}

#[tokio::test]
async fn a_key_of_a_session_belongs_to_the_workspace_that_the_header_names() {
    let keys = Keys::start().await;
    let other = keys.bed.post(&keys.owner, "/workspaces", json!({"name": "Other"})).await;
    let (first, second) = (keys.workspace.to_string(), other["id"].as_str().unwrap());
    // The operation of one event, and one that is done in parts.
    let event = json!({"name": "seen", "contact": {"external_id": "u-1"}});
    for (path, body) in [("/events", event.clone()), ("/events/bulk", json!({"events": [event]}))] {
        for caller in [&keys.owner, &Caller::Operator(None)] {
            let send = async |workspace| {
                let call = Call::new(caller, Method::POST, path).body(&body).key("k");
                keys.bed.call(call.in_workspace(workspace)).await
            };
            let (here, there) = (send(first.as_str()).await, send(second).await);
            assert_eq!((here.summary(), there.summary()), ("202".to_owned(), "202".to_owned()), "{path}");
            let (again, over_there) = (send(first.as_str()).await, send(second).await);
            assert_eq!((again.summary(), over_there.summary()), ("202 replayed".to_owned(), "202 replayed".to_owned()));
            assert_eq!((again.body, over_there.body), (here.body, there.body), "{path}");
        }
    }
    for workspace in [first.as_str(), second] {
        let found = keys.bed.get(&keys.owner, &format!("/workspaces/{workspace}/contacts?external_id=u-1")).await;
        assert_eq!(found["data"].as_array().unwrap().len(), 1, "{workspace}");
    }
}

#[tokio::test]
async fn a_repeated_deletion_is_done_once_and_answered_twice() {
    let keys = Keys::start().await;
    let editor = keys.bed.member(keys.workspace, "editor@acme.com", "editor").await;
    let Caller::Session(session) = &editor else { panic!("not a session") };
    let path = format!("/workspaces/{}/members/{}", keys.workspace, session.user.id);
    let delete = || Call::new(&keys.owner, Method::DELETE, &path).key("k");
    assert_eq!(keys.bed.call(delete()).await.summary(), "204");
    // Check 10 goes before check 11: the member is gone, the answer is still the first one.
    assert_eq!(keys.bed.call(delete()).await.summary(), "204 replayed");
    let without_key = Call::new(&keys.owner, Method::DELETE, &path);
    assert_eq!(keys.bed.call(without_key).await.summary(), "404 not_found");
}

#[tokio::test]
async fn an_answer_without_effect_is_remembered_too() {
    let keys = Keys::start().await;
    let path = format!("/workspaces/{}", keys.workspace);
    let patch = |body: &Value| Call::new(&keys.owner, Method::PATCH, &path).body(body).key("k");
    assert_eq!(keys.bed.call(patch(&json!({}))).await.summary(), "200");
    assert_eq!(keys.bed.call(patch(&json!({}))).await.summary(), "200 replayed");
    assert_eq!(keys.bed.call(patch(&json!({"name": "x"}))).await.summary(), "422 idempotency_key_reused");
}

#[tokio::test]
async fn reading_takes_no_key() {
    let keys = Keys::start().await;
    for key in ["k", "not a key"] {
        let get = Call::new(&keys.owner, Method::GET, &keys.path).key(key);
        assert_eq!(keys.bed.call(get).await.summary(), "200");
    }
}

#[tokio::test]
async fn a_remembered_secret_is_sealed() {
    let keys = Keys::start().await;
    let created = keys.create("k", &body()).await;
    let key = ReplyKey {
        credential: keys.owner.credential().unwrap(),
        route: format!("POST {} {}", keys.path, keys.workspace),
        key: "k".to_owned(),
    };
    let stored = keys.bed.store.reply(&key, keys.bed.app.now()).await.unwrap().unwrap();
    let text = String::from_utf8(stored.body.to_vec()).unwrap();
    assert!(text.starts_with("sealed:") && !text.contains(created["key"].as_str().unwrap()));
}
