//! A flood of requests delays nobody else (contract section 22: shares are counted by address).

use std::time::Duration;

use messaging_core::scope::Scope;
use messaging_http::ServerOptions;

use crate::harness::{TestServer, any_port, request_text};
use crate::uploads::announce;
use crate::wire::{Response, Wire};

/// The address that floods of requests come from.
const FLOODER: &str = "127.0.0.66";

/// The address that another caller's requests come from.
const OTHER: &str = "127.0.0.77";

/// Time limit for the answers to other callers.
const PATIENCE: Duration = Duration::from_secs(1);

#[track_caller]
fn answered(response: Result<Option<Response>, tokio::time::error::Elapsed>) -> Response {
    response.expect("an answer in time").expect("an answer")
}

async fn health_from(server: &TestServer, source: &str) -> u16 {
    let asking = async {
        let mut wire = Wire::connect_from(source, server.address).await;
        wire.send(request_text("GET", "/health", &[], None)).await;
        wire.response().await
    };
    answered(tokio::time::timeout(PATIENCE, asking).await).status
}

fn few_connections() -> ServerOptions {
    ServerOptions { max_connections: 16, ..ServerOptions::new(any_port()) }
}

#[tokio::test]
async fn half_requests_of_one_address_leave_room_for_all() {
    let server = TestServer::with(few_connections()).await;
    let mut held = Vec::new();
    for number in 0..40 {
        let mut wire = Wire::connect_from(FLOODER, server.address).await;
        wire.send(["", "GET", "GET /health HTTP/1.1\r\nhost: te"][number % 3]).await;
        held.push(wire);
    }
    assert_eq!(health_from(&server, OTHER).await, 200);
    // Also for the address itself: its oldest incomplete request is closed.
    assert_eq!(health_from(&server, FLOODER).await, 200);
    assert!(held[0].is_closed().await);
}

#[tokio::test]
async fn half_requests_of_many_addresses_make_room_for_one_more() {
    let server = TestServer::with(few_connections()).await;
    let mut held = Vec::new();
    for number in 0..32 {
        let mut wire = Wire::connect_from(&format!("127.0.1.{}", 1 + number % 8), server.address).await;
        wire.send("GET /health HTTP/1.1\r\nhost: te").await;
        held.push(wire);
    }
    assert_eq!(health_from(&server, OTHER).await, 200);
}

#[tokio::test]
async fn stalled_bodies_of_one_address_do_not_keep_its_connections() {
    let server = TestServer::with(few_connections()).await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut wire = Wire::connect_from(FLOODER, server.address).await;
        wire.send(post_head(&key, 1000)).await;
        held.push(wire);
    }
    assert_eq!(health_from(&server, OTHER).await, 200);
    assert_eq!(health_from(&server, FLOODER).await, 200);
}

fn post_head(key: &str, length: usize) -> String {
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends stalled posts of one key, more than fit into the memory of bodies; returns the connections.
async fn stall_posts(server: &TestServer, source: &str) -> Vec<Wire> {
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut wire = Wire::connect_from(source, server.address).await;
        wire.send(post_head(&key, 200 << 10)).await;
        wire.send("{").await;
        held.push(wire);
    }
    held
}

/// A long post of another workspace.
async fn long_post(server: &TestServer, source: &str) -> Response {
    let workspace = server.other_workspace().await;
    let key = server.key_with(&[Scope::MessagesSend], |key| key.workspace_id = workspace).await;
    let body = format!(r#"{{"channel":"email","text":"{}"}}"#, "x".repeat(150 << 10));
    let posting = async {
        let mut wire = Wire::connect_from(source, server.address).await;
        wire.send(post_head(&key, body.len())).await;
        wire.send(body).await;
        wire.response().await
    };
    answered(tokio::time::timeout(PATIENCE, posting).await)
}

#[tokio::test]
async fn stalled_posts_of_one_key_leave_memory_for_others() {
    let options = ServerOptions { body_budget: 1 << 20, ..ServerOptions::new(any_port()) };
    let server = TestServer::with(options).await;
    let _held = stall_posts(&server, FLOODER).await;
    assert_eq!(health_from(&server, OTHER).await, 200);
    assert_eq!(long_post(&server, OTHER).await.status, 422, "it was read, and has no recipient");
    // Also for another workspace behind the same address.
    assert_eq!(long_post(&server, FLOODER).await.status, 422);
}

#[tokio::test]
async fn a_trusted_proxy_is_not_one_caller() {
    let options = ServerOptions {
        body_budget: 1 << 20,
        trusted_proxies: vec![format!("{FLOODER}/32").parse().unwrap()],
        max_connections: 16,
        ..ServerOptions::new(any_port())
    };
    let server = TestServer::with(options).await;
    // All of them come through the proxy, which may hold more than the share of one address.
    let mut held = Vec::new();
    for _ in 0..14 {
        let mut wire = Wire::connect_from(FLOODER, server.address).await;
        wire.send(request_text("GET", "/health", &[], None)).await;
        assert_eq!(wire.response().await.unwrap().status, 200);
        held.push(wire);
    }
    for wire in &mut held {
        wire.send(request_text("GET", "/health", &[], None)).await;
        assert_eq!(wire.response().await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn stalled_uploads_of_one_workspace_leave_room_for_others() {
    let server = TestServer::start().await;
    let file = b"email\nann@example.com\n";
    let head = |path: &str| format!("PUT {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", file.len());
    let mut held = Vec::new();
    for _ in 0..40 {
        let path = announce(&server, file).await;
        let mut wire = Wire::connect_from(FLOODER, server.address).await;
        wire.send(head(&path)).await;
        wire.send("email").await;
        held.push(wire);
    }
    // A connection without a place is refused at once.
    let refused = answered(tokio::time::timeout(PATIENCE, held.last_mut().unwrap().response()).await);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));

    for source in [OTHER, FLOODER] {
        let other = server.other_workspace().await;
        let path = crate::uploads::announce_in(&server, other, file).await;
        let mut wire = Wire::connect_from(source, server.address).await;
        wire.send(head(&path)).await;
        wire.send(file).await;
        assert_eq!(answered(tokio::time::timeout(PATIENCE, wire.response()).await).status, 202, "{source}");
    }
}

#[tokio::test]
async fn a_link_takes_one_upload_at_a_time() {
    let server = TestServer::start().await;
    let file = b"email\nann@example.com\n";
    let path = announce(&server, file).await;
    let head = format!("PUT {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", file.len());
    let mut first = Wire::connect(server.address).await;
    first.send(head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")).await;
    // The server sends 100 (Continue) when it begins to read the body.
    assert_eq!(first.response().await.unwrap().status, 100);
    let mut second = Wire::connect(server.address).await;
    second.send(format!("{head}{}", String::from_utf8_lossy(file))).await;
    let refused = second.response().await.unwrap();
    assert_eq!((refused.status, &*refused.code()), (409, "invalid_state"));
    assert_eq!(refused.json()["error"]["details"]["allowed"], serde_json::json!(["awaiting_upload"]));
    first.send(file).await;
    assert_eq!(first.response().await.unwrap().status, 202);
}
