//! Second factors over the wire (contract section 25).

use std::time::Duration;

use messaging_core::domain::security::totp::TotpSecret;
use messaging_engine::admin;
use serde_json::{Value, json};

use crate::harness::TestServer;
use crate::wire::Response;

const JSON: (&str, &str) = ("content-type", "application/json");
const CONSOLE: (&str, &str) = ("x-console", "1");
const STEP: Duration = Duration::from_secs(30);

async fn post(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
    server.request("POST", path, &headers, Some(&body.to_string())).await
}

async fn login(server: &TestServer, cookie: bool) -> Response {
    let body = json!({"email": "ann@example.com", "password": "correct horse", "cookie": cookie});
    post(server, "/v1/auth/login", &[], &body).await
}

/// A server with Ann, who has a second factor, the secret of that, and the header of her session.
async fn with_ann() -> (TestServer, TotpSecret, String) {
    let server = TestServer::start().await;
    admin::create_user(&server.app, "ann@example.com", Some("correct horse".to_owned()), None).await.unwrap();
    let bearer = format!("Bearer {}", login(&server, false).await.json()["token"].as_str().unwrap());
    let own = [("authorization", bearer.as_str())];
    let made = post(&server, "/v1/auth/factors", &own, &json!({"kind": "totp", "name": "Phone"})).await;
    assert_eq!(made.status, 201, "{}", made.code());
    let secret = TotpSecret::from_base32(made.json()["secret"].as_str().unwrap()).unwrap();
    let path = format!("/v1/auth/factors/{}/confirm", made.json()["id"].as_str().unwrap());
    let confirmed = post(&server, &path, &own, &json!({"code": secret.code_at(server.app.now())})).await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.code());
    server.clock.advance(STEP);
    (server, secret, bearer)
}

#[tokio::test]
async fn the_cookie_comes_with_the_second_step() {
    let (server, secret, _) = with_ann().await;
    let asked = login(&server, true).await;
    assert_eq!((asked.status, asked.code().as_str()), (401, "second_factor_required"));
    assert_eq!((asked.header("set-cookie"), asked.header("www-authenticate")), (None, Some("Bearer")));
    let answer = asked.json();
    let details = &answer["error"]["details"];
    assert_eq!(details["kinds"], json!(["totp"]));
    let token = details["token"].as_str().unwrap().to_owned();

    // The token is no credential, in whichever form.
    let bearer = format!("Bearer {token}");
    let me = async |headers: &[(&str, &str)]| server.request("GET", "/v1/auth/me", headers, None).await.code();
    assert_eq!(me(&[("authorization", &bearer)]).await, "invalid_credentials");
    assert_eq!(me(&[("cookie", &format!("messaging_session={token}")), CONSOLE]).await, "invalid_credentials");

    let wrong = json!({"token": token, "code": secret.code_at(server.app.now() + 50 * STEP)});
    let refused = post(&server, "/v1/auth/login/factor", &[], &wrong).await;
    assert_eq!((refused.status, &refused.json()["error"]["details"]["tries_left"]), (401, &json!(4)));
    let right = json!({"token": token, "code": secret.code_at(server.app.now())});
    let session = post(&server, "/v1/auth/login/factor", &[], &right).await;
    assert_eq!((session.status, &session.json()["token"]), (200, &Value::Null));
    let set = session.header("set-cookie").unwrap().to_owned();
    assert_eq!(me(&[("cookie", set.split(';').next().unwrap()), CONSOLE]).await, "ok");
}

#[tokio::test]
async fn what_the_second_step_takes_is_checked() {
    let (server, _, bearer) = with_ann().await;
    for (body, code) in [
        (json!({}), "validation_failed"),
        (json!({"token": "mf_unknown", "code": "123456"}), "invalid_credentials"),
        (json!({"token": "mf_unknown", "code": "123456", "cookie": true}), "validation_failed"),
        (json!({"token": "x".repeat(401), "code": "1"}), "validation_failed"),
        (json!({"token": "x".repeat(17 << 10), "code": "1"}), "payload_too_large"),
    ] {
        let reply = post(&server, "/v1/auth/login/factor", &[], &body).await;
        assert_eq!(reply.code(), code, "{}", reply.status);
    }
    // A key has no factors.
    let key = format!("Bearer {}", server.key(&[]).await);
    for path in ["/v1/auth/factors", "/v1/auth/recovery-codes"] {
        let reply = post(&server, path, &[("authorization", &key)], &json!({"kind": "totp"})).await;
        assert_eq!(reply.code(), "session_required", "{path}");
    }
    let own = [("authorization", bearer.as_str())];
    let listed = server.request("GET", "/v1/auth/factors", &own, None).await.json();
    let factor = format!("/v1/auth/factors/{}", listed["data"][0]["id"].as_str().unwrap());
    assert_eq!(server.request("DELETE", &factor, &own, None).await.code(), "validation_failed");
    let headers = [own[0], JSON];
    let removed = server.request("DELETE", &factor, &headers, Some(r#"{"password":"correct horse"}"#)).await;
    assert_eq!(removed.status, 204);
    assert_eq!(login(&server, false).await.status, 200);
}
