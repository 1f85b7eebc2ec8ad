//! Connections: reuse, both HTTP versions, time-outs, panics, the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use messaging_core::ports::clock::{Entropy, SystemEntropy};
use messaging_core::scope::Role;
use messaging_http::ServerOptions;
use tokio::net::TcpStream;

use crate::harness::{TestServer, any_port, request_text};
use crate::wire::Wire;

/// Short enough to wait for.
const SOON: Duration = Duration::from_millis(100);

fn half_a_request(token: &str) -> (String, &'static str) {
    let head = format!(
        "POST /v1/workspaces HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 12\r\nexpect: 100-continue\r\n\r\n"
    );
    (head, r#"{"name":"A"}"#)
}

#[tokio::test]
async fn a_connection_serves_many_requests_also_when_they_come_at_once() {
    let server = TestServer::start().await;
    let mut wire = Wire::connect(server.address).await;
    for _ in 0..3 {
        wire.send(request_text("GET", "/health", &[], None)).await;
        assert_eq!(wire.response().await.unwrap().status, 200);
    }
    let (good, bad) = (request_text("GET", "/health", &[], None), request_text("GET", "/nothing", &[], None));
    wire.send(format!("{good}{bad}{good}")).await;
    for expected in [200, 404, 200] {
        assert_eq!(wire.response().await.unwrap().status, expected);
    }
}

#[tokio::test]
async fn http_2_is_answered_with_prior_knowledge() {
    let server = TestServer::start().await;
    let key = server.key(&[]).await;
    let socket = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..2 {
        let request = http::Request::get(format!("http://{}/v1/workspaces", server.address))
            .header("authorization", format!("Bearer {key}"))
            .body(Full::<Bytes>::default())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(br#"{"data":["#));
    }
    drop(sender);
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut_off() {
    let mut options = ServerOptions::new(any_port());
    options.head_timeout = SOON;
    let server = TestServer::with(options).await;
    for beginning in ["", "GET", "GET /health HTTP/1.1\r\nhost: test\r\n"] {
        let mut wire = Wire::connect(server.address).await;
        wire.send(beginning).await;
        assert!(wire.is_closed().await, "{beginning}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_only_then() {
    let mut options = ServerOptions::new(any_port());
    options.idle_timeout = 3 * SOON;
    let server = TestServer::with(options).await;
    let mut wire = Wire::connect(server.address).await;
    wire.send(request_text("GET", "/health", &[], None)).await;
    assert_eq!(wire.response().await.unwrap().status, 200);
    let answered = std::time::Instant::now();
    assert!(wire.is_closed().await);
    assert!(answered.elapsed() >= 2 * SOON, "{:?}", answered.elapsed());
}

#[tokio::test]
async fn a_body_that_stalls_ends_its_connection() {
    let mut options = ServerOptions::new(any_port());
    options.body_stall_timeout = SOON;
    let server = TestServer::with(options).await;
    let (head, body) = half_a_request(&server.session(None).await);
    let mut wire = Wire::connect(server.address).await;
    wire.send(head.replace("expect: 100-continue\r\n", "") + &body[..3]).await;
    let response = wire.response().await.unwrap();
    assert_eq!((response.status, response.header("connection")), (408, Some("close")));
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_connection_beyond_the_cap_takes_the_place_of_a_quiet_one() {
    let mut options = ServerOptions::new(any_port());
    options.max_connections = 1;
    let server = TestServer::with(options).await;
    let mut first = Wire::connect(server.address).await;
    first.send(request_text("GET", "/health", &[], None)).await;
    assert_eq!(first.response().await.unwrap().status, 200);
    let mut second = Wire::connect(server.address).await;
    second.send(request_text("GET", "/health", &[], None)).await;
    assert_eq!(second.response().await.unwrap().status, 200);
    assert!(first.is_closed().await);
}

#[tokio::test]
async fn a_running_request_is_finished_before_the_server_stops() {
    let mut server = TestServer::start().await;
    let (head, body) = half_a_request(&server.session(None).await);
    let mut running = Wire::connect(server.address).await;
    let mut idle = Wire::connect(server.address).await;
    idle.send(request_text("GET", "/health", &[], None)).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    running.send(head).await;
    // The server sends 100 (Continue): the request runs.
    assert_eq!(running.response().await.unwrap().status, 100);

    server.begin_to_stop();
    assert!(idle.is_closed().await);
    assert!(TcpStream::connect(server.address).await.is_err());
    running.send(body).await;
    let response = running.response().await.unwrap();
    assert_eq!((response.status, response.header("connection")), (201, Some("close")));
    assert!(running.is_closed().await);
    server.stopped().await;
}

#[tokio::test]
async fn a_request_that_does_not_end_does_not_keep_the_server() {
    let mut options = ServerOptions::new(any_port());
    options.stop_grace = SOON;
    let mut server = TestServer::with(options).await;
    let (head, _) = half_a_request(&server.session(None).await);
    let mut running = Wire::connect(server.address).await;
    running.send(head).await;
    assert_eq!(running.response().await.unwrap().status, 100);
    server.begin_to_stop();
    server.stopped().await;
    assert!(running.is_closed().await);
}

/// Panics when told to.
#[derive(Debug, Default)]
struct Faulty {
    good: SystemEntropy,
    panics: AtomicBool,
}

impl Entropy for Faulty {
    fn fill(&self, buffer: &mut [u8]) {
        assert!(!self.panics.load(Ordering::Relaxed), "a bug");
        self.good.fill(buffer);
    }
}

#[tokio::test]
async fn a_panic_costs_its_request_only() {
    let entropy = Arc::new(Faulty::default());
    let server = TestServer::with_entropy(ServerOptions::new(any_port()), entropy.clone()).await;
    let session = server.session(Some(Role::Admin)).await;
    // A new key draws randomness.
    let request = request_text(
        "POST",
        &format!("/v1/workspaces/{}/api-keys", server.workspace),
        &[
            ("authorization", &format!("Bearer {session}")),
            ("content-type", "application/json"),
            ("x-request-id", "mine"),
        ],
        Some(r#"{"name":"A","scopes":["messages:send"]}"#),
    );
    let mut wire = Wire::connect(server.address).await;
    entropy.panics.store(true, Ordering::Relaxed);
    wire.send(&request).await;
    let failed = wire.response().await.unwrap();
    assert_eq!((failed.status, &*failed.code()), (500, "internal_error"));
    assert_eq!(failed.json()["error"]["request_id"], "mine");
    assert!(failed.header("ratelimit").is_some());
    entropy.panics.store(false, Ordering::Relaxed);
    wire.send(&request).await;
    assert_eq!(wire.response().await.unwrap().status, 201);
}
