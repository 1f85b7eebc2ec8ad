use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use messaging_core::domain::delivery::outcome::{ContentFault, Scope};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::json;

use super::encryption::{POINT, decrypt};
use super::*;
use crate::jwt::random;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DEAD, DELIVERED, Harness, TestNotification, header};
use crate::{Dns, GuardedFetch};
use messaging_testing::MemoryFetch;
use messaging_testing::fakes::{FakeProvider, FakeWebpush};

const AUTH_SECRET: [u8; 16] = [9; 16];

/// A browser that can decrypt one message.
struct Browser {
    key: EphemeralPrivateKey,
    public: [u8; POINT],
}

impl Browser {
    fn new() -> Self {
        let key = EphemeralPrivateKey::generate(&ECDH_P256, &random()).unwrap();
        let public = key.compute_public_key().unwrap().as_ref().try_into().unwrap();
        Self { key, public }
    }

    fn subscription(&self, endpoint: &str) -> String {
        let keys = json!({"p256dh": URL_SAFE_NO_PAD.encode(self.public), "auth": URL_SAFE_NO_PAD.encode(AUTH_SECRET)});
        json!({"endpoint": endpoint, "keys": keys}).to_string()
    }

    fn read(self, body: &[u8]) -> Value {
        serde_json::from_slice(&decrypt(self.key, &self.public, &AUTH_SECRET, body).unwrap()).unwrap()
    }
}

fn memory() -> (Arc<MemoryFetch>, Harness, TestNotification) {
    let fetch = Arc::new(MemoryFetch::default());
    let harness = Harness::of(Arc::clone(&fetch) as _);
    (fetch, harness, TestNotification::new(FakeWebpush::settings()))
}

#[tokio::test]
async fn the_browser_reads_what_was_sent_and_the_push_service_how_to_deliver_it() {
    let (fetch, harness, mut given) = memory();
    let browser = Browser::new();
    let address = browser.subscription("https://push.example.com/send/1");
    let answer = harness.answer(PushProvider::Webpush, &given, &address).await;
    assert_eq!(answer.class, DELIVERED);
    let request = fetch.take().pop().unwrap();
    assert_eq!(request.url, "https://push.example.com/send/1");
    let headers = ["content-encoding", "content-type", "ttl", "urgency"].map(|name| header(&request, name));
    assert_eq!(headers, ["aes128gcm", "application/octet-stream", "86400", "normal"]);
    let mut shown = browser.read(&request.body);
    let tag = shown["tag"].take();
    assert_eq!(tag.as_str().unwrap(), header(&request, "topic"));
    assert!(tag.as_str().unwrap().starts_with("msg_"));
    assert_eq!(shown, json!({"title": "Hello", "body": "World", "data": {}, "tag": null}));

    given.content.image = Some("https://example.com/a.png".to_owned());
    given.content.data = [("order".to_owned(), "17".to_owned())].into();
    given.options.ttl = Some(Duration::ZERO);
    given.options.collapse_key = Some("order 17".to_owned());
    given.options.silent = true;
    let browser = Browser::new();
    let address = browser.subscription("https://push.example.com/send/1");
    harness.answer(PushProvider::Webpush, &given, &address).await;
    let request = fetch.take().pop().unwrap();
    assert_eq!(["ttl", "urgency"].map(|name| header(&request, name)), ["0", "low"]);
    assert_eq!(header(&request, "topic").len(), MAX_TOPIC, "a space is no character of a topic");
    let expected = json!({
        "title": "Hello", "body": "World", "data": {"order": "17"}, "tag": "order 17", "silent": true,
        "image": "https://example.com/a.png",
    });
    assert_eq!(browser.read(&request.body), expected);
}

#[tokio::test]
async fn push_services_are_told_who_sends() {
    let (fetch, harness, given) = memory();
    let address = |host: &str| Browser::new().subscription(&format!("https://{host}/send/1"));
    let authorization = async |host: &str| {
        harness.answer(PushProvider::Webpush, &given, &address(host)).await;
        header(&fetch.take()[0], "authorization").to_owned()
    };
    let first = authorization("push.example.com:8443").await;
    let (token, key) = first.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
    assert_eq!(key, given.settings["public_key"].as_str().unwrap(), "the one that browsers subscribe with");
    let key = URL_SAFE_NO_PAD.decode(key).unwrap();
    assert_eq!((key.len(), key[0]), (POINT, 4));
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(signed.as_bytes(), &signature).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let exp = 1_700_000_000 + 12 * 3600;
    assert_eq!(claims, json!({"aud": "https://push.example.com:8443", "exp": exp, "sub": "mailto:push@example.com"}));

    assert_ne!(authorization("other.example.com").await, first, "each origin has its own");
    assert_eq!(authorization("push.example.com:8443").await, first);
    harness.clock.advance(Duration::from_hours(11));
    assert_ne!(authorization("push.example.com:8443").await, first, "long before it expires");
}

#[tokio::test]
async fn key_pairs_are_made_for_each_workspace() {
    let (_, harness, _) = memory();
    let pair = || harness.transport(PushProvider::Webpush).own_settings();
    assert_ne!(pair()["public_key"], pair()["public_key"]);
    assert!(harness.transport(PushProvider::Fcm).own_settings().is_empty());
}

#[tokio::test]
async fn an_endpoint_at_a_private_address_is_not_called_and_the_address_stays() {
    let fake = FakeProvider::start(FakeWebpush).await.unwrap();
    let harness = Harness::of(Arc::new(GuardedFetch::builder(Dns::new(None)).build()));
    let given = TestNotification::new(FakeWebpush::settings());
    let endpoints =
        [fake.url(), "https://127.0.0.1/push".to_owned(), "https://[::1]/".to_owned(), "https://10.0.0.1/".to_owned()];
    for endpoint in endpoints {
        let address = Browser::new().subscription(&endpoint);
        let answer = harness.answer(PushProvider::Webpush, &given, &address).await;
        assert_eq!(answer.class, OutcomeClass::Content(ContentFault::Provider), "{endpoint}");
    }
    assert_eq!(fake.requests().len(), 0);
}

#[tokio::test]
async fn a_host_that_nobody_answers_at_is_no_fault_of_the_channel() {
    let fake = FakeProvider::start(FakeWebpush).await.unwrap();
    let address = FakeWebpush::subscription(&fake.url(), 1);
    drop(fake);
    let given = TestNotification::new(FakeWebpush::settings());
    let answer = Harness::real().answer(PushProvider::Webpush, &given, &address).await;
    assert_eq!(answer.class, OutcomeClass::Retry(Scope::Origin));
}

#[tokio::test]
async fn what_is_no_subscription_is_a_bad_address() {
    let (fetch, harness, given) = memory();
    let off_the_curve = json!({
        "endpoint": "https://push.example.com/1",
        "keys": {"p256dh": URL_SAFE_NO_PAD.encode([4; POINT]), "auth": URL_SAFE_NO_PAD.encode(AUTH_SECRET)},
    });
    for address in ["{", "{}", r#"{"endpoint":"https://push.example.com/1"}"#, &off_the_curve.to_string()] {
        assert_eq!(harness.answer(PushProvider::Webpush, &given, address).await.class, DEAD, "{address}");
    }
    assert_eq!(fetch.take().len(), 0);
}

#[tokio::test]
async fn what_cannot_be_sent_says_nothing_about_the_address() {
    let (fetch, harness, mut given) = memory();
    let address = Browser::new().subscription("https://push.example.com/send/1");
    given.content.text = "x".repeat(MAX_PAYLOAD);
    assert_eq!(harness.answer(PushProvider::Webpush, &given, &address).await.class, CONTENT);
    for member in ["subject", "private_key"] {
        let mut given = TestNotification::new(FakeWebpush::settings());
        given.settings.remove(member);
        assert_eq!(harness.answer(PushProvider::Webpush, &given, &address).await.class, OutcomeClass::Auth, "{member}");
    }
    assert_eq!(fetch.take().len(), 0);
}
