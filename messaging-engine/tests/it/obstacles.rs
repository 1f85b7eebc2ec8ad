//! Reasons why a message is not sent yet: every place shows the same reason, and the advised cures work.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::delivery::consequence::PROBE_EVERY;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::ids::MessageId;
use messaging_core::ports::store::PageRequest;
use messaging_core::ports::transport::{
    Answer, Outcome, OutcomeClass, Outgoing, Response, Route, RouteState, Scope, Sent, Transport, TransportError,
};
use messaging_engine::ops;
use messaging_transport::Sandbox;
use serde_json::{Value, json};

use crate::bed::{self, Call, Reply};
use crate::support::Product;

const ANN: &str = "ann@a.example";
const SECOND: Duration = Duration::from_secs(1);

impl Product {
    async fn get(&self, target: &str) -> Reply {
        bed::send(&self.app, Call::new(&self.caller, Method::GET, target)).await
    }

    /// The `explanation` in the answer of `GET /messages/{id}`.
    async fn explained(&self, id: MessageId) -> Value {
        self.get(&format!("/messages/{id}")).await["explanation"].clone()
    }

    /// A contact with this address, and the answer of `GET …/explain` about it.
    async fn explained_contact(&self, email: &str) -> Value {
        let contacts = format!("/workspaces/{}/contacts", self.workspace);
        let body = json!({"email": email, "consent": {"marketing_email": true}});
        let call = Call::new(&self.caller, Method::POST, &contacts).body(&body);
        let contact = bed::send(&self.app, call).await;
        self.get(&format!("{contacts}/{}/explain?channel=email", contact["id"].as_str().unwrap())).await.body
    }

    /// Follows the advice of an explanation, and returns the id of the operation.
    async fn follow(&self, explanation: &Value) -> String {
        let cure = &explanation["cure"];
        let operation = cure["operation"].as_str().unwrap_or_else(|| panic!("no operation: {explanation}"));
        let endpoint = ops::all().iter().find(|endpoint| endpoint.id == operation).expect("an operation of the API");
        let mut call = Call::new(&self.caller, (endpoint.method)(), cure["path"].as_str().unwrap());
        if !cure["body"].is_null() {
            call = call.body(&cure["body"]);
        }
        let reply = bed::send(&self.app, call).await;
        assert!(reply.status < 300, "{operation}: {}", reply.summary());
        operation.to_owned()
    }
}

fn wrong_key() -> TransportError {
    TransportError::Misconfigured("535 wrong password of bob@example.com".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_account_is_told_by_whatever_waits_for_it() {
    let product = Product::start().await;
    product.transport.fail_next(wrong_key());
    let tried = product.send_to(ANN).await;
    product.work().await;
    let waits = product.send_to("bob@b.example").await;
    product.pass(SECOND * 60).await;
    let probe = "2026-01-31T09:20:00.000Z";
    for id in [tried, waits] {
        let explanation = product.explained(id).await;
        assert_eq!(explanation["code"], "channel_failing", "{explanation}");
        assert!(explanation["text"].as_str().unwrap().contains("535 wrong password"), "{explanation}");
        assert_eq!(explanation["next_attempt_at"], probe);
        assert_eq!(product.follow(&explanation).await, "listChannels");
    }
    let contact = product.explained_contact("carl@c.example").await;
    assert_eq!(contact["would_send"], false);
    assert_eq!((&contact["reasons"][0]["code"], &contact["captured"]), (&json!("held"), &json!(false)));
    assert_eq!(contact["transactional"]["reasons"][0]["code"], "held");
    let system = product.get("/system").await;
    let lane = system["lanes"].as_array().unwrap().iter().find(|lane| lane["lane"] == "email:b.example").unwrap();
    assert!(lane["last_refusal"].as_str().unwrap().contains("535"), "{lane}");
    assert_eq!(lane["until"], probe);

    // Texts of others are masked as everywhere.
    let scopes = ["messages:send", "contacts:read"];
    let blind = product.key(product.workspace, &scopes).await;
    let shown = bed::send(&product.app, Call::new(&blind, Method::GET, &format!("/messages/{waits}"))).await;
    let text = shown["explanation"]["text"].as_str().unwrap();
    assert!(text.contains("535 wrong password of b***@example.com"), "{text}");

    product.pass(PROBE_EVERY).await;
    product.pass(PROBE_EVERY).await;
    assert_eq!(product.explained(waits).await["code"], "delivered");
    assert_eq!(product.explained_contact("carl@c.example").await["would_send"], true);
}

#[tokio::test]
async fn an_account_that_rests_says_until_when() {
    let product = Product::start().await;
    let rest =
        Answer::new(OutcomeClass::Throttled(Scope::Account), Response::of_text("too fast")).wait(Some(90 * SECOND));
    product.transport.outcome_next(ANN, rest.into());
    product.send_to(ANN).await;
    product.work().await;
    let waits = product.send_to("bob@b.example").await;
    let explanation = product.explained(waits).await;
    assert_eq!(explanation["code"], "channel_throttled");
    assert_eq!(explanation["next_attempt_at"], "2026-01-31T09:16:30.000Z");
    assert_eq!(explanation["cure"], Value::Null);
    let reason = product.explained_contact("carl@c.example").await["reasons"][0].clone();
    assert_eq!(reason["cure"], "none is needed: it is tried again at 2026-01-31T09:16:30.000Z");
}

#[tokio::test]
async fn an_account_that_throttled_lately_tells_why_messages_wait_for_their_turns() {
    let product = Product::start().await;
    let answer = Answer::new(OutcomeClass::Throttled(Scope::Account), Response::of_text("429 too fast"));
    product.transport.outcome_next(ANN, answer.into());
    product.send_to(ANN).await;
    product.work().await;
    let waits = product.send_to("bob@b.example").await;
    let explanation = product.explained(waits).await;
    assert_eq!(explanation["code"], "channel_throttled", "{explanation}");
    assert!(explanation["text"].as_str().unwrap().contains("“429 too fast”"), "{explanation}");
    assert_eq!(explanation["cure"], Value::Null);
    assert_eq!(product.explained_contact("carl@c.example").await["would_send"], true);
    product.work().await;
    assert_eq!(product.explained(waits).await["code"], "delivered");
    product.pass(SECOND * 60).await;
    let later = product.send_to("dan@d.example").await;
    assert_eq!(product.explained(later).await["code"], "queued");
}

/// A transport to which no mail server of any domain can be reached.
#[derive(Debug)]
struct Unreachable;

#[async_trait::async_trait]
impl Transport for Unreachable {
    fn state_of(&self, route: &Route) -> RouteState {
        let dead = route.domain.as_deref() == Some("a.example");
        let last_refusal = dead.then(|| Response::of_text("connection refused"));
        RouteState { rests_for: dead.then_some(15 * SECOND), last_refusal, per_minute: (!dead).then_some(30.0) }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let outcome = Outcome::deferred(Response::of_text("connection refused"));
        Ok(Sent { outcomes: vec![outcome; outgoing.recipients.len()], ..Sent::default() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_cannot_be_reached_is_told() {
    let product = Product::carried_by(Arc::new(Unreachable)).await;
    let (dead, slow) = (product.send_to(ANN).await, product.send_to("bob@b.example").await);
    product.work().await;
    let explanation = product.explained(dead).await;
    assert_eq!(explanation["code"], "domain_unreachable");
    assert!(explanation["text"].as_str().unwrap().contains("connection refused"), "{explanation}");
    assert_eq!(product.explained(slow).await["code"], "deferred");
    assert_eq!(product.explained_contact("eve@a.example").await["reasons"][0]["code"], "held");
    assert_eq!(product.explained_contact("eve@b.example").await["would_send"], true);
    let system = product.get("/system").await;
    let lane =
        |name: &str| system["lanes"].as_array().unwrap().iter().find(|lane| lane["lane"] == name).unwrap().clone();
    let (dead, slow) = (lane("email:a.example"), lane("email:b.example"));
    assert_eq!((&dead["last_refusal"], &dead["pace"]), (&json!("connection refused"), &Value::Null));
    assert!(dead["until"].is_string());
    assert_eq!((&slow["pace"], &slow["until"]), (&json!(30.0), &Value::Null));
}

#[tokio::test]
async fn what_the_sandbox_took_has_reached_nobody() {
    let product = Product::carried_by(Arc::new(Sandbox::default())).await;
    let id = product.send_to(ANN).await;
    product.work().await;
    let explanation = product.explained(id).await;
    assert_eq!(explanation["code"], "captured", "{explanation}");
    assert_eq!(product.explained_contact(ANN).await["captured"], true);
}

#[tokio::test]
async fn a_full_mailbox_is_no_typing_error() {
    let product = Product::start().await;
    let full = Response { code: Some(452), enhanced: Some("4.2.2".to_owned()), ..Response::of_text("over quota") };
    let id = product.send_to(ANN).await;
    for _ in 0..40 {
        product.transport.outcome_next(ANN, Outcome::deferred(full.clone()));
        product.pass(Duration::from_hours(2)).await;
    }
    let explanation = product.explained(id).await;
    assert_eq!(explanation["code"], "unreachable", "{explanation}");
    let text = explanation["text"].as_str().unwrap();
    assert_eq!(text, "The mailbox of the recipient stayed full until the message expired (452 4.2.2).");
    assert!(!explanation["cure"]["text"].as_str().unwrap().contains("typing error"));
}

/// The cures of messages sent by requests; those of campaigns are followed in `campaigns/explain.rs`.
#[tokio::test]
async fn every_cure_of_a_message_can_be_followed() {
    let product = Product::start().await;
    let listed = product.suppression(ANN, SuppressionReason::Manual);
    product.commit(Changes::from_iter([listed])).await;
    let suppressed = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.follow(&product.explained(suppressed).await).await, "deleteSuppression");
    let again = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.explained(again).await["code"], "delivered", "the cure helped");

    let templates = format!("/workspaces/{}/templates", product.workspace);
    let template = json!({"name": "T", "channel": "email", "subject": "s", "text": "{{ a }}"});
    let call = Call::new(&product.caller, Method::POST, &templates).body(&template);
    let template = bed::send(&product.app, call).await["id"].clone();
    let id = product.send(&json!({"channel": "email", "to": ANN, "template_id": template})).await;
    product.work().await;
    assert_eq!(product.follow(&product.explained(id).await).await, "previewTemplate");

    let unverified = product.send_to(ANN).await;
    let page = PageRequest { after: None, limit: 1 };
    let mut domain = product.store.domains(product.workspace, page).await.unwrap().items.remove(0);
    let revision = product.store.domain(product.workspace, domain.id).await.unwrap().unwrap().revision;
    domain.status = DomainStatus::Failed;
    product.commit(Changes::from_iter([Write::put(domain.clone(), Expect::Revision(revision))])).await;
    // Values of the domain cached by this process expire.
    product.pass(2 * SECOND).await;
    assert_eq!(product.follow(&product.explained(unverified).await).await, "listSendingDomains");
    let revision = product.store.domain(product.workspace, domain.id).await.unwrap().unwrap().revision;
    domain.status = DomainStatus::Verified;
    product.commit(Changes::from_iter([Write::put(domain, Expect::Revision(revision))])).await;
    product.pass(2 * SECOND).await;

    let without = product.send_to(ANN).await;
    let channel = format!("/workspaces/{}/channels/email", product.workspace);
    assert_eq!(bed::send(&product.app, Call::new(&product.caller, Method::DELETE, &channel)).await.summary(), "204");
    product.work().await;
    assert_eq!(product.follow(&product.explained(without).await).await, "listChannels");
}
