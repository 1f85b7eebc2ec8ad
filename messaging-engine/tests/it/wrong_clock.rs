//! A clock that is changed: forward by two hours or ten years, back by one hour, and right again.
//!
//! Whatever the date says, a message is sent once, and work that was dated by a wrong clock does not wait for that
//! date.

use std::time::Duration;

use messaging_core::time::Timestamp;
use serde_json::json;

use crate::bed::START;
use crate::segments::Audience;
use crate::support::Product;
use crate::webhook_deliveries::Hooks;

const HOUR: Duration = Duration::from_hours(1);
const TEN_YEARS: Duration = Duration::from_hours(24 * 3653);

/// Times that the clock jumps to from the start.
fn jumps() -> [Timestamp; 3] {
    [START + 2 * HOUR, START - HOUR, START + TEN_YEARS]
}

#[tokio::test]
async fn a_message_in_work_is_not_begun_again_when_the_clock_is_set() {
    for date in jumps() {
        let product = Product::start().await;
        product.transport.hold();
        let id = product.send_to("ann@example.com").await;
        let app = product.app.clone();
        let working = tokio::spawn(async move { app.run_until_idle().await });
        product.transport.attempts(1).await;
        for date in [date, START] {
            product.clock.set(date);
            // A worker that claims now finds nothing.
            product.work().await;
        }
        product.clock.set(date);
        product.transport.release();
        working.await.unwrap().unwrap();
        product.clock.set(START);
        product.pass(2 * HOUR).await;
        assert_eq!(product.transport.sent().len(), 1, "{date}");
        assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered", "{date}");
    }
}

#[tokio::test]
async fn a_claim_lasts_as_long_as_it_was_made_for_when_the_clock_is_set_back() {
    let product = Product::start().await;
    product.transport.hold();
    let id = product.send_to("ann@example.com").await;
    let app = product.app.clone();
    let working = tokio::spawn(async move { app.run_until_idle().await });
    product.transport.attempts(1).await;
    // Its worker is gone, and the outcome of the attempt is unknown.
    working.abort();
    assert!(working.await.unwrap_err().is_cancelled());
    product.clock.set(START - HOUR);
    product.transport.release();
    product.pass(HOUR - Duration::from_secs(1)).await;
    assert_eq!(product.transport.sent().len(), 1, "the claim still holds");
    product.pass(Duration::from_secs(1)).await;
    assert_eq!(product.transport.sent().len(), 2);
    assert_eq!(product.report(id).await.status.as_str(), "delivered");
}

#[tokio::test]
async fn what_was_accepted_under_a_wrong_date_leaves_at_once() {
    for date in jumps() {
        let product = Product::start().await;
        product.clock.set(date);
        let wrong = product.send_to("ann@example.com").await;
        product.clock.set(START);
        let right = product.send_to("bob@example.com").await;
        product.work().await;
        for id in [wrong, right] {
            assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered", "{date}");
        }
        assert_eq!(product.transport.sent().len(), 2, "{date}");
    }
}

#[tokio::test]
async fn what_was_accepted_before_the_clock_was_set_back_leaves_at_once() {
    for date in jumps() {
        let product = Product::start().await;
        let id = product.send_to("ann@example.com").await;
        product.clock.set(date);
        product.work().await;
        product.clock.set(START);
        product.work().await;
        assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered", "{date}");
        assert_eq!(product.transport.sent().len(), 1, "{date}");
    }
}

#[tokio::test]
async fn a_retry_comes_after_its_wait_and_not_on_the_wrong_date() {
    for date in jumps() {
        let product = Product::start().await;
        product.clock.set(date);
        product.transport.answer_next("ann@example.com", "451 4.7.1 later");
        let id = product.send_to("ann@example.com").await;
        product.work().await;
        assert_eq!(product.story(id).await, "deferred: Queued Deferred");
        product.clock.set(START);
        product.work().await;
        let wait = product.app.settings().message_retry[0];
        if date > START {
            product.pass(wait - Duration::from_secs(1)).await;
            assert_eq!(product.transport.sent().len(), 1, "{date}: not before its time");
        }
        product.pass(Duration::from_secs(1)).await;
        // Its events are shown in the order of their dates.
        assert_eq!(product.report(id).await.status.as_str(), "delivered", "{date}");
        assert_eq!(product.transport.sent().len(), 2, "{date}");
    }
}

#[tokio::test]
async fn webhooks_hear_of_it_once_and_in_time() {
    for date in jumps() {
        let hooks = Hooks::hearing(&["delivered"]).await;
        let product = &hooks.product;
        product.clock.set(date);
        hooks.fetch.next(500);
        product.send_to("ann@example.com").await;
        product.work().await;
        assert_eq!(hooks.fetch.take().len(), 1, "{date}");
        product.clock.set(START);
        product.work().await;
        product.pass(product.app.settings().webhook_retry[0] * 2).await;
        product.pass(HOUR).await;
        assert_eq!(hooks.fetch.take().len(), 1, "{date}: once more after the failure, and no more");
    }
}

#[tokio::test]
async fn segments_are_refreshed_in_time() {
    for date in jumps() {
        let audience = Audience::start().await;
        let clock = &audience.bed.clock;
        clock.set(date);
        let ends = json!({"attributes": {"trial_ends": "2026-01-31T09:45:00Z"}});
        audience.contact("ann", ends).await;
        let within = json!({"value": 60, "unit": "minutes"});
        let soon = json!({"type": "attribute", "key": "trial_ends", "op": "next", "value": within});
        let segment = audience.segment(soon).await;
        audience.work().await;
        clock.set(START);
        audience.work().await;
        clock.advance(Duration::from_mins(16));
        audience.work().await;
        assert_eq!(audience.members(&segment).await, "ready 1: ann", "{date}");
        let calculated = audience.get(&format!("segments/{segment}")).await;
        assert!(calculated["calculated_at"].as_str().unwrap().starts_with("2026-01-31T09:"), "{:?}", calculated.body);
    }
}
