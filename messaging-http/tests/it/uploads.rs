//! `PUT /uploads/{token}` (contract sections 6.4 and 18), over the wire.

use std::time::Duration;

use messaging_core::ids::WorkspaceId;
use messaging_core::scope::Scope;
use messaging_http::ServerOptions;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::{Response, Wire};

/// Announces a file, and returns the path of its link.
pub(crate) async fn announce(server: &TestServer, file: &[u8]) -> String {
    announce_in(server, server.workspace, file).await
}

/// Announces a file in another workspace.
pub(crate) async fn announce_in(server: &TestServer, workspace: WorkspaceId, file: &[u8]) -> String {
    let sha256: String = digest(&SHA256, file).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"filename": "a.csv", "size_bytes": file.len(), "sha256": sha256}).to_string();
    let key = server.key_with(&[Scope::ContactsWrite], |key| key.workspace_id = workspace).await;
    let answer = server.post(&format!("/v1/workspaces/{workspace}/contacts/import"), &key, &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.json());
    let link = answer.json()["upload_url"].as_str().unwrap().to_owned();
    link[link.find("/uploads/").unwrap()..].to_owned()
}

/// Sends a file as a browser or curl would, without credentials.
async fn put(server: &TestServer, path: &str, file: &[u8]) -> Response {
    let mut wire = Wire::connect(server.address).await;
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: test\r\ncontent-type: text/csv\r\ncontent-length: {}\r\n\r\n",
        file.len()
    );
    wire.send(head).await;
    wire.send(file).await;
    wire.response().await.expect("an answer")
}

#[tokio::test]
async fn a_link_takes_its_file_without_credentials_once() {
    let server = TestServer::start().await;
    let file = b"email\nann@example.com\n";
    let path = announce(&server, file).await;
    let answer = put(&server, &path, file).await;
    assert_eq!((answer.status, answer.header("content-type")), (202, Some("application/json; charset=utf-8")));
    assert_eq!((&answer.json()["status"], &answer.json()["upload_url"]), (&json!("processing"), &Value::Null));
    assert!(answer.header("x-request-id").is_some() && answer.header("ratelimit").is_none());
    let again = put(&server, &path, file).await;
    assert_eq!((again.status, again.code().as_str()), (410, "link_expired"));
    server.app.run_until_idle().await.unwrap();
    let used = put(&server, &path, file).await;
    assert_eq!((used.status, used.code().as_str()), (410, "link_expired"));

    let late = announce(&server, file).await;
    server.clock.advance(Duration::from_hours(1));
    assert_eq!(put(&server, &late, file).await.code(), "link_expired");
}

#[tokio::test]
async fn what_is_not_the_announced_file_is_refused() {
    let server = TestServer::start().await;
    let file = b"email\nann@example.com\n";
    let path = announce(&server, file).await;
    for (path, body, expected) in [
        ("/uploads/nobody", &file[..], (404, "not_found")),
        ("/uploads/", file, (404, "route_not_found")),
        (&*format!("/v1{path}"), file, (404, "route_not_found")),
        (&path[..path.len() - 1], file, (404, "not_found")),
        (&path, b"email\nann@example.com\nb", (413, "payload_too_large")),
        (&path, b"email\n", (422, "size_mismatch")),
        (&path, b"", (422, "size_mismatch")),
        (&path, b"email\nbob@example.com\n", (422, "checksum_mismatch")),
    ] {
        let answer = put(&server, path, body).await;
        assert_eq!((answer.status, answer.code().as_str()), expected, "{path}");
    }
    let answer = server.request("GET", &path, &[], None).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("PUT")));
    assert_eq!(put(&server, &path, file).await.status, 202, "the link still works");
}

#[tokio::test]
async fn more_than_was_announced_is_refused_as_soon_as_that_is_known() {
    let server = TestServer::start().await;
    let path = announce(&server, b"email\nann@example.com\n").await;
    // Before a byte of it is sent.
    let mut wire = Wire::connect(server.address).await;
    wire.send(format!("PUT {path} HTTP/1.1\r\nhost: test\r\ncontent-length: 99999999\r\n\r\n")).await;
    let answer = wire.response().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    assert!(wire.is_closed().await);
    // In the middle of a body whose length was not announced.
    let mut wire = Wire::connect(server.address).await;
    wire.send(format!("PUT {path} HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n")).await;
    wire.send("16\r\nemail\nann@example.com\n\r\n8\r\nmore\nmor\r\n").await;
    assert_eq!(wire.response().await.unwrap().code(), "payload_too_large");
}

#[tokio::test]
async fn a_file_may_be_longer_than_a_body_and_come_in_chunks() {
    let server = TestServer::start().await;
    let file: Vec<u8> = b"external_id,attributes.text\n"
        .iter()
        .copied()
        .chain((0..12).flat_map(|n| format!("{n},{}\n", "x".repeat(1_000_000)).into_bytes()))
        .collect();
    assert!(file.len() > 10 << 20);
    let path = announce(&server, &file).await;
    let mut wire = Wire::connect(server.address).await;
    wire.send(format!("PUT {path} HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n")).await;
    for piece in file.chunks(300_000) {
        wire.send(format!("{:x}\r\n", piece.len())).await;
        wire.send(piece).await;
        wire.send("\r\n").await;
    }
    wire.send("0\r\n\r\n").await;
    assert_eq!(wire.response().await.unwrap().status, 202);
    // The connection stays open.
    wire.send("GET /health HTTP/1.1\r\nhost: test\r\n\r\n").await;
    assert_eq!(wire.response().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_file_that_stops_arriving_is_given_up() {
    let options = ServerOptions { body_stall_timeout: Duration::from_millis(50), ..ServerOptions::new(any_port()) };
    let server = TestServer::with(options).await;
    let file = b"email\nann@example.com\n";
    let path = announce(&server, file).await;
    let mut wire = Wire::connect(server.address).await;
    wire.send(format!("PUT {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\nemail", file.len())).await;
    assert_eq!(wire.response().await.unwrap().status, 408);
    assert!(wire.is_closed().await);
    assert_eq!(put(&server, &path, file).await.status, 202);
}
