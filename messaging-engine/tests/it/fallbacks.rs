//! Messages that are sent later, and fallbacks for messages that do not arrive: contract section 4.1, `send_at` and
//! `fallback`.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::ReceiptLink;
use messaging_core::ports::transport::{
    Acceptance, AddressFault, Answer, Outcome, OutcomeClass, ProviderAnswer, Response, Scope,
};
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, DeleteChannel, SetChannel};
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::support::Product;

const EMAIL: &str = "ann@example.com";
const PHONE: &str = "+14155550123";
const OTHER: &str = "+14155550199";

impl Product {
    /// With accounts for text messages and Telegram.
    async fn with_channels(transport: MemoryTransport) -> Self {
        let product = Self::with(transport).await;
        for channel in [Channel::Sms, Channel::Telegram] {
            let path = ChannelPath { workspace_id: product.workspace, channel };
            product
                .app
                .run(SetChannel)
                .path(path)
                .body(ChannelInput::new("sandbox"))
                .by(&product.caller)
                .await
                .unwrap();
        }
        product
    }

    /// The chain that begins with a message: of each its channel, where it goes, and its state.
    async fn chain(&self, first: MessageId) -> Vec<String> {
        let listed = self.get(&self.caller, "/messages").await;
        let mut messages = listed["data"].as_array().unwrap().clone();
        messages.reverse();
        let of_chain =
            |message: &&Value| message["message_id"] == json!(first) || message["fallback_of"] == json!(first);
        let shown = |message: &Value| {
            let text = |name: &str| message[name].as_str().unwrap().to_owned();
            format!("{} {} {}", text("channel"), text("to"), text("status"))
        };
        messages.iter().filter(of_chain).map(shown).collect()
    }

    async fn refusal(&self, body: &Value) -> String {
        let reply = self.post(&self.caller, "/messages", body.clone()).await;
        reply.summary()
    }
}

fn email(fallback: &Value) -> Value {
    json!({"channel": "email", "to": EMAIL, "subject": "s", "text": "by mail", "tags": ["t"],
        "metadata": {"order": 17}, "fallback": fallback})
}

fn by_sms() -> Value {
    json!([{"channel": "sms", "to": PHONE, "text": "by sms"}])
}

fn bad_number() -> Outcome {
    Outcome::of(OutcomeClass::Address(AddressFault::Recipient), Response::of_text("nobody"))
}

#[tokio::test]
async fn a_scheduled_message_waits_and_is_shown_to_and_then_goes() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": EMAIL, "subject": "s", "text": "t", "send_at": "2026-03-02T08:00:00Z"});
    let id = product.send(&body).await;
    product.work().await;
    let report = serde_json::to_value(product.report(id).await).unwrap();
    let at = "2026-03-02T08:00:00.000Z";
    assert_eq!((&report["status"], &report["scheduled_for"]), (&json!("queued"), &json!(at)));
    assert_eq!(report["hold"], json!({"reason": "scheduled", "until": at}));
    assert_eq!(report["explanation"]["code"], "scheduled");
    // Longer than a message may be tried: its time to expire runs from when it goes out.
    product.pass(Duration::from_mins((29 * 24 + 22) * 60 + 44)).await;
    assert!(product.transport.take().is_empty(), "a minute too early");
    product.transport.answer_next(EMAIL, "451 4.3.0 later");
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    product.pass(Duration::from_hours(1)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
    let report = serde_json::to_value(product.report(id).await).unwrap();
    assert_eq!(report["hold"], Value::Null);
}

#[tokio::test]
async fn a_scheduled_message_is_cancelled_and_never_sent() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": EMAIL, "cc": ["bob@example.org"], "subject": "s", "text": "t",
        "send_at": "2026-02-01T08:00:00Z", "fallback": by_sms()});
    let id = product.send(&body).await;
    let reply = product.post(&product.caller, &format!("/messages/{id}/cancel"), json!({})).await;
    assert_eq!(reply.summary(), "202");
    product.pass(Duration::from_hours(48)).await;
    assert_eq!(product.story(id).await, "cancelled: Queued Cancelled");
    assert!(product.transport.take().is_empty());
    assert_eq!(product.chain(id).await.len(), 1);
}

#[tokio::test]
async fn a_clock_that_is_set_back_sends_no_scheduled_message_early() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": EMAIL, "subject": "s", "text": "t", "send_at": "2026-02-01T08:00:00Z"});
    product.send(&body).await;
    product.clock.set("2026-01-30T08:00:00Z".parse().unwrap());
    product.pass(Duration::from_hours(47)).await;
    assert!(product.transport.take().is_empty());
    product.pass(Duration::from_hours(2)).await;
    assert_eq!(product.transport.take().len(), 1);
}

#[tokio::test]
async fn times_that_are_past_are_now_and_those_beyond_a_year_are_refused() {
    let product = Product::start().await;
    let body = |at: &str| json!({"channel": "email", "to": EMAIL, "subject": "s", "text": "t", "send_at": at});
    let id = product.send(&body("2020-01-01T00:00:00Z")).await;
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.refusal(&body("2027-03-01T00:00:00Z")).await, "422 /send_at out_of_range");
    assert_eq!(product.refusal(&body("tomorrow")).await, "422 /send_at invalid_format");
}

#[tokio::test]
async fn the_next_message_is_sent_when_the_one_before_bounces_and_has_what_it_had() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    product.transport.answer(EMAIL, "550 5.1.1 no such user");
    product.transport.outcome_next(PHONE, bad_number());
    let fallback = json!([{"channel": "sms", "to": PHONE, "text": "by sms"},
        {"channel": "telegram", "to": "4711", "text": "by telegram"}]);
    let id = product.send(&email(&fallback)).await;
    product.work().await;
    let expected =
        [format!("email {EMAIL} bounced"), format!("sms {PHONE} bounced"), "telegram 4711 delivered".to_owned()];
    assert_eq!(product.chain(id).await, expected);
    let listed = product.get(&product.caller, "/messages?channel=telegram").await;
    let last = &listed["data"][0];
    assert_eq!((&last["tags"], &last["metadata"]["order"]), (&json!(["t"]), &json!(17)));
    // A later pass over the chain sends nothing more.
    product.pass(Duration::from_hours(72)).await;
    assert_eq!(product.chain(id).await.len(), 3);
}

#[tokio::test]
async fn nothing_follows_what_arrived_or_was_taken_by_a_provider() {
    for acceptance in [Acceptance::Delivered, Acceptance::Relayed] {
        let product = Product::with_channels(MemoryTransport::new(acceptance)).await;
        let id = product.send(&email(&by_sms())).await;
        product.pass(Duration::from_hours(72)).await;
        assert_eq!(product.chain(id).await.len(), 1, "{acceptance:?}");
    }
}

#[tokio::test]
async fn deferred_is_no_end_until_the_time_that_was_asked_for_has_passed() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    product.transport.answer(EMAIL, "451 4.3.0 later");
    let patient = product.send(&email(&by_sms())).await;
    let fallback = json!([{"channel": "sms", "to": OTHER, "text": "by sms", "after_seconds": 600}]);
    let hasty = product.send(&email(&fallback)).await;
    product.pass(Duration::from_secs(599)).await;
    assert_eq!(product.chain(hasty).await, [format!("email {EMAIL} deferred")]);
    product.pass(Duration::from_secs(1)).await;
    assert_eq!(product.chain(hasty).await, [format!("email {EMAIL} deferred"), format!("sms {OTHER} delivered")]);
    product.pass(Duration::from_hours(24)).await;
    assert_eq!(product.chain(patient).await, [format!("email {EMAIL} deferred")]);
    product.pass(Duration::from_hours(60)).await;
    assert_eq!(product.chain(patient).await, [format!("email {EMAIL} bounced"), format!("sms {PHONE} delivered")]);
}

#[tokio::test]
async fn a_receipt_in_time_keeps_the_next_message_from_being_sent() {
    let product = Product::with_channels(MemoryTransport::new(Acceptance::Relayed)).await;
    let provider = ProviderAnswer { message_id: Some("p-1".to_owned()), ..ProviderAnswer::default() };
    let taken = Answer::new(OutcomeClass::Accepted(Acceptance::Relayed), Response::default()).provider(provider);
    product.transport.outcome_next(PHONE, taken.into());
    let chain = |to: &str| {
        json!({"channel": "sms", "to": to, "text": "first",
            "fallback": [{"channel": "telegram", "to": "4711", "text": "second", "after_seconds": 60}]})
    };
    let told = product.send(&chain(PHONE)).await;
    let silent = product.send(&chain(OTHER)).await;
    product.work().await;
    let about = ReceiptLink::Provider {
        workspace_id: product.workspace,
        channel: Channel::Sms,
        provider: "sandbox".to_owned(),
        provider_message_id: "p-1".to_owned(),
        spellings: Vec::new(),
    };
    let class = OutcomeClass::Accepted(Acceptance::Delivered);
    let receipt = Receipt::Outcome(Answer::new(class, Response::of_text("arrived")));
    product.app.receive_receipt(&about, &receipt).await.unwrap();
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.chain(told).await, [format!("sms {PHONE} delivered")]);
    assert_eq!(product.chain(silent).await, [format!("sms {OTHER} sent"), "telegram 4711 sent".to_owned()]);
}

#[tokio::test]
async fn cancelling_ends_the_chain() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    let busy = Outcome::of(OutcomeClass::Retry(Scope::Recipient), Response::of_text("busy"));
    product.transport.answer(EMAIL, "451 4.3.0 later");
    product.transport.outcome_next(PHONE, busy);
    let fallback = json!([{"channel": "sms", "to": PHONE, "text": "by sms", "after_seconds": 60},
        {"channel": "telegram", "to": "4711", "text": "by telegram", "after_seconds": 60}]);
    let id = product.send(&email(&fallback)).await;
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.chain(id).await.len(), 2);
    let reply = product.post(&product.caller, &format!("/messages/{id}/cancel"), json!({})).await;
    assert_eq!(reply.summary(), "202");
    product.pass(Duration::from_hours(48)).await;
    assert_eq!(product.chain(id).await.len(), 2, "the third is not sent");
}

#[tokio::test]
async fn a_message_without_an_address_fails_and_the_next_one_goes() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    let contacts = format!("/workspaces/{}/contacts", product.workspace);
    let contact = product.post(&product.caller, &contacts, json!({"phone": PHONE})).await;
    let body = json!({"channel": "email", "contact_id": contact["id"], "subject": "s", "text": "t"});
    assert_eq!(product.refusal(&body).await, "422 contact_address_missing");
    let mut chained = body.clone();
    chained["fallback"] = json!([{"channel": "telegram", "text": "to nobody"}, {"channel": "sms", "text": "at last"}]);
    let id = product.send(&chained).await;
    product.work().await;
    assert_eq!(product.story(id).await, "failed: Queued Failed");
    assert_eq!(product.last_meta(id).await["reason"], "no_route");
    let expected = ["email  failed".to_owned(), "telegram  failed".to_owned(), format!("sms {PHONE} delivered")];
    assert_eq!(product.chain(id).await, expected);
    // Erasing the contact removes the addresses of all messages.
    product.delete(&product.caller, &format!("{contacts}/{}", contact["id"].as_str().unwrap())).await;
    product.work().await;
    assert_eq!(product.chain(id).await[2], "sms  delivered");
}

/// A first message that has no address fails at once; its fallback still waits for `send_at`.
#[tokio::test]
async fn nothing_of_a_chain_is_sent_before_its_time() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    let contacts = format!("/workspaces/{}/contacts", product.workspace);
    let contact = product.post(&product.caller, &contacts, json!({"phone": PHONE})).await;
    let id = product
        .send(&json!({"channel": "email", "contact_id": contact["id"], "subject": "s", "text": "t",
            "send_at": "2026-02-01T08:00:00Z", "fallback": [{"channel": "telegram", "text": "to nobody"},
                {"channel": "sms", "text": "at last"}]}))
        .await;
    product.work().await;
    let expected = ["email  failed".to_owned(), "telegram  failed".to_owned(), format!("sms {PHONE} queued")];
    assert_eq!(product.chain(id).await, expected);
    let listed = product.get(&product.caller, "/messages?channel=sms").await;
    assert_eq!(listed["data"][0]["scheduled_for"], "2026-02-01T08:00:00.000Z");
    product.pass(Duration::from_hours(23)).await;
    assert_eq!(product.chain(id).await[2], format!("sms {PHONE} delivered"));
}

#[tokio::test]
async fn a_next_message_that_is_not_possible_any_more_stands_in_the_chain_as_failed() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    product.transport.answer(EMAIL, "550 5.1.1 no such user");
    let fallback = json!([{"channel": "sms", "to": PHONE, "text": "by sms"},
        {"channel": "telegram", "to": "4711", "text": "by telegram"}]);
    let id = product.send(&email(&fallback)).await;
    let path = ChannelPath { workspace_id: product.workspace, channel: Channel::Sms };
    product.app.run(DeleteChannel).path(path).by(&product.caller).await.unwrap();
    product.work().await;
    let chain = product.chain(id).await;
    assert_eq!(chain[1..], [format!("sms {PHONE} failed"), "telegram 4711 delivered".to_owned()]);
    let listed = product.get(&product.caller, "/messages?channel=sms").await;
    let failed = listed["data"][0]["message_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(product.last_meta(failed).await["reason"], "channel_not_configured");
}

#[tokio::test]
async fn a_chain_is_checked_when_it_is_asked_for() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    for (fallback, expected) in [
        (json!([{"channel": "sms"}]), "422 /fallback/0/text required"),
        (json!([{"channel": "pigeon", "text": "x"}]), "422 /fallback/0/channel unknown_value"),
        (json!([{"channel": "sms", "to": "ann", "text": "x"}]), "422 /fallback/0/to invalid_format"),
        (json!([{"channel": "sms", "text": "x", "after_seconds": 29}]), "422 /fallback/0/after_seconds out_of_range"),
        (
            json!([{"channel": "sms", "text": "x", "template_id": "tpl_x"}]),
            "422 /fallback/0/template_id not_found /fallback/0/text conflict",
        ),
        (json!([{"channel": "sms", "text": "x".repeat(1601)}]), "422 /fallback/0/text too_long"),
        (json!([by_sms()[0], by_sms()[0], by_sms()[0], by_sms()[0]]), "422 /fallback too_many_items"),
    ] {
        assert_eq!(product.refusal(&email(&fallback)).await, expected, "{fallback}");
    }
    let missing = json!([{"channel": "sms", "template_id": "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}]);
    assert_eq!(product.refusal(&email(&missing)).await, "422 /fallback/0/template_id not_found");
}

#[tokio::test]
async fn two_who_look_after_a_message_send_one_next_message() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    product.transport.answer(EMAIL, "550 5.1.1 no such user");
    let id = product.send(&email(&by_sms())).await;
    let other = product.another_process();
    let (one, two) = tokio::join!(product.app.run_until_idle(), other.run_until_idle());
    one.unwrap();
    two.unwrap();
    product.work().await;
    assert_eq!(product.chain(id).await.len(), 2);
}

#[tokio::test]
async fn an_erased_person_goes_from_the_chains_of_others_messages() {
    let product = Product::with_channels(MemoryTransport::default()).await;
    let contacts = format!("/workspaces/{}/contacts", product.workspace);
    let bob = json!({"external_id": "bob", "phone": PHONE, "attributes": {"telegram_chat_id": 98_765_432}});
    let bob = product.post(&product.caller, &contacts, bob).await;
    let steps = json!([{"channel": "sms", "to": PHONE, "text": "one"},
        {"channel": "telegram", "to": "98765432", "text": "two"}, {"channel": "sms", "to": OTHER, "text": "three"}]);
    // A message that waits for `send_at`, and one whose recipient had no address and whose chain is at its second step.
    let mut body = email(&steps);
    body["send_at"] = json!("2026-02-01T08:00:00Z");
    let waits = product.send(&body).await;
    let carl = product.post(&product.caller, &contacts, json!({"external_id": "carl"})).await;
    let alone = json!({"channel": "sms", "contact_id": carl["id"], "text": "t",
        "fallback": [{"channel": "sms", "to": OTHER, "text": "t"}, {"channel": "sms", "to": PHONE, "text": "t"}]});
    let alone = product.send(&alone).await;
    product.work().await;

    let gone = format!("{contacts}/{}", bob["id"].as_str().unwrap());
    let gone = crate::bed::Call::new(&product.caller, http::Method::DELETE, &gone);
    assert_eq!(crate::bed::send(&product.app, gone).await.summary(), "204");
    product.pass(Duration::from_mins(1)).await;
    for id in [waits, alone] {
        let content = product.get(&product.caller, &format!("/messages/{id}/content")).await;
        let left = content["request"]["fallback"].as_array().unwrap().iter().map(|step| &step["to"]);
        assert_eq!(left.collect::<Vec<_>>(), [OTHER]);
    }
    for id in [waits, alone] {
        let stored = product.store.message_with_content(product.workspace, id).await.unwrap().unwrap().1.unwrap();
        for address in [PHONE, "98765432"] {
            let is_there = stored.request.windows(address.len()).any(|part| part == address.as_bytes());
            assert!(!is_there, "{address} is kept");
        }
    }

    // The rest of the chain continues, and nothing is sent to the erased person.
    product.transport.fail_next(messaging_core::ports::transport::TransportError::Content("no".to_owned()));
    product.pass(Duration::from_hours(48)).await;
    assert_eq!(product.chain(waits).await, [format!("email {EMAIL} failed"), format!("sms {OTHER} delivered")]);
}
