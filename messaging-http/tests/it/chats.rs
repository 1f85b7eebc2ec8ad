//! Telegram, WhatsApp and Viber through the whole product: the server, the real transports, and fake providers that
//! check a callback address as the real ones do before they call it.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::scope::Scope;
use messaging_http::ServerOptions;
use messaging_testing::fakes::{FakeApi, FakeProvider, FakeTelegram, FakeViberBot, FakeWhatsapp, Signature};
use messaging_transport::{Dns, GuardedFetch, Options, defaults};
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};

/// Beginning of the addresses that providers call.
const PUBLIC_URL: &str = "http://127.0.0.1:8080";

const TO: &str = "+9990000112";

/// A server with one channel, whose provider is a fake.
struct Chat {
    server: TestServer,
    key: String,
    channel: Channel,
    fake: FakeProvider,
    /// Address that the provider calls.
    url: String,
}

impl Chat {
    async fn start(channel: Channel, provider: &str, api: impl FakeApi, config: impl FnOnce(&str) -> Value) -> Self {
        let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
        let transports = defaults(&Options { fetch, allow_private: true, ..Options::new("mail.test") });
        let carried = transports.into_iter().filter(|(known, ..)| *known == channel).collect();
        let entropy = Arc::new(SystemEntropy::default());
        let server = TestServer::carrying(ServerOptions::new(any_port()), entropy, carried).await;
        let key = server.key(&[Scope::All]).await;
        let fake = FakeProvider::start(api).await.unwrap();
        fake.call_straight(PUBLIC_URL, server.address);
        let path = format!("/v1/workspaces/{}/channels/{channel}", server.workspace);
        let body = json!({"provider": provider, "config": config(&fake.url())}).to_string();
        let shown = server.put(&path, &key, &body).await;
        assert_eq!(shown.status, 200, "{}", String::from_utf8_lossy(&shown.body));
        let url = shown.json()["callback_url"].as_str().expect("a callback address").to_owned();
        // The provider gets its callback address.
        server.app.run_until_idle().await.unwrap();
        Self { server, key, channel, fake, url }
    }

    async fn send(&self, to: &str) -> String {
        let body = json!({"channel": self.channel, "to": to, "text": "Hello"}).to_string();
        let accepted = self.server.post("/v1/messages", &self.key, &body).await.json();
        self.server.app.run_until_idle().await.unwrap();
        accepted["message_id"].as_str().expect("a message").to_owned()
    }

    /// The status, with all events so far.
    async fn status(&self, id: &str) -> String {
        self.server.clock.advance(Duration::from_secs(2));
        self.server.app.run_until_idle().await.unwrap();
        let report = self.server.get(&format!("/v1/messages/{id}"), &self.key).await.json();
        report["status"].as_str().unwrap().to_owned()
    }

    /// Has a user send a message; returns the reason for which the address is suppressed afterwards.
    async fn writes(&self, from: &str, text: &str) -> Option<&'static str> {
        let called = self.fake.write(&self.url, from, text, Signature::Valid).await.unwrap();
        assert_eq!(called.status.map(|status| status.as_u16()), Some(200));
        let store = self.server.app.store();
        let found = store.suppressed(self.server.workspace, self.channel, &[from.to_owned()]).await.unwrap();
        found.first().map(|stored| stored.record.reason.as_str())
    }

    async fn registration_error(&self) -> Value {
        let path = format!("/v1/workspaces/{}/channels", self.server.workspace);
        let page = self.server.get(&path, &self.key).await.json();
        let items = page["data"].as_array().unwrap();
        items.iter().find(|item| item["channel"] == json!(self.channel)).unwrap()["error"].clone()
    }
}

#[tokio::test]
async fn whatsapp_proves_the_address_and_then_reports_and_tells_who_stops() {
    let api = FakeWhatsapp::new("1066", "EAA", "app secret");
    let config = |base: &str| json!({"api_base": base, "phone_number_id": "1066", "access_token": "EAA", "app_secret": "app secret"});
    let chat = Chat::start(Channel::Whatsapp, "cloud_api", api.clone(), config).await;
    let url = &chat.url;
    let token = url.rsplit('/').next().unwrap();
    assert!(!api.enter_webhook(&chat.fake, url, "another").await);
    assert!(api.enter_webhook(&chat.fake, url, token).await, "{:?}", chat.fake.called_back());

    let id = chat.send("+9990000101").await;
    chat.fake.calls_answered(4).await;
    assert_eq!(chat.status(&id).await, "delivered");
    assert_eq!(chat.writes(TO, "STOP").await, Some("unsubscribe"));
    assert_eq!(chat.writes(TO, "START").await, None);

    let path = url.strip_prefix(PUBLIC_URL).unwrap();
    let question = format!("{path}?hub.mode=subscribe&hub.verify_token={token}&hub.challenge=4711");
    let ask = async |method: &str, path: &str| chat.server.request(method, path, &[], None).await;
    let answer = ask("GET", &question).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"4711"[..]));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    for wrong in
        [path.to_owned(), question.replace("subscribe", "unsubscribe"), format!("{question}x").replace(token, "x")]
    {
        assert_eq!(ask("GET", &wrong).await.status, 404, "{wrong}");
    }
    let refused = ask("PUT", &question).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD, POST")));
}

#[tokio::test]
async fn telegram_is_told_the_address_and_brings_what_people_write() {
    let api = FakeTelegram::new("1:token");
    let config = |base: &str| json!({"api_base": base, "bot_token": "1:token"});
    let chat = Chat::start(Channel::Telegram, "bot_api", api.clone(), config).await;
    assert_eq!(api.webhook().as_ref(), Some(&chat.url), "{}", chat.registration_error().await);
    assert_eq!(chat.writes("9990000112", "/stop@acme_bot").await, Some("unsubscribe"));
    assert_eq!(chat.writes("9990000112", "/start@acme_bot").await, None);
}

#[tokio::test]
async fn viber_proves_the_address_itself_and_then_reports() {
    let api = FakeViberBot::new("viber token");
    let config = |base: &str| json!({"api_base": base, "auth_token": "viber token", "sender": "ACME"});
    let chat = Chat::start(Channel::Viber, "bot", api.clone(), config).await;
    assert_eq!(api.webhook().as_ref(), Some(&chat.url), "{}", chat.registration_error().await);
    let id = chat.send("somebody-01").await;
    chat.fake.calls_answered(2).await;
    assert_eq!(chat.status(&id).await, "delivered");
}
