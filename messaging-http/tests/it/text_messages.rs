//! Text messages through the whole product: the server, the real transports, fake providers on loopback sockets, and
//! their callbacks. Tests the consequences of each answer and each report: status, events, suppression, streak, and the
//! lane.

mod lane;
mod outcomes;
mod proofs;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::scope::Scope;
use messaging_http::ServerOptions;
use messaging_testing::fakes::{FakeApi, FakeProvider, FakeTwilio};
use messaging_transport::{Dns, GuardedFetch, Options, defaults};
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};

/// Beginning of the addresses that providers call.
const PUBLIC_URL: &str = "http://127.0.0.1:8080";

/// A server with every provider of text messages.
struct Texts {
    server: TestServer,
    key: String,
}

impl Texts {
    async fn start() -> Self {
        let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
        let options = Options { fetch, allow_private: true, ..Options::new("mail.test") };
        let carriers: Vec<(Channel, &str, Arc<dyn Transport>)> =
            defaults(&options).into_iter().filter(|(channel, ..)| *channel == Channel::Sms).collect();
        let server =
            TestServer::carrying(ServerOptions::new(any_port()), Arc::new(SystemEntropy::default()), carriers).await;
        let key = server.key(&[Scope::All]).await;
        Self { server, key }
    }

    /// A server that sends through a fake of this provider.
    async fn by(provider: &str, api: impl FakeApi, settings: impl FnOnce(&str) -> Value) -> (Self, FakeProvider) {
        let texts = Self::start().await;
        let fake = FakeProvider::start(api).await.unwrap();
        fake.call_straight(PUBLIC_URL, texts.server.address);
        texts.set(provider, &settings(&fake.url())).await;
        (texts, fake)
    }

    async fn by_twilio() -> (Self, FakeProvider) {
        let api = FakeTwilio::new("AC1", "t0ken");
        Self::by("twilio", api.clone(), |url| api.settings(url)).await
    }

    fn path(&self, of: &str) -> String {
        format!("/v1/workspaces/{}/{of}", self.server.workspace)
    }

    /// Sets a provider; returns the channel as the API shows it.
    async fn set(&self, provider: &str, config: &Value) -> Value {
        let body = json!({"provider": provider, "config": config}).to_string();
        let shown = self.server.put(&self.path("channels/sms"), &self.key, &body).await;
        assert_eq!(shown.status, 200, "{}", String::from_utf8_lossy(&shown.body));
        shown.json()
    }

    /// The channel as the API shows it.
    async fn channel(&self) -> Value {
        self.server.get(&self.path("channels"), &self.key).await.json()["data"][1].clone()
    }

    /// Accepts a message, which is not sent yet.
    async fn accept(&self, to: &str) -> String {
        let body = json!({"channel": "sms", "to": to, "text": "Your code is 123"}).to_string();
        let accepted = self.server.post("/v1/messages", &self.key, &body).await;
        assert_eq!(accepted.status, 202, "{}", String::from_utf8_lossy(&accepted.body));
        accepted.json()["message_id"].as_str().unwrap().to_owned()
    }

    async fn work(&self) {
        self.server.app.run_until_idle().await.unwrap();
    }

    async fn pass(&self, span: Duration) {
        self.server.clock.advance(span);
        self.work().await;
    }

    /// Sends a message and makes its attempt.
    async fn send(&self, to: &str) -> String {
        let id = self.accept(to).await;
        self.work().await;
        id
    }

    async fn report(&self, id: &str) -> Value {
        self.server.get(&format!("/v1/messages/{id}"), &self.key).await.json()
    }

    /// Status and events, by name because a report may overtake the answer: `delivered: delivered queued sent`.
    async fn fate(&self, id: &str) -> String {
        let report = self.report(id).await;
        let events = report["events"].as_array().unwrap().iter();
        let mut kinds: Vec<_> = events.map(|event| event["kind"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        format!("{}: {}", report["status"].as_str().unwrap(), kinds.join(" "))
    }

    /// The `meta` of the newest event of a kind; null without one.
    async fn meta(&self, id: &str, kind: &str) -> Value {
        let report = self.report(id).await;
        let found = report["events"].as_array().unwrap().iter().rev().find(|event| event["kind"] == kind).cloned();
        found.map_or(Value::Null, |event| event["meta"].clone())
    }

    /// Reason, source and detail of the suppression of a number.
    async fn listed(&self, number: &str) -> String {
        let store = self.server.app.store();
        let found = store.suppressed(self.server.workspace, Channel::Sms, &[number.to_owned()]).await.unwrap().pop();
        found.map_or_else(String::new, |found| {
            let source = serde_json::to_value(found.record.source).unwrap();
            let words = [found.record.reason.as_str(), source.as_str().unwrap_or_default()];
            [words.join(" "), found.record.detail.unwrap_or_default()].join(" ").trim_end().to_owned()
        })
    }
}
