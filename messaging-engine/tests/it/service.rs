//! Contract section 3.

use std::time::Duration;

use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::Bed;

#[tokio::test]
async fn health_needs_no_credentials_and_tells_when_the_store_is_gone() {
    let bed = Bed::start();
    assert_eq!(bed.get(&Caller::Anonymous, "/health").await.body, json!({"status": "ok"}));
    bed.store.close().await;
    let reply = bed.get(&Caller::Anonymous, "/health").await;
    assert_eq!((reply.summary().as_str(), reply.retry_after), ("503 unavailable", Some(1)));
}

#[tokio::test]
async fn whoever_creates_a_workspace_owns_it() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let ann = bed.sign_in("ann@example.com").await;
    let created = bed.post(&ann, "/workspaces", json!({"name": "Acme"})).await;
    assert_eq!(created.summary(), "201");
    let expected = json!({"id": created["id"], "name": "Acme", "plan": "free", "data_region": "local",
        "timezone": "UTC", "opt_out_keywords": [], "request_log": "failures", "require_second_factor": false,
        "archive": {"enabled": false, "indexed": false, "lists": [], "title": null}, "archive_url": null, "page_texts": {},
        "deletes_at": null, "created_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let ann = bed.sign_in("ann@example.com").await;
    assert_eq!(bed.get(&ann, "/workspaces").await.body, json!({"data": [expected], "next_cursor": null}));
    assert_eq!(bed.get(&ann, "/auth/me").await["workspaces"][0]["role"], "owner");
}

#[tokio::test]
async fn a_key_sees_exactly_its_own_workspace() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.post(&owner, "/workspaces", json!({"name": "Other"})).await;
    let key = bed.key(workspace, &["messages:send"]).await;
    let page = bed.get(&key, "/workspaces").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    assert_eq!(page["data"][0]["id"], json!(workspace));
    assert_eq!(bed.post(&key, "/workspaces", json!({"name": "x"})).await.summary(), "403 session_required");
    assert_eq!(bed.get(&Caller::Anonymous, "/workspaces").await.summary(), "401 missing_credentials");
}

#[tokio::test]
async fn name_and_time_zone_change() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}");
    let show = async |body: Value| {
        let reply = bed.patch(&owner, &path, body).await;
        format!("{} {} {}", reply.summary(), reply["name"], reply["timezone"])
    };
    assert_eq!(show(json!({})).await, r#"200 "Acme" "UTC""#);
    assert_eq!(show(json!({"timezone": "Europe/Berlin"})).await, r#"200 "Acme" "Europe/Berlin""#);
    assert_eq!(show(json!({"name": "Acme 2"})).await, r#"200 "Acme 2" "Europe/Berlin""#);
    assert_eq!(show(json!({"timezone": null})).await, r#"200 "Acme 2" "UTC""#);
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    assert_eq!(bed.patch(&admin, &path, json!({"name": "Acme 3"})).await.summary(), "200");
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    assert_eq!(bed.patch(&editor, &path, json!({"name": "x"})).await.summary(), "403 role_forbidden");
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.patch(&key, &path, json!({"name": "x"})).await.summary(), "403 session_required");
    for other in ["wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "nonsense"] {
        let path = format!("/workspaces/{other}");
        assert_eq!(bed.patch(&owner, &path, json!({"name": "x"})).await.summary(), "403 workspace_forbidden");
    }
}

#[tokio::test]
async fn each_rule_at_its_limit() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let create = async |body: Value, expected: &str| {
        assert_eq!(bed.post(&owner, "/workspaces", body.clone()).await.summary(), expected, "{body}");
    };
    create(json!({"name": "x".repeat(200)}), "201").await;
    create(json!({"name": "x".repeat(201)}), "422 /name too_long").await;
    create(json!({"name": ""}), "422 /name required").await;
    create(json!({}), "422 /name required").await;

    let path = format!("/workspaces/{workspace}");
    let update = async |body: Value, expected: &str| {
        assert_eq!(bed.patch(&owner, &path, body.clone()).await.summary(), expected, "{body}");
    };
    update(json!({"name": "x".repeat(200)}), "200").await;
    update(json!({"name": "x".repeat(201)}), "422 /name too_long").await;
    update(json!({"name": ""}), "422 /name required").await;
    update(json!({"name": null, "timezone": 1}), "422 /name required /timezone invalid_type").await;
    update(json!({"name": "", "timezone": "Mars/Base"}), "422 /name required /timezone invalid_format").await;
    update(json!({"timezone": ""}), "422 /timezone invalid_format").await;
    update(json!({"timezone": "America/Argentina/Buenos_Aires"}), "200").await;
}

#[tokio::test]
async fn changes_of_different_members_at_the_same_moment_are_both_kept() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}");
    for round in 0..5 {
        let name = format!("Acme {round}");
        let timezone = if round % 2 == 0 { "Europe/Berlin" } else { "Asia/Tokyo" };
        let (first, second) = tokio::join!(
            bed.patch(&owner, &path, json!({"name": name})),
            bed.patch(&owner, &path, json!({"timezone": timezone})),
        );
        assert_eq!((first.status, second.status), (200, 200));
        let stored = bed.store.workspace(workspace).await.unwrap().unwrap().record;
        assert_eq!((stored.name.as_str(), stored.timezone.as_str()), (name.as_str(), timezone));
        bed.clock.advance(Duration::from_secs(1));
    }
}
