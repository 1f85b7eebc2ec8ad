use std::time::Duration;

use messaging_testing::fetched;
use serde_json::{Value, json};

use super::{Hooks, URL, body};

/// `POST …/webhooks/deliveries/{id}/replay`
async fn replay(hooks: &Hooks, delivery: &Value) -> crate::bed::Reply {
    hooks.post(&format!("{}/deliveries/{}/replay", hooks.base, delivery["id"].as_str().unwrap()), json!({})).await
}

/// The messages that were told, in order.
fn told(hooks: &Hooks) -> Vec<String> {
    let requests = hooks.fetch.take();
    requests.iter().map(|request| body(request)["data"]["message_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_delivery_is_replayed_with_the_same_event() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.next(500);
    hooks.message("ann@example.com").await;
    let pending = hooks.deliveries().await.remove(0);
    let refused = replay(&hooks, &pending).await;
    assert_eq!(refused.summary(), "409 invalid_state");
    assert_eq!(refused["error"]["details"]["status"], "pending");
    hooks.product.pass(Duration::from_secs(6)).await;
    let first = hooks.fetch.take();
    let again = replay(&hooks, &pending).await;
    assert_eq!((again.status, &again["status"], &again["attempts"]), (202, &json!("pending"), &json!(0)));
    assert_eq!((&again["replay_of"], &again["event_id"]), (&pending["id"], &pending["event_id"]));
    hooks.product.work().await;
    let second = hooks.fetch.take();
    assert_eq!(second[0].headers["webhook-id"], first[0].headers["webhook-id"]);
    assert_eq!(second[0].body, first[0].body);
    assert_eq!(hooks.story().await, "sent delivered 2, sent delivered 1");
    let nobody = json!({"id": "dlv_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"});
    assert_eq!(replay(&hooks, &nobody).await.summary(), "404 not_found");
}

#[tokio::test]
async fn a_replay_to_a_paused_webhook_is_held() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.message("ann@example.com").await;
    hooks.act("pause", json!({})).await;
    let delivery = hooks.deliveries().await.remove(0);
    let held = replay(&hooks, &delivery).await;
    assert_eq!(held["status"], "held");
    assert_eq!(replay(&hooks, &held.body).await.summary(), "409 invalid_state");
    hooks.act("resume", json!({})).await;
    hooks.product.work().await;
    assert_eq!(hooks.story().await, "sent delivered 1, sent delivered 1");
}

#[tokio::test]
async fn everything_that_was_missed_is_replayed_once_in_order() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.message("early@example.com").await;
    hooks.product.pass(Duration::from_hours(1)).await;
    let since = hooks.product.app.now().to_string();
    hooks.fetch.always(URL, Ok(fetched(500, &[], "")));
    let mut missed = Vec::new();
    for number in 0..130 {
        missed.push(hooks.product.send_to(&format!("user-{number}@example.com")).await);
    }
    hooks.product.work().await;
    let refused = hooks.act("replay", json!({"since": "yesterday"})).await;
    assert_eq!(refused.summary(), "422 /since invalid_format");
    assert_eq!(hooks.act("replay", json!({})).await.summary(), "422 /since required");
    assert_eq!(hooks.act("replay", json!({"since": since})).await["replayed"], 0, "they are still tried");
    for _ in 0..9 {
        hooks.product.pass(Duration::from_hours(27)).await;
        hooks.act("resume", json!({})).await;
    }
    hooks.fetch.take();
    hooks.fetch.always(URL, Ok(fetched(200, &[], "")));
    hooks.message("late@example.com").await;
    hooks.fetch.take();
    // The order of the events: that in which the messages were sent.
    let deliveries = hooks.get(&format!("{}/deliveries?status=failed&limit=200", hooks.path)).await;
    let failed = deliveries["data"].as_array().unwrap().len();
    assert_eq!(failed, 130);
    let reply = hooks.act("replay", json!({"since": since, "status": "failed"})).await;
    assert_eq!((reply.status, &reply["replayed"]), (202, &json!(130)));
    hooks.product.work().await;
    let requests = hooks.fetch.take();
    let events: Vec<_> = requests.iter().map(|request| body(request)["id"].as_str().unwrap().to_owned()).collect();
    let mut expected: Vec<_> = deliveries["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delivery| delivery["event_id"].as_str().unwrap().to_owned())
        .collect();
    expected.reverse();
    assert_eq!(events[..64], expected[..64], "strictly in order at first");
    let (mut events, mut sorted) = (events, expected);
    events.sort();
    sorted.sort();
    assert_eq!(events, sorted, "each once");
    let again = hooks.act("replay", json!({"since": since})).await;
    assert_eq!(again["replayed"], 0, "nothing is missed any more");
}

#[tokio::test]
async fn all_events_are_replayed_once_whatever_became_of_them() {
    let hooks = Hooks::hearing(&["sent"]).await;
    let mut sent = Vec::new();
    for number in 0..3 {
        sent.push(hooks.message(&format!("user-{number}@example.com")).await.to_string());
        hooks.product.clock.advance(Duration::from_secs(1));
    }
    hooks.act("test", json!({})).await;
    hooks.product.work().await;
    hooks.fetch.take();
    for _ in 0..2 {
        let reply = hooks.act("replay", json!({"since": "2026-01-31T09:15:01Z", "status": "all"})).await;
        assert_eq!(reply["replayed"], 2, "tests and replays are no events");
        hooks.product.pass(Duration::from_secs(10)).await;
        assert_eq!(told(&hooks), sent[1..]);
    }
    // The end is not part of it, and deliveries after it are left alone.
    let span = json!({"since": "2026-01-31T09:15:01Z", "until": "2026-01-31T09:15:02Z", "status": "all"});
    assert_eq!(hooks.act("replay", span).await["replayed"], 1);
    hooks.product.pass(Duration::from_secs(10)).await;
    assert_eq!(told(&hooks), sent[1..2]);
    for until in ["2026-01-31T09:15:01Z", "2026-01-31T09:15:00Z"] {
        let refused = hooks.act("replay", json!({"since": "2026-01-31T09:15:01Z", "until": until})).await;
        assert_eq!(refused.summary(), "422 /until out_of_range");
    }
    hooks.fetch.next(410);
    hooks.message("gone@example.com").await;
    let refused = hooks.act("replay", json!({"since": "2026-01-31T09:15:01Z", "status": "all"})).await;
    assert_eq!(refused["error"]["details"], json!({"status": "disabled", "allowed": ["active", "paused"]}));
}
