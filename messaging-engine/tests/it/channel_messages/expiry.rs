//! Retries and ends of messages of the channels other than email: contract section 4.2, "Off email".

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::{Answer, Outcome, OutcomeClass, Response, Scope};
use serde_json::{Value, json};

use super::{PHONE, SECOND, message};
use crate::support::Product;

const HOUR: Duration = Duration::from_hours(1);

fn outcome(class: OutcomeClass) -> Outcome {
    Answer::new(class, Response::of_text("not now")).into()
}

fn busy() -> Outcome {
    outcome(OutcomeClass::Retry(Scope::Account))
}

impl Product {
    /// Sends a text message whose attempts have these outcomes, in turn, and makes the first attempt.
    async fn tried(&self, options: Value, outcomes: impl IntoIterator<Item = Outcome>) -> MessageId {
        for outcome in outcomes {
            self.transport.outcome_next(PHONE, outcome);
        }
        let id = self.send(&message(Channel::Sms, json!({"options": options}))).await;
        self.work().await;
        id
    }

    /// A text message with eight seconds to live, and a fallback by Telegram.
    async fn short_lived(&self) -> MessageId {
        let fallback = json!([{"channel": "telegram", "to": "4711", "text": "Hello"}]);
        let options = json!({"ttl": 8});
        self.send(&message(Channel::Sms, json!({"options": options, "fallback": fallback}))).await
    }

    /// Number of messages that follow another one.
    async fn followers(&self, first: MessageId) -> usize {
        let listed = self.get(&self.caller, "/messages").await;
        listed["data"].as_array().unwrap().iter().filter(|one| one["fallback_of"] == json!(first)).count()
    }

    /// Limits the account of text messages to so many messages a second.
    async fn paced(&self, max_rate: f64) {
        let stored = self.store.channel(self.workspace, Channel::Sms).await.unwrap().unwrap();
        let mut settings = stored.record;
        settings.config.insert("max_rate".to_owned(), json!(max_rate));
        self.commit(Changes::from_iter([Write::put(settings, Expect::Revision(stored.revision))])).await;
        // Another process changed it: the cached settings of this one expire.
        self.pass(2 * SECOND).await;
    }

    fn attempts_of(&self) -> usize {
        self.transport.sent().len()
    }
}

#[tokio::test]
async fn it_is_tried_at_the_times_of_the_contract_and_for_a_day() {
    let product = Product::start().await.on_every_channel().await;
    let id = product.tried(json!({}), (0..40).map(|_| busy())).await;
    for (number, wait) in (1..).zip([5, 15, 60, 300, 900, 1800, 3600, 3600]) {
        assert_eq!(product.attempts_of(), number);
        product.pass(wait * SECOND - Duration::from_millis(1)).await;
        assert_eq!(product.attempts_of(), number, "too early by a millisecond: {wait}");
        product.pass(Duration::from_millis(1)).await;
    }
    // Hourly from 10,280 s on.
    for _ in 0..21 {
        product.pass(HOUR).await;
    }
    product.pass(519 * SECOND).await;
    assert!(product.story(id).await.starts_with("deferred: "));
    let attempts = product.attempts_of();
    product.pass(SECOND).await;
    assert_eq!(product.attempts_of(), attempts, "its end is no attempt");
    let report = product.report(id).await;
    assert_eq!(report.status.as_str(), "failed");
    let end = report.events.last().unwrap();
    assert_eq!(end.at.since(report.created_at), 24 * HOUR);
    assert_eq!(end.meta["reason"], "provider_error");
    assert!(end.meta["message"].as_str().unwrap().ends_with("not now"), "{:?}", end.meta);
}

#[tokio::test]
async fn it_ends_when_its_time_is_over_and_not_at_the_next_attempt() {
    let product = Product::start().await.on_every_channel().await;
    // Attempts at 0, 5, 20 and 80 s; the next would be at 380.
    let id = product.tried(json!({"ttl": 100}), (0..9).map(|_| busy())).await;
    for wait in [5, 15, 60] {
        product.pass(wait * SECOND).await;
    }
    assert_eq!(product.attempts_of(), 4);
    product.pass(20 * SECOND - Duration::from_millis(1)).await;
    assert!(product.story(id).await.starts_with("deferred: "));
    product.pass(Duration::from_millis(1)).await;
    let report = product.report(id).await;
    assert_eq!((report.status.as_str(), product.attempts_of()), ("failed", 4));
    assert_eq!(report.events.last().unwrap().at.since(report.created_at), 100 * SECOND);
}

#[tokio::test]
async fn no_time_at_all_is_one_attempt() {
    let product = Product::start().await.on_every_channel().await;
    let failed = product.tried(json!({"ttl": 0}), [busy()]).await;
    assert_eq!(product.story(failed).await, "failed: Queued Failed");
    let absent = product.tried(json!({"ttl": 0}), [outcome(OutcomeClass::Retry(Scope::Recipient))]).await;
    assert_eq!(product.story(absent).await, "bounced: Queued Bounce");
    assert_eq!(product.last_meta(absent).await["bounce_class"], "unreachable");
    // Also if no worker was free at once.
    let late = product.send(&message(Channel::Sms, json!({"options": {"ttl": 0}}))).await;
    product.pass(HOUR).await;
    assert_eq!(product.story(late).await, "delivered: Queued Sent Delivered");
    let over = product.send(&message(Channel::Sms, json!({"options": {"ttl": 60}}))).await;
    product.pass(HOUR).await;
    assert_eq!(product.story(over).await, "failed: Queued Failed");
    assert_eq!(product.last_meta(over).await["message"], "the message expired before it was sent");
    assert_eq!(product.attempts_of(), 3);
}

#[tokio::test]
async fn what_may_have_arrived_stays_sent() {
    let product = Product::start().await.on_every_channel().await;
    let lost = || outcome(OutcomeClass::Ambiguous);
    let alone = product.tried(json!({"ttl": 0}), [lost()]).await;
    // The next attempt, a minute later, finds the provider out of order; then the time is over.
    let first = product.tried(json!({"ttl": 90}), [lost(), busy()]).await;
    product.pass(60 * SECOND).await;
    assert!(product.story(first).await.starts_with("deferred: "));
    product.pass(30 * SECOND).await;
    for id in [alone, first] {
        let report = product.report(id).await;
        assert_eq!(report.status.as_str(), "sent", "{:?}", report.events);
        let end = report.events.last().unwrap();
        assert_eq!((format!("{:?}", end.kind).as_str(), &end.meta["ambiguous"]), ("Sent", &json!(true)));
    }
}

#[tokio::test]
async fn a_recipient_who_was_in_the_way_bounces_when_the_time_is_over() {
    let product = Product::start().await.on_every_channel().await;
    let id = product.tried(json!({"ttl": 10}), [outcome(OutcomeClass::Retry(Scope::Recipient)), busy()]).await;
    product.pass(5 * SECOND).await;
    product.pass(5 * SECOND).await;
    assert_eq!(product.story(id).await, "bounced: Queued Deferred Deferred Bounce");
}

#[tokio::test]
async fn it_ends_at_its_moment_also_while_nothing_leaves_over_its_account() {
    let rests = Answer::new(OutcomeClass::Throttled(Scope::Account), Response::of_text("not now")).wait(60 * SECOND);
    let stops = outcome(OutcomeClass::Auth);
    for (case, last) in [("rests", Some(rests.into())), ("stopped", Some(stops)), ("paced", None)] {
        let product = Product::start().await.on_every_channel().await;
        if last.is_none() {
            product.paced(0.05).await;
        }
        product.tried(json!({}), last.clone()).await;
        // Its lane is held.
        let plain = product.send(&message(Channel::Sms, json!({}))).await;
        let id = product.short_lived().await;
        product.pass(8 * SECOND - Duration::from_millis(1)).await;
        assert_eq!((product.story(id).await, product.followers(id).await), ("queued: Queued".to_owned(), 0), "{case}");
        product.pass(Duration::from_millis(1)).await;
        let report = product.report(id).await;
        assert_eq!(product.story(id).await, "failed: Queued Failed", "{case}");
        let end = report.events.last().unwrap();
        assert_eq!(end.at.since(report.created_at), 8 * SECOND);
        assert_eq!(end.meta["reason"], "provider_error");
        let words = if last.is_some() { "not now" } else { "the provider takes no more messages at a time" };
        assert!(end.meta["message"].as_str().unwrap().ends_with(words), "{case}: {:?}", end.meta);
        assert_eq!(
            (product.followers(id).await, product.story(plain).await),
            (1, "queued: Queued".to_owned()),
            "{case}"
        );
        let texts = product.transport.sent().into_iter().filter(|sent| sent.recipients == [PHONE]).count();
        assert_eq!(texts, 1, "{case}: nothing is attempted");
    }
}

#[tokio::test]
async fn what_has_little_time_is_tried_soon_under_new_settings() {
    let product = Product::start().await.on_every_channel().await;
    product.tried(json!({}), [outcome(OutcomeClass::Auth)]).await;
    let id = product.send(&message(Channel::Sms, json!({"options": {"ttl": 60}}))).await;
    product.pass(10 * SECOND).await;
    assert_eq!((product.story(id).await.as_str(), product.attempts_of()), ("queued: Queued", 1));
    let product = product.on_every_channel().await;
    product.pass(6 * SECOND).await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}
