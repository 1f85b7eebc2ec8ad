//! Callbacks of providers over HTTP (contract section 18).

use std::sync::Arc;

use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::transport::{Acceptance, Answer, OutcomeClass, ProviderAnswer, Response as Reply};
use messaging_core::scope::Scope;
use messaging_http::ServerOptions;
use messaging_testing::CallingProvider;
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

const TO: &str = "+14155550123";

/// Three mebibytes.
const LIMIT: usize = 3 << 20;

/// A server whose providers of text messages call back.
struct Called {
    server: TestServer,
    provider: Arc<CallingProvider>,
    key: String,
}

impl Called {
    async fn start() -> Self {
        let provider = CallingProvider::new();
        let carrier = || Arc::clone(&provider) as Arc<dyn Transport>;
        let transports = vec![(Channel::Sms, "twilio", carrier()), (Channel::Sms, "http", carrier())];
        let entropy = Arc::new(SystemEntropy::default());
        let server = TestServer::carrying(ServerOptions::new(any_port()), entropy, transports).await;
        let key = server.key(&[Scope::All]).await;
        let called = Self { server, provider, key };
        called.set("sms", twilio("secret")).await;
        called
    }

    /// Sets a channel of the workspace; returns its callback path.
    async fn set(&self, channel: &str, settings: Value) -> String {
        self.set_in(self.server.workspace, &self.key, channel, settings).await
    }

    async fn set_in(&self, workspace: WorkspaceId, key: &str, channel: &str, settings: Value) -> String {
        let path = format!("/v1/workspaces/{workspace}/channels/{channel}");
        let shown = self.server.put(&path, key, &settings.to_string()).await;
        assert_eq!(shown.status, 200, "{}", String::from_utf8_lossy(&shown.body));
        let shown = shown.json();
        let path = shown["callback_url"].as_str().and_then(|url| url.strip_prefix("http://127.0.0.1:8080"));
        path.unwrap_or_default().to_owned()
    }

    async fn callback_path(&self) -> String {
        let path = format!("/v1/workspaces/{}/channels", self.server.workspace);
        let url = self.server.get(&path, &self.key).await.json()["data"][1]["callback_url"].clone();
        url.as_str().unwrap().strip_prefix("http://127.0.0.1:8080").unwrap().to_owned()
    }

    /// Sends a text message that the provider accepts under this name; returns its id and the path of its receipts.
    async fn text_message(&self, name: &str) -> (String, String) {
        let said = ProviderAnswer { message_id: Some(name.to_owned()), ..ProviderAnswer::default() };
        let answer = Answer::new(OutcomeClass::Accepted(Acceptance::Relayed), Reply::default()).provider(said);
        self.provider.outcome_next(TO, answer.into());
        let body = json!({"channel": "sms", "to": TO, "text": "hello"});
        let id = self.server.post("/v1/messages", &self.key, &body.to_string()).await.json()["message_id"].clone();
        self.server.app.run_until_idle().await.unwrap();
        let url = self.provider.sent().pop().unwrap().receipts.unwrap().url;
        (id.as_str().unwrap().to_owned(), url.strip_prefix("http://127.0.0.1:8080").unwrap().to_owned())
    }

    /// Status and events of a message: `delivered: queued sent delivered`.
    async fn story(&self, id: &str) -> String {
        let report = self.server.get(&format!("/v1/messages/{id}"), &self.key).await.json();
        let events = report["events"].as_array().unwrap().iter();
        let events: Vec<_> = events.map(|event| event["kind"].as_str().unwrap()).collect();
        format!("{}: {}", report["status"].as_str().unwrap(), events.join(" "))
    }

    async fn call(&self, path: &str, signature: Option<&str>, body: &Value) -> u16 {
        self.call_with(path, signature, &body.to_string()).await.status
    }

    async fn call_with(&self, path: &str, signature: Option<&str>, body: &str) -> Response {
        let signature = signature.map(|signature| ("x-signature", signature));
        let headers: Vec<_> =
            [("content-type", "application/x-www-form-urlencoded")].into_iter().chain(signature).collect();
        self.server.request("POST", path, &headers, Some(body)).await
    }

    /// Reason why an address of text messages is suppressed.
    async fn suppression(&self, address: &str) -> Option<SuppressionReason> {
        let store = self.server.app.store();
        let found = store.suppressed(self.server.workspace, Channel::Sms, &[address.to_owned()]).await.unwrap();
        found.first().map(|stored| stored.record.reason)
    }
}

fn twilio(secret: &str) -> Value {
    json!({"provider": "twilio", "config": {"account_sid": "AC1", "auth_token": secret, "sender": "ACME"}})
}

fn reported(status: &str) -> Value {
    json!({"receipts": [{"status": status}]})
}

fn said(text: &str) -> Value {
    json!({"messages": [{"from": TO, "text": text}]})
}

#[tokio::test]
async fn a_receipt_comes_to_the_address_of_its_message_twice_and_in_any_order() {
    let called = Called::start().await;
    let (id, path) = called.text_message("SM1").await;
    assert_eq!(called.story(&id).await, "sent: queued sent");
    for status in ["read", "delivered", "delivered", "read"] {
        let answer = called.call_with(&path, None, &reported(status).to_string()).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    }
    let story = called.story(&id).await;
    assert!(story.starts_with("delivered: queued sent"), "{story}");
    assert_eq!((story.matches("delivered").count(), story.matches("open").count()), (2, 1), "{story}");
    // Unreadable parts of an authenticated call report nothing and are no error.
    for body in ["", "not json", "[]", r#"{"receipts":[{"status":"unheard of"}]}"#] {
        assert_eq!(called.call_with(&path, None, body).await.status, 200, "{body}");
    }
    assert_eq!(called.story(&id).await, story);
}

#[tokio::test]
async fn a_receipt_comes_to_the_address_of_the_channel_by_name_or_token() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let (first, _) = called.text_message("SM1").await;
    let (second, own_path) = called.text_message("SM2").await;
    let (third, _) = called.text_message("SM3").await;
    let token = own_path.rsplit('/').next().unwrap();
    let body = json!({"receipts": [{"id": "SM1", "status": "delivered"}, {"token": token, "status": "delivered"},
        {"id": "unknown", "status": "delivered"}, {"token": "unknown", "status": "delivered"},
        {"status": "delivered"}]});
    for _ in 0..2 {
        assert_eq!(called.call(&path, Some("secret"), &body).await, 200);
    }
    for (id, expected) in [
        (first, "delivered: queued sent delivered"),
        (second, "delivered: queued sent delivered"),
        (third, "sent: queued sent"),
    ] {
        assert_eq!(called.story(&id).await, expected);
    }
}

#[tokio::test]
async fn forged_unsigned_and_old_calls_change_nothing() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let (id, message_path) = called.text_message("SM1").await;
    let news = json!({"receipts": [{"id": "SM1", "status": "gone"}], "messages": [{"from": TO, "text": "STOP"}]});
    for signature in [None, Some(""), Some("Secret")] {
        assert_eq!(called.call(&path, signature, &news).await, 401, "{signature:?}");
    }
    let forged = |path: &str| {
        let (start, end) = path.split_at(path.len() - 8);
        format!("{start}{}{}", if end.starts_with('A') { 'B' } else { 'A' }, &end[1..])
    };
    let of_channel = path.rsplit('/').next().unwrap();
    let of_message = message_path.rsplit('/').next().unwrap();
    let wrong = [
        forged(&path),
        forged(&message_path),
        format!("{path}A"),
        format!("/callbacks/sms/{}", "A".repeat(67)),
        "/callbacks/sms/x".to_owned(),
        format!("/callbacks/viber/{of_channel}"),
        format!("/callbacks/fax/{of_channel}"),
        format!("/callbacks/viber/{of_message}"),
    ];
    for path in wrong {
        assert_eq!(called.call(&path, Some("secret"), &news).await, 404, "{path}");
    }
    assert_eq!((called.story(&id).await.as_str(), called.suppression(TO).await), ("sent: queued sent", None));

    // Other settings: the old address and the old secret end at once, those of messages do not.
    let other = called.set("sms", twilio("other")).await;
    assert_ne!(other, path);
    for signature in ["secret", "other"] {
        assert_eq!(called.call(&path, Some(signature), &news).await, 404);
    }
    assert_eq!(called.call(&other, Some("secret"), &news).await, 401);
    assert_eq!((called.story(&id).await.as_str(), called.suppression(TO).await), ("sent: queued sent", None));
    assert_eq!(called.call(&message_path, None, &reported("delivered")).await, 200);
    assert_eq!(called.story(&id).await, "delivered: queued sent delivered");
    assert_eq!(called.call(&other, Some("other"), &said("STOP")).await, 200);
    assert_eq!(called.suppression(TO).await, Some(SuppressionReason::Unsubscribe));
    // The same settings again have the same address.
    assert_eq!(called.set("sms", twilio("other")).await, other);
}

#[tokio::test]
async fn another_provider_ends_the_address_of_the_channel_and_not_that_of_a_message() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let (id, message_path) = called.text_message("SM1").await;
    let gateway = json!({"provider": "http", "config": {"api_base": "https://sms.example.com", "sender": "ACME"}});
    assert_eq!(called.set("sms", gateway).await, "", "it is told with each message");
    assert_eq!(called.call(&path, Some("secret"), &reported("delivered")).await, 404);
    assert_eq!(called.call(&message_path, None, &reported("delivered")).await, 200);
    assert_eq!(called.story(&id).await, "delivered: queued sent delivered");
}

#[tokio::test]
async fn one_workspace_cannot_speak_about_the_messages_of_another() {
    let called = Called::start().await;
    let theirs = called.server.other_workspace().await;
    let their_key = called.server.key_with(&[Scope::All], |key| key.workspace_id = theirs).await;
    let their_path = called.set_in(theirs, &their_key, "sms", twilio("theirs")).await;
    let (id, message_path) = called.text_message("SM1").await;
    let token = message_path.rsplit('/').next().unwrap();
    let news = json!({
        "receipts": [{"id": "SM1", "status": "gone"}, {"token": token, "status": "gone"}],
        "messages": [{"from": TO, "text": "STOP"}],
    });
    assert_eq!(called.call(&their_path, Some("theirs"), &news).await, 200);
    called.server.app.run_until_idle().await.unwrap();
    assert_eq!((called.story(&id).await.as_str(), called.suppression(TO).await), ("sent: queued sent", None));
    // The address of one message allows no report about other messages or recipients.
    let (other, _) = called.text_message("SM2").await;
    let news = json!({"receipts": [{"id": "SM2", "status": "delivered"}], "messages": [{"from": TO, "text": "STOP"}]});
    assert_eq!(called.call(&message_path, None, &news).await, 200);
    assert_eq!(called.story(&other).await, "sent: queued sent");
    assert_eq!(called.story(&id).await, "delivered: queued sent delivered");
    assert_eq!(called.suppression(TO).await, None);
}

#[tokio::test]
async fn words_of_the_workspace_opt_out_too() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let owner = called.server.session(Some(messaging_core::scope::Role::Owner)).await;
    let workspace = format!("/v1/workspaces/{}", called.server.workspace);
    assert_eq!(called.call(&path, Some("secret"), &said("stopp")).await, 200);
    assert_eq!(called.suppression(TO).await, None);
    let headers = [("authorization", &*format!("Bearer {owner}")), ("content-type", "application/json")];
    let body = json!({"opt_out_keywords": [" STOPP ", "Ende"]}).to_string();
    let shown = called.server.request("PATCH", &workspace, &headers, Some(&body)).await;
    assert_eq!((shown.status, &shown.json()["opt_out_keywords"]), (200, &json!(["STOPP", "Ende"])));
    assert_eq!(called.call(&path, Some("secret"), &said("stopp, please")).await, 200);
    assert_eq!(called.suppression(TO).await, None, "one word alone");
    assert_eq!(called.call(&path, Some("secret"), &said("ende")).await, 200);
    assert_eq!(called.suppression(TO).await, Some(SuppressionReason::Unsubscribe));
    assert_eq!(called.call(&path, Some("secret"), &said("START")).await, 200);
    assert_eq!(called.suppression(TO).await, None);
    for (words, code) in [
        (json!(vec!["a"; 21]), "too_many_items"),
        (json!([""]), "required"),
        (json!(["start"]), "conflict"),
        (json!(["Halt", "HALT"]), "duplicate"),
        (json!(["x".repeat(41)]), "too_long"),
    ] {
        let body = json!({"opt_out_keywords": words}).to_string();
        let refused = called.server.request("PATCH", &workspace, &headers, Some(&body)).await.json();
        assert_eq!(refused["error"]["details"]["errors"][0]["code"], code, "{words}: {refused}");
    }
}

#[tokio::test]
async fn bodies_end_at_three_mebibytes_and_calls_at_two_thousand_reports() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    for (length, expected) in [(LIMIT, 200), (LIMIT + 1, 413)] {
        let answer = called.call_with(&path, Some("secret"), &" ".repeat(length)).await;
        assert_eq!(answer.status, expected, "{length}");
    }
    // Unknown address: the body is not read.
    assert_eq!(called.call_with("/callbacks/sms/x", None, &" ".repeat(LIMIT + 1)).await.status, 404);
    let (id, _) = called.text_message("SM1").await;
    let many = |count: usize| {
        let receipts: Vec<_> = (0..count).map(|_| json!({"id": "SM1", "status": "delivered"})).collect();
        json!({"receipts": receipts})
    };
    assert_eq!(called.call(&path, Some("secret"), &many(2001)).await, 413);
    assert_eq!(called.story(&id).await, "sent: queued sent");
    assert_eq!(called.call(&path, Some("secret"), &many(50)).await, 200);
    assert_eq!(called.story(&id).await, "delivered: queued sent delivered");
}

#[tokio::test]
async fn other_methods_than_post_are_refused() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let ask = async |method: &str, path: &str| called.server.request(method, path, &[], None).await;
    for method in ["GET", "PUT", "DELETE", "HEAD"] {
        let refused = ask(method, &path).await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_be_stored_is_answered_503_and_counts_once_when_it_is_repeated() {
    let called = Called::start().await;
    let path = called.callback_path().await;
    let (id, own_path) = called.text_message("SM1").await;
    let foreign = rusqlite::Connection::open(called.server.directory.path().join("test.db")).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let news = json!({"receipts": [{"id": "SM1", "status": "delivered"}], "messages": [{"from": TO, "text": "STOP"}]});
    for _ in 0..2 {
        for (path, signature) in [(&path, Some("secret")), (&own_path, None)] {
            let answer = called.call_with(path, signature, &news.to_string()).await;
            assert_eq!((answer.status, answer.code()), (503, "unavailable".to_owned()));
            let wait: u64 = answer.header("retry-after").expect("when to come again").parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
    }
    // A forged call is not asked to be repeated.
    assert_eq!(called.call(&path, Some("forged"), &news).await, 401);
    assert_eq!((called.story(&id).await.as_str(), called.suppression(TO).await), ("sent: queued sent", None));

    drop(foreign);
    let mut health = called.server.app.store().watch_health();
    health.wait_for(|health| health.is_healthy()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(called.call(&path, Some("secret"), &news).await, 200);
    }
    assert_eq!(called.story(&id).await, "delivered: queued sent delivered unsubscribe");
    assert_eq!(called.suppression(TO).await, Some(SuppressionReason::Unsubscribe));
}
