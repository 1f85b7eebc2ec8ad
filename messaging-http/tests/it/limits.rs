//! Rate limits, sizes and media types.

use std::time::Duration;

use messaging_core::scope::Scope;
use messaging_http::ServerOptions;

use crate::harness::{TestServer, any_port, request_text};
use crate::wire::Wire;

#[tokio::test]
async fn the_bucket_is_shown_exactly() {
    let server = TestServer::start().await;
    let key = server.key_with(&[], |key| key.rate_limit = 600).await;
    let other = server.key_with(&[], |key| key.rate_limit = 2).await;

    let first = server.get("/v1/workspaces", &key).await;
    assert_eq!(first.header("ratelimit-policy"), Some(r#""default";q=600;w=60"#));
    assert_eq!(first.header("ratelimit"), Some(r#""default";r=599;t=1"#));
    // Refusals after the check cost a token and show it, too.
    let refused = server.get("/v1/messages", &key).await;
    assert_eq!((refused.status, refused.header("ratelimit")), (403, Some(r#""default";r=598;t=1"#)));

    for expected in [r#""default";r=1;t=30"#, r#""default";r=0;t=30"#] {
        assert_eq!(server.get("/v1/workspaces", &other).await.header("ratelimit"), Some(expected));
    }
    let empty = server.get("/v1/workspaces", &other).await;
    assert_eq!((empty.status, &*empty.code(), empty.header("retry-after")), (429, "rate_limited", Some("30")));
    assert_eq!(empty.header("ratelimit"), Some(r#""default";r=0;t=30"#));
    assert_eq!(empty.header("ratelimit-policy"), Some(r#""default";q=2;w=60"#));

    server.clock.advance(Duration::from_millis(29_500));
    let still = server.get("/v1/workspaces", &other).await;
    assert_eq!((still.status, still.header("retry-after")), (429, Some("1")));
    server.clock.advance(Duration::from_millis(500));
    let again = server.get("/v1/workspaces", &other).await;
    assert_eq!((again.status, again.header("ratelimit")), (200, Some(r#""default";r=0;t=30"#)));
}

#[tokio::test]
async fn a_session_has_a_limit_of_its_own() {
    let server = TestServer::start().await;
    let session = server.session(None).await;
    let response = server.get("/v1/workspaces", &session).await;
    assert_eq!(response.header("ratelimit-policy"), Some(r#""default";q=600;w=60"#));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_unread() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut wire = Wire::connect(server.address).await;
    let length = (25 << 20) + 1;
    wire.send(format!(
        "POST /v1/messages HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ))
    .await;
    // The refusal comes although no byte of the body was sent.
    let response = wire.response().await.unwrap();
    assert_eq!((response.status, &*response.code()), (413, "payload_too_large"));
    assert_eq!(response.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_peer_that_sends_on_still_reads_the_refusal() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let body = "x".repeat((25 << 20) + 1);
    for _ in 0..5 {
        let response = server.request("POST", "/v1/messages", &headers, Some(&body)).await;
        assert_eq!(response.status, 413);
    }
}

#[tokio::test]
async fn a_chunked_body_is_counted_while_it_comes() {
    let server = TestServer::start().await;
    let session = server.session(None).await;
    let head = format!(
        "POST /v1/workspaces HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {session}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut wire = Wire::connect(server.address).await;
    wire.send(format!("{head}8\r\n{{\"name\":\r\n4\r\n\"A\"}}\r\n0\r\n\r\n")).await;
    assert_eq!(wire.response().await.unwrap().status, 201);

    wire.send(head).await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..11 {
        wire.send(&chunk).await;
    }
    let response = wire.response().await.unwrap();
    assert_eq!((response.status, &*response.code()), (413, "payload_too_large"));
}

#[tokio::test]
async fn without_credentials_a_body_is_short() {
    let server = TestServer::start().await;
    let login = |length: usize| {
        let body = r#"{"email":"nobody@example.com","password":"x"}"#;
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let headers = [("content-type", "application/json")];
    for (length, expected) in [(16 << 10, "invalid_credentials"), ((16 << 10) + 1, "payload_too_large")] {
        let response = server.request("POST", "/v1/auth/login", &headers, Some(&login(length))).await;
        assert_eq!(response.code(), expected, "{length}");
    }
}

#[tokio::test]
async fn a_body_has_a_bounded_number_of_values_and_levels() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let values = |count: usize| format!(r#"{{"channel":"email","tags":[{}]}}"#, vec!["0"; count - 3].join(","));
    let levels = |count: usize| {
        let lists = count - 2;
        format!(r#"{{"variables":{}0{}}}"#, "[".repeat(lists), "]".repeat(lists))
    };
    for (body, expected) in [
        (values(100_000), "validation_failed"),
        (values(100_001), "payload_too_large"),
        (levels(128), "validation_failed"),
        (levels(129), "payload_too_large"),
        // Values of one member, of which the last counts.
        (format!("{{{}}}", vec![r#""":0"#; 100_000].join(",")), "payload_too_large"),
    ] {
        let response = server.post("/v1/messages", &key, &body).await;
        assert_eq!(response.code(), expected, "{}", &body[..40]);
    }
    // Drop-in calls and callbacks of providers are read by the same rule.
    let small_objects = format!("[{}]", vec![r#"{"":0}"#; (10 << 20) / 7].join(","));
    for path in ["/emails", "/emails/batch", "/v3/mail/send"] {
        for body in [levels(129), values(100_001), small_objects.clone()] {
            assert_eq!(server.post(path, &key, &body).await.status, 413, "{path} {}", &body[..40]);
        }
    }
}

#[tokio::test]
async fn bodies_of_many_values_take_turns() {
    let mut options = ServerOptions::new(any_port());
    options.body_budget = 1 << 20;
    let server = TestServer::with(options).await;
    let session = format!("Bearer {}", server.session(None).await);
    let headers =
        [("authorization", session.as_str()), ("content-type", "application/json"), ("prefer", "handling=lenient")];
    let body = format!(r#"{{"name":"A","ignored":[{}]}}"#, vec!["0"; 50_000].join(","));
    let requests = (0..8).map(|_| server.request("POST", "/v1/workspaces", &headers, Some(&body)));
    let statuses: Vec<_> = futures_util::future::join_all(requests).await.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [201; 8]);
}

#[tokio::test]
async fn only_a_body_needs_a_media_type() {
    let server = TestServer::start().await;
    let session = format!("Bearer {}", server.session(None).await);
    let body = r#"{"name":"A"}"#;
    for (media, body, expected) in [
        (Some("application/json"), Some(body), "ok"),
        (Some("APPLICATION/json ; charset=utf-8"), Some(body), "ok"),
        (Some("text/plain"), Some(body), "unsupported_media_type"),
        (None, Some(body), "unsupported_media_type"),
        (None, None, "invalid_json"),
        (None, Some(""), "invalid_json"),
    ] {
        let mut headers = vec![("authorization", session.as_str())];
        headers.extend(media.map(|media| ("content-type", media)));
        let response = server.request("POST", "/v1/workspaces", &headers, body).await;
        assert_eq!(response.code(), expected, "{media:?} {body:?}");
    }
    // An operation without a body does not care about one.
    let headers = [("authorization", session.as_str()), ("content-type", "text/plain")];
    let response = server.request("POST", "/v1/auth/logout", &headers, Some("whatever")).await;
    assert_eq!(response.status, 204);
    assert_eq!((response.body.len(), response.header("content-type")), (0, None));
}

#[tokio::test]
async fn long_bodies_take_turns() {
    let mut options = ServerOptions::new(any_port());
    options.body_budget = 1 << 20;
    let server = TestServer::with(options).await;
    let session = format!("Bearer {}", server.session(None).await);
    let headers =
        [("authorization", session.as_str()), ("content-type", "application/json"), ("prefer", "handling=lenient")];
    let name = "x".repeat(700 << 10);
    let body = format!(r#"{{"name":"A","ignored":"{name}"}}"#);
    let requests = (0..8).map(|_| server.request("POST", "/v1/workspaces", &headers, Some(&body)));
    let statuses: Vec<_> = futures_util::future::join_all(requests).await.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [201; 8]);
}

#[tokio::test]
async fn metrics_tell_what_happened() {
    let mut options = ServerOptions::new(any_port());
    options.metrics_listen = Some(any_port());
    let server = TestServer::with(options).await;
    let key = server.key_with(&[], |key| key.rate_limit = 1).await;
    server.get("/v1/workspaces", &key).await;
    server.get("/v1/workspaces", &key).await;

    let mut wire = Wire::connect(server.metrics.unwrap()).await;
    wire.send(request_text("GET", "/metrics", &[], None)).await;
    let page = String::from_utf8(wire.response().await.unwrap().body).unwrap();
    for line in [
        r#"messaging_http_requests_total{method="GET",route="/workspaces",status="2xx"} 1"#,
        r#"messaging_http_requests_total{method="GET",route="/workspaces",status="4xx"} 1"#,
        "messaging_http_rate_limited_total 1",
        "messaging_jobs_waiting 0",
        "messaging_http_body_bytes 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    wire.send(request_text("GET", "/", &[], None)).await;
    assert_eq!(wire.response().await.unwrap().status, 404);
    assert_eq!(server.request("GET", "/metrics", &[], None).await.status, 404);
}
