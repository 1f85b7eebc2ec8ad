//! The typed client against the server.

use http::{HeaderMap, Method};
use messaging_engine::ops::health::GetHealth;
use messaging_engine::ops::workspaces::{CreateWorkspace, ListWorkspaces, WorkspaceInput};
use messaging_http::{Client, ClientError};

use crate::harness::TestServer;

fn client(server: &TestServer, token: &str) -> Client {
    Client::new(&format!("http://{}", server.address)).unwrap().token(token).unwrap()
}

#[tokio::test]
async fn operations_are_called_by_type() {
    let server = TestServer::start().await;
    let client = client(&server, &server.session(None).await);
    assert_eq!(client.run(GetHealth).send().await.unwrap().status, "ok");
    let input = WorkspaceInput::new("New");
    let made = client.run(CreateWorkspace).body(input.clone()).idempotency_key("once").send().await.unwrap();
    let again = client.run(CreateWorkspace).body(input.clone()).idempotency_key("once").send().await.unwrap();
    assert_eq!(made, again);
    let page = client.run(ListWorkspaces).send().await;
    // The session was looked up before the workspace was made.
    assert!(page.unwrap().data.iter().any(|workspace| workspace.id == made.id));
}

#[tokio::test]
async fn refusals_are_told_with_everything() {
    let server = TestServer::start().await;
    let client = client(&server, &server.session(None).await);
    let input = WorkspaceInput::new("x".repeat(201));
    let error = client.run(CreateWorkspace).body(input).send().await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!((refusal.status.as_u16(), refusal.code.as_str()), (422, "validation_failed"));
    assert!(refusal.request_id.as_ref().unwrap().starts_with("req_"));
    assert_eq!(refusal.details.as_ref().unwrap()["errors"][0]["code"], "too_long");

    let key = self::client(&server, &server.key(&[]).await);
    let target = "/messages?limit=1";
    let error = key.request(Method::GET, target, None, HeaderMap::new()).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, "scope_required");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let mut server = TestServer::start().await;
    let client = client(&server, "x");
    server.begin_to_stop();
    server.stopped().await;
    let error = client.request(Method::GET, "/health", None, HeaderMap::new()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)) && error.is_unreachable());
}
