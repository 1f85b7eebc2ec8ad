//! Contract section 2.2.

use std::time::Duration;

use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::Bed;

fn keys(workspace: impl std::fmt::Display) -> String {
    format!("/workspaces/{workspace}/api-keys")
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_works() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let body = json!({"name": "backend", "scopes": ["messages:send", "pii:read", "messages:send"],
        "rate_limit": 1200, "ip_allowlist": ["10.0.0.0/8", "2001:db8::1"], "expires_at": "2026-02-01T00:00:00+01:00"});
    let created = bed.post(&owner, &keys(workspace), body).await;
    assert_eq!(created.summary(), "201");
    let text = created["key"].as_str().unwrap().to_owned();
    let (prefix, secret) = text.split_once('.').unwrap();
    assert_eq!((prefix.len(), secret.len()), (20, 40));
    let mut expected = json!({"id": created["id"], "name": "backend", "prefix": prefix,
        "scopes": ["messages:send", "pii:read"], "rate_limit": 1200, "ip_allowlist": ["10.0.0.0/8", "2001:db8::1"],
        "created_at": "2026-01-31T09:15:00.000Z", "last_used_at": null,
        "expires_at": "2026-01-31T23:00:00.000Z", "revoked_at": null, "rotated_from": null, "replaced_by": null,
        "recent_use": [], "unused_scopes": null, "needed_scopes": null, "key": text});
    assert_eq!(created.body, expected);

    let Caller::Key(key) = bed.app.authenticate(&text).await.unwrap() else { panic!("not a key") };
    assert_eq!((key.workspace_id, key.rate_limit), (workspace, 1200));

    // The listing tells when it was used, and never the key.
    expected.as_object_mut().unwrap().remove("key");
    let mut listed = Value::Null;
    // The use is written in the background; each reading gives it time.
    for _ in 0..10_000 {
        listed = bed.get(&owner, &keys(workspace)).await["data"][0].clone();
        if !listed["last_used_at"].is_null() {
            break;
        }
    }
    expected["last_used_at"] = json!("2026-01-31T09:15:00.000Z");
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn what_is_left_out_or_null_has_its_default() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    for extra in [json!({}), json!({"rate_limit": null, "ip_allowlist": null, "expires_at": null})] {
        let mut body = json!({"name": "a", "scopes": ["*"]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let created = bed.post(&owner, &keys(workspace), body).await;
        assert_eq!(created.summary(), "201");
        assert_eq!(created["rate_limit"], 600);
        assert_eq!(created["ip_allowlist"], json!([]));
        assert_eq!(created["expires_at"], Value::Null);
    }
}

#[tokio::test]
async fn each_rule_at_its_limit() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let check = async |body: Value, expected: &str| {
        let reply = bed.post(&owner, &keys(workspace), body.clone()).await;
        assert_eq!(reply.summary(), expected, "{body}");
    };
    let with = |name: &str, value: Value| {
        let mut body = json!({"name": "a", "scopes": ["*"]});
        body[name] = value;
        body
    };
    check(with("name", json!("é".repeat(100))), "201").await;
    check(with("name", json!("é".repeat(101))), "422 /name too_long").await;
    check(with("name", json!("")), "422 /name required").await;
    check(with("name", json!(null)), "422 /name required").await;
    check(with("name", json!(1)), "422 /name invalid_type").await;
    check(with("name", json!("a\0")), "422 /name invalid_format").await;
    check(with("scopes", json!([])), "422 /scopes too_short").await;
    check(with("scopes", json!(null)), "422 /scopes required").await;
    check(with("scopes", json!("*")), "422 /scopes invalid_type").await;
    check(with("scopes", json!(["*", "messages:reed"])), "422 /scopes/1 unknown_value").await;
    check(with("scopes", json!(["*", null])), "422 /scopes/1 invalid_type").await;
    check(with("rate_limit", json!(1)), "201").await;
    check(with("rate_limit", json!(0)), "422 /rate_limit out_of_range").await;
    check(with("rate_limit", json!(-1)), "422 /rate_limit out_of_range").await;
    check(with("rate_limit", json!(100_000)), "201").await;
    check(with("rate_limit", json!(100_001)), "422 /rate_limit out_of_range").await;
    check(with("rate_limit", json!(1e30)), "422 /rate_limit out_of_range").await;
    check(with("rate_limit", json!(600.0)), "201").await;
    check(with("rate_limit", json!(600.5)), "422 /rate_limit invalid_type").await;
    check(with("rate_limit", json!("600")), "422 /rate_limit invalid_type").await;
    check(with("ip_allowlist", json!(vec!["10.0.0.1"; 100])), "201").await;
    check(with("ip_allowlist", json!(vec!["10.0.0.1"; 101])), "422 /ip_allowlist too_many_items").await;
    check(
        with("ip_allowlist", json!(["10.0.0.0/8", "10.0.0.0/33", "::/0", "x", ""])),
        "422 /ip_allowlist/1 invalid_format /ip_allowlist/3 invalid_format /ip_allowlist/4 invalid_format",
    )
    .await;
    check(with("expires_at", json!("2026-01-31T09:15:00Z")), "422 /expires_at out_of_range").await;
    check(with("expires_at", json!("2026-01-31T09:15:00.001Z")), "201").await;
    check(with("expires_at", json!("2026-01-31 09:15")), "422 /expires_at invalid_format").await;
    check(with("expires_at", json!(17)), "422 /expires_at invalid_type").await;
}

#[tokio::test]
async fn all_faults_are_reported_at_once() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let body = json!({"scopes": ["messages:send", "x"], "rate_limit": 0, "ip_allowlist": ["x"], "expires_at": "2020-01-01T00:00:00Z"});
    let reply = bed.post(&owner, &keys(workspace), body).await;
    assert_eq!(
        reply.summary(),
        "422 /expires_at out_of_range /ip_allowlist/0 invalid_format /name required /rate_limit out_of_range /scopes/1 unknown_value"
    );
    assert_eq!(bed.get(&owner, &keys(workspace)).await["data"], json!([]));
}

#[tokio::test]
async fn a_revoked_key_is_dead_at_once_and_stays_listed() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let created = bed.post(&owner, &keys(workspace), json!({"name": "a", "scopes": ["*"]})).await;
    let (text, path) =
        (created["key"].as_str().unwrap(), format!("{}/{}", keys(workspace), created["id"].as_str().unwrap()));
    assert!(bed.app.authenticate(text).await.is_ok());
    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    assert_eq!(bed.app.authenticate(text).await.unwrap_err().code(), "invalid_credentials");

    // Revoking again is fine and keeps the time of the first.
    bed.clock.advance(Duration::from_secs(5));
    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    let listed = bed.get(&owner, &keys(workspace)).await;
    assert_eq!(listed["data"][0]["revoked_at"], "2026-01-31T09:15:00.000Z");
}

#[tokio::test]
async fn an_expired_key_is_dead() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let body = json!({"name": "a", "scopes": ["*"], "expires_at": "2026-01-31T09:15:10Z"});
    let created = bed.post(&owner, &keys(workspace), body).await;
    let text = created["key"].as_str().unwrap();
    bed.clock.advance(Duration::from_millis(9_999));
    assert!(bed.app.authenticate(text).await.is_ok());
    bed.clock.advance(Duration::from_millis(1));
    assert_eq!(bed.app.authenticate(text).await.unwrap_err().code(), "invalid_credentials");
}

#[tokio::test]
async fn keys_of_other_workspaces_are_not_there() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let created = bed.post(&owner, &keys(workspace), json!({"name": "a", "scopes": ["*"]})).await;
    let other = bed.post(&owner, "/workspaces", json!({"name": "Other"})).await["id"].as_str().unwrap().to_owned();
    // Memberships are part of the session: sign in again.
    let owner = bed.sign_in("owner@acme.com").await;
    let path = format!("{}/{}", keys(&other), created["id"].as_str().unwrap());
    assert_eq!(bed.delete(&owner, &path).await.summary(), "404 not_found");
    assert_eq!(bed.delete(&owner, &format!("{}/nonsense", keys(&other))).await.summary(), "404 not_found");
    assert!(bed.app.authenticate(created["key"].as_str().unwrap()).await.is_ok());
}

#[tokio::test]
async fn only_administrators_manage_keys() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let body = json!({"name": "a", "scopes": ["*"]});
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    assert_eq!(bed.post(&admin, &keys(workspace), body.clone()).await.summary(), "201");
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    assert_eq!(bed.post(&editor, &keys(workspace), body.clone()).await.summary(), "403 role_forbidden");
    assert_eq!(bed.get(&editor, &keys(workspace)).await.summary(), "403 role_forbidden");
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.get(&key, &keys(workspace)).await.summary(), "403 session_required");
    let nowhere = Caller::Operator(None);
    let unknown = keys("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    assert_eq!(bed.post(&nowhere, &unknown, body).await.summary(), "404 not_found");
}
