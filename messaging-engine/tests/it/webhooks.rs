//! Webhooks as resources: registered, changed, paused, resumed, deleted.

use http::Method;
use messaging_engine::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call};

async fn create(bed: &Bed, caller: &Caller, path: &str, body: Value) -> Value {
    let reply = bed.post(caller, path, body).await;
    assert_eq!(reply.summary(), "201");
    reply.body
}

#[tokio::test]
async fn a_webhook_is_created_and_shows_its_secret_once() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let body =
        json!({"url": "https://acme.com/hook", "events": ["delivered", "bounce", "delivered"], "secret": "mine"});
    let created = create(&bed, &owner, &path, body).await;
    let secret = created["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().remove("secret");
    insta::with_settings!({sort_maps => true}, {
        insta::assert_json_snapshot!(expected, {".id" => "whk_…"}, @r#"
    {
      "created_at": "2026-01-31T09:15:00.000Z",
      "events": [
        "delivered",
        "bounce"
      ],
      "id": "whk_…",
      "pii": true,
      "status": "active",
      "updated_at": "2026-01-31T09:15:00.000Z",
      "url": "https://acme.com/hook"
    }
    "#);
    });
    let one = format!("{path}/{}", created["id"].as_str().unwrap());
    assert_eq!(bed.get(&owner, &one).await.body, expected);
    assert_eq!(bed.get(&owner, &path).await["data"], json!([expected]));
    assert_eq!(bed.delete(&owner, &one).await.summary(), "204");
    for gone in [bed.get(&owner, &one).await, bed.delete(&owner, &one).await] {
        assert_eq!(gone.summary(), "404 not_found");
    }
}

#[tokio::test]
async fn faults_are_reported_at_once_and_before_the_rules_for_addresses() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    for (body, expected) in [
        (json!({}), "422 /events required /url required"),
        (json!({"url": "", "events": []}), "422 /events too_short /url required"),
        (json!({"url": "acme.com", "events": ["sent"]}), "422 /url invalid_format"),
        (
            json!({"url": "acme.com", "events": ["opened"], "status": "disabled"}),
            "422 /events/0 unknown_value /status unknown_value /url invalid_format",
        ),
        (json!({"url": "https://127.0.0.1/", "events": ["queued"]}), "422 /events/0 unknown_value"),
        (json!({"url": "https://acme.com/", "events": ["test"]}), "422 /events/0 unknown_value"),
        (json!({"url": format!("https://acme.com/{}", "x".repeat(2048)), "events": ["*"]}), "422 /url too_long"),
        (json!({"url": "http://acme.com/", "events": ["*"]}), "422 url_not_allowed"),
        (json!({"url": "https://user@acme.com/", "events": ["*"]}), "422 url_not_allowed"),
        (json!({"url": "https://10.1/", "events": ["*"]}), "422 url_not_allowed"),
        (json!({"url": "https://[::ffff:127.0.0.1]/", "events": ["*"]}), "422 url_not_allowed"),
    ] {
        assert_eq!(bed.post(&owner, &path, body.clone()).await.summary(), expected, "{body}");
    }
    assert_eq!(bed.get(&owner, &path).await["data"], json!([]));
}

#[tokio::test]
async fn a_webhook_changes() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook", "events": ["*"], "status": "paused"});
    let created = create(&bed, &owner, &path, body).await;
    let one = format!("{path}/{}", created["id"].as_str().unwrap());
    bed.clock.advance(std::time::Duration::from_secs(1));
    let same = bed.patch(&owner, &one, json!({"url": "https://acme.com/hook"})).await;
    assert_eq!((same.status, &same["updated_at"]), (200, &created["updated_at"]));
    let changed = bed.patch(&owner, &one, json!({"events": ["open", "click"], "url": "https://acme.com/other"})).await;
    assert_eq!(changed["events"], json!(["open", "click"]));
    assert_eq!((&changed["url"], &changed["status"]), (&json!("https://acme.com/other"), &json!("paused")));
    assert_eq!(changed["updated_at"], "2026-01-31T09:15:01.000Z");
    assert!(changed.body.get("secret").is_none());
    for (body, expected) in [
        (json!({"url": null}), "422 /url required"),
        (json!({"events": []}), "422 /events too_short"),
        (json!({"url": "https://localhost/"}), "422 url_not_allowed"),
        (json!({"url": "x", "events": ["x"]}), "422 /events/0 unknown_value /url invalid_format"),
    ] {
        assert_eq!(bed.patch(&owner, &one, body.clone()).await.summary(), expected, "{body}");
    }
    let nobody = format!("{path}/whk_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    assert_eq!(bed.patch(&owner, &nobody, json!({"url": 1})).await.summary(), "404 not_found");
}

#[tokio::test]
async fn pausing_and_resuming_want_the_right_state() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let created = create(&bed, &owner, &path, json!({"url": "https://acme.com/hook", "events": ["*"]})).await;
    let one = format!("{path}/{}", created["id"].as_str().unwrap());
    let act = async |verb: &str| bed.call(Call::new(&owner, Method::POST, &format!("{one}/{verb}"))).await;
    let refused = act("resume").await;
    assert_eq!(refused.summary(), "409 invalid_state");
    assert_eq!(refused["error"]["details"], json!({"status": "active", "allowed": ["paused", "disabled"]}));
    let paused = act("pause").await;
    assert_eq!((paused.status, &paused["result"], &paused["status"]), (202, &json!("paused"), &json!("paused")));
    assert_eq!(paused["url"], "https://acme.com/hook");
    let refused = act("pause").await;
    assert_eq!(refused["error"]["details"], json!({"status": "paused", "allowed": ["active"]}));
    let resumed = act("resume").await;
    assert_eq!((resumed.status, &resumed["result"], &resumed["status"]), (202, &json!("resumed"), &json!("active")));
}

#[tokio::test]
async fn a_rotated_secret_is_another_and_is_remembered_sealed() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let created = create(&bed, &owner, &path, json!({"url": "https://acme.com/hook", "events": ["*"]})).await;
    let rotate = format!("{path}/{}/rotate-secret", created["id"].as_str().unwrap());
    let call = || Call::new(&owner, Method::POST, &rotate).key("once");
    let (first, again) = (bed.call(call()).await, bed.call(call()).await);
    assert_eq!((first.status, again.replayed), (200, true));
    assert_eq!(first["secret"], again["secret"]);
    assert_ne!(first["secret"], created["secret"]);
}

#[tokio::test]
async fn what_the_creator_may_see_the_webhook_gets() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook", "events": ["*"]});
    let blind = bed.key(workspace, &["webhooks:write"]).await;
    let seeing = bed.key(workspace, &["webhooks:write", "pii:read"]).await;
    for (caller, pii) in [(&blind, false), (&seeing, true), (&owner, true)] {
        assert_eq!(create(&bed, caller, &path, body.clone()).await["pii"], pii);
    }
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    assert_eq!(bed.get(&editor, &path).await.status, 200);
    assert_eq!(bed.post(&editor, &path, body).await.summary(), "403 role_forbidden");
}

#[tokio::test]
async fn a_workspace_has_no_more_webhooks_than_it_can_tell() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook", "events": ["*"]});
    for _ in 0..messaging_core::domain::webhook::MAX_WEBHOOKS {
        create(&bed, &owner, &path, body.clone()).await;
    }
    assert_eq!(bed.post(&owner, &path, body).await.summary(), "422 /url too_many_items");
}
