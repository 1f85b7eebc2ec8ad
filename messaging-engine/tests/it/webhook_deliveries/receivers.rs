//! Misbehaving receivers, each in its own way, called by the real client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use messaging_testing::{Answer, DnsFailure, ScriptedHttpServer, TestDns};
use messaging_transport::{Dns, GuardedFetch};
use serde_json::{Value, json};

use crate::bed::{self, Call};
use crate::support::Product;

/// A public address; nothing is sent there.
const PUBLIC: &str = "93.184.216.34";

/// The real client, but for patience: no test waits 15 seconds.
#[derive(Debug)]
struct Hasty(GuardedFetch);

#[async_trait]
impl Fetch for Hasty {
    fn check(&self, url: &str) -> Result<(), UrlFault> {
        self.0.check(url)
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        assert_eq!(request.time_limit, Duration::from_secs(15));
        self.0.fetch(FetchRequest { time_limit: Duration::from_millis(300), ..request }).await
    }
}

/// A product whose webhook leads to a receiver with TLS that seems to be on the public internet.
struct Scene {
    product: Product,
    receiver: ScriptedHttpServer,
    dns: TestDns,
    path: String,
}

impl Scene {
    async fn start() -> Self {
        Self::with_certificate_for("acme.test").await
    }

    async fn with_certificate_for(name: &str) -> Self {
        let receiver = ScriptedHttpServer::tls(&[name]).await;
        let dns = TestDns::start().await;
        dns.ttl(0);
        dns.addresses("acme.test", &[PUBLIC.parse().unwrap()]);
        let client = GuardedFetch::builder(Dns::new(Some(dns.addr())))
            .root(receiver.root().unwrap())
            .connect_instead(receiver.address())
            .build();
        let product = Product::calling(Arc::new(Hasty(client))).await;
        let base = format!("/workspaces/{}/webhooks", product.workspace);
        let input = json!({"url": "https://acme.test/hook", "events": ["sent"]});
        let call = Call::new(&product.caller, Method::POST, &base).body(&input);
        let created = bed::send(&product.app, call).await;
        let path = format!("{base}/{}", created["id"].as_str().unwrap());
        Self { product, receiver, dns, path }
    }

    /// Sends a message and returns the state of its delivery, as `pending 500 http_status`.
    async fn outcome(&self) -> String {
        self.product.send_to("ann@example.com").await;
        self.product.work().await;
        self.last().await
    }

    async fn last(&self) -> String {
        let target = format!("{}/deliveries", self.path);
        let reply = bed::send(&self.product.app, Call::new(&self.product.caller, Method::GET, &target)).await;
        let delivery = reply["data"][0].clone();
        let text = |member: &str| match &delivery[member] {
            Value::Null => String::new(),
            Value::String(text) => format!(" {text}"),
            other => format!(" {other}"),
        };
        format!("{}{}{}", delivery["status"].as_str().unwrap(), text("response_status"), text("error"))
    }

    async fn webhook(&self) -> String {
        let reply = bed::send(&self.product.app, Call::new(&self.product.caller, Method::GET, &self.path)).await;
        reply["status"].as_str().unwrap().to_owned()
    }

    async fn answers(&self, answer: Answer, expected: &str) {
        let shown = format!("{answer:?}");
        self.receiver.next(answer);
        assert_eq!(self.outcome().await, expected, "{shown}");
    }
}

#[tokio::test]
async fn success() {
    let scene = Scene::start().await;
    scene.answers(Answer::status(200), "delivered 200").await;
    scene.answers(Answer::status(204), "delivered 204").await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let scene = Scene::start().await;
    let moved =
        |status| Answer::Headers(status, vec![("Location", "https://acme.test/other".to_owned())], String::new());
    for status in [301, 302, 307, 308] {
        scene.answers(moved(status), &format!("pending {status} http_status")).await;
    }
    assert!(scene.receiver.requests().iter().all(|request| request.target == "/hook"));
}

#[tokio::test]
async fn refusals_are_tried_again() {
    let scene = Scene::start().await;
    for status in [400, 404, 429, 500, 503] {
        scene.answers(Answer::status(status), &format!("pending {status} http_status")).await;
    }
}

#[tokio::test]
async fn gone() {
    let scene = Scene::start().await;
    scene.answers(Answer::status(410), "failed 410 http_status").await;
    assert_eq!(scene.webhook().await, "disabled");
}

#[tokio::test]
async fn too_many_requests_with_retry_after() {
    let scene = Scene::start().await;
    let wait = Answer::Headers(429, vec![("Retry-After", "120".to_owned())], String::new());
    scene.answers(wait, "pending 429 http_status").await;
    scene.product.pass(Duration::from_secs(119)).await;
    assert_eq!(scene.receiver.requests().len(), 1);
    scene.product.pass(Duration::from_secs(1)).await;
    assert_eq!(scene.last().await, "delivered 200");
}

#[tokio::test]
async fn an_error_and_then_success() {
    let scene = Scene::start().await;
    scene.answers(Answer::status(500), "pending 500 http_status").await;
    scene.product.pass(Duration::from_secs(6)).await;
    assert_eq!(scene.last().await, "delivered 200");
    let requests = scene.receiver.requests();
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn silence() {
    Scene::start().await.answers(Answer::Silence, "pending timeout").await;
}

#[tokio::test]
async fn a_slow_drip() {
    let scene = Scene::start().await;
    let mut head = b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec();
    head.resize(500, b'x');
    scene.answers(Answer::Drip(head), "pending timeout").await;
    let mut body = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".to_vec();
    body.resize(500, b'x');
    scene.answers(Answer::Drip(body), "pending timeout").await;
}

#[tokio::test]
async fn an_endless_body() {
    Scene::start().await.answers(Answer::Endless, "delivered 200").await;
}

#[tokio::test]
async fn a_reset_in_mid_reply() {
    let scene = Scene::start().await;
    for octets in [&b""[..], b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        scene.answers(Answer::Reset(octets.to_vec()), "pending connection_failed").await;
    }
}

#[tokio::test]
async fn a_wrong_content_type() {
    let scene = Scene::start().await;
    let image = vec![("Content-Type", "image/png; charset=what".to_owned())];
    scene.answers(Answer::Headers(200, image, "\u{89}PNG".to_owned()), "delivered 200").await;
}

#[tokio::test]
async fn http_1_0() {
    let scene = Scene::start().await;
    scene.answers(Answer::Raw(b"HTTP/1.0 200 OK\r\n\r\nok".to_vec()), "delivered 200").await;
    scene.answers(Answer::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec()), "pending connection_failed").await;
}

#[tokio::test]
async fn a_tls_failure() {
    let scene = Scene::with_certificate_for("other.test").await;
    assert_eq!(scene.outcome().await, "pending tls_error");
    assert!(scene.receiver.requests().is_empty());
}

#[tokio::test]
async fn a_dns_failure() {
    let scene = Scene::start().await;
    scene.dns.fail("acme.test", DnsFailure::ServFail);
    assert_eq!(scene.outcome().await, "pending dns_error");
    scene.dns.recover("acme.test");
    scene.dns.remove("acme.test");
    assert_eq!(scene.outcome().await, "pending dns_error");
}

#[tokio::test]
async fn a_dns_answer_that_turns_private_between_attempts() {
    let scene = Scene::start().await;
    scene.answers(Answer::status(500), "pending 500 http_status").await;
    scene.dns.addresses("acme.test", &["169.254.169.254".parse().unwrap()]);
    scene.product.pass(Duration::from_secs(6)).await;
    assert_eq!(scene.last().await, "pending blocked_address");
    assert_eq!(scene.receiver.requests().len(), 1);
    scene.dns.addresses("acme.test", &[PUBLIC.parse().unwrap()]);
    scene.product.pass(Duration::from_mins(6)).await;
    assert_eq!(scene.last().await, "delivered 200");
}
