//! Claims that end while their job runs: the job makes no further calls.

use std::sync::Arc;
use std::time::Duration;

use messaging_engine::App;
use serde_json::json;

use super::{Hooks, body};
#[tokio::test]
async fn whoever_lost_the_claim_calls_nobody_any_more() {
    let hooks = Hooks::hearing(&["delivered"]).await;
    hooks.act("pause", json!({})).await;
    for to in ["ann@example.com", "bob@example.com"] {
        hooks.message(to).await;
    }
    // The first process waits in its first call until its claim has ended.
    let [slow, again, second] = [hooks.fetch.gate(), hooks.fetch.gate(), hooks.fetch.gate()];
    hooks.act("resume", json!({})).await;
    let working = |app: App| tokio::spawn(async move { app.run_until_idle().await });
    let first = working(hooks.product.app.clone());
    hooks.fetch.received(1).await;
    hooks.product.clock.advance(Duration::from_hours(2));
    let other = working(hooks.product.another_process_fetching(Arc::clone(&hooks.fetch) as _));
    hooks.fetch.received(2).await;
    again.open();
    hooks.fetch.received(3).await;
    // The other process calls for the second event; the first one continues, and may not call for it as well.
    slow.open();
    first.await.unwrap().unwrap();
    let called: Vec<_> = hooks.fetch.take().iter().map(|request| body(request)["data"]["to"].clone()).collect();
    assert_eq!(called, ["ann@example.com", "ann@example.com", "bob@example.com"]);
    second.open();
    other.await.unwrap().unwrap();
    assert_eq!(hooks.story().await, "delivered delivered 1, delivered delivered 1");
    assert_eq!(hooks.fetch.take().len(), 0);
}
