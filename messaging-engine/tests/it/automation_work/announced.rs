//! Workers are notified of events of contacts; they do not have to poll for them.

use std::time::Duration;

use messaging_engine::work::Workers;
use serde_json::json;

use super::{Journeys, on_event};

/// Longest time for a step; a test that reaches it has failed.
const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_worked_off_although_no_time_passes() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let config = json!({"template_id": journeys.template("hello").await, "category": "transactional"});
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": config}], "edges": []});
    let automation = journeys.active(on_event("signup"), graph, json!({"re_entry": "always"})).await;
    let workers = Workers::start(&journeys.app, &tokio::runtime::Handle::current());
    // The clock of the test stands still: a worker that polled would never find the event.
    for entered in 1..=3 {
        journeys.event("signup", "ann", json!({})).await;
        let sent = tokio::time::timeout(DEADLINE, journeys.transport.attempts(entered)).await;
        sent.unwrap_or_else(|_| panic!("event {entered} is worked off: {:?}", journeys.transport.sent().len()));
    }
    workers.stop().await;
    assert_eq!(journeys.runs(&automation).await.len(), 3);
}
