//! Lists, segments, templates and sending domains that active automations need.

use serde_json::{Value, json};

use super::{active, manual, patch, remove, tagging};
use crate::campaigns::{Shop, template};

#[tokio::test]
async fn what_an_active_automation_needs_stays_as_long_as_it_needs_it() {
    let shop = Shop::start().await;
    let trigger = shop.made("/lists", json!({"name": "Trigger"})).await;
    let target = shop.made("/lists", json!({"name": "Target"})).await;
    let segment = shop.made("/segments", json!({"name": "S", "filter": {}})).await;
    let template = shop.made("/templates", template(json!({}))).await;
    let body = json!({"name": "A", "trigger": {"kind": "list_added", "config": {"list_id": trigger}},
        "graph": {"nodes": [
            {"id": "c", "kind": "condition", "config": {"filter": {"type": "segment", "op": "member", "id": segment}}},
            {"id": "s", "kind": "send", "config": {"template_id": template}},
            {"id": "l", "kind": "add_to_list", "config": {"list_id": target}}],
            "edges": [{"from": "c", "to": "s", "branch": "yes"}, {"from": "c", "to": "l", "branch": "no"}]}});
    let path = active(&shop, body).await;
    let id = path.strip_prefix("/automations/").unwrap();
    let named = [
        format!("/lists/{trigger}"),
        format!("/lists/{target}"),
        format!("/segments/{segment}"),
        format!("/templates/{template}"),
    ];
    for path in &named {
        let refused = remove(&shop, path).await;
        assert_eq!(refused.summary(), "409 in_use", "{path}");
        assert_eq!(refused["error"]["details"], json!({"by": [id]}), "{path}");
    }
    // A change that needs less lets go of the rest.
    let change = json!({"trigger": {"kind": "manual"}, "graph": tagging()});
    assert_eq!(patch(&shop, &path, change).await.summary(), "200");
    assert_eq!(remove(&shop, &named[0]).await.summary(), "204");
    let back = json!({"graph": {"nodes": [{"id": "l", "kind": "add_to_list", "config": {"list_id": target}}]}});
    assert_eq!(patch(&shop, &path, back).await.summary(), "200");
    assert_eq!(remove(&shop, &named[1]).await.summary(), "409 in_use");
    // A paused one needs nothing, and is refused when it lacks something.
    assert_eq!(shop.request(&format!("{path}/pause"), Value::Null).await.summary(), "202");
    for path in &named[1..] {
        assert_eq!(remove(&shop, path).await.summary(), "204", "{path}");
    }
    let refused = shop.request(&format!("{path}/activate"), Value::Null).await;
    assert_eq!(super::gaps(&refused), "/graph/nodes/0/config/list_id not_found");
}

#[tokio::test]
async fn a_draft_needs_nothing() {
    let shop = Shop::start().await;
    let graph = json!({"nodes": [{"id": "l", "kind": "add_to_list", "config": {"list_id": shop.list}}]});
    shop.made("/automations", manual(json!({"graph": graph}))).await;
    assert_eq!(remove(&shop, &format!("/lists/{}", shop.list)).await.summary(), "204");
}

#[tokio::test]
async fn a_domain_stays_as_long_as_an_active_automation_sends_from_it() {
    let shop = Shop::start().await;
    let domain = shop.read("/sending-domains").await["data"][0]["id"].as_str().unwrap().to_owned();
    let domain = format!("/sending-domains/{domain}");
    let template = shop.made("/templates", template(json!({}))).await;
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": template}}]});
    let path = active(&shop, manual(json!({"graph": graph}))).await;
    let id = path.strip_prefix("/automations/").unwrap();
    let refused = remove(&shop, &domain).await;
    assert_eq!((refused.summary(), &refused["error"]["details"]), ("409 in_use".to_owned(), &json!({"by": [id]})));
    assert_eq!(shop.request(&format!("{path}/pause"), Value::Null).await.summary(), "202");
    assert_eq!(remove(&shop, &domain).await.summary(), "204");
}
