//! Attempts as the API shows them, and the return addresses and lost replies of attempts.

use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::{Action, RecipientReport, Report};
use messaging_core::ports::transport::{Content, Outcome, Response};
use serde_json::json;

use crate::support::Product;

const ANN: &str = "ann@example.com";

fn dialog(outcome: AttemptOutcome, reply: &str) -> Dialog {
    Dialog {
        mx: Some("mx.example.com".to_owned()),
        remote_addr: Some("192.0.2.1:25".to_owned()),
        tls: None,
        tls_failure: None,
        source: None,
        outcome,
        transcript: vec![format!("> RCPT TO:<{ANN}>"), reply.to_owned()],
    }
}

#[tokio::test]
async fn attempts_are_shown_newest_first_and_masked_for_whoever_must_not_see_addresses() {
    let product = Product::start().await;
    product.transport.answer_next(ANN, "450 4.2.1 later");
    product.transport.speak_next(dialog(AttemptOutcome::Deferred, "< 450 4.2.1 later"));
    product.transport.speak_next(dialog(AttemptOutcome::Delivered, "< 250 ok"));
    let id = product.send_to(ANN).await;
    product.work().await;
    product.pass(Duration::from_mins(1)).await;

    let page = product.attempts(id, "messages:send,pii:read").await;
    insta::assert_json_snapshot!(page, @r#"
    {
      "data": [
        {
          "at": "2026-01-31T09:16:00.000Z",
          "attempt": 2,
          "mx": "mx.example.com",
          "outcome": "delivered",
          "remote_addr": "192.0.2.1:25",
          "tls": null,
          "transcript": [
            "> RCPT TO:<ann@example.com>",
            "< 250 ok"
          ]
        },
        {
          "at": "2026-01-31T09:15:00.000Z",
          "attempt": 1,
          "mx": "mx.example.com",
          "outcome": "deferred",
          "remote_addr": "192.0.2.1:25",
          "tls": null,
          "transcript": [
            "> RCPT TO:<ann@example.com>",
            "< 450 4.2.1 later"
          ]
        }
      ],
      "next_cursor": null
    }
    "#);
    let masked = product.attempts(id, "messages:send").await;
    assert_eq!(masked["data"][0]["transcript"][0], "> RCPT TO:<a***@example.com>");

    product.pass(Duration::from_hours(31 * 24)).await;
    messaging_engine::work::sweep::sweep(&product.app).await.unwrap();
    assert_eq!(product.attempts(id, "messages:send").await, json!({"data": [], "next_cursor": null}));
}

#[tokio::test]
async fn bounces_come_back_to_an_address_that_names_the_message() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    product.work().await;
    let Content::Email(email) = product.transport.take().remove(0).content else { panic!("an email was sent") };
    let sender = email.envelope_from.of(0).unwrap();
    assert_eq!(sender.ascii_domain(), "bounce.sandbox.test");
    let read = product.app.link_key().read_local_part(product.workspace, sender.local());
    assert_eq!(read, Some((ReturnPurpose::Bounce, id, Some(product.app.link_key().recipient_tag(id, ANN)))));
}

#[tokio::test]
async fn a_lost_reply_of_one_recipient_makes_its_attempt_ambiguous() {
    let product = Product::start().await;
    product.transport.outcome_next(ANN, Outcome::ambiguous(Response::default()));
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    assert_eq!(product.last_meta(id).await["ambiguous"], json!(true));
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
    assert_eq!(product.last_meta(id).await.get("ambiguous"), None);
}

#[tokio::test]
async fn a_bounce_that_comes_after_a_lost_reply_ends_the_attempts() {
    let product = Product::start().await;
    product.transport.outcome_next(ANN, Outcome::ambiguous(Response::default()));
    let id = product.send_to(ANN).await;
    product.work().await;
    let address = product.app.link_key().local_part(ReturnPurpose::Bounce, product.workspace, id, None);
    let address = product.app.return_address(&format!("{address}@bounce.sandbox.test")).await.unwrap().unwrap();
    let full = Response { code: Some(552), enhanced: Some("5.2.2".to_owned()), ..Response::default() };
    let report = RecipientReport { addresses: Vec::new(), action: Action::Failed, response: full };
    product.app.receive(&address, &Report::Delivery(vec![report])).await.unwrap();
    assert_eq!(product.story(id).await, "bounced: Queued Deferred Bounce");
    product.pass(Duration::from_hours(80)).await;
    assert_eq!(product.story(id).await, "bounced: Queued Deferred Bounce");
    assert_eq!(product.transport.sent().len(), 1);
}

#[tokio::test]
async fn the_last_look_sees_who_was_suppressed_meanwhile() {
    let product = Product::start().await;
    let id = product.send_to(ANN).await;
    product.work().await;
    let look = product.transport.take().remove(0).last_look;
    let recipients = ["Ann@Example.com".to_owned(), "bob@example.com".to_owned()];
    assert_eq!(look.suppressed(&recipients).await, [None, None]);
    product.commit(Changes::from_iter([product.suppression(ANN, SuppressionReason::Manual)])).await;
    assert_eq!(look.suppressed(&recipients).await, [Some(SuppressionReason::Manual), None]);

    product.transport.outcome_next("bob@example.com", Outcome::Suppressed(SuppressionReason::Complaint));
    let withheld = product.send_to("bob@example.com").await;
    product.work().await;
    assert_eq!(product.story(withheld).await, "suppressed: Queued Suppressed");
    assert_eq!(product.last_meta(withheld).await["reason"], "complaint");
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}
