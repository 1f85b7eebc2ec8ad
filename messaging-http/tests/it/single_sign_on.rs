//! Contract section 25: single sign-on as a browser goes through it, over the wire.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::security::totp::TotpSecret;
use messaging_core::ports::clock::ManualClock;
use messaging_engine::{Settings, admin};
use messaging_http::ServerOptions;
use messaging_http::console::Console;
use messaging_testing::{MemoryFetch, MemoryOidcProvider};
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

const BEGIN: &str = "/v1/auth/oidc";
const CONSOLE: (&str, &str) = ("x-console", "1");

struct Browsing {
    server: TestServer,
    provider: Arc<MemoryOidcProvider>,
    clock: Arc<ManualClock>,
}

impl Browsing {
    async fn start(public_url: &str, console: Console) -> Self {
        let clock = Arc::new(ManualClock::new("2026-01-31T09:15:00.000Z".parse().unwrap()));
        let provider = MemoryOidcProvider::new(Arc::clone(&clock) as _, Arc::new(MemoryFetch::default()));
        let provider = Arc::new(provider);
        let mut options = ServerOptions::new(any_port());
        options.console = console;
        let settings = Settings::default().public_url(public_url).oidc(MemoryOidcProvider::settings());
        let (of_server, now) = (Arc::clone(&provider), Arc::clone(&clock));
        let change = |builder: messaging_engine::app::Builder, _: &std::path::Path| {
            builder.clock(now as _).fetch(of_server as _).settings(settings)
        };
        let server = TestServer::built(options, change).await;
        admin::create_user(&server.app, "ann@example.com", None, None).await.unwrap();
        provider.person(json!({"sub": "ann", "email": "ann@example.com", "email_verified": true}));
        Self { server, provider, clock }
    }

    async fn get(&self, target: &str, cookie: &str) -> Response {
        let cookie = [("cookie", cookie)];
        let headers = if cookie[0].1.is_empty() { &[][..] } else { &cookie };
        self.server.request("GET", target, headers, None).await
    }

    /// Begins: the cookie, and the target that the provider sends the browser back to.
    async fn begin(&self) -> (String, String) {
        let begun = self.get(BEGIN, "").await;
        assert_eq!(begun.status, 302);
        let query = self.provider.authorize(begun.header("location").unwrap());
        (cookie_of(&begun, "sign_on"), format!("{BEGIN}/callback?{query}"))
    }
}

/// The cookies that an answer sets, each whole.
fn cookies(response: &Response) -> Vec<&str> {
    response.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.as_str()).collect()
}

/// `name=value` of the cookie with this in its name.
fn cookie_of(response: &Response, part: &str) -> String {
    let of_name = |cookie: &&str| cookie.split('=').next().unwrap().contains(part);
    let cookie = cookies(response).into_iter().find(of_name).unwrap_or_else(|| panic!("no cookie {part}"));
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_browser_goes_to_the_provider_and_comes_back_signed_in() {
    let browsing = Browsing::start("https://mail.example.com", Console::BuiltIn).await;
    let begun = browsing.get(BEGIN, "").await;
    let location = begun.header("location").unwrap();
    assert!(
        location.contains("redirect_uri=https%3A%2F%2Fmail.example.com%2Fv1%2Fauth%2Foidc%2Fcallback"),
        "{location}"
    );
    let set = cookies(&begun)[0];
    for part in ["__Host-messaging_sign_on=", "Max-Age=600", "HttpOnly", "SameSite=Lax", "Secure", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert_eq!(
        (begun.header("cache-control"), begun.header("referrer-policy")),
        (Some("no-store"), Some("no-referrer"))
    );

    let (cookie, back) = browsing.begin().await;
    let looked = browsing.server.request("HEAD", &back, &[("cookie", &cookie)], None).await;
    assert_eq!(looked.status, 204, "a look ahead uses nothing up");
    let done = browsing.get(&back, &cookie).await;
    assert_eq!((done.status, done.header("location")), (302, Some("https://mail.example.com/console/#/")));
    let gone = cookies(&done).into_iter().find(|cookie| cookie.contains("sign_on")).unwrap();
    assert!(gone.starts_with("__Host-messaging_sign_on=;") && gone.contains("Max-Age=0"), "{gone}");
    let session = cookies(&done).into_iter().find(|cookie| cookie.contains("session")).unwrap();
    assert!(session.starts_with("__Host-messaging_session=ms_") && session.contains("SameSite=Strict"), "{session}");

    let session = cookie_of(&done, "session");
    let me = browsing.server.request("GET", "/v1/auth/me", &[("cookie", &session), CONSOLE], None).await;
    assert_eq!(me.json()["user"]["email"], "ann@example.com");
    let out = browsing.server.request("POST", "/v1/auth/logout", &[("cookie", &session), CONSOLE], None).await;
    assert_eq!(out.status, 204);
    let me = browsing.server.request("GET", "/v1/auth/me", &[("cookie", &session), CONSOLE], None).await;
    assert_eq!(me.status, 401);
}

#[tokio::test]
async fn what_goes_wrong_is_said_where_people_sign_in() {
    let browsing = Browsing::start("http://mail.example.com/", Console::BuiltIn).await;
    let said = |response: &Response| {
        assert_eq!(response.status, 302);
        assert!(cookies(response).iter().all(|cookie| !cookie.contains("session")));
        let location = response.header("location").unwrap();
        let reason = location.strip_prefix("http://mail.example.com/console/#/sign-in?reason=");
        reason.unwrap_or_else(|| panic!("{location}")).to_owned()
    };
    let (cookie, back) = browsing.begin().await;
    assert!(cookie.starts_with("messaging_sign_on="), "{cookie}");
    assert_eq!(said(&browsing.get(&back, "").await), "expired", "another browser");
    let (other, _) = browsing.begin().await;
    assert_eq!(said(&browsing.get(&back, &other).await), "expired", "another sign-in");
    assert_eq!(said(&browsing.get(&back, &format!("{cookie}; {cookie}")).await), "expired", "two cookies");
    assert_eq!(said(&browsing.get(&format!("{BEGIN}/callback"), &cookie).await), "expired");

    browsing.provider.person(json!({"sub": "ann", "email": "ann@example.com", "email_verified": false}));
    assert_eq!(said(&browsing.get(&back, &cookie).await), "email_unverified");
    browsing.clock.advance(Duration::from_hours(2));
    browsing.provider.is_down(true);
    assert_eq!(said(&browsing.get(BEGIN, "").await), "unreachable");
}

#[tokio::test]
async fn somebody_with_a_password_is_led_to_where_it_is_asked_for() {
    let browsing = Browsing::start("https://mail.example.com", Console::BuiltIn).await;
    let password = "correct horse battery";
    admin::create_user(&browsing.server.app, "bob@example.com", Some(password.to_owned()), None).await.unwrap();
    browsing.provider.person(json!({"sub": "bob", "email": "bob@example.com", "email_verified": true}));
    let (cookie, back) = browsing.begin().await;
    let led = browsing.get(&back, &cookie).await;
    let location = led.header("location").unwrap();
    let ticket = location.strip_prefix("https://mail.example.com/console/#confirm=").unwrap();
    let ticket = percent_encoding::percent_decode_str(ticket).decode_utf8().unwrap();
    let body = json!({"ticket": ticket, "password": password, "cookie": true}).to_string();
    let headers = [("content-type", "application/json")];
    let confirmed = browsing.server.request("POST", "/v1/auth/oidc/confirm", &headers, Some(&body)).await;
    assert_eq!((confirmed.status, &confirmed.json()["token"]), (200, &Value::Null));
    assert!(cookie_of(&confirmed, "session").starts_with("__Host-messaging_session=ms_"));
}

#[tokio::test]
async fn somebody_with_a_second_factor_is_led_to_where_it_is_asked_for() {
    let browsing = Browsing::start("https://mail.example.com", Console::BuiltIn).await;
    let (cookie, back) = browsing.begin().await;
    let session = cookie_of(&browsing.get(&back, &cookie).await, "session");
    let headers = [("cookie", session.as_str()), CONSOLE, ("content-type", "application/json")];
    let post = |target: String, body: Value| {
        let (server, headers) = (&browsing.server, &headers);
        async move { server.request("POST", &target, headers, Some(&body.to_string())).await }
    };
    let made = post("/v1/auth/factors".to_owned(), json!({"kind": "totp"})).await.json();
    let secret = TotpSecret::from_base32(made["secret"].as_str().unwrap()).unwrap();
    let target = format!("/v1/auth/factors/{}/confirm", made["id"].as_str().unwrap());
    assert_eq!(post(target, json!({"code": secret.code_at(browsing.server.app.now())})).await.status, 200);
    browsing.clock.advance(Duration::from_secs(30));

    let (cookie, back) = browsing.begin().await;
    let led = browsing.get(&back, &cookie).await;
    assert!(cookies(&led).iter().all(|cookie| !cookie.contains("session")), "it opens nothing");
    let details = led.header("location").unwrap().strip_prefix("https://mail.example.com/console/#factor=").unwrap();
    let details = percent_encoding::percent_decode_str(details).decode_utf8().unwrap();
    let details: Value = serde_json::from_str(&details).unwrap();
    assert_eq!(details["kinds"], json!(["totp"]));
    let body = json!({"token": details["token"], "code": secret.code_at(browsing.server.app.now())}).to_string();
    let headers = [("content-type", "application/json")];
    let done = browsing.server.request("POST", "/v1/auth/login/factor", &headers, Some(&body)).await;
    assert_eq!((done.status, &done.json()["token"]), (200, &Value::Null));
    assert!(cookie_of(&done, "session").starts_with("__Host-messaging_session=ms_"));
}

#[tokio::test]
async fn without_a_console_there_are_pages() {
    let browsing = Browsing::start("https://mail.example.com", Console::Off).await;
    let (cookie, back) = browsing.begin().await;
    let refused = browsing.get(&back, "").await;
    let page = String::from_utf8(refused.body.clone()).unwrap();
    assert_eq!((refused.status, refused.header("content-type")), (403, Some("text/html; charset=utf-8")));
    assert!(page.contains("took longer than ten minutes"), "{page}");
    let done = browsing.get(&back, &cookie).await;
    assert_eq!(done.status, 200);
    assert!(String::from_utf8(done.body.clone()).unwrap().contains("You are signed in"));
    assert!(cookie_of(&done, "session").contains("=ms_"));
}

#[tokio::test]
async fn a_server_without_a_provider_has_no_such_paths() {
    let server = TestServer::start().await;
    for target in [BEGIN, "/v1/auth/oidc/callback?code=a&state=b", "/api/v1/auth/oidc"] {
        assert_eq!(server.request("GET", target, &[], None).await.code(), "not_found", "{target}");
    }
    assert_eq!(server.request("POST", BEGIN, &[], None).await.code(), "method_not_allowed");
    assert_eq!(server.request("GET", "/auth/oidc", &[], None).await.code(), "route_not_found");
}
