//! Automations over HTTP: status and error codes of refusals.

use messaging_core::scope::Scope;
use serde_json::json;

use crate::harness::TestServer;

#[tokio::test]
async fn what_is_missing_is_told_with_a_code_of_its_own() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::AutomationsWrite]).await;
    let path = format!("/v1/workspaces/{}/automations", server.workspace);
    let wrong = server.post(&path, &key, r#"{"name":"A","trigger":{"kind":"x"},"graph":{}}"#).await;
    assert_eq!((wrong.status, &*wrong.code()), (422, "validation_failed"));
    assert_eq!(wrong.json()["error"]["details"]["errors"][0]["pointer"], "/trigger/kind");
    let made = server.post(&path, &key, r#"{"name":"A","trigger":{},"graph":{}}"#).await;
    assert_eq!(made.status, 201);
    let place = format!("{path}/{}", made.json()["id"].as_str().unwrap());
    let refused = server.post(&format!("{place}/activate"), &key, "").await;
    assert_eq!((refused.status, &*refused.code()), (422, "automation_invalid"));
    let mut faults: Vec<_> = refused.json()["error"]["details"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| format!("{} {}", fault["pointer"].as_str().unwrap(), fault["code"].as_str().unwrap()))
        .collect();
    faults.sort();
    assert_eq!(faults, ["/graph/nodes required", "/trigger/kind required"]);
    let state = server.post(&format!("{place}/trigger"), &key, r#"{"external_id":"nobody"}"#).await;
    assert_eq!((state.status, &*state.code()), (422, "validation_failed"));
}

#[tokio::test]
async fn a_key_that_only_reads_changes_nothing() {
    let server = TestServer::start().await;
    let reader = server.key(&[Scope::AutomationsRead]).await;
    let path = format!("/v1/workspaces/{}/automations", server.workspace);
    let refused = server.post(&path, &reader, r#"{"name":"A","trigger":{},"graph":{}}"#).await;
    assert_eq!((refused.status, &refused.json()["error"]), (403, &json!("scope required: automations:write")));
    let headers = [("authorization", &*format!("Bearer {reader}"))];
    let listed = server.request("GET", &path, &headers, None).await;
    assert_eq!((listed.status, &listed.json()["data"]), (200, &json!([])));
}
