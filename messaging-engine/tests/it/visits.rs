//! Opens and clicks: the recorded events, and which visitors count as machines.

use std::time::Duration;

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::mail::link_token::{Link, LinkKey, UrlKey};
use messaging_core::ids::MessageId;
use messaging_engine::App;
use messaging_engine::services::{Click, Visitor};
use serde_json::json;

use crate::support::Product;

fn person() -> Visitor {
    Visitor {
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0".to_owned()),
        is_head: false,
        is_prefetch: false,
    }
}

/// A product with a delivered message, some time later.
async fn delivered() -> (Product, MessageId) {
    let product = Product::start().await;
    let message = product.send_to("ann@example.com").await;
    product.work().await;
    product.clock.advance(Duration::from_hours(1));
    (product, message)
}

/// The token of a link whose target is stored.
async fn link(product: &Product, message: MessageId, url: &str) -> String {
    product.commit(Changes::from_iter([Write::PutUrl(product.workspace, url.to_owned())])).await;
    product.app.link_key().link(product.workspace, message, Link::Click(UrlKey::of(url), None))
}

async fn follow(app: &App, token: &str) -> Click {
    app.click(token).await.unwrap().expect("a link of ours")
}

#[tokio::test]
async fn visits_are_recorded_and_change_nothing_else() {
    let (product, message) = delivered().await;
    let before = product.report(message).await;
    product.app.record_open(product.workspace, message, &person()).await.unwrap();
    let agent = person().user_agent;
    assert_eq!(product.last_meta(message).await, json!({"ip": "192.0.2.7", "user_agent": agent, "machine": false}));

    let click = follow(&product.app, &link(&product, message, "https://acme.com/?a=1&b=2").await).await;
    assert_eq!(click.url, "https://acme.com/?a=1&b=2");
    let nobody = Visitor { ip: "2001:db8::1".parse().unwrap(), user_agent: None, ..person() };
    product.app.record_click(&click, &nobody).await.unwrap();
    assert_eq!(
        product.last_meta(message).await,
        json!({"url": "https://acme.com/?a=1&b=2", "ip": "2001:db8::1", "user_agent": null, "machine": true})
    );
    let after = product.report(message).await;
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered Open Click");
    assert_eq!(after.updated_at, before.updated_at);
}

#[tokio::test]
async fn no_other_token_leads_anywhere() {
    let (product, message) = delivered().await;
    let app = &product.app;
    let good = link(&product, message, "https://acme.com").await;
    let open = app.link_key().link(product.workspace, message, Link::Open);
    let unknown = app.link_key().link(product.workspace, message, Link::Click(UrlKey::of("https://other.com"), None));
    let elsewhere =
        app.link_key().link(app.new_id(app.now()), message, Link::Click(UrlKey::of("https://acme.com"), None));
    let forged =
        LinkKey::new(&[1; 32]).link(product.workspace, message, Link::Click(UrlKey::of("https://acme.com"), None));
    for token in [&open, &unknown, &elsewhere, &forged, &good[1..], ""] {
        assert_eq!(app.click(token).await.unwrap(), None, "{token}");
    }
}

#[tokio::test]
async fn clicks_right_after_delivery_are_a_machines() {
    let product = Product::start().await;
    let message = product.send_to("ann@example.com").await;
    product.work().await;
    let click = follow(&product.app, &link(&product, message, "https://acme.com").await).await;
    let mut found = Vec::new();
    for wait in [0, 1_999, 1] {
        product.clock.advance(Duration::from_millis(wait));
        product.app.record_click(&click, &person()).await.unwrap();
        found.push(product.last_meta(message).await["machine"] == true);
    }
    assert_eq!(found, [true, true, false]);
}

/// The clicks of a burst may come to several processes, or before and after a start.
#[tokio::test]
async fn a_burst_over_two_processes_is_a_burst() {
    let (product, message) = delivered().await;
    let beside = product.another_process();
    let mut found = Vec::new();
    for (app, url) in [
        (&product.app, "https://acme.com/1"),
        (&beside, "https://acme.com/2"),
        (&product.app, "https://acme.com/2"),
        (&beside, "https://acme.com/3"),
    ] {
        let click = follow(app, &link(&product, message, url).await).await;
        app.record_click(&click, &person()).await.unwrap();
        found.push(product.last_meta(message).await["machine"] == true);
        product.clock.advance(Duration::from_millis(100));
    }
    assert_eq!(found, [false, false, false, true]);
}

#[tokio::test]
async fn three_links_at_once_are_a_machines_from_the_third_on() {
    let (product, message) = delivered().await;
    let mut clicks = Vec::new();
    for number in 0..4 {
        let token = link(&product, message, &format!("https://acme.com/{number}")).await;
        clicks.push(follow(&product.app, &token).await);
    }
    let visitor = person();
    let recorded = clicks.iter().map(|click| product.app.record_click(click, &visitor));
    let outcomes = futures_util::future::join_all(recorded).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let machines = |report: &messaging_engine::ops::messages::MessageReport| {
        report.events.iter().filter(|event| event.meta.get("machine") == Some(&json!(true))).count()
    };
    assert_eq!(machines(&product.report(message).await), 2);
    product.clock.advance(Duration::from_secs(2));
    product.app.record_click(&clicks[0], &visitor).await.unwrap();
    assert_eq!(machines(&product.report(message).await), 2);
}

#[tokio::test]
async fn what_is_recorded_of_a_message_is_bounded() {
    let (product, message) = delivered().await;
    let long = Visitor { user_agent: Some("ü".repeat(10_000)), ..person() };
    product.app.record_open(product.workspace, message, &long).await.unwrap();
    assert_eq!(product.last_meta(message).await["user_agent"], "ü".repeat(512));
    for _ in 0..510 {
        product.app.record_open(product.workspace, message, &person()).await.unwrap();
    }
    let click = follow(&product.app, &link(&product, message, "https://acme.com").await).await;
    product.app.record_click(&click, &person()).await.unwrap();
    // Three of the delivery, 500 opens, one click.
    assert_eq!(product.report(message).await.events.len(), 504);
}

#[tokio::test]
async fn a_message_that_is_not_there_gets_no_events() {
    let (product, message) = delivered().await;
    let nobody: MessageId = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    product.app.record_open(product.workspace, nobody, &person()).await.unwrap();
    let elsewhere = product.app.new_id(product.app.now());
    product.app.record_open(elsewhere, message, &person()).await.unwrap();
    for (workspace, message) in [(product.workspace, nobody), (elsewhere, message)] {
        assert_eq!(product.store.message_events(workspace, message, 10).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_visit_that_cannot_be_recorded_is_told() {
    let (product, message) = delivered().await;
    product.store.close().await;
    assert!(product.app.record_open(product.workspace, message, &person()).await.is_err());
}
