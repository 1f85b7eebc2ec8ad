use serde_json::json;

use super::*;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DELIVERED, Harness, TestNotification, header};
use messaging_core::domain::delivery::outcome::OutcomeClass;
use messaging_testing::fakes::{FakeAnswer, FakeApns, FakeProvider};
use messaging_testing::{MemoryFetch, fetched};

fn with_memory_fetch() -> (Arc<MemoryFetch>, Harness, TestNotification) {
    let fetch = Arc::new(MemoryFetch::default());
    let harness = Harness::of(Arc::clone(&fetch) as _);
    (fetch, harness, TestNotification::new(FakeApns::settings("https://apns.example.com")))
}

#[tokio::test]
async fn a_request_has_the_headers_and_payload_of_apns() {
    let (fetch, harness, mut given) = with_memory_fetch();
    let device = FakeApns::device(1);
    fetch.next_with(Ok(fetched(200, &[("apns-id", "7F")], "")));
    let answer = harness.answer(PushProvider::Apns, &given, &device).await;
    assert_eq!((answer.class, answer.of_provider().unwrap().message_id.as_deref()), (DELIVERED, Some("7F")));
    let request = fetch.take().pop().unwrap();
    assert_eq!(request.url, format!("https://apns.example.com/3/device/{device}"));
    assert_eq!(request.protocol, Protocol::Http2);
    let headers =
        ["apns-topic", "apns-push-type", "apns-priority", "apns-expiration"].map(|name| header(&request, name));
    assert_eq!(headers, ["com.example.fake", "alert", "10", ""]);
    assert!(header(&request, "apns-collapse-id").starts_with("msg_"));
    assert!(header(&request, "authorization").starts_with("bearer ey"));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"aps": {"alert": {"title": "Hello", "body": "World"}, "sound": "default"}}));

    given.content.title = None;
    given.content.image = Some("https://example.com/a.png".to_owned());
    given.content.data = [("order".to_owned(), "17".to_owned())].into();
    given.options.ttl = Some(Duration::from_secs(90));
    given.options.collapse_key = Some("order-17".to_owned());
    given.options.silent = true;
    harness.answer(PushProvider::Apns, &given, &device).await;
    let request = fetch.take().pop().unwrap();
    let headers = ["apns-collapse-id", "apns-expiration"].map(|name| header(&request, name));
    assert_eq!(headers, ["order-17", "1700000090"]);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "aps": {"alert": {"body": "World"}, "mutable-content": 1},
        "image": "https://example.com/a.png",
        "order": "17",
    });
    assert_eq!(body, expected);

    given.options.ttl = Some(Duration::ZERO);
    harness.answer(PushProvider::Apns, &given, &device).await;
    assert_eq!(header(&fetch.take().pop().unwrap(), "apns-expiration"), "0", "one attempt");
}

#[tokio::test]
async fn the_environment_selects_the_apns_server() {
    for (environment, expected) in [
        (None, "https://api.push.apple.com/3/device/"),
        (Some("production"), "https://api.push.apple.com/3/device/"),
        (Some("development"), "https://api.sandbox.push.apple.com/3/device/"),
    ] {
        let (fetch, harness, mut given) = with_memory_fetch();
        given.settings.remove("api_base");
        given.settings.remove("environment");
        given.settings.extend(environment.map(|name| ("environment".to_owned(), json!(name))));
        harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await;
        assert!(fetch.take()[0].url.starts_with(expected), "{environment:?}");
    }
}

#[tokio::test]
async fn an_invalid_payload_or_setting_is_refused_before_sending() {
    let (fetch, harness, mut given) = with_memory_fetch();
    given.content.data = [("aps".to_owned(), "mine".to_owned())].into();
    assert_eq!(harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await.class, CONTENT);
    given.content.data.clear();
    given.content.text = "x".repeat(MAX_PAYLOAD);
    assert_eq!(harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await.class, CONTENT);
    for (member, value) in [("private_key", "nonsense"), ("environment", "staging"), ("topic", ""), ("team_id", "")] {
        let mut given = TestNotification::new(FakeApns::settings("https://apns.example.com"));
        given.settings[member] = json!(value);
        let class = harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await.class;
        assert_eq!(class, OutcomeClass::Auth, "{member}");
    }
    assert_eq!(fetch.take().len(), 0);
}

#[tokio::test]
async fn a_provider_token_is_renewed_every_fifty_minutes() {
    let harness = Harness::real();
    let fake = FakeProvider::start(FakeApns::new(Arc::clone(&harness.clock) as _)).await.unwrap();
    let given = TestNotification::new(FakeApns::settings(&fake.url()));
    let token = async || {
        let answer = harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await;
        assert_eq!(answer.class, DELIVERED, "{answer:?}");
        fake.requests().last().unwrap().header("authorization").to_owned()
    };
    let first = token().await;
    harness.clock.advance(Duration::from_mins(50) - Duration::from_millis(1));
    assert_eq!(token().await, first);
    harness.clock.advance(Duration::from_millis(1));
    assert_ne!(token().await, first);
    assert!(fake.requests().iter().all(|request| request.version == http::Version::HTTP_2));
}

#[tokio::test]
async fn an_expired_provider_token_is_renewed_unless_it_is_new() {
    let harness = Harness::real();
    let fake = FakeProvider::start(FakeApns::new(Arc::clone(&harness.clock) as _)).await.unwrap();
    let given = TestNotification::new(FakeApns::settings(&fake.url()));
    let expired = || fake.next_answer(FakeAnswer::json(403, &json!({"reason": "ExpiredProviderToken"})));
    let class = async || harness.answer(PushProvider::Apns, &given, &FakeApns::device(1)).await.class;
    expired();
    assert_eq!(class().await, OutcomeClass::Auth, "a new token is no better: it is our clock that is wrong");
    assert_eq!(fake.requests().len(), 1);
    harness.clock.advance(MIN_LIFETIME);
    expired();
    assert_eq!(class().await, DELIVERED);
    let tokens: Vec<_> = fake.requests().iter().map(|request| request.header("authorization").to_owned()).collect();
    assert!(tokens.len() == 3 && tokens[0] == tokens[1] && tokens[1] != tokens[2]);
}
