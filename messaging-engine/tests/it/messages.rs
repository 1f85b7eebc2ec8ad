//! `POST /messages` and its idempotency: contract sections 1.7 and 4.1.

use std::sync::Arc;
use std::time::Duration;

use messaging_engine::Error;
use messaging_engine::ops::channels::DeleteChannel;
use messaging_engine::ops::messages::{ListMessages, MessageQuery};
use serde_json::{Value, json};

use crate::support::Product;

fn email() -> Value {
    json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"})
}

fn with(member: &str, value: Value) -> Value {
    let mut body = email();
    body[member] = value;
    body
}

#[track_caller]
fn code(result: Result<(Value, bool), Error>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(Error::Validation(violations)) => serde_json::to_value(violations.as_slice())
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", "),
        Err(error) => error.code().to_owned(),
    }
}

#[tokio::test]
async fn what_the_request_names_must_exist() {
    let product = Product::start().await;
    for (body, expected) in [
        (email(), "ok"),
        (with("template_id", json!("tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH")), "/template_id not_found"),
        (with("contact_id", json!("nonsense")), "/contact_id not_found"),
        (with("sending_domain_id", json!("dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH")), "/sending_domain_id not_found"),
        (with("from_email", json!("a@elsewhere.com")), "sender_domain_not_verified"),
        (with("from_email", json!("a@eu.sandbox.test")), "ok"),
        (json!({"channel": "sms", "to": "+14155550123", "text": "t"}), "channel_not_configured"),
        // Field errors come before the specific codes, and all at once.
        (
            json!({"channel": "email", "to": "nobody", "subject": "s", "text": "t", "from_email": "a@elsewhere.com",
                   "template_id": "tpl_x", "cc": [1]}),
            "/cc/0 invalid_type, /to invalid_format, /template_id not_found",
        ),
    ] {
        assert_eq!(code(product.post_message(&body, None).await), expected, "{body}");
    }
}

#[tokio::test]
async fn a_refused_message_leaves_nothing() {
    let product = Product::start().await;
    product.post_message(&with("to", json!("nobody")), Some("k")).await.unwrap_err();
    product.post_message(&with("from_email", json!("a@elsewhere.com")), None).await.unwrap_err();
    let query = MessageQuery::default();
    let page = product.app.run(ListMessages).query(query).by(&product.caller).await.unwrap();
    assert!(page.data.is_empty());
    assert_eq!(messaging_core::ports::store::Jobs::job_count(&*product.store).await.unwrap(), 0);
}

#[tokio::test]
async fn a_repeated_key_replays_the_first_answer() {
    let product = Product::start().await;
    let (first, replayed) = product.post_message(&email(), Some("k1")).await.unwrap();
    assert!(!replayed);
    let reordered: Value =
        serde_json::from_str(r#"{ "text":"t", "subject":"s", "to":"ann@example.com", "channel":"email" }"#).unwrap();
    for body in [email(), reordered] {
        let (again, replayed) = product.post_message(&body, Some("k1")).await.unwrap();
        assert_eq!((again, replayed), (first.clone(), true));
    }
    product.work().await;
    assert_eq!(product.transport.sent().len(), 1);
    // Quotes around the key are not part of it.
    assert!(product.post_message(&email(), Some("\"k1\"")).await.unwrap().1);
    let (other, replayed) = product.post_message(&email(), Some("k2")).await.unwrap();
    assert!(!replayed && other != first);
}

#[tokio::test]
async fn a_key_belongs_to_its_request() {
    let product = Product::start().await;
    product.post_message(&email(), Some("k")).await.unwrap();
    assert_eq!(code(product.post_message(&with("subject", json!("other")), Some("k")).await), "idempotency_key_reused");
    // The key is checked before the body's meaning.
    assert_eq!(code(product.post_message(&with("to", json!("nobody")), Some("k")).await), "idempotency_key_reused");
    assert_eq!(code(product.post_message(&email(), Some("ü")).await), "invalid_idempotency_key");
}

#[tokio::test]
async fn a_refusal_leaves_the_key_free() {
    let product = Product::start().await;
    product.post_message(&with("to", json!("nobody")), Some("k")).await.unwrap_err();
    assert!(!product.post_message(&email(), Some("k")).await.unwrap().1);
}

#[tokio::test]
async fn a_key_is_forgotten_after_a_day() {
    let product = Product::start().await;
    let (first, _) = product.post_message(&email(), Some("k")).await.unwrap();
    product.clock.advance(Duration::from_hours(24) - Duration::from_millis(1));
    assert!(product.post_message(&email(), Some("k")).await.unwrap().1);
    product.clock.advance(Duration::from_millis(1));
    let (second, replayed) = product.post_message(&email(), Some("k")).await.unwrap();
    assert!(!replayed && second != first);
}

#[tokio::test]
async fn a_replay_goes_before_what_changed_since() {
    let product = Product::start().await;
    let (first, _) = product.post_message(&email(), Some("k")).await.unwrap();
    let path = serde_json::from_value(json!({"workspace_id": product.workspace, "channel": "email"})).unwrap();
    product.app.run(DeleteChannel).path(path).by(&product.caller).await.unwrap();
    assert_eq!(code(product.post_message(&email(), None).await), "channel_not_configured");
    assert_eq!(product.post_message(&email(), Some("k")).await.unwrap(), (first, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_requests_with_one_key_make_one_message() {
    let product = Arc::new(Product::start().await);
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let product = Arc::clone(&product);
            tokio::spawn(async move { product.post_message(&email(), Some("same")).await })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for request in requests {
        match request.await.unwrap() {
            Ok((answer, _)) => {
                ids.insert(answer["message_id"].as_str().unwrap().to_owned());
            }
            Err(error) => assert_eq!(error.code(), "idempotency_in_progress"),
        }
    }
    assert_eq!(ids.len(), 1);
    product.work().await;
    assert_eq!(product.transport.sent().len(), 1);
}

#[tokio::test]
async fn listings_page_and_refuse_foreign_cursors() {
    let product = Product::start().await;
    let mut sent = Vec::new();
    for n in 0..5 {
        sent.push(product.send(&with("tags", json!([if n % 2 == 0 { "even" } else { "odd" }]))).await);
    }
    sent.reverse();
    let list = async |query: MessageQuery| product.app.run(ListMessages).query(query).by(&product.caller).await;
    let first = list(MessageQuery::new().limit(3)).await.unwrap();
    let ids: Vec<_> = first.data.iter().map(|one| one.message_id).collect();
    assert_eq!(ids, sent[..3]);
    let cursor = first.next_cursor.unwrap();
    let next = MessageQuery::new().limit(3).cursor(cursor.clone());
    let second = list(next).await.unwrap();
    let ids: Vec<_> = second.data.iter().map(|one| one.message_id).collect();
    assert_eq!((ids.as_slice(), second.next_cursor), (&sent[3..], None));

    let even = list(MessageQuery::new().tag("even")).await.unwrap();
    assert_eq!(even.data.len(), 3);
    let foreign = MessageQuery::new().tag("odd").cursor(cursor);
    assert!(matches!(list(foreign).await, Err(Error::InvalidCursor)));
    let nonsense = MessageQuery::new().cursor("nonsense");
    assert!(matches!(list(nonsense).await, Err(Error::InvalidCursor)));
}

#[tokio::test]
async fn a_full_or_closed_store_answers_unavailable() {
    let product = Product::start().await;
    product.store.close().await;
    assert_eq!(code(product.post_message(&email(), Some("k")).await), "unavailable");
}
