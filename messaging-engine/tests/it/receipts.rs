//! Receipts of providers and messages that recipients send back: contract sections 4.2, 10 and 18.

use std::time::Duration;

use messaging_core::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::{InboundEvent, InboundMessage};
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::{ProviderSink as _, ReceiptLink};
use messaging_core::ports::transport::{
    Acceptance, AddressFault, Answer, Outcome, OutcomeClass, ProviderAnswer, Response, SoftCause,
};
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, DeleteChannel, SetChannel};
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::support::Product;

const TO: &str = "+14155550123";

fn of(class: OutcomeClass) -> Receipt {
    Receipt::Outcome(Answer::new(class, Response::of_text("said so")))
}

fn delivered() -> Receipt {
    of(OutcomeClass::Accepted(Acceptance::Delivered))
}

/// Outcome with which a provider accepts a message under a name.
fn taken_as(name: &str) -> Outcome {
    let provider = ProviderAnswer { message_id: Some(name.to_owned()), ..ProviderAnswer::default() };
    Answer::new(OutcomeClass::Accepted(Acceptance::Relayed), Response::default()).provider(provider).into()
}

impl Product {
    /// A product with an account for text messages.
    async fn with_sms() -> Self {
        let product = Self::with(MemoryTransport::new(Acceptance::Relayed)).await;
        for channel in [Channel::Sms, Channel::Telegram] {
            let path = ChannelPath { workspace_id: product.workspace, channel };
            let input = ChannelInput::new("sandbox");
            product.app.run(SetChannel).path(path).body(input).by(&product.caller).await.unwrap();
        }
        product
    }

    async fn text_message(&self) -> MessageId {
        self.send(&json!({"channel": "sms", "to": TO, "text": "hello"})).await
    }

    fn named(&self, name: &str) -> ReceiptLink {
        ReceiptLink::Provider {
            workspace_id: self.workspace,
            channel: Channel::Sms,
            provider: "sandbox".to_owned(),
            provider_message_id: name.to_owned(),
            spellings: Vec::new(),
        }
    }

    fn message_link(&self, message_id: MessageId) -> ReceiptLink {
        ReceiptLink::Message { workspace_id: self.workspace, message_id }
    }

    async fn receives(&self, channel: Channel, from: &str, event: InboundEvent) {
        let message = InboundMessage { workspace_id: self.workspace, channel, from: from.to_owned(), event };
        self.app.receive_message(&message).await.unwrap();
    }

    /// Reason, source and detail of the suppression of an address.
    async fn listed_as(
        &self,
        channel: Channel,
        address: &str,
    ) -> Option<(SuppressionReason, SuppressionSource, String)> {
        let mut found = self.store.suppressed(self.workspace, channel, &[address.to_owned()]).await.unwrap();
        let record = found.pop()?.record;
        Some((record.reason, record.source, record.detail.unwrap_or_default()))
    }
}

#[tokio::test]
async fn a_receipt_finds_its_message_by_token_or_by_the_providers_name() {
    let product = Product::with_sms().await;
    product.transport.outcome_next(TO, taken_as("SM1"));
    let id = product.text_message().await;
    product.work().await;
    assert_eq!(product.story(id).await, "sent: Queued Sent");
    let token = product.transport.sent()[0].receipts.clone().unwrap().token;
    assert_eq!(product.app.receipt_token(&token), Some((product.workspace, id)));
    assert_eq!(product.app.receipt_token(&token[1..]), None);

    for _ in 0..2 {
        product.app.receive_receipt(&product.named("SM1"), &delivered()).await.unwrap();
    }
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.last_meta(id).await, json!({"recipient": TO, "response": "said so"}));
    let read = Receipt::Read(Answer::new(OutcomeClass::Accepted(Acceptance::Delivered), Response::default()));
    product.app.receive_receipt(&product.message_link(id), &read).await.unwrap();
    // A delivered message stays delivered.
    product.app.receive_receipt(&product.named("SM1"), &of(OutcomeClass::Soft(SoftCause::Unknown))).await.unwrap();
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered Open");
    assert_eq!(product.last_meta(id).await, json!({"recipient": TO, "source": "read_receipt"}));
}

#[tokio::test]
async fn a_receipt_finds_its_message_by_another_spelling_that_no_other_has() {
    let product = Product::with_sms().await;
    let mut ids = Vec::new();
    for name in ["1F3A", "7995", "1F3B", "1F3C", "007996"] {
        product.transport.outcome_next(TO, taken_as(name));
        ids.push(product.text_message().await);
        product.work().await;
    }
    for (name, other) in [("7994", &["0007994", "1F3A"][..]), ("7995", &["1F3B"]), ("7996", &["1F3C", "007996"])] {
        let ReceiptLink::Provider { workspace_id, channel, provider, provider_message_id, .. } = product.named(name)
        else {
            unreachable!()
        };
        let spellings = other.iter().map(|one| (*one).to_owned()).collect();
        let about = ReceiptLink::Provider { workspace_id, channel, provider, provider_message_id, spellings };
        product.app.receive_receipt(&about, &delivered()).await.unwrap();
    }
    product.pass(Duration::from_secs(2)).await;
    let mut stories = Vec::new();
    for id in ids {
        stories.push(product.story(id).await);
    }
    let (sent, delivered) = ("sent: Queued Sent", "delivered: Queued Sent Delivered");
    // The exact name takes precedence, and a name that fits two messages belongs to neither.
    assert_eq!(stories, [delivered, delivered, sent, sent, sent]);
}

#[tokio::test]
async fn a_transport_is_told_whether_a_channel_still_has_its_settings() {
    let product = Product::with_sms().await;
    let path = || ChannelPath { workspace_id: product.workspace, channel: Channel::Sms };
    let set = async |changed: &str, value: Value| {
        let mut input = ChannelInput::new("smpp");
        let mut config = json!({"host": "smsc.example", "port": 2775, "system_id": "acme", "password": "passw0rd",
            "sender": "ACME"});
        config[changed] = value;
        input.config = config.as_object().cloned();
        product.app.run(SetChannel).path(path()).body(input).by(&product.caller).await.unwrap();
    };
    set("port", json!(2775)).await;
    let used = product.app.provider(product.workspace, Channel::Sms).await.unwrap().unwrap().settings;
    let has = async |provider: &str| {
        product.app.has_settings(product.workspace, Channel::Sms, provider, &used).await.unwrap()
    };
    assert_eq!((has("smpp").await, has("sandbox").await), (true, false));
    set("max_rate", json!(5)).await;
    assert!(has("smpp").await, "the account is the same");
    for (changed, value) in [("password", json!("another")), ("tls", json!(true)), ("port", json!(2776))] {
        set(changed, value).await;
        assert!(!has("smpp").await, "{changed}");
    }
    set("port", json!(2775)).await;
    assert!(has("smpp").await);
    product.app.run(DeleteChannel).path(path()).by(&product.caller).await.unwrap();
    assert!(!has("smpp").await);
}

#[tokio::test]
async fn a_receipt_before_the_commit_of_its_attempt_counts_once() {
    for link in ["token", "name"] {
        let product = Product::with_sms().await;
        product.transport.outcome_next(TO, taken_as("SM1"));
        product.transport.hold();
        let id = product.text_message().await;
        let work = {
            let app = product.app.clone();
            tokio::spawn(async move { app.run_until_idle().await.unwrap() })
        };
        product.transport.attempts(1).await;
        let about = if link == "token" { product.message_link(id) } else { product.named("SM1") };
        product.app.receive_receipt(&about, &delivered()).await.unwrap();
        product.transport.release();
        work.await.unwrap();
        // By its name it is known only after the commit.
        product.pass(Duration::from_secs(2)).await;
        assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered", "{link}");
        assert_eq!(product.transport.sent().len(), 1);
    }
}

#[tokio::test]
async fn a_receipt_settles_an_attempt_whose_answer_was_lost() {
    let product = Product::with_sms().await;
    product.transport.outcome_next(TO, Outcome::ambiguous(Response::of_text("lost")));
    let id = product.text_message().await;
    product.work().await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    let sent = of(OutcomeClass::Accepted(Acceptance::Relayed));
    product.app.receive_receipt(&product.message_link(id), &sent).await.unwrap();
    product.pass(Duration::from_hours(1)).await;
    assert_eq!(product.story(id).await, "sent: Queued Deferred Sent");
    assert_eq!(product.transport.sent().len(), 1, "no second copy");
}

#[tokio::test]
async fn receipts_of_failure_end_the_message_and_reach_the_address() {
    let product = Product::with_sms().await;
    let id = product.text_message().await;
    product.work().await;
    let gone = of(OutcomeClass::Address(AddressFault::Recipient));
    product.app.receive_receipt(&product.message_link(id), &gone).await.unwrap();
    assert_eq!(product.story(id).await, "bounced: Queued Sent Bounce");
    let listed = product.listed_as(Channel::Sms, TO).await;
    assert_eq!(listed, Some((SuppressionReason::Bounce, SuppressionSource::System, String::new())));
}

#[tokio::test]
async fn a_receipt_that_nobody_knows_is_let_go_after_some_minutes() {
    let product = Product::with_sms().await;
    product.app.receive_receipt(&product.named("unknown"), &delivered()).await.unwrap();
    for _ in 0..10 {
        product.pass(Duration::from_mins(10)).await;
    }
    assert_eq!(messaging_core::ports::store::Jobs::job_count(product.store.as_ref()).await.unwrap(), 0);
}

#[tokio::test]
async fn who_opted_out_at_the_provider_is_not_sent_to_again_by_marketing() {
    let product = Product::with_sms().await;
    product.transport.outcome_next(TO, Outcome::of(OutcomeClass::OptedOut, Response::of_text("opted out")));
    let id = product.text_message().await;
    product.work().await;
    assert_eq!(product.story(id).await, "suppressed: Queued Suppressed");
    let listed = product.listed_as(Channel::Sms, TO).await;
    assert_eq!(listed, Some((SuppressionReason::Unsubscribe, SuppressionSource::Recipient, String::new())));
}

#[tokio::test]
async fn stop_and_start_are_heard() {
    let product = Product::with_sms().await;
    let id = product.text_message().await;
    product.work().await;
    for _ in 0..2 {
        product.receives(Channel::Sms, TO, InboundEvent::Text("Stop".to_owned())).await;
    }
    let listed = product.listed_as(Channel::Sms, TO).await;
    assert_eq!(listed, Some((SuppressionReason::Unsubscribe, SuppressionSource::Recipient, String::new())));
    assert_eq!(product.story(id).await, "sent: Queued Sent Unsubscribe");
    assert_eq!(product.last_meta(id).await, json!({"method": "keyword"}));
    product.receives(Channel::Sms, TO, InboundEvent::Text("START".to_owned())).await;
    assert_eq!(product.listed_as(Channel::Sms, TO).await, None);
}

#[tokio::test]
async fn who_blocked_us_and_writes_again_can_be_reached() {
    let product = Product::with_sms().await;
    product.transport.outcome_next("4711", Outcome::of(OutcomeClass::Blocked, Response::of_text("blocked")));
    let id = product.send(&json!({"channel": "telegram", "to": "4711", "text": "hello"})).await;
    product.work().await;
    assert_eq!(product.story(id).await, "bounced: Queued Bounce");
    let meta = product.last_meta(id).await;
    assert_eq!((&meta["bounce_class"], &meta["bounce_type"]), (&json!("blocked"), &json!("hard")));
    let blocked = Some((SuppressionReason::Bounce, SuppressionSource::System, "blocked".to_owned()));
    assert_eq!(product.listed_as(Channel::Telegram, "4711").await, blocked);
    product.receives(Channel::Telegram, "4711", InboundEvent::Text("hi".to_owned())).await;
    assert_eq!(product.listed_as(Channel::Telegram, "4711").await, None);
    product.receives(Channel::Telegram, "4711", InboundEvent::Blocked).await;
    assert_eq!(product.listed_as(Channel::Telegram, "4711").await, blocked);
}
