//! Malformed HTTP (contract section 22): 400, 414 or 431 with an empty body, and the connection closed.

use messaging_core::scope::Scope;

use crate::harness::{TestServer, request_text};
use crate::wire::Wire;

/// Sends bytes on a new connection and expects a bare refusal and the end of the connection.
async fn check(server: &TestServer, request: impl AsRef<[u8]>, expected: u16) {
    let shown = String::from_utf8_lossy(&request.as_ref()[..request.as_ref().len().min(80)]).into_owned();
    let mut wire = Wire::connect(server.address).await;
    wire.send(request).await;
    let response = wire.response().await.unwrap_or_else(|| panic!("no answer to {shown:?}"));
    assert_eq!(response.status, expected, "{shown:?}");
    assert_eq!((response.body.len(), response.header("connection")), (0, Some("close")), "{shown:?}");
    assert!(wire.is_closed().await, "{shown:?}");
}

#[tokio::test]
async fn what_is_no_http_is_a_bad_request() {
    let server = TestServer::start().await;
    for request in [
        "no http at all\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\r\n\r\n",
        "GET /health HTTP/7.5\r\nhost: test\r\n\r\n",
        "GET /he\u{1}alth HTTP/1.1\r\nhost: test\r\n\r\n",
        "G@T /health HTTP/1.1\r\nhost: test\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: test\r\nbad name: x\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: test\r\nno-colon\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\ncontent-length: many\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\ncontent-length: -1\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
    ] {
        check(&server, request, 400).await;
    }
}

#[tokio::test]
async fn a_request_names_one_host() {
    let server = TestServer::start().await;
    for hosts in ["", "host: a\r\nhost: a\r\n", "host: a b\r\n", "host: a/b\r\n", "host: me@a\r\n"] {
        check(&server, format!("GET /health HTTP/1.1\r\n{hosts}\r\n"), 400).await;
    }
    // HTTP/1.0 knew no Host, an empty one is well formed, and so is every kind of address.
    for good in [
        "GET /health HTTP/1.0\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost:\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: [::1]:80\r\n\r\n",
    ] {
        let mut wire = Wire::connect(server.address).await;
        wire.send(good).await;
        assert_eq!(wire.response().await.unwrap().status, 200, "{good:?}");
    }
}

#[tokio::test]
async fn a_target_that_is_too_long_is_told_apart_from_a_long_header() {
    let server = TestServer::start().await;
    for length in [8 << 10, 60 << 10, 65_535, 70 << 10, 1 << 20] {
        let path = "a".repeat(length);
        check(&server, format!("GET /{path} HTTP/1.1\r\nhost: test\r\n\r\n"), 414).await;
        check(&server, format!("GET /health?{path} HTTP/1.1\r\nhost: test\r\n\r\n"), 414).await;
    }
    for length in [70 << 10, 1 << 20] {
        let value = "a".repeat(length);
        check(&server, format!("GET /health HTTP/1.1\r\nhost: test\r\nx: {value}\r\n\r\n"), 431).await;
    }
    let many = "x: y\r\n".repeat(100);
    check(&server, format!("GET /health HTTP/1.1\r\nhost: test\r\n{many}\r\n"), 431).await;
    let fits = "a".repeat(8 << 10).split_off(200);
    let mut wire = Wire::connect(server.address).await;
    wire.send(request_text("GET", &format!("/health?{fits}"), &[], None)).await;
    assert_eq!(wire.response().await.unwrap().status, 200);
    // The second request of a connection is judged like the first.
    wire.send(format!("GET /{} HTTP/1.1\r\nhost: test\r\n\r\n", "a".repeat(1 << 20))).await;
    assert_eq!(wire.response().await.unwrap().status, 414);
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_body_in_broken_chunks_is_a_bad_request() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for chunks in ["no length\r\n{}\r\n0\r\n\r\n", "2\r\n{}no end\r\n0\r\n\r\n", "ffffffffffffffffff\r\n"] {
        check(&server, format!("{head}{chunks}"), 400).await;
    }
}

#[tokio::test]
async fn credentials_that_are_given_twice_are_none() {
    let server = TestServer::start().await;
    let key = format!("Bearer {}", server.key(&[Scope::MessagesSend]).await);
    for second in [key.as_str(), "Bearer other", "Basic YTpi", ""] {
        let headers = [("authorization", key.as_str()), ("authorization", second)];
        let response = server.request("GET", "/v1/workspaces", &headers, None).await;
        assert_eq!((response.status, &*response.code()), (401, "invalid_credentials"), "{second}");
    }
}
