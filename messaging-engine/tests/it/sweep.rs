//! Housekeeping: retention times of messages, files and other rows.

use std::time::Duration;

use bytes::Bytes;
use messaging_conformance::sample::{campaign, contact};
use messaging_core::changes::{Changes, ContactSends, DocumentKey, Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ports::transport::{Acceptance, Content};
use messaging_engine::work::sweep::sweep;
use messaging_testing::MemoryTransport;
use serde_json::json;

use crate::support::Product;

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn content_and_files_are_kept_for_thirty_days_and_the_story_for_good() {
    let product = Product::start().await;
    let id = product
        .send(&json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
            "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]}))
        .await;
    product.work().await;
    let content = async || {
        let found = product.store.message_with_content(product.workspace, id).await.unwrap().unwrap();
        let files = product.app.blobs().blobs_before(product.app.now(), 10).await.unwrap().len();
        (found.1.is_some(), files)
    };

    product.clock.advance(30 * DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(content().await, (true, 1));
    product.clock.advance(DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(content().await, (false, 0));
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

/// A message that waits for longer than content is kept is sent as it was accepted.
#[tokio::test]
async fn what_a_scheduled_message_needs_is_kept_until_it_goes_out() {
    let product = Product::start().await;
    let templates = format!("/workspaces/{}/templates", product.workspace);
    let template = json!({"name": "Order", "channel": "email", "subject": "Later", "text": "t"});
    let template = product.post(&product.caller, &templates, template).await["id"].as_str().unwrap().to_owned();
    let id = product
        .send(&json!({"channel": "email", "to": "ann@example.com", "template_id": template,
            "send_at": product.app.now() + 60 * DAY,
            "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]}))
        .await;
    product.work().await;
    product.delete(&product.caller, &format!("{templates}/{template}")).await;

    product.clock.advance(59 * DAY);
    sweep(&product.app).await.unwrap();
    assert!(product.transport.take().is_empty(), "it is not due yet");
    product.pass(DAY).await;
    let sent = product.transport.take();
    let Content::Email(email) = &sent[0].content else { panic!("an email") };
    assert_eq!((email.subject.as_str(), email.attachments.len()), ("Later", 1));
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    product.clock.advance(31 * DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(files(&product).await, 0);
}

/// The content of a scheduled message that a provider has accepted is kept until its fallback has been sent.
#[tokio::test]
async fn the_fallback_of_a_scheduled_message_is_sent_although_its_content_is_old() {
    let product = Product::with(MemoryTransport::new(Acceptance::Relayed)).await.on_every_channel().await;
    let id = product
        .send(&json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
            "send_at": product.app.now() + 60 * DAY,
            "attachments": [{"filename": "a.txt", "content_b64": "eA=="}],
            "fallback": [{"channel": "sms", "to": "+14155550123", "text": "t", "after_seconds": 3600}]}))
        .await;
    product.pass(60 * DAY).await;
    assert_eq!(product.story(id).await, "sent: Queued Sent");
    sweep(&product.app).await.unwrap();
    assert_eq!(files(&product).await, 1);
    product.transport.take();
    product.pass(Duration::from_hours(1)).await;
    assert_eq!(product.transport.take().len(), 1);
}

#[tokio::test]
async fn rows_of_removed_campaigns_and_old_sends_go() {
    let product = Product::start().await;
    let (contact, campaign) = (contact(product.workspace), campaign(product.workspace));
    let sends = ContactSends {
        workspace_id: product.workspace,
        contact_id: contact.id,
        channel: Channel::Email,
        times: vec![product.app.now()],
    };
    let writes = [
        Write::put_contact(contact.clone(), Expect::Absent),
        Write::put(sends, Expect::Absent),
        Write::put(Box::new(campaign.clone()), Expect::Absent),
        Write::Delete(DocumentKey::Campaign(product.workspace, campaign.id)),
    ];
    product.commit(Changes::from_iter(writes)).await;
    let sends = async || product.store.contact_sends(product.workspace, contact.id, Channel::Email).await.unwrap();
    product.clock.advance(6 * DAY);
    sweep(&product.app).await.unwrap();
    assert!(sends().await.is_some());
    // The id is free again once nothing of the campaign is left.
    product.commit(Changes::from_iter([Write::put(Box::new(campaign), Expect::Absent)])).await;
    product.clock.advance(2 * DAY);
    sweep(&product.app).await.unwrap();
    assert_eq!(sends().await, None);
}

#[tokio::test]
async fn a_forgotten_reply_frees_its_key() {
    let product = Product::start().await;
    let email = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    let (first, _) = product.post_message(&email, Some("k")).await.unwrap();
    sweep(&product.app).await.unwrap();
    assert!(product.post_message(&email, Some("k")).await.unwrap().1, "it is kept for a day");
    product.clock.advance(DAY);
    sweep(&product.app).await.unwrap();
    let (second, replayed) = product.post_message(&email, Some("k")).await.unwrap();
    assert!(!replayed && second != first);
}

/// A crash after the file was written and before the commit that names it.
#[tokio::test]
async fn a_file_that_no_commit_came_to_name_goes_after_an_hour() {
    let product = Product::start().await;
    let sent = product.send(&with_file()).await;
    let now = product.app.now();
    let left = MessageBlob {
        workspace_id: product.workspace,
        message_id: product.app.new_id(now),
        id: product.app.new_id(now),
    };
    product.app.blobs().put_blob(left, Bytes::from_static(b"x")).await.unwrap();
    let is_there = async || product.app.blobs().blob(product.workspace, left.id).await.unwrap().is_some();

    product.clock.advance(Duration::from_mins(59));
    sweep(&product.app).await.unwrap();
    assert!(is_there().await, "its commit may be under way");
    product.clock.advance(Duration::from_mins(2));
    sweep(&product.app).await.unwrap();
    assert!(!is_there().await);
    assert_eq!(files(&product).await, 1, "what a message names stays");
    product.work().await;
    assert_eq!(product.story(sent).await, "delivered: Queued Sent Delivered");
}

/// A message with a file, sent under a key.
fn with_file() -> serde_json::Value {
    json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
        "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]})
}

async fn files(product: &Product) -> usize {
    let all_time = product.app.now() + Duration::from_hours(24 * 365);
    assert_eq!(product.app.blobs().pending_blobs(all_time, 1000).await.unwrap(), [], "nothing waits to be kept");
    product.app.blobs().blobs_before(all_time, 1000).await.unwrap().len()
}

#[tokio::test]
async fn a_repeated_request_stores_no_file_again() {
    let product = Product::start().await;
    let (first, _) = product.post_message(&with_file(), Some("k")).await.unwrap();
    assert_eq!(files(&product).await, 1);
    let again = product.post_message(&with_file(), Some("k")).await.unwrap();
    assert_eq!(again, (first, true));
    let mut other = with_file();
    other["subject"] = json!("other");
    assert_eq!(product.post_message(&other, Some("k")).await.unwrap_err().code(), "idempotency_key_reused");
    assert_eq!(files(&product).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_loses_against_another_process_leaves_no_file() {
    const ROUNDS: usize = 30;
    let product = std::sync::Arc::new(Product::start().await);
    let beside = product.another_process();
    for round in 0..ROUNDS {
        let key = format!("k{round}");
        let send = |app: &messaging_engine::App| {
            let (product, app, key) = (std::sync::Arc::clone(&product), app.clone(), key.clone());
            tokio::spawn(async move { product.post_message_through(&app, &with_file(), Some(&key)).await })
        };
        let (one, other) = (send(&product.app), send(&beside));
        let (one, other) = (one.await.unwrap().unwrap(), other.await.unwrap().unwrap());
        assert_eq!(one.0, other.0);
        assert!(one.1 != other.1, "one of them is a repetition");
    }
    assert_eq!(files(&product).await, ROUNDS);
}
