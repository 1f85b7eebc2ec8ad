//! From the queue to the recipient: contract section 4.2 and 4.3.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::message::MessageStatus;
use messaging_core::ports::store::PageRequest;
use messaging_core::ports::transport::{
    Acceptance, Content, Outcome, Outgoing, Response, Sent, Transport, TransportError,
};
use messaging_engine::ops::channels::{ChannelPath, DeleteChannel};
use messaging_testing::MemoryTransport;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::Product;

const ANN: &str = "ann@example.com";
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_accepted_message_is_sent_and_delivered() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    assert_eq!(product.story(id).await, "queued: Queued");
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    insta::assert_json_snapshot!(product.last_meta(id).await, @r#"
    {
      "mx": "mx.test",
      "recipient": "ann@example.com",
      "response": "2.0.0 kept",
      "smtp_code": 250
    }
    "#);
}

#[tokio::test]
async fn a_relayed_message_stays_sent() {
    let product = Product::with(MemoryTransport::new(Acceptance::Relayed)).await;
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(id).await, "sent: Queued Sent");
}

#[tokio::test]
async fn a_temporary_refusal_is_tried_again_as_the_same_message() {
    let product = Product::start().await;
    product.transport.answer_next(ANN, "450 4.2.1 greylisted");
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    insta::assert_json_snapshot!(product.last_meta(id).await, @r#"
    {
      "attempt": 1,
      "enhanced_code": "4.2.1",
      "next_attempt_at": "2026-01-31T09:16:00.000Z",
      "recipient": "ann@example.com",
      "response": "4.2.1 greylisted",
      "smtp_code": 450
    }
    "#);
    product.pass(MINUTE - Duration::from_millis(1)).await;
    assert_eq!(product.transport.sent().len(), 1);
    product.pass(Duration::from_millis(1)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");

    let ids: Vec<_> = product
        .transport
        .sent()
        .iter()
        .map(|outgoing| match &outgoing.content {
            Content::Email(email) => (email.message_id.clone(), email.date),
            _ => unreachable!("an email was sent"),
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn refusals_follow_the_retry_table_until_the_message_expires() {
    let product = Product::start().await;
    product.transport.answer(ANN, "450 4.2.1 later");
    let id = product.send_to(ANN).await;
    product.work().await;
    let hours = |n| Duration::from_hours(n);
    let waits =
        [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, hours(1), hours(2), hours(4), hours(8), hours(12), hours(12)];
    for (made, wait) in waits.into_iter().enumerate() {
        assert_eq!(product.transport.sent().len(), made + 1);
        product.pass(wait - Duration::from_millis(1)).await;
        assert_eq!(product.transport.sent().len(), made + 1, "attempt {}", made + 2);
        product.pass(Duration::from_millis(1)).await;
    }
    product.pass(hours(72)).await;
    assert_eq!(product.report(id).await.status, MessageStatus::Bounced);
    let meta = product.last_meta(id).await;
    assert_eq!((&meta["bounce_type"], &meta["bounce_class"]), (&json!("soft"), &json!("unreachable")));
    let attempts = product.transport.sent().len();
    product.pass(hours(100)).await;
    assert_eq!(product.transport.sent().len(), attempts);
}

#[tokio::test]
async fn a_hard_bounce_suppresses_the_address_and_nobody_else() {
    let product = Product::start().await;
    product.transport.answer(ANN, "550 5.1.1 no such user");
    let body = json!({"channel": "email", "to": ANN, "cc": ["bob@example.com"], "subject": "s", "text": "t"});
    let id = product.send(&body).await;
    product.work().await;
    assert_eq!(product.report(id).await.status, MessageStatus::Bounced);

    let second = product.send(&body).await;
    product.work().await;
    assert_eq!(product.story(second).await, "suppressed: Queued Suppressed");
    assert_eq!(product.last_meta(second).await, json!({"recipient": ANN, "reason": "bounce"}));
    let bob = product.send_to("bob@example.com").await;
    product.work().await;
    assert_eq!(product.report(bob).await.status, MessageStatus::Delivered);
}

#[tokio::test]
async fn a_suppressed_recipient_gets_nothing_unless_it_only_unsubscribed() {
    let product = Product::start().await;
    let listed = [
        product.suppression("manual@example.com", SuppressionReason::Manual),
        product.suppression("gone@example.com", SuppressionReason::Unsubscribe),
    ];
    product.commit(Changes::from_iter(listed)).await;
    let manual = product.send_to("Manual@Example.com").await;
    let gone = product.send_to("gone@example.com").await;
    product.work().await;
    assert_eq!(product.story(manual).await, "suppressed: Queued Suppressed");
    assert_eq!(product.story(gone).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn a_suppressed_copy_is_left_out_of_envelope_and_header() {
    let product = Product::start().await;
    product.commit(Changes::from_iter([product.suppression("bob@example.com", SuppressionReason::Complaint)])).await;
    let body = json!({"channel": "email", "to": ANN, "cc": ["bob@example.com", "cat@example.com"],
        "bcc": ["dan@example.com"], "subject": "s", "text": "t"});
    let id = product.send(&body).await;
    product.work().await;
    let outgoing = product.transport.sent().pop().unwrap();
    assert_eq!(outgoing.recipients, [ANN, "cat@example.com", "dan@example.com"]);
    let Content::Email(email) = &outgoing.content else { unreachable!("an email was sent") };
    let copies: Vec<_> = email.cc.iter().map(|copy| copy.as_str().to_owned()).collect();
    assert_eq!(copies, ["cat@example.com"]);
    let report = product.report(id).await;
    assert_eq!(report.status, MessageStatus::Delivered);
    let suppressed: Vec<_> = report.events.iter().filter(|event| event.meta.contains_key("reason")).collect();
    assert_eq!(suppressed.len(), 1);
    assert_eq!(suppressed[0].meta["recipient"], "bob@example.com");
}

#[tokio::test]
async fn only_the_recipients_that_were_put_off_are_tried_again() {
    let product = Product::start().await;
    product.transport.answer_next("bob@example.com", "451 4.3.0 later");
    let body = json!({"channel": "email", "to": ANN, "cc": ["bob@example.com"], "subject": "s", "text": "t"});
    let id = product.send(&body).await;
    product.work().await;
    assert_eq!(product.report(id).await.status, MessageStatus::Delivered);
    product.pass(MINUTE).await;
    let tried: Vec<_> = product.transport.sent().into_iter().map(|outgoing| outgoing.recipients).collect();
    assert_eq!(tried, [vec![ANN, "bob@example.com"], vec!["bob@example.com"]]);
    assert_eq!(product.report(id).await.status, MessageStatus::Delivered);
}

#[tokio::test]
async fn a_lost_final_reply_marks_the_attempt() {
    let product = Product::start().await;
    product.transport.fail_next(TransportError::Ambiguous("closed after the dot".to_owned()));
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.last_meta(id).await["ambiguous"], json!(true));
    assert_eq!(product.report(id).await.status, MessageStatus::Deferred);
    product.pass(MINUTE).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
}

#[tokio::test]
async fn an_outcome_is_kept_when_the_message_changes_during_the_attempt() {
    let product = Product::start().await;
    product.transport.hold();
    let id = product.send_to(ANN).await;
    let app = product.app.clone();
    let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
    product.transport.attempts(1).await;
    // The row is written by another request while the attempt runs.
    assert_eq!(product.move_message(id, MessageStatus::Sending).await, MessageStatus::Sending);
    product.transport.release();
    working.await.unwrap();
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.transport.sent().len(), 1);
}

#[tokio::test]
async fn a_cancelled_message_is_not_sent() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    product.move_message(id, MessageStatus::Cancelled).await;
    product.work().await;
    assert!(product.transport.sent().is_empty());
    assert_eq!(product.report(id).await.status, MessageStatus::Cancelled);
}

/// A transport that lets nothing leave the process, and waits in the middle.
#[derive(Debug, Default)]
struct Local {
    began: Notify,
    may_end: Notify,
}

#[async_trait]
impl Transport for Local {
    async fn send(&self, _: &Outgoing) -> Result<Sent, TransportError> {
        self.began.notify_one();
        self.may_end.notified().await;
        let outcomes = vec![Outcome::accepted(Acceptance::Delivered, Response::default())];
        Ok(Sent { outcomes, captured: Some(Bytes::from_static(b"source")), ..Sent::default() })
    }

    fn is_local(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_is_cancelled_while_it_is_captured_is_not_sent() {
    let transport = Arc::new(Local::default());
    let product = Product::carried_by(Arc::clone(&transport) as _).await;
    let id = product.send_to(ANN).await;
    let app = product.app.clone();
    let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
    transport.began.notified().await;
    let reply = product.post(&product.caller, &format!("/messages/{id}/cancel"), json!({})).await;
    assert_eq!(reply.summary(), "202");
    transport.may_end.notify_one();
    working.await.unwrap();
    assert_eq!(product.story(id).await, "cancelled: Queued Cancelled");
    assert_eq!(product.store.capture(product.workspace, id).await.unwrap(), None);
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_domain_that_lost_its_verification_fails_what_is_queued() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    let page = PageRequest { after: None, limit: 1 };
    let mut domain = product.store.domains(product.workspace, page).await.unwrap().items.remove(0);
    let revision = product.store.domain(product.workspace, domain.id).await.unwrap().unwrap().revision;
    domain.status = DomainStatus::Failed;
    product.commit(Changes::from_iter([Write::put(domain, Expect::Revision(revision))])).await;
    // Another process changed the domain: the cached copy of this one expires.
    product.pass(Duration::from_secs(2)).await;
    assert_eq!(product.story(id).await, "failed: Queued Failed");
    assert_eq!(product.last_meta(id).await["reason"], json!("sender_domain_not_verified"));
}

#[tokio::test]
async fn a_channel_that_lost_its_settings_fails_what_is_queued() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    let path: ChannelPath =
        serde_json::from_value(json!({"workspace_id": product.workspace, "channel": "email"})).unwrap();
    product.app.run(DeleteChannel).path(path).by(&product.caller).await.unwrap();
    product.work().await;
    assert_eq!(product.last_meta(id).await["reason"], json!("channel_not_configured"));
}

#[tokio::test]
async fn simulated_recipients_behave_as_their_names_say() {
    let product = Product::start().await;
    for (local, story) in [
        ("delivered", "delivered: Queued Sent Delivered"),
        ("delivered+tag", "delivered: Queued Sent Delivered"),
        ("whatever", "delivered: Queued Sent Delivered"),
        ("bounce+1", "bounced: Queued Bounce"),
        ("softbounce", "bounced: Queued Bounce"),
        ("blocked", "bounced: Queued Bounce"),
        ("deferred", "deferred: Queued Deferred"),
        ("complaint", "complained: Queued Sent Delivered Complaint"),
    ] {
        let id = product.send_to(&format!("{local}@simulator.invalid")).await;
        product.work().await;
        assert_eq!(product.story(id).await, story, "{local}");
    }
    assert!(product.transport.sent().is_empty(), "nothing leaves the server");
    let addresses =
        ["bounce+1", "softbounce", "blocked", "complaint"].map(|local| format!("{local}@simulator.invalid"));
    let listed = product.store.suppressed(product.workspace, Channel::Email, &addresses).await.unwrap();
    let mut listed: Vec<_> = listed.iter().map(|stored| stored.record.address.as_str()).collect();
    listed.sort_unstable();
    assert_eq!(listed, ["bounce+1@simulator.invalid", "complaint@simulator.invalid"]);
}

#[tokio::test]
async fn a_complaint_beside_an_attempt_that_leaves_ends_the_message() {
    let product = Product::start().await;
    let body =
        json!({"channel": "email", "to": "complaint@simulator.invalid", "cc": [ANN], "subject": "s", "text": "t"});
    let id = product.send(&body).await;
    product.work().await;
    assert_eq!(product.transport.sent().len(), 1, "the copy leaves, so the attempt was put on record before it");
    assert!(product.story(id).await.starts_with("complained: "), "{}", product.story(id).await);
}
