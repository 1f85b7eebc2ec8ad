//! Tests that the push providers share, against their fakes, and helpers of their own tests.

use std::sync::Mutex;
use std::time::Duration;

use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::delivery::outcome::{AddressFault, ContentFault};
use messaging_core::ids::IdSource;
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::ports::fetch::FetchRequest;
use messaging_core::ports::transport::{Acceptance, Admission, Admitted, DeliveryOptions, LastLook, Reservation};
use messaging_core::time::Timestamp;
use serde_json::json;

use super::service::header_tag;
use super::*;
use crate::{Dns, GuardedFetch};
use messaging_testing::MemoryFetch;
use messaging_testing::fakes::{FakeApns, FakeFcm, FakeProvider, FakeWebpush};

pub(super) const DELIVERED: OutcomeClass = OutcomeClass::Accepted(Acceptance::Delivered);
pub(super) const DEAD: OutcomeClass = OutcomeClass::Address(AddressFault::Recipient);
pub(super) const CONTENT: OutcomeClass = OutcomeClass::Content(ContentFault::Provider);

/// The push transports, with a manual clock.
pub(super) struct Harness {
    pub(super) clock: Arc<ManualClock>,
    transports: [(PushProvider, Arc<dyn Transport>); 3],
}

/// Settings, content and options of a notification that a test sends.
pub(super) struct TestNotification {
    pub(super) settings: Map<String, Value>,
    pub(super) content: PushContent,
    pub(super) options: DeliveryOptions,
    pub(super) last_look: LastLook,
}

impl TestNotification {
    pub(super) fn new(settings: Map<String, Value>) -> Self {
        let content =
            PushContent { title: Some("Hello".to_owned()), text: "World".to_owned(), ..PushContent::default() };
        Self { settings, content, options: DeliveryOptions::default(), last_look: LastLook::default() }
    }
}

impl Harness {
    /// Creates the transports with real HTTP over loopback sockets.
    pub(super) fn real() -> Self {
        Self::of(Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build()))
    }

    pub(super) fn of(fetch: Arc<dyn Fetch>) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
        let as_clock: Arc<dyn Clock> = Arc::clone(&clock) as _;
        Self { transports: Push::all(&fetch, &as_clock), clock }
    }

    pub(super) fn transport(&self, provider: PushProvider) -> &Arc<dyn Transport> {
        &self.transports.iter().find(|(one, _)| *one == provider).unwrap().1
    }

    /// Sends to addresses through one provider.
    pub(super) async fn send(
        &self,
        provider: PushProvider,
        given: &TestNotification,
        addresses: &[&str],
    ) -> Vec<Outcome> {
        let (ids, entropy, now) =
            (IdSource::default(), SeededEntropy::new(1), Timestamp::from_millis(1_700_000_000_000));
        let outgoing = Outgoing {
            workspace_id: ids.next(now, &entropy),
            message_id: ids.next(now, &entropy),
            settings: Arc::new(given.settings.clone()),
            recipients: addresses.iter().map(|&address| address.to_owned()).collect(),
            content: Content::Push(Box::new(given.content.clone())),
            options: given.options.clone(),
            last_look: given.last_look.clone(),
            reservation: Reservation::default(),
            receipts: None,
        };
        self.transport(provider).send(&outgoing).await.unwrap().outcomes
    }

    pub(super) async fn answer(&self, provider: PushProvider, given: &TestNotification, address: &str) -> Answer {
        self.send(provider, given, &[address]).await[0].answer().expect("an answer").clone()
    }
}

pub(super) fn header<'a>(request: &'a FetchRequest, name: &str) -> &'a str {
    request.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

fn classes(outcomes: &[Outcome]) -> Vec<OutcomeClass> {
    outcomes.iter().map(|outcome| outcome.class().expect("an answer")).collect()
}

#[test]
fn an_address_tells_by_its_form_who_made_it() {
    let digits = |count: usize| "0aF9".repeat(count).chars().take(count).collect::<String>();
    for (address, expected) in [
        ("{\"endpoint\":\"https://a.b/\"}".to_owned(), PushProvider::Webpush),
        ("{".to_owned(), PushProvider::Webpush),
        (digits(64), PushProvider::Apns),
        (digits(160), PushProvider::Apns),
        (digits(63), PushProvider::Fcm),
        (format!("{}g", digits(64)), PushProvider::Fcm),
        ("fGxyz_-0123456789abcde".to_owned(), PushProvider::Fcm),
        ("dQw4w9WgXcQ:APA91bH-long_registration".to_owned(), PushProvider::Fcm),
        (String::new(), PushProvider::Fcm),
    ] {
        assert_eq!(PushProvider::of(&address), expected, "{address}");
    }
}

#[tokio::test]
async fn each_token_goes_to_the_provider_that_made_it() {
    let harness = Harness::real();
    let fcm = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let apns = FakeProvider::start(FakeApns::new(Arc::clone(&harness.clock) as _)).await.unwrap();
    let webpush = FakeProvider::start(FakeWebpush).await.unwrap();
    let (device, gone) = (FakeApns::device(1), FakeApns::device(2));
    let (browser, dead) = (FakeWebpush::subscription(&webpush.url(), 1), FakeWebpush::subscription(&webpush.url(), 2));
    let addresses = ["token-01", &device, &browser, "token-02", &gone, &dead];
    let parts = [
        (PushProvider::Fcm, FakeFcm::settings(&fcm.url())),
        (PushProvider::Apns, FakeApns::settings(&apns.url())),
        (PushProvider::Webpush, FakeWebpush::settings()),
    ];
    for own in PushProvider::ALL {
        let mut settings = parts.iter().find(|(one, _)| *one == own).unwrap().1.clone();
        let routes: Map<_, _> = parts
            .iter()
            .filter(|(one, _)| *one != own)
            .map(|(one, settings)| (one.name().to_owned(), settings.clone().into()))
            .collect();
        settings.insert(ROUTES.to_owned(), routes.into());
        let outcomes = harness.send(own, &TestNotification::new(settings), &addresses).await;
        assert_eq!(classes(&outcomes), [DELIVERED, DELIVERED, DELIVERED, DEAD, DEAD, DEAD], "{own:?}: {outcomes:?}");
        let names: Vec<_> =
            outcomes.iter().map(|one| one.answer().unwrap().of_provider().unwrap().provider.clone().unwrap()).collect();
        assert_eq!(names, ["fcm", "apns", "webpush", "fcm", "apns", "webpush"]);
    }
    assert!(apns.requests().iter().all(|request| request.version == http::Version::HTTP_2));
}

#[tokio::test]
async fn an_address_without_settings_is_shown_to_nobody_and_stays_good() {
    let fetch = Arc::new(MemoryFetch::default());
    let harness = Harness::of(Arc::clone(&fetch) as _);
    let (device, browser) = (FakeApns::device(1), FakeWebpush::subscription("https://push.example.com", 1));
    let given = TestNotification::new(FakeFcm::settings("https://fcm.example.com"));
    let outcomes = harness.send(PushProvider::Fcm, &given, &[&device, &browser]).await;
    assert_eq!(classes(&outcomes), [CONTENT, CONTENT]);
    assert!(outcomes[0].answer().unwrap().response.text.contains("no settings for apns"));
    assert_eq!(fetch.take().len(), 0);
}

#[tokio::test]
async fn an_answer_about_the_account_ends_the_attempt_for_its_other_tokens_alone() {
    let harness = Harness::real();
    let fcm = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let webpush = FakeProvider::start(FakeWebpush).await.unwrap();
    let browser = FakeWebpush::subscription(&webpush.url(), 1);
    let mut settings = FakeFcm::settings(&fcm.url());
    settings.insert(ROUTES.to_owned(), json!({"webpush": FakeWebpush::settings()}));
    let given = TestNotification::new(settings);
    let throttled = OutcomeClass::Throttled(Scope::Account);
    let outcomes = harness.send(PushProvider::Fcm, &given, &["token-01", "token-20", "token-03", &browser]).await;
    assert_eq!(classes(&outcomes), [DELIVERED, throttled, throttled, DELIVERED]);
    assert_eq!(fcm.requests().len(), 3, "for the access token, and two messages");
}

/// Admits nothing, or only other addresses than this one.
#[derive(Debug, Default)]
struct Refusing {
    suppressed: Option<&'static str>,
    is_held: bool,
    ended: Mutex<Vec<String>>,
}

#[async_trait]
impl Admission for Refusing {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        vec![None; recipients.len()]
    }

    fn is_held(&self) -> bool {
        self.is_held
    }

    async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        let judge = |one: &String| {
            if self.suppressed == Some(one.as_str()) {
                Admitted::Suppressed(SuppressionReason::Manual)
            } else {
                Admitted::Granted
            }
        };
        recipients.iter().map(judge).collect()
    }

    fn ended(&self, recipient: &str, _: &Outcome) {
        self.ended.lock().unwrap().push(recipient.to_owned());
    }
}

#[tokio::test]
async fn nothing_leaves_for_who_is_not_granted() {
    let harness = Harness::real();
    let fcm = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let admission = Arc::new(Refusing { suppressed: Some("token-11"), ..Refusing::default() });
    let mut given = TestNotification::new(FakeFcm::settings(&fcm.url()));
    given.last_look = LastLook::at(Arc::clone(&admission) as _);
    let outcomes = harness.send(PushProvider::Fcm, &given, &["token-11", "token-01"]).await;
    assert_eq!(outcomes[0], Outcome::Suppressed(SuppressionReason::Manual));
    assert!(outcomes[1].is_accepted());
    assert_eq!(*admission.ended.lock().unwrap(), ["token-01"]);
    assert_eq!(fcm.requests().len(), 2, "the access token, and one message");

    given.last_look = LastLook::at(Arc::new(Refusing { is_held: true, ..Refusing::default() }));
    assert_eq!(harness.send(PushProvider::Fcm, &given, &["token-01"]).await, [Outcome::Held]);
    assert_eq!(fcm.requests().len(), 2);
}

#[test]
fn settings_that_lead_to_private_addresses_are_refused_before_they_are_stored() {
    let harness = Harness::of(Arc::new(GuardedFetch::builder(Dns::new(None)).build()));
    let checked = |provider, settings: Value| {
        harness.transport(provider).check(settings.as_object().unwrap()).err().map(|fault| fault.member)
    };
    assert_eq!(checked(PushProvider::Fcm, json!({"api_base": "http://127.0.0.1:1"})), Some("api_base"));
    assert_eq!(checked(PushProvider::Apns, json!({"api_base": "https://10.0.0.1"})), Some("api_base"));
    let mut account = FakeFcm::settings("https://fcm.example.com");
    assert_eq!(checked(PushProvider::Fcm, Value::Object(account.clone())), None);
    account["service_account"]["token_uri"] = json!("https://169.254.169.254/token");
    assert_eq!(checked(PushProvider::Fcm, Value::Object(account.clone())), Some("service_account"));
    account["service_account"] = json!(account["service_account"].to_string());
    assert_eq!(checked(PushProvider::Fcm, Value::Object(account)), Some("service_account"));
    let routed = json!({"subject": "mailto:a@b.c", "routes": {"apns": {"api_base": "https://[::1]"}}});
    assert_eq!(checked(PushProvider::Webpush, routed), Some(ROUTES));
}

#[test]
fn a_tag_that_no_header_can_hold_becomes_its_digest() {
    let graphic = |byte: u8| byte.is_ascii_graphic();
    assert_eq!(header_tag("order-17", 64, graphic), "order-17");
    for tag in ["a b", "ä", "", &"x".repeat(65)] {
        let digest = header_tag(tag, 64, graphic);
        assert!((1..=64).contains(&digest.len()) && digest.bytes().all(graphic), "{tag}: {digest}");
        assert_eq!(digest, header_tag(tag, 64, graphic));
    }
    assert_eq!(header_tag("a b", 32, graphic).len(), 32);
    assert_ne!(header_tag("a b", 32, graphic), header_tag("b a", 32, graphic));
}

#[tokio::test]
async fn a_lost_answer_is_ambiguous_and_none_before_the_request_is_not() {
    let harness = Harness::real();
    let fcm = FakeProvider::start(FakeFcm::default()).await.unwrap();
    let given = TestNotification::new(FakeFcm::settings(&fcm.url()));
    let class = async |address: &str| harness.answer(PushProvider::Fcm, &given, address).await.class;
    for (address, expected) in [
        ("token-32", OutcomeClass::Ambiguous),
        ("token-33", OutcomeClass::Ambiguous),
        ("token-34", OutcomeClass::Ambiguous),
        ("token-35", OutcomeClass::Ambiguous),
        ("token-37", CONTENT),
        ("token-38", OutcomeClass::Retry(Scope::Account)),
    ] {
        assert_eq!(class(address).await, expected, "{address}");
    }
    harness.clock.advance(Duration::from_hours(2));
    let address = fcm.address();
    drop(fcm);
    let unreachable = class("token-01").await;
    assert_eq!(unreachable, OutcomeClass::Retry(Scope::Account), "nobody listens at {address} any more");
}
