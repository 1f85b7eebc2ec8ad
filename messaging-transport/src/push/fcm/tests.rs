use std::time::Duration;

use messaging_core::domain::delivery::outcome::{OutcomeClass, Scope};
use serde_json::json;

use super::*;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DELIVERED, Harness, TestNotification, header};
use crate::{Dns, GuardedFetch};
use messaging_testing::fakes::{FakeAnswer, FakeFcm, FakeProvider};
use messaging_testing::{MemoryFetch, fetched};

const SEND: &str = "https://fcm.example.com/v1/projects/fake-project/messages:send";
const TOKEN: &str = "https://fcm.example.com/token";

/// Returns a Firebase that grants a token and accepts everything.
fn memory() -> (Arc<MemoryFetch>, Harness, TestNotification) {
    let fetch = Arc::new(MemoryFetch::default());
    fetch.always(TOKEN, Ok(fetched(200, &[], r#"{"access_token":"ya29.a","expires_in":3600}"#)));
    fetch.always(SEND, Ok(fetched(200, &[], r#"{"name":"projects/fake-project/messages/0:1"}"#)));
    let harness = Harness::of(Arc::clone(&fetch) as _);
    let mut settings = FakeFcm::settings("https://fcm.example.com");
    settings["api_base"] = json!("https://fcm.example.com/");
    (fetch, harness, TestNotification::new(settings))
}

async fn sent(given: &TestNotification, address: &str) -> Value {
    let (fetch, harness, _) = memory();
    let answer = harness.answer(PushProvider::Fcm, given, address).await;
    assert_eq!(answer.class, DELIVERED, "{answer:?}");
    assert_eq!(answer.of_provider().unwrap().message_id.as_deref(), Some("projects/fake-project/messages/0:1"));
    let request = fetch.take().pop().unwrap();
    assert_eq!((request.url.as_str(), header(&request, "authorization")), (SEND, "Bearer ya29.a"));
    let mut body: Value = serde_json::from_slice(&request.body).unwrap();
    // The id of the message, which is new in every run.
    let tag = body["message"]["android"]["notification"]["tag"].as_str().unwrap().to_owned();
    if tag.starts_with("msg_") {
        body = serde_json::from_str(&body.to_string().replace(&tag, "msg_1")).unwrap();
    }
    body
}

#[tokio::test]
async fn a_short_notification_is_written_as_firebase_wants_it() {
    let (_, _, given) = memory();
    let expected = json!({"message": {
        "token": "token-01",
        "notification": {"title": "Hello", "body": "World"},
        "android": {"notification": {"tag": "msg_1", "sound": "default"}},
        "apns": {"headers": {"apns-collapse-id": "msg_1"}, "payload": {"aps": {"sound": "default"}}},
        "webpush": {"notification": {"tag": "msg_1"}},
    }});
    assert_eq!(sent(&given, "token-01").await, expected);
}

#[tokio::test]
async fn everything_that_a_notification_may_have_is_written_too() {
    let (_, _, mut given) = memory();
    given.content.image = Some("https://example.com/a.png".to_owned());
    given.content.data = [("order".to_owned(), "17".to_owned())].into();
    given.options.ttl = Some(Duration::from_secs(90));
    given.options.collapse_key = Some("order 17".to_owned());
    given.options.silent = true;
    let digest = header_tag("order 17", 64, |byte| byte.is_ascii_graphic());
    let expected = json!({"message": {
        "fid": "cAbcdefghij_klmnop-012",
        "notification": {"title": "Hello", "body": "World", "image": "https://example.com/a.png"},
        "data": {"order": "17"},
        "android": {
            "ttl": "90s",
            "collapse_key": "order 17",
            "notification": {"tag": "order 17", "notification_priority": "PRIORITY_LOW"},
        },
        "apns": {
            "headers": {"apns-collapse-id": digest, "apns-expiration": "1700000090"},
            "payload": {"aps": {"mutable-content": 1}},
        },
        "webpush": {"headers": {"TTL": "90"}, "notification": {"tag": "order 17", "silent": true}},
    }});
    assert_eq!(sent(&given, "cAbcdefghij_klmnop-012").await, expected);
}

#[test]
fn installation_ids_are_told_from_registration_tokens() {
    for (address, expected) in [
        ("cAbcdefghij_klmnop-012", true),
        ("fAbcdefghij_klmnop-012", true),
        ("gAbcdefghij_klmnop-012", false),
        ("cAbcdefghij_klmnop-0123", false),
        ("cAbcdefghij_klmnop-01", false),
        ("cAbcdefghij:klmnop-012", false),
    ] {
        assert_eq!(is_installation_id(address), expected, "{address}");
    }
}

#[tokio::test]
async fn what_is_larger_than_firebase_takes_is_not_sent() {
    let (fetch, harness, mut given) = memory();
    given.content.text = "\u{1}".repeat(700);
    assert_eq!(harness.answer(PushProvider::Fcm, &given, "token-01").await.class, CONTENT);
    assert_eq!(fetch.take().len(), 0);
}

#[tokio::test]
async fn settings_that_cannot_work_stop_the_account_and_nothing_leaves() {
    let (fetch, harness, given) = memory();
    let without = |name: &str| {
        let mut settings = given.settings.clone();
        settings.remove(name);
        settings
    };
    let with = |member: &str, value: Value| {
        let mut settings = given.settings.clone();
        settings["service_account"][member] = value;
        settings
    };
    let mut elsewhere = given.settings.clone();
    elsewhere["project_id"] = json!("a/../b");
    let mut text = given.settings.clone();
    text["service_account"] = json!("no JSON");
    for settings in [
        without("project_id"),
        without("service_account"),
        with("private_key", json!("nonsense")),
        with("private_key", json!(null)),
        with("client_email", json!(7)),
        elsewhere,
        text,
    ] {
        let answer = harness.answer(PushProvider::Fcm, &TestNotification::new(settings), "token-01").await;
        assert_eq!(answer.class, OutcomeClass::Auth, "{answer:?}");
    }
    assert_eq!(fetch.take().len(), 0);
}

#[tokio::test]
async fn an_access_token_is_used_until_five_minutes_before_it_expires() {
    let (fetch, harness, mut given) = memory();
    given.settings["service_account"] = json!(given.settings["service_account"].to_string());
    let tokens = async || {
        harness.answer(PushProvider::Fcm, &given, "token-01").await;
        fetch.take().iter().filter(|request| request.url == TOKEN).count()
    };
    assert_eq!(tokens().await, 1);
    harness.clock.advance(Duration::from_mins(55) - Duration::from_millis(1));
    assert_eq!(tokens().await, 0);
    harness.clock.advance(Duration::from_millis(1));
    assert_eq!(tokens().await, 1);
}

#[tokio::test]
async fn a_refused_access_token_is_renewed_once() {
    let harness = Harness::real();
    let fake = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let given = TestNotification::new(FakeFcm::settings(&fake.url()));
    let paths = || fake.requests().iter().map(|request| request.path().to_owned()).collect::<Vec<_>>();
    let send = "/v1/projects/fake-project/messages:send";
    assert_eq!(harness.answer(PushProvider::Fcm, &given, "token-36").await.class, DELIVERED);
    assert_eq!(paths(), ["/token", send, "/token", send]);
    let requests = fake.requests();
    assert_ne!(requests[1].header("authorization"), requests[3].header("authorization"));

    assert_eq!(harness.answer(PushProvider::Fcm, &given, "token-09").await.class, OutcomeClass::Auth);
    assert_eq!(paths()[4..], [send, "/token", send], "and then it is the account that is refused");
}

#[tokio::test]
async fn without_an_access_token_nothing_is_sent_and_it_says_why() {
    let harness = Harness::real();
    let fake = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let given = TestNotification::new(FakeFcm::settings(&fake.url()));
    let retry = OutcomeClass::Retry(Scope::Account);
    for (status, body, expected, said) in [
        (
            400,
            r#"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#,
            OutcomeClass::Auth,
            "invalid_grant: Invalid JWT",
        ),
        (401, r#"{"error":"unauthorized_client"}"#, OutcomeClass::Auth, "unauthorized_client"),
        (403, "", OutcomeClass::Auth, "HTTP 403"),
        (307, "", OutcomeClass::Auth, "redirects"),
        (429, "", retry, "HTTP 429"),
        (500, "", retry, "HTTP 500"),
        (503, "", retry, "HTTP 503"),
        (200, r#"{"access_token":"ya29"#, retry, "cannot be read"),
        (200, "{}", retry, "cannot be read"),
    ] {
        fake.next_answer(FakeAnswer::text(status, "application/json", body).header("location", "/elsewhere"));
        let answer = harness.answer(PushProvider::Fcm, &given, "token-01").await;
        assert_eq!(answer.class, expected, "{status} {body}");
        assert!(
            answer.response.text.starts_with("no access token: ") && answer.response.text.contains(said),
            "{answer:?}"
        );
    }
    assert!(fake.requests().iter().all(|request| request.path() == "/token"));
    // A key of somebody else.
    let mut forged = given.settings.clone();
    forged["service_account"]["client_email"] = json!("somebody@else.example");
    let answer = harness.answer(PushProvider::Fcm, &TestNotification::new(forged), "token-01").await;
    assert_eq!(answer.class, OutcomeClass::Auth);
    // Nobody listens.
    drop(fake);
    assert_eq!(harness.answer(PushProvider::Fcm, &given, "token-01").await.class, retry);
}

#[tokio::test]
async fn a_token_endpoint_at_a_private_address_is_not_called() {
    let fake = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let harness = Harness::of(Arc::new(GuardedFetch::builder(Dns::new(None)).build()));
    let given = TestNotification::new(FakeFcm::settings(&fake.url()));
    let answer = harness.answer(PushProvider::Fcm, &given, "token-01").await;
    assert_eq!(answer.class, OutcomeClass::Auth);
    assert_eq!(fake.requests().len(), 0);
}

#[tokio::test]
async fn one_access_token_is_asked_for_by_all_who_send_at_once() {
    let harness = Harness::real();
    let fake = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let given = TestNotification::new(FakeFcm::settings(&fake.url()));
    let sends = (0..10).map(|_| harness.answer(PushProvider::Fcm, &given, "token-01"));
    let answers = futures_util::future::join_all(sends).await;
    assert!(answers.iter().all(|answer| answer.class == DELIVERED));
    assert_eq!(fake.requests().iter().filter(|request| request.path() == "/token").count(), 1);
}
