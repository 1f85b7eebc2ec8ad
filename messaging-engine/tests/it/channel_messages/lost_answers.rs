//! Messages with an unknown outcome: answers that are lost or are not the provider's, and attempts that the end of the
//! process cut off.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::ReceiptLink;
use messaging_core::ports::transport::{Acceptance, Answer, Outcome, OutcomeClass, Response};
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use super::{PHONE, SECOND, message};
use crate::support::Product;

/// Time after which claims no longer count, as after a restart.
const LEASE: Duration = Duration::from_hours(1);

/// A success whose body is not the provider's.
fn unreadable() -> Outcome {
    let text = "HTTP 200: the answer cannot be read: <html>Welcome";
    Outcome::ambiguous(Response { code: Some(200), ..Response::of_text(text) })
}

impl Product {
    async fn text(&self) -> MessageId {
        self.send(&message(Channel::Sms, json!({}))).await
    }

    /// Status and error of the channel of text messages.
    async fn sms_channel(&self) -> (Value, Value) {
        let channels = self.get(&self.caller, &format!("/workspaces/{}/channels", self.workspace)).await;
        let sms = channels["data"].as_array().unwrap().iter().find(|one| one["channel"] == "sms").unwrap();
        (sms["status"].clone(), sms["error"].clone())
    }

    /// A message whose attempt was cut off by the end of the process, in the state that the next one finds.
    async fn cut_off(&self) -> MessageId {
        self.transport.hold();
        let id = self.text().await;
        let app = self.app.clone();
        let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
        self.transport.attempts(1).await;
        working.abort();
        working.await.unwrap_err();
        self.transport.release();
        assert_eq!(self.story(id).await, "sending: Queued");
        self.pass(LEASE).await;
        id
    }
}

#[tokio::test]
async fn no_more_than_three_copies_leave_whose_answers_are_lost_or_cannot_be_read() {
    for lost in [unreadable(), Outcome::ambiguous(Response::of_text("lost"))] {
        let product = Product::start().await.on_every_channel().await;
        for _ in 0..4 {
            product.transport.outcome_next(PHONE, lost.clone());
        }
        let id = product.text().await;
        for _ in 0..60 {
            product.pass(60 * SECOND).await;
        }
        assert_eq!(product.transport.sent().len(), 3);
        assert_eq!(product.story(id).await, "sent: Queued Deferred Deferred Sent");
        assert_eq!(product.last_meta(id).await["ambiguous"], true);
    }
}

#[tokio::test]
async fn a_channel_whose_answers_cannot_be_read_is_failing_until_one_can() {
    let product = Product::start().await.on_every_channel().await;
    for number in 0..10 {
        assert_eq!(product.sms_channel().await, (json!("active"), Value::Null), "{number}");
        product.transport.outcome_next(PHONE, unreadable());
        product.text().await;
        product.work().await;
    }
    let error = "HTTP 200: the answer cannot be read: <html>Welcome";
    assert_eq!(product.sms_channel().await, (json!("failing"), json!(error)));
    product.text().await;
    product.work().await;
    assert_eq!(product.sms_channel().await, (json!("active"), Value::Null));
}

#[tokio::test]
async fn an_attempt_that_was_cut_off_is_not_repeated_while_a_receipt_may_settle_it() {
    let product =
        Product::with(MemoryTransport::default().whose_receipts_name_messages()).await.on_every_channel().await;
    let id = product.cut_off().await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    assert_eq!(product.last_meta(id).await["ambiguous"], true);
    product.pass(59 * SECOND).await;
    assert_eq!(product.transport.sent().len(), 1);
    product.pass(SECOND).await;
    assert_eq!(product.transport.sent().len(), 2);
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
    let report = product.report(id).await;
    assert_eq!(report.events[2].meta["ambiguous"], true);
    assert_eq!(product.app.ambiguous_attempts(), 1);
}

#[tokio::test]
async fn a_receipt_settles_an_attempt_that_was_cut_off() {
    let product =
        Product::with(MemoryTransport::default().whose_receipts_name_messages()).await.on_every_channel().await;
    let id = product.cut_off().await;
    let link = ReceiptLink::Message { workspace_id: product.workspace, message_id: id };
    let delivered = OutcomeClass::Accepted(Acceptance::Delivered);
    let receipt = Receipt::Outcome(Answer::new(delivered, Response::of_text("said so")));
    product.app.receive_receipt(&link, &receipt).await.unwrap();
    product.pass(LEASE).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
    assert_eq!(product.transport.sent().len(), 1, "no second copy");
}

#[tokio::test]
async fn an_attempt_that_was_cut_off_is_repeated_at_once_where_nothing_can_settle_it() {
    let product = Product::start().await.on_every_channel().await;
    let id = product.cut_off().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.transport.sent().len(), 2);
    assert_eq!(product.report(id).await.events[1].meta["ambiguous"], true);
}
