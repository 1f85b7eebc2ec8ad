//! Messages that must be sent over TLS: contract section 14.4.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::delivery::attempt::{AttemptOutcome, AttemptTls, Dialog, TlsVerification};
use messaging_core::domain::message::MessageStatus;
use messaging_core::ports::transport::{Outcome, OutcomeClass, Response};
use serde_json::json;

use crate::support::Product;

const ANN: &str = "ann@example.com";

fn no_tls() -> Outcome {
    let response = Response { enhanced: Some("4.7.10".to_owned()), ..Response::of_text("mx.test speaks no TLS") };
    Outcome::of(OutcomeClass::TlsRequired, response)
}

#[tokio::test]
async fn the_domain_of_the_sender_asks_for_tls() {
    let product = Product::start().await;
    product.send_to(ANN).await;
    product.work().await;
    let stored = product.store.domain_by_name(product.workspace, "sandbox.test").await.unwrap().unwrap();
    let mut domain = stored.record;
    domain.require_tls = true;
    product.commit(Changes::from_iter([Write::put(domain, Expect::Revision(stored.revision))])).await;
    product.pass(Duration::from_secs(2)).await;
    product.send_to(ANN).await;
    product.work().await;
    let asked: Vec<_> = product.transport.sent().iter().map(|outgoing| outgoing.options.require_tls).collect();
    assert_eq!(asked, [false, true]);
}

#[tokio::test]
async fn a_message_without_its_tls_waits_and_is_sent_when_there_is_some() {
    let product = Product::start().await;
    product.transport.outcome_next(ANN, no_tls());
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(id).await, "deferred: Queued Deferred");
    insta::assert_json_snapshot!(product.last_meta(id).await, @r#"
    {
      "attempt": 1,
      "code": "tls_required",
      "enhanced_code": "4.7.10",
      "next_attempt_at": "2026-01-31T09:16:00.000Z",
      "recipient": "ann@example.com",
      "response": "mx.test speaks no TLS"
    }
    "#);
    assert_eq!(product.report(id).await.explanation.code, "tls_required");
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Deferred Sent Delivered");
}

#[tokio::test]
async fn a_message_that_expires_without_its_tls_fails_and_counts_for_no_address() {
    let product = Product::start().await;
    for _ in 0..50 {
        product.transport.outcome_next(ANN, no_tls());
    }
    let id = product.send_to(ANN).await;
    product.work().await;
    for _ in 0..40 {
        product.pass(Duration::from_hours(2)).await;
    }
    assert_eq!(product.report(id).await.status, MessageStatus::Failed);
    let meta = product.last_meta(id).await;
    assert_eq!((&meta["reason"], &meta["recipient"]), (&json!("tls_required"), &json!(ANN)));
    assert!(meta["message"].as_str().unwrap().contains("mx.test speaks no TLS"), "{meta}");
    assert_eq!(product.report(id).await.explanation.code, "tls_required");
}

#[tokio::test]
async fn attempts_show_version_cipher_and_verification() {
    let product = Product::start().await;
    product.transport.speak_next(Dialog {
        mx: Some("mx.example.com".to_owned()),
        remote_addr: Some("192.0.2.1:25".to_owned()),
        tls: Some(AttemptTls {
            version: "TLSv1.3".to_owned(),
            cipher: Some("TLS_AES_256_GCM_SHA384".to_owned()),
            verified: TlsVerification::MtaSts,
        }),
        tls_failure: None,
        source: None,
        outcome: AttemptOutcome::Delivered,
        transcript: Vec::new(),
    });
    let id = product.send_to(ANN).await;
    product.work().await;
    let page = product.attempts(id, "messages:send").await;
    assert_eq!(
        page["data"][0]["tls"],
        json!({"version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "verified": "mta_sts"})
    );
}
