//! The operation that lists the events of a workspace.

use serde_json::{Value, json};

use crate::support::Product;
use crate::webhook_deliveries::Hooks;

async fn events(hooks: &Hooks, query: &str) -> (Vec<String>, String) {
    let reply = hooks.get(&format!("{}/events?{query}", hooks.base)).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    let told = |event: &Value| {
        format!("{} {}", event["type"].as_str().unwrap(), event["data"]["to"].as_str().unwrap_or_default())
    };
    let types = reply["data"].as_array().unwrap().iter().map(told).collect();
    (types, reply["next_cursor"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn events_come_in_order_page_by_page() {
    let hooks = Hooks::hearing(&["open"]).await;
    let (none, start) = events(&hooks, "wait=0").await;
    assert_eq!(none, [""; 0]);
    for to in ["ann@example.com", "bob@example.com"] {
        hooks.message(to).await;
    }
    let all =
        ["sent ann@example.com", "delivered ann@example.com", "sent bob@example.com", "delivered bob@example.com"];
    assert_eq!(events(&hooks, "").await.0, all, "the oldest first");
    let (first, cursor) = events(&hooks, &format!("limit=3&after={start}")).await;
    assert_eq!(first, all[..3]);
    let (rest, cursor) = events(&hooks, &format!("after={cursor}")).await;
    assert_eq!(rest, all[3..]);
    let (none, same) = events(&hooks, &format!("after={cursor}&wait=0")).await;
    assert_eq!((none.len(), same), (0, cursor));
    hooks.product.pass(std::time::Duration::from_secs(1)).await;
    hooks.message("eve@example.com").await;
    let (late, _) = events(&hooks, "since=2026-01-31T09:15:00.500Z").await;
    assert_eq!(late, ["sent eve@example.com", "delivered eve@example.com"]);
    for (query, expected) in [
        ("after=x", "400 invalid_cursor"),
        ("wait=31", "422 wait out_of_range"),
        ("since=now", "422 since invalid_format"),
    ] {
        assert_eq!(hooks.get(&format!("{}/events?{query}", hooks.base)).await.summary(), expected);
    }
}

#[tokio::test]
async fn whoever_waits_is_woken_by_an_event() {
    let hooks = std::sync::Arc::new(Hooks::hearing(&["open"]).await);
    let (_, start) = events(&hooks, "wait=0").await;
    let waiting = {
        let hooks = std::sync::Arc::clone(&hooks);
        tokio::spawn(async move { events(&hooks, &format!("wait=30&after={start}")).await })
    };
    tokio::task::yield_now().await;
    let before = std::time::Instant::now();
    hooks.message("ann@example.com").await;
    let (told, _) = waiting.await.unwrap();
    assert_eq!(told[0], "sent ann@example.com");
    assert!(before.elapsed() < std::time::Duration::from_secs(20));
}

#[tokio::test]
async fn nobody_waits_for_a_server_that_stops() {
    let hooks = std::sync::Arc::new(Hooks::hearing(&["open"]).await);
    let before = std::time::Instant::now();
    hooks.product.app.end_waits();
    assert_eq!(events(&hooks, "wait=30").await.0, [""; 0]);
    assert!(before.elapsed() < std::time::Duration::from_secs(20));
}

#[tokio::test]
async fn addresses_are_masked_for_those_who_may_not_see_them() {
    let hooks = Hooks::hearing(&["open"]).await;
    hooks.message("ann@example.com").await;
    let path = format!("/workspaces/{}/api-keys", hooks.product.workspace);
    let key = hooks.post(&path, json!({"name": "blind", "scopes": ["webhooks:read"]})).await;
    let blind = hooks.product.app.authenticate(key["key"].as_str().unwrap()).await.unwrap();
    let target = format!("{}/events", hooks.base);
    let call = crate::bed::Call::new(&blind, http::Method::GET, &target);
    let reply = crate::bed::send(&hooks.product.app, call).await;
    assert_eq!(reply["data"][0]["data"]["to"], "a***@example.com");
}

#[tokio::test]
async fn where_nobody_listens_events_are_logged_once_somebody_has_asked() {
    let product = Product::start().await;
    let base = format!("/workspaces/{}/webhooks/events", product.workspace);
    let get = async |query: &str| {
        let target = format!("{base}?{query}");
        let call = crate::bed::Call::new(&product.caller, http::Method::GET, &target);
        crate::bed::send(&product.app, call).await["data"].as_array().unwrap().len()
    };
    product.send_to("ann@example.com").await;
    product.work().await;
    assert_eq!(get("wait=30").await, 0, "answered at once");
    product.send_to("bob@example.com").await;
    product.work().await;
    assert_eq!(get("").await, 2);
    product.pass(std::time::Duration::from_hours(31 * 24)).await;
    product.send_to("eve@example.com").await;
    product.work().await;
    assert_eq!(get("since=2026-02-20T00:00:00Z").await, 0, "nobody has asked for a month");
}
