use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_engine::work::sweep;
use messaging_testing::fetched;
use serde_json::json;

use super::{Hooks, URL, body, types};
use crate::bed::Call;

#[tokio::test]
async fn a_paused_webhook_holds_events_and_gets_them_oldest_first() {
    let hooks = Hooks::hearing(&["sent", "bounce"]).await;
    assert_eq!(hooks.act("pause", json!({})).await.status, 202);
    let mut sent = Vec::new();
    for number in 0..5 {
        sent.push(hooks.message(&format!("user-{number}@example.com")).await.to_string());
    }
    assert_eq!(hooks.fetch.take().len(), 0);
    let deliveries = hooks.deliveries().await;
    assert!(deliveries.iter().all(|delivery| delivery["status"] == "held" && delivery["next_attempt_at"].is_null()));
    // A test is sent nevertheless.
    hooks.act("test", json!({})).await;
    hooks.product.work().await;
    assert_eq!(types(&hooks.fetch.take()), ["test"]);
    assert_eq!(hooks.act("resume", json!({})).await.status, 202);
    hooks.product.work().await;
    let told: Vec<_> = hooks
        .fetch
        .take()
        .iter()
        .map(|request| body(request)["data"]["message_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, sent);
    assert!(hooks.deliveries().await.iter().all(|delivery| delivery["status"] == "delivered"));
    hooks.product.pass(Duration::from_secs(10)).await;
    assert_eq!(messaging_core::ports::store::Jobs::job_count(&*hooks.product.store).await.unwrap(), 0);
}

#[tokio::test]
async fn what_was_told_of_a_message_is_found_at_all_webhooks_by_one_call() {
    let hooks = Hooks::hearing(&["sent", "delivered"]).await;
    hooks.create("https://acme.com/other", &["delivered"]).await;
    let message = hooks.message("ann@example.com").await;
    hooks.message("bob@example.com").await;
    hooks.act("test", json!({})).await;
    hooks.product.work().await;
    let path = format!("{}/deliveries", hooks.base);
    let first = hooks.get(&format!("{path}?message_id={message}&limit=2")).await;
    let next = first["next_cursor"].as_str().unwrap();
    let second = hooks.get(&format!("{path}?message_id={message}&limit=2&cursor={next}")).await;
    let told: Vec<_> = [&first, &second].iter().flat_map(|page| page["data"].as_array().unwrap()).collect();
    let mut types: Vec<_> = told.iter().map(|one| one["event_type"].as_str().unwrap()).collect();
    types.sort_unstable();
    assert_eq!(types, ["delivered", "delivered", "sent"]);
    let receivers: std::collections::BTreeSet<_> = told.iter().map(|one| one["webhook_id"].as_str()).collect();
    assert_eq!((receivers.len(), &second["next_cursor"]), (2, &serde_json::Value::Null));
    for (query, expected) in [("", "422 message_id required"), ("?message_id=msg_1", "422 message_id invalid_format")] {
        assert_eq!(hooks.get(&format!("{path}{query}")).await.summary(), expected);
    }
    let unknown = hooks.get(&format!("{path}?message_id=msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH")).await;
    assert_eq!((unknown.status, &unknown["data"]), (200, &json!([])));
}

#[tokio::test]
async fn what_is_decided_on_a_pause_that_is_over_is_decided_again() {
    let hooks = Hooks::hearing(&["delivered"]).await;
    assert_eq!(hooks.act("pause", json!({})).await.status, 202);
    hooks.message("ann@example.com").await;
    // Another process resumes the webhook and sends the held deliveries. This one still has the pause cached; its clock
    // stands still.
    let other = hooks.product.another_process_fetching(Arc::clone(&hooks.fetch) as _);
    let resume = format!("{}/resume", hooks.path);
    let call = Call::new(hooks.caller(), Method::POST, &resume).body(&json!({}));
    assert_eq!(crate::bed::send(&other, call).await.status, 202);
    other.run_until_idle().await.unwrap();
    hooks.message("bob@example.com").await;
    assert_eq!(hooks.story().await, "delivered delivered 1, delivered delivered 1");
    assert_eq!(hooks.fetch.take().len(), 2);
}

#[tokio::test]
async fn a_retry_waits_for_its_paused_webhook_and_goes_on_where_it_was() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.next(500);
    hooks.message("ann@example.com").await;
    hooks.act("pause", json!({})).await;
    hooks.product.pass(Duration::from_secs(10)).await;
    assert_eq!(hooks.story().await, "sent held 1");
    hooks.act("resume", json!({})).await;
    hooks.fetch.next(500);
    hooks.product.work().await;
    assert_eq!(hooks.story().await, "sent delivered 2".replace("delivered", "pending"));
    hooks.product.pass(Duration::from_mins(6)).await;
    assert_eq!(hooks.story().await, "sent delivered 3");
}

#[tokio::test]
async fn what_is_held_for_too_long_expires() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.act("pause", json!({})).await;
    hooks.message("ann@example.com").await;
    hooks.product.pass(Duration::from_hours(6 * 24)).await;
    hooks.message("bob@example.com").await;
    sweep::sweep(&hooks.product.app).await.unwrap();
    assert_eq!(hooks.story().await, "sent held 0, sent held 0");
    hooks.product.pass(Duration::from_hours(24 + 1)).await;
    sweep::sweep(&hooks.product.app).await.unwrap();
    assert_eq!(hooks.story().await, "sent expired 0, sent held 0");
    // They expire even without a sweep.
    hooks.product.clock.advance(Duration::from_hours(6 * 24));
    hooks.act("resume", json!({})).await;
    hooks.product.work().await;
    assert_eq!(hooks.story().await, "sent expired 0, sent expired 0");
    assert_eq!(hooks.fetch.take().len(), 0);
}

#[tokio::test]
async fn a_receiver_that_is_gone_disables_its_webhook() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.next(410);
    hooks.message("ann@example.com").await;
    assert_eq!(hooks.status().await, "disabled");
    assert_eq!(hooks.story().await, "sent failed 1");
    hooks.message("bob@example.com").await;
    assert_eq!(hooks.story().await, "sent failed 1", "events are not recorded");
    hooks.act("test", json!({})).await;
    hooks.product.work().await;
    assert_eq!(hooks.fetch.take().len(), 2, "a test shows whether the receiver is back");
    assert_eq!(hooks.act("resume", json!({})).await["status"], "active");
    hooks.message("eve@example.com").await;
    assert_eq!(hooks.story().await, "sent failed 1, test delivered 1, sent delivered 1");
}

#[tokio::test]
async fn five_days_of_failures_disable_a_webhook_but_one_success_does_not() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.always(URL, Ok(fetched(500, &[], "")));
    let day = Duration::from_hours(24);
    hooks.message("ann@example.com").await;
    hooks.product.pass(day * 4).await;
    hooks.fetch.next(200);
    hooks.message("bob@example.com").await;
    hooks.message("eve@example.com").await;
    hooks.product.pass(day * 4).await;
    assert_eq!(hooks.status().await, "active", "the failures began anew");
    hooks.fetch.always(URL, Ok(fetched(503, &[], "")));
    hooks.product.pass(day).await;
    hooks.message("joe@example.com").await;
    assert_eq!(hooks.status().await, "disabled");
    let before = hooks.fetch.take().len();
    assert!(before > 0);
    hooks.product.pass(day).await;
    assert_eq!(hooks.fetch.take().len(), 0, "what was to be retried is given up");
    assert!(hooks.deliveries().await.iter().all(|delivery| delivery["next_attempt_at"].is_null()));
}

#[tokio::test]
async fn failures_of_tests_disable_nothing() {
    let hooks = Hooks::hearing(&["sent"]).await;
    for _ in 0..2 {
        hooks.fetch.next(410);
        hooks.act("test", json!({})).await;
        hooks.product.pass(Duration::from_hours(6 * 24)).await;
    }
    assert_eq!(hooks.status().await, "active");
}

#[tokio::test]
async fn for_a_day_after_a_rotation_both_secrets_sign() {
    let hooks = Hooks::hearing(&["sent"]).await;
    let rotated = hooks.act("rotate-secret", json!({})).await;
    let new = rotated["secret"].as_str().unwrap();
    hooks.message("ann@example.com").await;
    let request = hooks.fetch.take().remove(0);
    let signatures = request.headers["webhook-signature"].to_str().unwrap();
    assert_eq!(signatures.split(' ').count(), 2);
    assert!(hooks.is_signed(&request, new) && hooks.is_signed(&request, &hooks.secret));
    hooks.product.pass(Duration::from_hours(24)).await;
    hooks.message("bob@example.com").await;
    let request = hooks.fetch.take().remove(0);
    assert!(hooks.is_signed(&request, new) && !hooks.is_signed(&request, &hooks.secret));
}

#[tokio::test]
async fn deliveries_are_kept_for_thirty_days() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.message("ann@example.com").await;
    hooks.product.pass(Duration::from_hours(29 * 24)).await;
    sweep::sweep(&hooks.product.app).await.unwrap();
    assert_eq!(hooks.story().await, "sent delivered 1");
    hooks.product.pass(Duration::from_hours(25)).await;
    sweep::sweep(&hooks.product.app).await.unwrap();
    assert_eq!(hooks.story().await, "");
}
