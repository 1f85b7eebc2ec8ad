//! The order of checks, each against the next (contract section 1.3), and the headers of every answer.

use messaging_core::scope::{Role, Scope};
use messaging_http::ServerOptions;
use serde_json::json;

use crate::harness::{TestServer, any_port, long_ago};
use crate::wire::Response;

const JSON: (&str, &str) = ("content-type", "application/json");

struct Table {
    server: TestServer,
    scopeless: String,
    sender: String,
    elsewhere: String,
    spent: String,
    spent_elsewhere: String,
    viewer: String,
}

impl Table {
    async fn new() -> Self {
        let server = TestServer::start().await;
        let scopeless = server.key(&[]).await;
        let sender = server.key(&[Scope::MessagesSend]).await;
        let elsewhere = server.key_with(&[Scope::All], |key| key.ip_allowlist = vec!["192.0.2.1".into()]).await;
        let spent = server.key_with(&[], |key| key.rate_limit = 1).await;
        let spent_elsewhere = server
            .key_with(&[], |key| {
                key.rate_limit = 1;
                key.ip_allowlist = vec!["192.0.2.1".into()];
            })
            .await;
        let viewer = server.session(Some(Role::Viewer)).await;
        let this = Self { server, scopeless, sender, elsewhere, spent, spent_elsewhere, viewer };
        this.server.get("/v1/workspaces", &this.spent).await;
        this
    }

    async fn check(&self, method: &str, path: &str, token: Option<&str>, body: &str, expected: (u16, &str)) {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![JSON];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let response = self.server.request(method, path, &headers, Some(body)).await;
        assert_eq!((response.status, &*response.code()), expected, "{method} {path} {body:.40}");
    }
}

#[tokio::test]
async fn checks_answer_in_the_order_of_the_contract() {
    let t = Table::new().await;
    let other = t.server.other_workspace().await;
    let own = t.server.workspace;
    let huge = "x".repeat((25 << 20) + 1);

    // 1 before 2.
    t.check("POST", "/v1/nothing", None, "{", (404, "route_not_found")).await;
    t.check("PUT", "/v1/messages", None, "{", (405, "method_not_allowed")).await;
    // 2 before 3 and everything after.
    t.check("POST", "/v1/messages", None, "{", (401, "missing_credentials")).await;
    t.check("POST", "/v1/messages", Some("nonsense"), "{", (401, "invalid_credentials")).await;
    // 3 before 4: the rate limit is not checked.
    t.check("POST", "/v1/messages", Some(&t.elsewhere), "{", (403, "ip_not_allowed")).await;
    t.check("POST", "/v1/messages", Some(&t.spent_elsewhere), "{", (403, "ip_not_allowed")).await;
    t.check("POST", "/v1/messages", Some(&t.spent_elsewhere), "{", (403, "ip_not_allowed")).await;
    // 4 before 5.
    t.check("GET", &format!("/v1/workspaces/{other}/api-keys"), Some(&t.spent), "{", (429, "rate_limited")).await;
    // 5 before 6: a foreign workspace before the missing session.
    let foreign_keys = format!("/v1/workspaces/{other}/api-keys");
    t.check("POST", &foreign_keys, Some(&t.scopeless), "{", (403, "workspace_forbidden")).await;
    t.check("POST", &foreign_keys, Some(&t.viewer), "{", (403, "workspace_forbidden")).await;
    // 6 before 8 and 9.
    let own_keys = format!("/v1/workspaces/{own}/api-keys");
    t.check("POST", &own_keys, Some(&t.sender), "{", (403, "session_required")).await;
    t.check("POST", &own_keys, Some(&t.viewer), "{", (403, "role_forbidden")).await;
    // 7 before 8.
    t.check("POST", "/v1/messages", Some(&t.scopeless), &huge, (403, "scope required: messages:send")).await;
    // 8: size before media type, both before 9.
    let authorization = format!("Bearer {}", t.sender);
    let plain = [("authorization", authorization.as_str()), ("content-type", "text/plain")];
    let response = t.server.request("POST", "/v1/messages", &plain, Some(&huge)).await;
    assert_eq!((response.status, &*response.code()), (413, "payload_too_large"));
    let response = t.server.request("POST", "/v1/messages", &plain, Some("{")).await;
    assert_eq!((response.status, &*response.code()), (415, "unsupported_media_type"));
    // 9 before 12.
    t.check("POST", "/v1/messages", Some(&t.sender), "{", (400, "invalid_json")).await;
    t.check("POST", "/v1/messages", Some(&t.sender), "{}", (422, "validation_failed")).await;
}

#[tokio::test]
async fn both_prefixes_answer_alike() {
    let server = TestServer::start().await;
    let key = server.key(&[]).await;
    let first = server.get("/v1/workspaces", &key).await;
    let second = server.get("/api/v1/workspaces", &key).await;
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(first.json(), second.json());
    assert_eq!(first.json()["data"][0]["id"], server.workspace.to_string());
    assert_eq!(first.header("content-type"), Some("application/json; charset=utf-8"));
}

#[tokio::test]
async fn health_answers_at_the_root_too_and_tells_when_the_database_is_gone() {
    let server = TestServer::start().await;
    for path in ["/health", "/v1/health", "/api/v1/health"] {
        let response = server.request("GET", path, &[], None).await;
        assert_eq!((response.status, response.json()), (200, json!({"status": "ok"})), "{path}");
        assert_eq!(response.header("ratelimit"), None);
    }
    server.app.store().close().await;
    let response = server.request("GET", "/health", &[], None).await;
    assert_eq!((response.status, response.json()), (503, json!({"status": "unavailable"})));
}

#[tokio::test]
async fn an_unknown_method_learns_which_are_allowed() {
    let server = TestServer::start().await;
    let response = server.request("DELETE", "/v1/workspaces", &[], None).await;
    assert_eq!((response.status, response.header("allow")), (405, Some("GET, HEAD, POST")));
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let server = TestServer::start().await;
    let response = server.request("HEAD", "/health", &[], None).await;
    assert_eq!((response.status, response.header("content-length")), (200, Some("15")));
}

#[tokio::test]
async fn missing_and_bad_credentials_are_told_apart() {
    let server = TestServer::start().await;
    let key = server.key(&[]).await;
    let revoked = server.key_with(&[], |key| key.revoked_at = Some(long_ago())).await;
    let expired = server.key_with(&[], |key| key.expires_at = Some(long_ago())).await;
    let wrong = format!("{}{}", &key[..key.len() - 1], if key.ends_with('a') { 'b' } else { 'a' });
    for (authorization, expected) in [
        (None, "missing_credentials"),
        (Some("Basic abc".to_owned()), "missing_credentials"),
        (Some("Bearer nonsense".to_owned()), "invalid_credentials"),
        (Some(format!("Bearer {wrong}")), "invalid_credentials"),
        (Some(format!("Bearer {revoked}")), "invalid_credentials"),
        (Some(format!("Bearer {expired}")), "invalid_credentials"),
        (Some("Bearer ms_nobody".to_owned()), "invalid_credentials"),
        (Some(format!("bEaReR {key}")), "ok"),
    ] {
        let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let response = server.request("GET", "/v1/workspaces", &headers, None).await;
        assert_eq!(response.code(), expected, "{authorization:?}");
        assert_eq!(response.header("www-authenticate"), (expected != "ok").then_some("Bearer"));
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_good_ones_are_echoed() {
    let server = TestServer::start().await;
    let id_of = |response: &Response| response.header("x-request-id").unwrap().to_owned();
    let echoed = server.request("GET", "/v1/nothing", &[("x-request-id", "a-B_3.x")], None).await;
    assert_eq!(id_of(&echoed), "a-B_3.x");
    assert_eq!(echoed.json()["error"]["request_id"], "a-B_3.x");
    for bad in ["", "with space", &"x".repeat(65)] {
        let response = server.request("GET", "/health", &[("x-request-id", bad)], None).await;
        let id = id_of(&response);
        assert!(id.starts_with("req_") && id.len() == 30, "{id}");
    }
}

#[tokio::test]
async fn the_allowlist_costs_no_token_and_shows_no_rate_limit() {
    let server = TestServer::start().await;
    let key = server.key_with(&[], |key| key.ip_allowlist = vec!["192.0.2.0/24".into()]).await;
    let response = server.get("/v1/workspaces", &key).await;
    assert_eq!((response.status, &*response.code()), (403, "ip_not_allowed"));
    assert_eq!((response.header("ratelimit"), response.header("ratelimit-policy")), (None, None));
}

#[tokio::test]
async fn a_trusted_proxy_is_believed_and_nobody_else() {
    let mut options = ServerOptions::new(any_port());
    options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let behind_proxy = TestServer::with(options).await;
    let direct = TestServer::start().await;
    for (server, forwarded, expected) in [
        (&behind_proxy, Some("192.0.2.7"), "ok"),
        (&behind_proxy, Some("192.0.2.7, 203.0.113.9"), "ip_not_allowed"),
        (&behind_proxy, Some("203.0.113.9, 192.0.2.7, 127.0.0.1"), "ok"),
        (&behind_proxy, None, "ip_not_allowed"),
        (&direct, Some("192.0.2.7"), "ip_not_allowed"),
    ] {
        let key = server.key_with(&[], |key| key.ip_allowlist = vec!["192.0.2.0/24".into()]).await;
        let authorization = format!("Bearer {key}");
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(forwarded.map(|value| ("x-forwarded-for", value)));
        let response = server.request("GET", "/v1/workspaces", &headers, None).await;
        assert_eq!(response.code(), expected, "{forwarded:?}");
    }
}

#[tokio::test]
async fn the_prefer_header_asks_for_leniency() {
    let server = TestServer::start().await;
    let authorization = format!("Bearer {}", server.key(&[Scope::ContactsWrite]).await);
    let lists = format!("/v1/workspaces/{}/lists", server.workspace);
    let body = Some(r#"{"name":"News","nmae":"x"}"#);
    for (prefer, expected) in [
        (None, 422),
        (Some("handling=lenient"), 201),
        (Some("respond-async, Handling = \"LENIENT\"; x=1"), 201),
        (Some("handling=strict"), 422),
        (Some("handling=strict, handling=lenient"), 422),
        (Some("lenient"), 422),
        (Some("handling=lenientx"), 422),
    ] {
        let mut headers = vec![("authorization", authorization.as_str()), JSON];
        headers.extend(prefer.map(|value| ("prefer", value)));
        let response = server.request("POST", &lists, &headers, body).await;
        assert_eq!(response.status, expected, "{prefer:?}");
    }
    // As deeply nested as a filter, except for known members.
    let segments = format!("/v1/workspaces/{}/segments", server.workspace);
    let headers = [("authorization", authorization.as_str()), JSON, ("prefer", "handling=lenient")];
    let filter = r#"{"name":"S","filter":{"type":"tag","op":"has_any","values":["a"],"x":1}}"#;
    assert_eq!(server.request("POST", &segments, &headers, Some(filter)).await.status, 201);
    let wrong = server.request("POST", &segments, &headers, Some(r#"{"name":1,"filter":{},"x":1}"#)).await;
    assert_eq!((wrong.status, &*wrong.code()), (422, "validation_failed"));
}

#[tokio::test]
async fn a_repetition_with_the_same_key_is_replayed() {
    let server = TestServer::start().await;
    let session = format!("Bearer {}", server.session(None).await);
    let headers = [("authorization", session.as_str()), JSON, ("idempotency-key", "k1")];
    let first = server.request("POST", "/v1/workspaces", &headers, Some(r#"{"name":"A"}"#)).await;
    let again = server.request("POST", "/api/v1/workspaces", &headers, Some(r#"{ "name": "A" }"#)).await;
    let other = server.request("POST", "/v1/workspaces", &headers, Some(r#"{"name":"B"}"#)).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(first.json(), again.json());
    assert_eq!((other.status, &*other.code()), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn documents_need_no_credentials_and_load_nothing() {
    let server = TestServer::start().await;
    let document = server.request("GET", "/api/v1/openapi.json", &[], None).await;
    assert_eq!((document.status, &document.json()["openapi"]), (200, &json!("3.1.0")));
    let page = server.request("GET", "/docs", &[], None).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none';"));
}
