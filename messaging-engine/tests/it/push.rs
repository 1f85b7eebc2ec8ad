//! Push messages to the devices of a contact, through the real transports and their fakes: contract sections 6.3
//! and 16.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::Write;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Outgoing, Sent, TransportError};
use messaging_testing::fakes::{Case, FakeApns, FakeFcm, FakeProvider, FakeWebpush, Order, Refusal};
use messaging_transport::push::{Push, PushProvider};
use messaging_transport::{Dns, GuardedFetch, Options};
use serde_json::{Map, Value, json};

use crate::support::Product;

/// A transport with settings given by the test.
#[derive(Debug)]
struct WithSettings(Arc<dyn Transport>, Arc<Map<String, Value>>);

#[async_trait]
impl Transport for WithSettings {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.0.send(&Outgoing { settings: Arc::clone(&self.1), ..outgoing.clone() }).await
    }

    fn account_of(&self, _settings: &Map<String, Value>, address: &str) -> Option<&'static str> {
        self.0.account_of(&self.1, address)
    }
}

/// A workspace that sends through Firebase, Apple and the push service of a browser.
pub(crate) struct Phones {
    pub(crate) product: Product,
    pub(crate) fcm: FakeProvider,
    apns: FakeProvider,
    webpush: FakeProvider,
}

impl Phones {
    pub(crate) async fn start() -> Self {
        let fcm = FakeProvider::start(FakeFcm::default()).await.unwrap();
        let apns = FakeProvider::start(FakeApns::default()).await.unwrap();
        let webpush = FakeProvider::start(FakeWebpush).await.unwrap();
        let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
        let options = Options { fetch, ..Options::new("sender.example.com") };
        let mut settings = FakeFcm::settings(&fcm.url());
        let routes = json!({"apns": FakeApns::settings(&apns.url()), "webpush": FakeWebpush::settings()});
        settings.insert("routes".to_owned(), routes);
        let [(PushProvider::Fcm, push), ..] = Push::all(&options.fetch, &options.clock) else {
            panic!("the first is fcm")
        };
        let product = Product::carried_by(Arc::new(WithSettings(push, Arc::new(settings)))).await;
        let path = format!("/workspaces/{}/channels/push", product.workspace);
        let chosen = product.put(&product.caller, &path, json!({"provider": "sandbox", "config": {}})).await;
        assert_eq!(chosen.summary(), "200");
        Self { product, fcm, apns, webpush }
    }

    fn browser(&self, number: u8) -> String {
        FakeWebpush::subscription(&self.webpush.url(), number)
    }

    /// A contact with these tokens.
    async fn contact(&self, tokens: &[&str]) -> String {
        self.contact_named("ann", tokens).await
    }

    async fn contact_named(&self, name: &str, tokens: &[&str]) -> String {
        let path = format!("/workspaces/{}/contacts", self.product.workspace);
        let body = json!({"external_id": name, "attributes": {"push_token": tokens, "plan": "pro"}});
        let reply = self.product.post(&self.product.caller, &path, body).await;
        reply["id"].as_str().expect("a contact").to_owned()
    }

    /// The attribute `push_token` of a contact.
    async fn tokens(&self, contact: &str) -> Value {
        let path = format!("/workspaces/{}/contacts/{contact}", self.product.workspace);
        let reply = self.product.get(&self.product.caller, &path).await;
        assert_eq!(reply["attributes"]["plan"], "pro");
        reply["attributes"]["push_token"].clone()
    }

    async fn send(&self, contact: &str) -> MessageId {
        let id = self.product.send(&json!({"channel": "push", "contact_id": contact, "text": "t"})).await;
        self.product.work().await;
        id
    }

    async fn suppressed(&self, addresses: &[&str]) -> Vec<bool> {
        let addresses: Vec<_> = addresses.iter().map(|&one| one.to_owned()).collect();
        let (store, workspace) = (&self.product.store, self.product.workspace);
        let listed = store.suppressed(workspace, Channel::Push, &addresses).await.unwrap();
        addresses.iter().map(|one| listed.iter().any(|stored| stored.record.address == *one)).collect()
    }

    /// The numbers of messages that each fake provider was asked to deliver.
    fn deliveries(&self) -> [usize; 3] {
        let fcm = self.fcm.requests().iter().filter(|request| request.path() != "/token").count();
        [fcm, self.apns.requests().len(), self.webpush.requests().len()]
    }
}

#[tokio::test]
async fn a_message_goes_to_every_device_and_dead_ones_alone_are_suppressed() {
    let phones = Phones::start().await;
    let (device, browser) = (FakeApns::device(1), phones.browser(2));
    let contact = phones.contact(&["token-02", &device, &browser]).await;
    let id = phones.send(&contact).await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Bounce Sent Delivered Bounce");
    assert_eq!(phones.deliveries(), [1, 1, 1]);
    assert_eq!(phones.suppressed(&["token-02", &device, &browser]).await, [true, false, true]);
    assert_eq!(phones.tokens(&contact).await, json!([device]));
    let meta: Vec<_> = phones.product.report(id).await.events.into_iter().map(|event| event.meta).collect();
    assert_eq!((&meta[1]["recipient"], &meta[1]["bounce_class"]), (&json!("token-02"), &json!("invalid_recipient")));
    assert_eq!((&meta[1]["provider_code"], &meta[4]["provider_code"]), (&json!("UNREGISTERED"), &json!("410")));
    assert_eq!((&meta[3]["recipient"], &meta[4]["recipient"]), (&json!(device), &json!(browser)));

    let next = phones.send(&contact).await;
    assert_eq!(phones.product.story(next).await, "delivered: Queued Sent Delivered");
    assert_eq!(phones.deliveries(), [1, 2, 1]);
}

#[tokio::test]
async fn a_contact_whose_tokens_are_all_dead_has_no_push_address() {
    let phones = Phones::start().await;
    let (device, browser) = (FakeApns::device(2), phones.browser(2));
    let contact = phones.contact(&["token-02", &device, &browser]).await;
    let id = phones.send(&contact).await;
    assert_eq!(phones.product.story(id).await, "bounced: Queued Bounce Bounce Bounce");
    assert_eq!(phones.suppressed(&["token-02", &device, &browser]).await, [true, true, true]);
    assert_eq!(phones.tokens(&contact).await, Value::Null);
    let again = json!({"channel": "push", "contact_id": contact, "text": "t"});
    let refused = phones.product.post_message(&again, None).await.unwrap_err();
    assert!(format!("{refused:?}").contains("ContactAddressMissing"), "{refused:?}");
}

#[tokio::test]
async fn who_was_put_off_is_tried_again_and_dead_devices_are_not() {
    let phones = Phones::start().await;
    let contact = phones.contact(&["token-02", "token-04", &phones.browser(2)]).await;
    let id = phones.send(&contact).await;
    assert_eq!(phones.product.story(id).await, "deferred: Queued Bounce Deferred Bounce");
    phones.fcm.next(Case::Accepted(&[], Order::InOrder));
    phones.product.pass(Duration::from_mins(2)).await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Bounce Deferred Bounce Sent Delivered");
    assert_eq!(phones.deliveries(), [3, 0, 1]);
    assert_eq!(phones.tokens(&contact).await, json!(["token-04"]));
}

#[tokio::test]
async fn once_a_device_has_it_nobody_is_tried_again() {
    let phones = Phones::start().await;
    let contact = phones.contact(&["token-04", &FakeApns::device(1)]).await;
    let id = phones.send(&contact).await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Sent Delivered");
    phones.product.pass(Duration::from_hours(25)).await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(phones.deliveries(), [1, 1, 0]);
}

#[tokio::test]
async fn a_suppressed_device_is_left_out_and_the_others_are_sent_to() {
    let phones = Phones::start().await;
    let contact = phones.contact(&["token-01", &FakeApns::device(1)]).await;
    let Write::PutSuppression(listing, expect) = phones.product.suppression("token-01", SuppressionReason::Manual)
    else {
        panic!("a suppression")
    };
    let listing = Suppression { channel: Channel::Push, ..listing };
    phones.product.commit([Write::PutSuppression(listing, expect)].into_iter().collect()).await;
    let id = phones.send(&contact).await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(phones.deliveries(), [0, 1, 0]);
}

#[tokio::test]
async fn a_message_to_an_address_goes_there_alone() {
    let phones = Phones::start().await;
    let contact = phones.contact(&["token-01", &FakeApns::device(1)]).await;
    let body = json!({"channel": "push", "to": "token-12", "contact_id": contact, "text": "t"});
    let id = phones.product.send(&body).await;
    phones.product.work().await;
    assert_eq!(phones.product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(phones.deliveries(), [1, 0, 0]);
}

#[tokio::test]
async fn an_answer_that_says_nothing_of_the_device_takes_no_token_away() {
    let phones = Phones::start().await;
    // A token of another project, a message that cannot be sent, and a token of the other environment.
    for (token, expected) in [
        ("token-05", "bounced: Queued Bounce"),
        ("token-06", "failed: Queued Failed"),
        (&FakeApns::device(3), "bounced: Queued Bounce"),
    ] {
        let contact = phones.contact(&[token]).await;
        let id = phones.send(&contact).await;
        assert_eq!(phones.product.story(id).await, expected, "{token}");
        assert_eq!(phones.tokens(&contact).await, json!([token]));
        assert_eq!(phones.suppressed(&[token]).await, [false]);
    }
}

impl Phones {
    /// Status and error of the channel, as the API shows them.
    async fn shown(&self) -> (String, String) {
        let path = format!("/workspaces/{}/channels", self.product.workspace);
        let found = self.product.get(&self.product.caller, &path).await;
        let items = found["data"].as_array().unwrap();
        let push = items.iter().find(|item| item["channel"] == "push").unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&push["status"]), text(&push["error"]))
    }

    /// Makes Firebase refuse our key for so many requests; each attempt makes two.
    fn refuse_key(&self, requests: usize) {
        for _ in 0..requests {
            self.fcm.next(Case::Refused(Refusal::Auth));
        }
    }
}

#[tokio::test]
async fn a_wrong_key_of_one_route_stops_that_route_alone() {
    let phones = Phones::start().await;
    let (device, browser) = (FakeApns::device(1), phones.browser(1));
    phones.refuse_key(2);
    let first = phones.send(&phones.contact(&["token-01"]).await).await;
    assert_eq!(phones.product.story(first).await, "deferred: Queued Deferred");
    let (status, error) = phones.shown().await;
    assert!(status == "failing" && error.starts_with("fcm: "), "{status} {error}");
    let asked = phones.deliveries();

    // Other accounts continue; a contact with both tokens is reached by the working account, and one with neither waits
    // without an attempt.
    for (tokens, story) in [
        (&[&*device][..], "delivered: Queued Sent Delivered"),
        (&[&*browser], "delivered: Queued Sent Delivered"),
        (&["token-11", &device], "delivered: Queued Sent Delivered"),
        (&["token-12"], "queued: Queued"),
        (&["token-13", &FakeApns::device(2)], "deferred: Queued Bounce Deferred"),
    ] {
        let contact = phones.contact_named(tokens[0], tokens).await;
        let id = phones.send(&contact).await;
        assert_eq!(phones.product.story(id).await, story, "{tokens:?}");
    }
    phones.product.pass(Duration::from_mins(2)).await;
    assert_eq!(phones.deliveries()[0], asked[0], "nothing is tried over it");

    // One message probes and succeeds, and then all are sent.
    phones.product.pass(Duration::from_mins(3)).await;
    phones.product.pass(Duration::from_mins(30)).await;
    assert_eq!(phones.shown().await, ("active".to_owned(), String::new()));
    assert_eq!(phones.product.story(first).await, "delivered: Queued Deferred Sent Delivered");
}

#[tokio::test]
async fn what_waits_for_a_stopped_route_fails_when_it_expires_and_fills_no_streak() {
    let phones = Phones::start().await;
    phones.refuse_key(2);
    phones.send(&phones.contact(&["token-01"]).await).await;
    let contact = phones.contact_named("bob", &["token-12"]).await;
    let body = json!({"channel": "push", "contact_id": contact, "text": "t", "options": {"ttl": 120}});
    let id = phones.product.send(&body).await;
    phones.product.work().await;
    for _ in 0..4 {
        phones.product.pass(Duration::from_mins(1)).await;
    }
    assert_eq!(phones.product.story(id).await, "failed: Queued Failed");
    assert_eq!(phones.suppressed(&["token-12"]).await, [false]);
}
