//! Unsubscribing: it takes effect once, by any method and however often it is repeated.

use messaging_core::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod::{Link, Mailto, OneClick};
use messaging_core::domain::channel::Channel;
use messaging_engine::Error;

use crate::support::Product;

#[tokio::test]
async fn unsubscribing_suppresses_and_tells_once() {
    let product = Product::start().await;
    let message = product.send_to("Ann@Example.com").await;
    product.work().await;
    assert!(product.app.unsubscribe(product.workspace, message, OneClick).await.unwrap());
    assert!(!product.app.unsubscribe(product.workspace, message, OneClick).await.unwrap());
    assert!(!product.app.unsubscribe(product.workspace, message, Link).await.unwrap());
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered Unsubscribe");
    assert_eq!(product.last_meta(message).await, serde_json::json!({"method": "one_click"}));

    let asked = ["ann@example.com".to_owned()];
    let listed = product.store.suppressed(product.workspace, Channel::Email, &asked).await.unwrap();
    let record = &listed[0].record;
    assert_eq!((record.reason, record.source), (SuppressionReason::Unsubscribe, SuppressionSource::Recipient));

    // Another message to the same address has a separate event; the suppression stays unchanged.
    let second = product.send_to("ann@example.com").await;
    product.work().await;
    assert!(product.app.unsubscribe(product.workspace, second, Mailto).await.unwrap());
    assert_eq!(product.last_meta(second).await, serde_json::json!({"method": "mailto"}));
    assert_eq!(product.store.suppressed(product.workspace, Channel::Email, &asked).await.unwrap(), listed);
}

#[tokio::test]
async fn two_requests_at_once_have_one_effect() {
    let product = Product::start().await;
    let message = product.send_to("ann@example.com").await;
    product.work().await;
    let ask = || product.app.unsubscribe(product.workspace, message, OneClick);
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    let effects = [one, two, three].map(Result::unwrap).iter().filter(|changed| **changed).count();
    assert_eq!(effects, 1);
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered Unsubscribe");
}

#[tokio::test]
async fn a_message_of_another_workspace_is_not_there() {
    let product = Product::start().await;
    let message = product.send_to("ann@example.com").await;
    let elsewhere = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let refused = product.app.unsubscribe(elsewhere, message, Link).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound));
}
