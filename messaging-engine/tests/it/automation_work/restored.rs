//! Automations of a database that came from a copy: nothing of them goes on until somebody says so. Contract section 22.

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::fence::Fence;
use messaging_engine::admin::{self, Queued};
use serde_json::json;

use super::{HOUR, Journeys, SECOND, on_event};

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_works_on_no_automation_until_it_is_resumed() {
    let journeys = Journeys::start().await;
    for name in ["ann", "bob"] {
        journeys.contact(name, json!({})).await;
    }
    let config = json!({"template_id": journeys.template("hello").await, "category": "transactional"});
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
        {"id": "s", "kind": "send", "config": config}], "edges": [{"from": "w", "to": "s"}]});
    let id = journeys.active(on_event("signup"), graph, json!({})).await;
    journeys.event("signup", "ann", json!({})).await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "waiting w");

    journeys.clock.advance(SECOND);
    let fence = Fence::held(journeys.app.now());
    journeys.commit(Changes::from_iter([Write::PutFence(Some(fence), None)])).await;
    journeys.app.look_at_fence().await.unwrap();
    journeys.app.prepare_to_work().await.unwrap();
    // A timer that is due, and an event that is accepted meanwhile.
    journeys.event("signup", "bob", json!({})).await;
    for _ in 0..5 {
        journeys.pass(HOUR).await;
    }
    assert_eq!((journeys.told(&id).await.as_str(), journeys.transport.sent().len()), ("waiting w", 0));

    admin::resume(&journeys.app, Queued::Send).await.unwrap();
    for _ in 0..3 {
        journeys.pass(HOUR).await;
    }
    assert_eq!(journeys.told(&id).await, "completed s, completed s");
    assert_eq!([journeys.mail_to("ann").len(), journeys.mail_to("bob").len()], [1, 1]);
}
