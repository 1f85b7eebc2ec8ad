//! Product events over HTTP: the workspace of a request, and the answers.

use messaging_core::scope::{Role, Scope};
use serde_json::json;

use crate::harness::TestServer;

const EVENT: &str = r#"{"name":"order_placed","contact":{"external_id":"u-42"},"unique_id":"order-17"}"#;

#[tokio::test]
async fn a_key_tells_for_its_workspace_and_a_session_names_one() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::EventsWrite]).await;
    let first = server.post("/v1/events", &key, EVENT).await;
    assert_eq!((first.status, &first.json()["status"]), (202, &json!("accepted")));
    let again = server.post("/api/v1/events", &key, EVENT).await;
    assert_eq!((again.status, &again.json()["status"]), (202, &json!("duplicate")));
    assert_eq!(again.json()["event_id"], first.json()["event_id"]);

    let editor = format!("Bearer {}", server.session(Some(Role::Editor)).await);
    let workspace = server.workspace.to_string();
    let headers =
        [("authorization", &*editor), ("content-type", "application/json"), ("x-workspace-id", workspace.as_str())];
    let named = server.request("POST", "/v1/events", &headers, Some(EVENT)).await;
    assert_eq!((named.status, &named.json()["contact_id"]), (202, &first.json()["contact_id"]));
    let unnamed = server.request("POST", "/v1/events", &headers[..2], Some(EVENT)).await;
    assert_eq!((unnamed.status, &*unnamed.code()), (403, "workspace_forbidden"));
    let reader = server.key(&[Scope::ContactsWrite]).await;
    let refused = server.post("/v1/events/bulk", &reader, "{}").await;
    assert_eq!((refused.status, &refused.json()["error"]), (403, &json!("scope required: events:write")));
}

#[tokio::test]
async fn a_bulk_request_is_accepted_even_if_everything_is_refused() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::EventsWrite]).await;
    let reply = server.post("/v1/events/bulk", &key, r#"{"events":[{"name":"$x","contact":{}}]}"#).await;
    assert_eq!(reply.status, 202);
    let answer = reply.json();
    assert_eq!((&answer["accepted"], &answer["duplicates"], &answer["rejected"]), (&json!(0), &json!(0), &json!(1)));
    let refused = &answer["errors"][0];
    assert_eq!((&refused["index"], &refused["error"]["code"]), (&json!(0), &json!("validation_failed")));
    let mut pointers: Vec<_> = refused["error"]["details"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/contact", "/name"]);
    let empty = server.post("/v1/events/bulk", &key, r#"{"events":[]}"#).await;
    assert_eq!((empty.status, &empty.json()["error"]["details"]["errors"][0]["code"]), (422, &json!("too_short")));
}
