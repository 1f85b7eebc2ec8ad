//! An installation that is a copy: messages and deliveries are held until an operator lets them be sent or cancels
//! them.

use std::time::Duration;

use http::Method;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::hold::HoldReason;
use messaging_engine::App;
use messaging_engine::admin::{self, Queued};
use serde_json::json;

use crate::bed::{self, Bed, Call, START};
use crate::support::Product;
use crate::webhook_deliveries::Hooks;

/// Makes a copy of an installation, as its store would be one that was opened on it.
async fn fence(product: &Product) -> App {
    product.commit(Changes::from_iter([Write::PutFence(Some(Fence::held(START)), None)])).await;
    product.app.look_at_fence().await.unwrap();
    assert!(product.app.fence().is_some());
    product.app.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_accepted_and_held_until_they_may_be_sent() {
    let product = Product::start().await;
    fence(&product).await;
    let id = product.send_to("ann@example.com").await;
    product.work().await;
    product.pass(Duration::from_hours(2)).await;
    assert_eq!(product.transport.sent().len(), 0);
    let hold = product.report(id).await.hold.unwrap();
    assert_eq!((hold.reason, hold.until), (HoldReason::Held, None));
    let listed = bed::send(&product.app, Call::new(&product.caller, Method::GET, "/messages")).await;
    assert_eq!(listed["data"][0]["hold"], json!({"reason": "held", "until": null}));
    // Another process on the database, which was not there when the fence was put up.
    assert!(product.another_process().fence().is_some());

    let report = admin::resume(&product.app, Queued::Send).await.unwrap();
    assert_eq!((report.fenced_since, report.doing), (Some(START), None));
    product.work().await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
    assert!(product.report(id).await.hold.is_none());
    let report = admin::resume(&product.app, Queued::Cancel).await.unwrap();
    assert_eq!(report.fenced_since, None, "there is nothing to resume");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_past_the_fence_with_a_connection_open() {
    let product = Product::start().await;
    product.transport.hold();
    let id = product.send_to("ann@example.com").await;
    let working = tokio::spawn({
        let app = product.app.clone();
        async move { app.run_until_idle().await }
    });
    product.transport.attempts(1).await;
    let outgoing = product.transport.sent().remove(0);
    assert!(!outgoing.last_look.is_held());
    fence(&product).await;
    assert!(outgoing.last_look.is_held());
    // A copy that was taken during an attempt holds its message as well.
    let report = product.report(id).await;
    assert_eq!((report.status, report.hold.unwrap().reason), (MessageStatus::Sending, HoldReason::Held));
    product.transport.release();
    working.await.unwrap().unwrap();
    // The outcome of the attempt that had begun is recorded.
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_cancel_nothing_from_before_is_ever_sent() {
    let product = Product::start().await;
    // A message that one recipient has got and another one waits for, one deferred, one being sent, and one new.
    product.transport.answer("slow@other.example", "451 4.3.0 later");
    let email =
        json!({"channel": "email", "to": "ann@example.com", "cc": ["slow@other.example"], "subject": "s", "text": "t"});
    let copied = product.send(&email).await;
    let put_off = product.send_to("slow@other.example").await;
    product.work().await;
    assert_eq!(product.report(copied).await.status, MessageStatus::Delivered);
    assert_eq!(product.report(put_off).await.status, MessageStatus::Deferred);
    let sending = product.send_to("ben@example.com").await;
    product.move_message(sending, MessageStatus::Sending).await;
    fence(&product).await;
    let new = product.send_to("cleo@example.com").await;
    product.transport.take();

    let report = admin::resume(&product.app, Queued::Cancel).await.unwrap();
    assert_eq!(report.doing.as_deref(), Some("cancelling"));
    // Another call, even with another choice, changes nothing.
    let again = admin::resume(&product.app, Queued::Send).await.unwrap();
    assert_eq!(again.doing.as_deref(), Some("cancelling"));
    product.work().await;
    assert!(product.app.fence().is_none());
    for id in [put_off, sending, new] {
        assert_eq!(product.report(id).await.status, MessageStatus::Cancelled);
    }
    assert!(product.story(new).await.ends_with("Cancelled"));
    assert_eq!(product.report(copied).await.status, MessageStatus::Delivered);
    product.pass(Duration::from_hours(100)).await;
    assert_eq!(product.transport.sent().len(), 0);
    assert_eq!(product.store.job_count().await.unwrap(), 0);
    let later = product.send_to("dan@example.com").await;
    product.work().await;
    assert_eq!(product.story(later).await, "delivered: Queued Sent Delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_not_called_and_with_cancel_never() {
    let hooks = Hooks::hearing(&["*"]).await;
    hooks.fetch.next(500);
    hooks.message("ann@example.com").await;
    assert_eq!(hooks.act("pause", json!({})).await.status, 202);
    hooks.message("ben@example.com").await;
    hooks.fetch.take();
    let product = &hooks.product;
    let app = fence(product).await;
    product.pass(Duration::from_hours(2)).await;
    assert_eq!(hooks.fetch.take().len(), 0);

    admin::resume(&app, Queued::Cancel).await.unwrap();
    let mut pages = Vec::new();
    // As a command does it where no server works.
    admin::cancel_waiting(&app, &mut |more| pages.push(more)).await.unwrap();
    assert_eq!(pages.last(), Some(&0));
    assert_eq!(product.store.fence().await.unwrap(), None);
    assert_eq!(hooks.act("resume", json!({})).await.status, 202);
    product.pass(Duration::from_hours(100)).await;
    assert_eq!(hooks.fetch.take().len(), 0);
    let deliveries = hooks.deliveries().await;
    assert!(deliveries.iter().all(|delivery| ["failed", "delivered"].map(Into::into).contains(&delivery["status"])));
    assert!(deliveries.iter().filter(|delivery| delivery["status"] == "failed").count() >= 3, "{deliveries:?}");
    // New events are delivered.
    hooks.message("cleo@example.com").await;
    assert_eq!(hooks.fetch.take().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_server_that_was_cancelling_waits_for_somebody() {
    let product = Product::start().await;
    let app = fence(&product).await;
    let id = product.send_to("ann@example.com").await;
    admin::resume(&app, Queued::Cancel).await.unwrap();
    // The copy is fenced again; it has the job of the other server.
    let cancelling = product.store.fence().await.unwrap();
    let held = Some(Fence::held(START + Duration::from_secs(1)));
    product.commit(Changes::from_iter([Write::PutFence(held, cancelling)])).await;
    product.work().await;
    assert_eq!(product.report(id).await.status, MessageStatus::Queued);
    assert_eq!(product.store.fence().await.unwrap(), held);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_wait_are_cancelled_while_others_are_accepted() {
    let product = Product::start().await;
    fence(&product).await;
    for number in 0..450 {
        product.send_to(&format!("user-{number}@{}.example", number % 7)).await;
    }
    admin::resume(&product.app, Queued::Cancel).await.unwrap();
    product.work().await;
    let cancelled =
        bed::send(&product.app, Call::new(&product.caller, Method::GET, "/messages?status=cancelled&limit=200"));
    assert!(cancelled.await["next_cursor"].is_string());
    product.pass(Duration::from_hours(1)).await;
    assert_eq!((product.transport.sent().len(), product.store.job_count().await.unwrap()), (0, 0));
}

#[tokio::test]
async fn the_installation_is_shown_to_operators_alone() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let refused = bed.get(&owner, "/system").await;
    assert_eq!(refused.summary(), "403 role_forbidden");
    assert!(refused["error"]["message"].as_str().unwrap().contains("admin set-operator --email"));
    assert_eq!(bed.get(&owner, "/auth/me").await["operator"], false);
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.get(&key, "/system").await.summary(), "403 session_required");
    // A person who creates a workspace is its owner, and no operator.
    bed.user("eve@acme.com").await;
    let eve = bed.sign_in("eve@acme.com").await;
    assert_eq!(bed.post(&eve, "/workspaces", json!({"name": "Eve"})).await.status, 201);
    assert_eq!(bed.get(&eve, "/system").await.summary(), "403 role_forbidden");

    assert!(messaging_engine::admin::set_operator(&bed.app, "Owner@acme.com", true).await.unwrap().operator);
    let operator = bed.sign_in("owner@acme.com").await;
    assert_eq!(bed.get(&operator, "/auth/me").await["operator"], true);
    let reply = bed.get(&operator, "/system").await;
    assert_eq!(reply.summary(), "200");
    assert_eq!((&reply["fenced"], &reply["held"], &reply["checks"]), (&json!(null), &json!([]), &json!([])));
    assert_eq!(reply["channels"].as_array().unwrap().len(), 6);
    messaging_engine::admin::set_operator(&bed.app, "owner@acme.com", false).await.unwrap();
    let before = bed.sign_in("owner@acme.com").await;
    assert_eq!(bed.get(&before, "/system").await.summary(), "403 role_forbidden");
    assert!(messaging_engine::admin::set_operator(&bed.app, "nobody@acme.com", true).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_summed_up_over_workspaces() {
    let product = Product::start().await;
    fence(&product).await;
    for to in ["ann@a.example", "ben@a.example", "cleo@b.example"] {
        product.send_to(to).await;
    }
    let system = bed::send(&product.app, Call::new(&product.caller, Method::GET, "/system")).await;
    assert_eq!(system["held"], json!([{"reason": "held", "count": 3}]));
    assert_eq!(system["fenced"]["reason"], "restored");
    assert!(system["fenced"]["cure"].as_str().unwrap().contains("admin resume --queued"));
    let lanes: Vec<_> =
        system["lanes"].as_array().unwrap().iter().map(|lane| (&lane["lane"], &lane["queued"])).collect();
    assert_eq!(lanes, [(&json!("email:a.example"), &json!(2)), (&json!("email:b.example"), &json!(1))]);
    let email = &system["channels"][0];
    assert_eq!((&email["channel"], &email["queued"]), (&json!("email"), &json!(3)));
    assert!(email["oldest_at"].is_string());
}
