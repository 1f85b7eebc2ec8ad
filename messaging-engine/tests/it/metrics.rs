//! Counters: each fact is counted once, when it is durable.

use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use messaging_engine::ops::messages::SendMessage;
use messaging_engine::{App, Message};
use serde_json::json;

use crate::support::Product;

const ANN: &str = "ann@example.com";

/// The value of a series, without fractions.
async fn value(app: &App, series: &str) -> u64 {
    let page = app.metrics_page(0).await;
    let found = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("{series}\n{page}"));
    found.split('.').next().unwrap().parse().unwrap()
}

/// The value of a counter of email.
async fn of_email(app: &App, name: &str) -> u64 {
    value(app, &format!("messaging_messages_{name}_total{{channel=\"email\"}}")).await
}

#[tokio::test]
async fn a_message_is_counted_when_it_is_accepted_put_off_sent_and_delivered() {
    let product = Product::start().await;
    let app = &product.app;
    product.transport.answer_next(ANN, "450 4.2.1 greylisted");
    product.send_to(ANN).await;
    assert_eq!((of_email(app, "accepted").await, of_email(app, "sent").await), (1, 0));
    assert_eq!(value(app, "messaging_queue_messages").await, 1);
    product.work().await;
    assert_eq!((of_email(app, "deferred").await, of_email(app, "delivered").await), (1, 0));
    // It waits for its next attempt, and is overdue from then on.
    assert_eq!(value(app, "messaging_queue_overdue_seconds").await, 0);
    product.clock.advance(Duration::from_hours(1));
    assert!(value(app, "messaging_queue_oldest_seconds").await >= 3600);
    assert!((3000..3600).contains(&value(app, "messaging_queue_overdue_seconds").await));
    product.work().await;
    for (name, expected) in [("accepted", 1), ("deferred", 1), ("sent", 1), ("delivered", 1)] {
        assert_eq!(of_email(app, name).await, expected, "{name}");
    }
    assert_eq!(value(app, "messaging_queue_messages").await, 0);
    assert_eq!(value(app, "messaging_queue_overdue_seconds").await, 0);
    product.transport.answer_next(ANN, "550 5.1.1 unknown");
    product.send_to(ANN).await;
    product.work().await;
    let bounced = r#"messaging_messages_bounced_total{channel="email",class="invalid_recipient"}"#;
    assert_eq!((value(app, bounced).await, of_email(app, "sent").await), (1, 1));
}

#[tokio::test]
async fn a_repeated_request_is_not_counted_again() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": ANN, "subject": "s", "text": "t"});
    let (_, replayed) = product.post_message(&body, Some("one")).await.unwrap();
    assert!(!replayed);
    let (_, replayed) = product.post_message(&body, Some("one")).await.unwrap();
    assert!(replayed);
    assert_eq!(of_email(&product.app, "accepted").await, 1);
}

#[tokio::test]
async fn what_was_handed_over_counts_although_its_caller_goes_away() {
    let product = Product::start().await;
    let message = Message::email(ANN).subject("s").text("t");
    let before = value(&product.app, "messaging_commit_wait_seconds_count").await;
    let mut sending = product.app.run(SendMessage).body(message).by(&product.caller).boxed();
    // Until the commit is with the store; a caller that goes away earlier has changed nothing.
    let ends = Instant::now() + Duration::from_mins(1);
    let is_over = loop {
        let is_over = sending.as_mut().now_or_never().is_some();
        if is_over || value(&product.app, "messaging_commit_wait_seconds_count").await > before {
            break is_over;
        }
        assert!(Instant::now() < ends, "nothing was committed");
    };
    drop(sending);
    assert_eq!(of_email(&product.app, "accepted").await, 1, "the caller heard: {is_over}");
}

#[tokio::test]
async fn applications_of_one_process_do_not_count_for_each_other() {
    let (one, other) = (Product::start().await, Product::start().await);
    one.send_to(ANN).await;
    one.work().await;
    assert_eq!((of_email(&one.app, "sent").await, of_email(&other.app, "sent").await), (1, 0));
}
