//! Reports that come back by mail, and their effects on the message.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::{Action, RecipientReport, Report};
use messaging_core::domain::mail::sending_domain::{DomainStatus, SendingDomain};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::inbound::ReturnAddress;
use messaging_core::ports::transport::Response;
use messaging_core::time::Timestamp;
use messaging_testing::MemoryTransport;
use serde_json::json;

use crate::support::Product;

const TO: &str = "ann@example.com";

impl Product {
    /// The return address of a message.
    pub(crate) fn return_to(&self, purpose: ReturnPurpose, message: MessageId) -> String {
        format!("{}@bounce.sandbox.test", self.app.link_key().local_part(purpose, self.workspace, message, None))
    }

    pub(crate) async fn listed(&self, address: &str) -> Option<Suppression> {
        let asked = [address.to_owned()];
        let found = self.store.suppressed(self.workspace, Channel::Email, &asked).await.unwrap();
        found.into_iter().next().map(|stored| stored.record)
    }

    async fn streak(&self, address: &str) -> u32 {
        self.store.soft_bounces(self.workspace, Channel::Email, address).await.unwrap().length
    }

    async fn receive(&self, message: MessageId, report: &Report) {
        let (workspace_id, purpose) = (self.workspace, ReturnPurpose::Bounce);
        let to = ReturnAddress { workspace_id, message_id: message, purpose, recipient: None };
        self.app.receive(&to, report).await.unwrap();
    }
}

fn report(address: &str, action: Action, code: u16, enhanced: &str) -> Report {
    let response =
        Response { code: Some(code), enhanced: Some(enhanced.to_owned()), text: "the reason".to_owned(), host: None };
    Report::Delivery(vec![RecipientReport { addresses: vec![address.to_owned()], action, response }])
}

#[tokio::test]
async fn return_addresses_are_known_and_nothing_else_is() {
    let product = Product::start().await;
    let message = product.send_to(TO).await;
    for purpose in ReturnPurpose::ALL {
        let address = product.return_to(purpose, message);
        let workspace_id = product.workspace;
        let expected = ReturnAddress { workspace_id, message_id: message, purpose, recipient: None };
        for spelled in [address.clone(), address.to_uppercase(), format!("{address}.")] {
            assert_eq!(product.app.return_address(&spelled).await.unwrap(), Some(expected), "{spelled}");
        }
        let local = address.split('@').next().unwrap();
        for bad in [
            format!("{local}@sandbox.test"),
            format!("{local}@bounce.example.test"),
            format!("{local}@bounces.sandbox.test"),
            format!("{local}@bounce.bounce.sandbox.test"),
            format!("x{local}@bounce.sandbox.test"),
            format!("{local}0@bounce.sandbox.test"),
            format!("{}@bounce.sandbox.test", &local[..local.len() - 1]),
            local.to_owned(),
            format!("{local}@"),
            "@bounce.sandbox.test".to_owned(),
            "postmaster@bounce.sandbox.test".to_owned(),
            String::new(),
        ] {
            assert_eq!(product.app.return_address(&bad).await.unwrap(), None, "{bad}");
        }
    }
}

impl Product {
    /// Adds sending domains of this name to `count` further workspaces.
    pub(crate) async fn claim_elsewhere(&self, name: &str, count: usize, verified_at: Option<Timestamp>) {
        let now = self.app.now();
        let claim = |number: u8| {
            // Before and after the workspace of the product, in whatever order they are read.
            let mut bytes = [if number.is_multiple_of(2) { 0 } else { 0x70 }; 16];
            bytes[15] = number;
            let domain = SendingDomain::new(self.app.new_id(now), WorkspaceId::from_bytes(bytes), name, now);
            let status = if verified_at.is_some() { DomainStatus::Verified } else { DomainStatus::Pending };
            Write::put(SendingDomain { status, verified_at, ..domain }, Expect::Absent)
        };
        let count = u8::try_from(count).unwrap();
        self.commit((0..count).map(claim).collect()).await;
    }
}

#[tokio::test]
async fn a_return_address_finds_its_workspace_among_all_that_name_the_domain() {
    // Domains of other workspaces that are only claimed, and ones that are verified as well.
    for verified_at in [None, Some(Timestamp::from_millis(1))] {
        let product = Product::start().await;
        let message = product.send_to(TO).await;
        product.claim_elsewhere("sandbox.test", 250, verified_at).await;
        for purpose in ReturnPurpose::ALL {
            let found = product.app.return_address(&product.return_to(purpose, message)).await.unwrap();
            assert_eq!(found.map(|found| (found.workspace_id, found.message_id)), Some((product.workspace, message)));
        }
    }
}

#[tokio::test]
async fn a_bounce_after_delivery_moves_the_message_and_suppresses() {
    let product = Product::start().await;
    let message = product.send_to(TO).await;
    product.work().await;
    let bounce = report(TO, Action::Failed, 550, "5.1.1");
    product.receive(message, &bounce).await;
    product.receive(message, &bounce).await;
    assert_eq!(product.story(message).await, "bounced: Queued Sent Delivered Bounce");
    assert_eq!(
        product.last_meta(message).await,
        json!({
            "recipient": TO, "bounce_type": "hard", "bounce_class": "invalid_recipient", "smtp_code": 550,
            "enhanced_code": "5.1.1", "response": "the reason",
        })
    );
    assert_eq!(product.listed(TO).await.unwrap().reason, SuppressionReason::Bounce);
    // A late report of delivery does not undo the bounce.
    product.receive(message, &report(TO, Action::Delivered, 250, "2.1.5")).await;
    assert_eq!(product.story(message).await, "bounced: Queued Sent Delivered Bounce");
}

#[tokio::test]
async fn the_same_report_twice_at_once_has_one_effect() {
    let product = Product::start().await;
    let message = product.send_to(TO).await;
    product.work().await;
    let policy = report(TO, Action::Failed, 550, "5.7.1");
    tokio::join!(
        product.receive(message, &policy),
        product.receive(message, &policy),
        product.receive(message, &policy)
    );
    assert_eq!(product.story(message).await, "bounced: Queued Sent Delivered Bounce");
    let second = product.send_to(TO).await;
    product.work().await;
    let delay = report(TO, Action::Delayed, 450, "4.2.1");
    tokio::join!(product.receive(second, &delay), product.receive(second, &delay));
    assert_eq!(product.story(second).await, "delivered: Queued Sent Delivered Deferred");
}

#[tokio::test]
async fn a_relayed_message_is_delivered_by_report() {
    use messaging_core::ports::transport::Acceptance;
    let product = Product::with(MemoryTransport::new(Acceptance::Relayed)).await;
    let message = product.send_to(TO).await;
    product.work().await;
    product.receive(message, &report(TO, Action::Delivered, 250, "2.1.5")).await;
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.last_meta(message).await, json!({"recipient": TO, "smtp_code": 250, "response": "the reason"}));
}

#[tokio::test]
async fn five_soft_bounces_in_a_row_suppress() {
    let product = Product::start().await;
    product.transport.answer(TO, "552 5.2.2 mailbox full");
    for bounces in 1..=4 {
        product.send_to(TO).await;
        product.work().await;
        assert_eq!((product.streak(TO).await, product.listed(TO).await), (bounces, None));
    }
    // The fifth bounce comes back by mail.
    product.transport.answer(TO, "250 2.0.0 queued");
    let other = product.send_to("bob@example.com").await;
    product.work().await;
    assert_eq!(product.streak(TO).await, 4);
    product.transport.answer(TO, "552 5.2.2 mailbox full");
    let message = product.send_to(TO).await;
    product.work().await;
    let record = product.listed(TO).await.unwrap();
    assert_eq!((record.reason, record.detail.as_deref()), (SuppressionReason::Bounce, Some("soft_bounce_limit")));
    assert_eq!(product.streak(TO).await, 0);
    // The same bounce, also reported by mail, does not begin another streak.
    product.receive(message, &report(TO, Action::Failed, 552, "5.2.2")).await;
    assert_eq!(product.streak(TO).await, 0);
    assert_eq!(product.listed("bob@example.com").await, None);
    assert_eq!(product.story(other).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn soft_bounces_come_back_by_mail_too_and_a_delivery_ends_the_streak() {
    use messaging_core::ports::transport::Acceptance;
    let product = Product::with(MemoryTransport::new(Acceptance::Relayed)).await;
    let send = async || {
        let message = product.send_to("Ann@example.com").await;
        product.work().await;
        message
    };
    for _ in 0..4 {
        product.receive(send().await, &report(TO, Action::Failed, 550, "4.4.7")).await;
    }
    assert_eq!(product.streak(TO).await, 4);
    // A message handed to a relay is not delivered.
    let message = send().await;
    assert_eq!(product.streak(TO).await, 4);
    product.receive(message, &report(TO, Action::Delivered, 250, "2.1.5")).await;
    assert_eq!(product.streak(TO).await, 0);
    for _ in 0..5 {
        product.receive(send().await, &report(TO, Action::Failed, 554, "5.7.1")).await;
        product.receive(send().await, &report(TO, Action::Failed, 552, "5.3.4")).await;
    }
    assert_eq!((product.streak(TO).await, product.listed(TO).await), (0, None));
    for _ in 0..5 {
        product.receive(send().await, &report(TO, Action::Failed, 450, "4.2.2")).await;
    }
    assert_eq!(product.listed(TO).await.unwrap().detail.as_deref(), Some("soft_bounce_limit"));
}

#[tokio::test]
async fn only_the_copy_that_bounced_is_suppressed() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": TO, "cc": ["boss@example.com"], "bcc": ["eve@example.com"],
        "subject": "s", "text": "t"});
    let message = product.send(&body).await;
    product.work().await;
    product.receive(message, &report("eve@example.com", Action::Failed, 550, "5.1.1")).await;
    assert_eq!(product.last_meta(message).await["recipient"], "eve@example.com");
    assert_eq!(product.report(message).await.status.as_str(), "delivered");
    assert!(product.listed("eve@example.com").await.is_some());
    assert_eq!((product.listed(TO).await, product.listed("boss@example.com").await), (None, None));
    let events = product.report(message).await.events.len();
    product.receive(message, &report("nobody@example.com", Action::Failed, 550, "5.1.1")).await;
    assert_eq!(product.report(message).await.events.len(), events);
}
