//! The cookie session of the console (contract section 2.3), over the wire.

use messaging_engine::admin;
use serde_json::{Value, json};

use crate::harness::TestServer;
use crate::wire::Response;

const JSON: (&str, &str) = ("content-type", "application/json");
const CONSOLE: (&str, &str) = ("x-console", "1");

async fn sign_in(server: &TestServer, cookie: bool) -> Response {
    admin::create_user(&server.app, "ann@example.com", Some("correct horse".to_owned()), None).await.unwrap();
    let body = json!({"email": "ann@example.com", "password": "correct horse", "cookie": cookie}).to_string();
    server.request("POST", "/v1/auth/login", &[JSON, ("user-agent", "test/1")], Some(&body)).await
}

#[tokio::test]
async fn a_cookie_is_a_session_for_the_console_alone() {
    let server = TestServer::start().await;
    let login = sign_in(&server, true).await;
    assert_eq!((login.status, &login.json()["token"]), (200, &Value::Null));
    let set = login.header("set-cookie").unwrap().to_owned();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict") && set.contains("Path=/"), "{set}");
    assert_eq!(login.header("cache-control"), Some("no-store"));
    let cookie = ("cookie", set.split(';').next().unwrap());
    let me = async |headers: &[(&str, &str)]| server.request("GET", "/v1/auth/me", headers, None).await;

    let mine = me(&[cookie, CONSOLE]).await;
    assert_eq!((mine.status, mine.json()["user"]["email"].as_str()), (200, Some("ann@example.com")));
    assert_eq!(mine.header("cache-control"), Some("no-store"));
    assert_eq!(me(&[cookie, CONSOLE, ("sec-fetch-site", "same-origin")]).await.status, 200);
    assert_eq!(me(&[cookie]).await.code(), "missing_credentials");
    assert_eq!(me(&[cookie, CONSOLE, ("sec-fetch-site", "cross-site")]).await.code(), "missing_credentials");
    let key = server.key(&[]).await;
    let bearer = format!("Bearer {key}");
    assert_eq!(me(&[cookie, CONSOLE, ("authorization", &bearer)]).await.code(), "session_required");
    let of_key = format!("messaging_session={key}");
    assert_eq!(me(&[("cookie", &of_key), CONSOLE]).await.code(), "invalid_credentials");

    let listed = server.request("GET", "/v1/auth/sessions", &[cookie, CONSOLE], None).await.json();
    assert_eq!((&listed["data"][0]["user_agent"], &listed["data"][0]["current"]), (&json!("test/1"), &json!(true)));
    let out = server.request("POST", "/v1/auth/logout", &[cookie, CONSOLE], None).await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let gone = me(&[cookie, CONSOLE]).await;
    assert_eq!((gone.code().as_str(), gone.header("cache-control")), ("invalid_credentials", Some("no-store")));
}

#[tokio::test]
async fn without_being_asked_for_there_is_no_cookie() {
    let server = TestServer::start().await;
    let login = sign_in(&server, false).await;
    assert_eq!(login.header("set-cookie"), None);
    let bearer = format!("Bearer {}", login.json()["token"].as_str().unwrap());
    let out = server.request("POST", "/v1/auth/logout", &[("authorization", &bearer)], None).await;
    assert_eq!((out.status, out.header("set-cookie")), (204, None));
}
