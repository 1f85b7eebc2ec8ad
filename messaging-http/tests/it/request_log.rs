//! The log of requests, as the server fills it.

use messaging_core::scope::{Role, Scope};
use serde_json::{Value, json};

use crate::harness::TestServer;

/// The logged requests of the workspace, newest first.
async fn logged(server: &TestServer, token: &str) -> Vec<Value> {
    server.app.requests_written().await;
    let response = server.get(&format!("/v1/workspaces/{}/requests", server.workspace), token).await;
    assert_eq!(response.status, 200, "{}", response.code());
    response.json()["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn requests_are_logged_with_their_answers_and_without_credentials() {
    let server = TestServer::start().await;
    let (key, owner) = (server.key(&[Scope::ContactsWrite]).await, server.session(Some(Role::Owner)).await);
    let path = format!("/v1/workspaces/{}/lists", server.workspace);
    let headers = [
        ("authorization", &*format!("Bearer {key}")),
        ("content-type", "application/json"),
        ("x-request-id", "mine-1"),
        ("user-agent", "backend/1.0"),
        ("idempotency-key", "order-1"),
    ];
    let refused = server.request("POST", &format!("{path}?secret=x"), &headers, Some(r#"{"name":""}"#)).await;
    assert_eq!(refused.status, 422);
    let made = server.post(&path, &key, r#"{"name":"News"}"#).await;
    assert_eq!(made.status, 201);
    // Successful reads and requests without credentials are not logged.
    assert_eq!(server.get(&path, &key).await.status, 200);
    assert_eq!(server.get(&path, "mk_live_abcdefghijkl.0123456789").await.status, 401);
    // A request without the scope is a failure of the key.
    let denied = server.get(&format!("/v1/workspaces/{}/campaigns", server.workspace), &key).await;
    assert_eq!(denied.status, 403);

    let found = logged(&server, &owner).await;
    let told: Vec<_> = found.iter().map(|one| json!([one["operation"], one["status"], one["code"]])).collect();
    let expected = [
        json!(["listCampaigns", 403, null]),
        json!(["createList", 201, null]),
        json!(["createList", 422, "validation_failed"]),
    ];
    assert_eq!(told, expected);
    assert_eq!(found[1]["resource_id"], made.json()["id"]);
    let first = &found[2];
    assert_eq!(first["path"], path.strip_prefix("/v1").unwrap());
    assert_eq!(
        json!([first["id"], first["method"], first["user_agent"], first["idempotency_key"], first["request_bytes"]]),
        json!(["mine-1", "POST", "backend/1.0", "order-1", 11])
    );

    let one = server.get(&format!("/v1/workspaces/{}/requests/mine-1", server.workspace), &owner).await.json();
    assert_eq!(one["request"], json!({"name": ""}));
    assert_eq!(one["response"], refused.json());
    let whole = json!(found).to_string() + &one.to_string();
    assert!(!whole.contains(key.split_once('.').unwrap().1), "{whole}");
    assert!(!whole.contains("secret=x"), "{whole}");
}

#[tokio::test]
async fn a_person_is_logged_where_they_are_a_member() {
    let server = TestServer::start().await;
    let (owner, stranger) = (server.session(Some(Role::Owner)).await, server.session(None).await);
    let path = format!("/v1/workspaces/{}/lists", server.workspace);
    assert_eq!(server.post(&path, &owner, "{}").await.status, 422);
    assert_eq!(server.post(&path, &stranger, "{}").await.status, 403);
    let found = logged(&server, &owner).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["user_id"].is_string() && found[0]["key_id"].is_null(), "{found:?}");
}

#[tokio::test]
async fn the_audit_log_is_csv_where_that_is_accepted() {
    let server = TestServer::start().await;
    let owner = server.session(Some(Role::Owner)).await;
    let path = format!("/v1/workspaces/{}/lists", server.workspace);
    let headers = [
        ("authorization", &*format!("Bearer {owner}")),
        ("content-type", "application/json"),
        ("x-request-id", "mine-2"),
    ];
    assert_eq!(server.request("POST", &path, &headers, Some(r#"{"name":"News"}"#)).await.status, 201);
    let path = format!("/v1/workspaces/{}/audit", server.workspace);
    let entry = server.get(&path, &owner).await.json()["data"][0].clone();
    assert_eq!(json!([entry["operation"], entry["request_id"]]), json!(["createList", "mine-2"]));
    let headers = [("authorization", &*format!("Bearer {owner}")), ("accept", "text/csv")];
    let csv = server.request("GET", &path, &headers, None).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = String::from_utf8(csv.body.clone()).unwrap();
    assert_eq!(text.split_terminator("\r\n").count(), 2, "{text}");
    assert!(text.contains(",createList,list,lst_"), "{text}");
}
