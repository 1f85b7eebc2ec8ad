//! The store cannot be written for a while.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::ports::store::StoreHealth;
use messaging_engine::ops::health::GetHealth;
use messaging_engine::work::Workers;
use messaging_engine::{Caller, Error};
use rusqlite::Connection;
use serde_json::json;

use crate::mortal::MortalStore;
use crate::support::Product;

/// Keeps everybody else from writing until it is dropped.
fn lock(product: &Product) -> Connection {
    let foreign = Connection::open(product.directory.path().join("messaging.db")).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    foreign
}

async fn wait_for(product: &Product, wanted: impl Fn(StoreHealth) -> bool) {
    let mut health = product.store.watch_health();
    let waited = tokio::time::timeout(Duration::from_secs(20), health.wait_for(|health| wanted(*health)));
    waited.await.expect("the store does not change").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_known_outcome_waits_for_the_store_and_nothing_is_sent_twice() {
    let product = Arc::new(Product::start().await);
    product.transport.hold();
    let id = product.send_to("ann@example.com").await;
    let working = tokio::spawn({
        let product = Arc::clone(&product);
        async move { product.app.run_until_idle().await }
    });
    product.transport.attempts(1).await;
    let foreign = lock(&product);
    // The outcome is known from now on, and cannot be stored.
    product.transport.release();
    wait_for(&product, |health| health == StoreHealth::Locked).await;

    // No message may be sent, not even one in progress: a transport asks right before MAIL.
    assert!(product.transport.sent()[0].last_look.is_held());
    let email = json!({"channel": "email", "to": "ben@example.com", "subject": "s", "text": "t"});
    let refused = product.post_message(&email, None).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { retry_after: 1.. }), "{refused:?}");
    let health = product.app.run(GetHealth).by(&Caller::Anonymous).await;
    assert!(matches!(health, Err(Error::Unavailable { .. })), "{health:?}");

    drop(foreign);
    // It ends with nothing left to do, or with a claim that was refused while the outcome was waiting.
    let _ = tokio::time::timeout(Duration::from_secs(20), working).await.expect("the outcome is stored").unwrap();
    wait_for(&product, StoreHealth::is_healthy).await;
    product.pass(Duration::from_hours(2)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.transport.sent().len(), 1);
    assert!(!product.transport.sent()[0].last_look.is_held());
    product.app.run(GetHealth).by(&Caller::Anonymous).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_claim_nothing_meanwhile_and_go_on_by_themselves() {
    let product = Product::start().await;
    let id = product.send_to("ann@example.com").await;
    let foreign = lock(&product);
    let email = json!({"channel": "email", "to": "ben@example.com", "subject": "s", "text": "t"});
    product.post_message(&email, None).await.unwrap_err();
    assert_eq!(product.store.health(), StoreHealth::Locked);
    let workers = Workers::start(&product.app, &tokio::runtime::Handle::current());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(product.transport.sent().len(), 0);
    drop(foreign);
    tokio::time::timeout(Duration::from_secs(20), product.transport.attempts(1)).await.expect("work goes on");
    workers.stop().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

/// A store does not know at once that its database is cut off, and jobs find out before it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_read_at_the_beginning_of_an_outage_leaves_soon_after_it() {
    let product = Product::start().await;
    let id = product.send_to("ann@example.com").await;
    let store = MortalStore::immortal(product.store.clone());
    let app = product.another_process_on(store.clone());
    store.cut_off_after_claim();
    // The next claim may fail, too.
    let _ = app.run_until_idle().await;
    assert_eq!((product.transport.sent().len(), product.store.health()), (0, StoreHealth::Healthy));
    store.connect_again();
    product.clock.advance(Duration::from_secs(2));
    app.run_until_idle().await.unwrap();
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

/// A job whose reads fail although the store is healthy is tried again after half a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_healthy_store_cannot_do_is_tried_again_after_half_a_minute() {
    let product = Product::start().await;
    let id = product.send_to("ann@example.com").await;
    let store = MortalStore::immortal(product.store.clone());
    let app = product.another_process_on(store.clone());
    store.read_nothing_after_claim();
    let _ = app.run_until_idle().await;
    store.connect_again();
    product.clock.advance(Duration::from_secs(29));
    app.run_until_idle().await.unwrap();
    assert_eq!(product.transport.sent().len(), 0);
    product.clock.advance(Duration::from_secs(1));
    app.run_until_idle().await.unwrap();
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}
