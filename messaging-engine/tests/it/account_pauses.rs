//! Accounts at providers that ask for a pause or refuse our credentials: all messages over the account wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::consequence::PROBE_EVERY;
use messaging_core::ids::MessageId;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Answer, OutcomeClass, Outgoing, Response, Scope, Sent, TransportError};
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, ChannelStatus, ListChannels, SetChannel};
use messaging_engine::{Caller, admin};
use serde_json::json;
use tokio::sync::watch;

use crate::support::Product;

const ANN: &str = "ann@a.example";
const SECOND: Duration = Duration::from_secs(1);

fn wrong_key() -> TransportError {
    TransportError::Misconfigured("535 wrong password of bob@example.com".to_owned())
}

fn throttled(wait: Option<Duration>) -> messaging_core::ports::transport::Outcome {
    Answer::new(OutcomeClass::Throttled(Scope::Account), Response::of_text("too fast")).wait(wait).into()
}

impl Product {
    fn path(&self) -> ChannelPath {
        ChannelPath { workspace_id: self.workspace, channel: Channel::Email }
    }

    /// Status and error of the email channel, as the API shows them.
    async fn email_channel(&self, caller: &Caller) -> (ChannelStatus, Option<String>) {
        let path = messaging_engine::ops::InWorkspace { workspace_id: self.workspace };
        let page = self.app.run(ListChannels).path(path).by(caller).await.unwrap();
        let email = page.data.into_iter().find(|item| item.channel == Channel::Email).unwrap();
        (email.status, email.error)
    }

    async fn set_again(&self) {
        let input = ChannelInput::new("sandbox");
        self.app.run(SetChannel).path(self.path()).body(input).by(&self.caller).await.unwrap();
    }

    async fn stories(&self, ids: &[MessageId]) -> Vec<String> {
        let mut stories = Vec::new();
        for id in ids {
            stories.push(self.story(*id).await);
        }
        stories
    }

    fn attempts_so_far(&self) -> usize {
        self.transport.sent().len()
    }
}

#[tokio::test]
async fn an_account_that_is_refused_stops_but_for_a_probe() {
    let product = Product::start().await;
    product.transport.fail_next(wrong_key());
    let first = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(first).await, "deferred: Queued Deferred");
    let others = [product.send_to("bob@b.example").await, product.send_to("carl@a.example").await];
    product.pass(PROBE_EVERY - SECOND).await;
    assert_eq!(product.attempts_so_far(), 1, "nothing else goes over the account");
    assert_eq!(product.stories(&others).await, ["queued: Queued", "queued: Queued"]);
    let (status, error) = product.email_channel(&product.caller).await;
    assert_eq!(status, ChannelStatus::Failing);
    assert!(error.unwrap().contains("535 wrong password of bob@example.com"));

    product.transport.fail_next(wrong_key());
    product.pass(SECOND).await;
    assert_eq!(product.attempts_so_far(), 2, "one message probes");
    product.pass(PROBE_EVERY - SECOND).await;
    assert_eq!(product.attempts_so_far(), 2);
    product.pass(SECOND).await;
    // The probe was accepted, and all waiting messages may follow.
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.email_channel(&product.caller).await, (ChannelStatus::Active, None));
    let stories = product.stories(&[first, others[0], others[1]]).await;
    assert!(stories.iter().all(|story| story.starts_with("delivered: ")), "{stories:?}");
    let deferred: usize = stories.iter().map(|story| story.matches("Deferred").count()).sum();
    assert_eq!(deferred, 2, "waiting is no attempt: {stories:?}");
}

#[tokio::test]
async fn new_settings_are_tried_at_once() {
    let product = Product::start().await;
    product.transport.fail_next(wrong_key());
    product.send_to(ANN).await;
    product.work().await;
    let second = product.send_to("bob@b.example").await;
    product.set_again().await;
    assert_eq!(product.email_channel(&product.caller).await, (ChannelStatus::Active, None));
    product.work().await;
    assert_eq!(product.story(second).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn an_account_that_asks_for_a_pause_gets_it() {
    let product = Product::start().await;
    product.transport.outcome_next(ANN, throttled(Some(90 * SECOND)));
    let first = product.send_to(ANN).await;
    product.work().await;
    // Later than by the retry schedule.
    assert_eq!(product.last_meta(first).await["next_attempt_at"], json!("2026-01-31T09:16:30.000Z"));
    let second = product.send_to("bob@a.example").await;
    assert_eq!(product.email_channel(&product.caller).await, (ChannelStatus::Throttled, Some("too fast".to_owned())));
    product.pass(89 * SECOND).await;
    assert_eq!(product.attempts_so_far(), 1);
    // They leave one after another, because the account had too many requests.
    product.pass(SECOND).await;
    product.pass(10 * SECOND).await;
    let stories = product.stories(&[first, second]).await;
    assert!(stories.iter().all(|story| story.starts_with("delivered: ")), "{stories:?}");
    assert_eq!(product.email_channel(&product.caller).await.0, ChannelStatus::Active);
}

#[tokio::test]
async fn an_account_that_throttles_and_names_no_time_goes_on() {
    let product = Product::start().await;
    product.transport.outcome_next(ANN, throttled(None));
    let first = product.send_to(ANN).await;
    product.work().await;
    // By the retry schedule.
    assert_eq!(product.last_meta(first).await["next_attempt_at"], json!("2026-01-31T09:16:00.000Z"));
    assert_eq!(product.email_channel(&product.caller).await, (ChannelStatus::Throttled, Some("too fast".to_owned())));
    let second = product.send_to("bob@a.example").await;
    product.work().await;
    assert_eq!(product.story(second).await, "delivered: Queued Sent Delivered");
    product.pass(61 * SECOND).await;
    assert_eq!(product.story(first).await, "delivered: Queued Deferred Sent Delivered");
    assert_eq!(product.email_channel(&product.caller).await, (ChannelStatus::Active, None));
}

#[tokio::test]
async fn a_pause_of_one_recipient_is_nobody_elses() {
    let product = Product::start().await;
    let answer = Answer::new(OutcomeClass::Throttled(Scope::Recipient), Response::of_text("slow")).wait(90 * SECOND);
    product.transport.outcome_next(ANN, answer.into());
    product.send_to(ANN).await;
    product.work().await;
    let second = product.send_to("bob@a.example").await;
    product.work().await;
    assert_eq!(product.story(second).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.email_channel(&product.caller).await.0, ChannelStatus::Active);
}

#[tokio::test]
async fn what_expires_while_the_account_is_stopped_fails_and_is_no_bounce() {
    let product = Product::start().await;
    product.transport.fail_next(wrong_key());
    product.send_to(ANN).await;
    product.work().await;
    let second = product.send_to("bob@a.example").await;
    let expiry = product.app.settings().message_expiry;
    // Two messages expire and one of them may probe: all others fail without an attempt.
    product.transport.fail_next(wrong_key());
    product.pass(expiry).await;
    product.pass(PROBE_EVERY).await;
    let report = product.report(second).await;
    assert_eq!(product.story(second).await, "failed: Queued Failed");
    let meta = &report.events[1].meta;
    assert_eq!(meta["reason"], "provider_error");
    assert!(meta["message"].as_str().unwrap().contains("until the message expired"), "{meta:?}");
}

#[tokio::test]
async fn the_last_words_of_a_provider_are_masked() {
    let product = Product::start().await;
    product.transport.fail_next(wrong_key());
    product.send_to(ANN).await;
    product.work().await;
    let member = serde_json::from_value(json!({"name": "all", "scopes": ["*"]})).unwrap();
    let key = admin::create_key(&product.app, product.workspace, &member).await.unwrap();
    let caller = product.app.authenticate(key.key.unwrap().expose()).await.unwrap();
    let (_, error) = product.email_channel(&caller).await;
    let masked = !error.unwrap().contains("bob@example.com");
    assert_eq!(masked, !sees_addresses(&caller), "as everywhere else");
}

/// Returns true if the caller may see addresses.
fn sees_addresses(caller: &Caller) -> bool {
    match caller {
        Caller::Key(key) => key.scopes.iter().any(|scope| ["*", "pii:read"].contains(&scope.as_str())),
        _ => true,
    }
}

/// Messages beside the one that is asked to pause; as many as a lane has in work at a time.
const OTHERS: usize = 20;

/// A transport that asks for a pause for the first message, while the others are about to leave.
#[derive(Debug)]
struct Hurry {
    /// Messages that are about to leave.
    ready: watch::Sender<usize>,
    /// True once the messages other than the first may leave.
    goes_on: watch::Sender<bool>,
    left: AtomicUsize,
}

#[async_trait]
impl Transport for Hurry {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let is_first = outgoing.recipients[0] == ANN;
        self.ready.send_modify(|count| *count += 1);
        if is_first {
            // Waits until the others are about to leave as well.
            self.ready.subscribe().wait_for(|count| *count > OTHERS).await.expect("the sender is ours");
        } else {
            self.goes_on.subscribe().wait_for(|goes_on| *goes_on).await.expect("the sender is ours");
        }
        let refusal = outgoing.last_look.begin(&outgoing.recipients).await.remove(0).refusal();
        let outcome = refusal.unwrap_or_else(|| {
            let left = self.left.fetch_add(1, Ordering::Relaxed);
            if left == 0 { throttled(Some(90 * SECOND)) } else { messaging_testing::outcome("250 kept") }
        });
        Ok(Sent { outcomes: vec![outcome], ..Sent::default() })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_about_to_leave_when_an_account_asks_for_a_pause_stays() {
    let hurry =
        Arc::new(Hurry { ready: watch::Sender::new(0), goes_on: watch::Sender::new(false), left: AtomicUsize::new(0) });
    let product = Arc::new(Product::carried_by(hurry.clone()).await);
    let mut ids = Vec::new();
    for number in 0..OTHERS {
        ids.push(product.send_to(&format!("bob{number}@b.example")).await);
    }
    let first = product.send_to(ANN).await;
    let working = tokio::spawn({
        let product = Arc::clone(&product);
        async move { product.work().await }
    });
    hurry.ready.subscribe().wait_for(|count| *count > OTHERS).await.unwrap();
    while product.email_channel(&product.caller).await.0 != ChannelStatus::Throttled {
        tokio::task::yield_now().await;
    }
    hurry.goes_on.send_replace(true);
    working.await.unwrap();
    assert_eq!(hurry.left.load(Ordering::Relaxed), 1, "the one that found out");
    assert_eq!(product.story(first).await, "deferred: Queued Deferred");
    assert_eq!(product.stories(&ids).await, vec!["queued: Queued"; OTHERS], "waiting is no attempt");
    product.pass(89 * SECOND).await;
    assert_eq!(hurry.left.load(Ordering::Relaxed), 1);
    product.pass(SECOND).await;
    // They leave one after another, because the account had too many requests.
    for _ in 0..4 * OTHERS {
        product.pass(5 * SECOND).await;
    }
    for story in product.stories(&ids).await {
        assert!(story.starts_with("sent: ") || story.starts_with("delivered: "), "{story}");
    }
    assert_eq!(hurry.left.load(Ordering::Relaxed), OTHERS + 2);
}
