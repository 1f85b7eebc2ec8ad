//! Making, changing, listing, showing and deleting automations.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{active, gaps, manual, patch, remove, tagging};
use crate::bed::{Bed, Call};
use crate::campaigns::{Shop, with};

#[tokio::test]
async fn an_automation_is_created_changed_shown_and_deleted() {
    let shop = Shop::start().await;
    let created = shop.request("/automations", manual(json!({}))).await;
    assert_eq!(created.summary(), "201");
    let mut expected = json!({"id": created["id"], "name": "Welcome", "status": "draft", "pause_reason": null, "trigger": {"kind": "manual"},
        "re_entry": "never", "re_entry_key": null, "version": 1, "graph": tagging(), "activated_at": null,
        "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let path = format!("/automations/{}", created["id"].as_str().unwrap());
    assert_eq!(shop.read(&path).await.body, expected);
    let mut item = expected.clone();
    item.as_object_mut().unwrap().remove("graph");
    let page = json!({"data": [item], "next_cursor": null});
    assert_eq!(shop.read("/automations").await.body, page);
    assert_eq!(shop.read("/automations?status=draft").await.body, page);
    assert_eq!(shop.read("/automations?status=active").await.body, json!({"data": [], "next_cursor": null}));
    assert_eq!(shop.read("/automations?status=on").await.summary(), "422 status unknown_value");

    shop.clock.advance(Duration::from_secs(1));
    // A shown automation may be sent back, which changes nothing.
    assert_eq!(patch(&shop, &path, expected.clone()).await.body, expected);
    let renamed = patch(&shop, &path, json!({"name": "Hello", "status": "active"})).await;
    expected["name"] = json!("Hello");
    expected["updated_at"] = json!("2026-01-31T09:15:01.000Z");
    assert_eq!(renamed.body, expected, "a name makes no version, and the status is read only");
    let both = json!({"trigger": {"kind": "contact_created"}, "re_entry": "always", "re_entry_key": "event.id"});
    let changed = patch(&shop, &path, both).await;
    expected["trigger"] = json!({"kind": "contact_created"});
    expected["re_entry"] = json!("always");
    expected["re_entry_key"] = json!("event.id");
    expected["version"] = json!(2);
    assert_eq!(changed.body, expected, "one change, one version");
    let cleared = patch(&shop, &path, json!({"re_entry": null, "re_entry_key": null})).await;
    assert_eq!((&cleared["re_entry"], &cleared["re_entry_key"]), (&json!("never"), &Value::Null));
    assert_eq!(patch(&shop, &path, json!({"name": null})).await.summary(), "422 /name required");

    assert_eq!(remove(&shop, &path).await.summary(), "204");
    for gone in [
        shop.read(&path).await,
        remove(&shop, &path).await,
        patch(&shop, &path, json!({"name": ""})).await,
        shop.request(&format!("{path}/activate"), Value::Null).await,
        shop.request(&format!("{path}/trigger"), json!({})).await,
        shop.read(&format!("{path}/runs")).await,
        shop.read(&format!("{path}/stats")).await,
        shop.read("/automations/aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH").await,
        shop.read("/automations/x").await,
    ] {
        assert!(gone.summary().starts_with("404") || gone.summary().starts_with("422"), "{}", gone.body);
    }
}

#[tokio::test]
async fn a_draft_may_lack_what_it_needs_but_not_be_wrong() {
    let shop = Shop::start().await;
    let draft = |trigger: Value, graph: Value| json!({"name": "D", "trigger": trigger, "graph": graph});
    let empty = shop.request("/automations", draft(json!({}), json!({}))).await;
    assert_eq!((empty.summary().as_str(), &empty["trigger"], &empty["graph"]), ("201", &json!({}), &json!({})));
    let unknown = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": "tpl_x"}}]});
    assert_eq!(shop.request("/automations", draft(json!({"kind": "event"}), unknown)).await.summary(), "201");
    assert_eq!(
        shop.request("/automations", json!({})).await.summary(),
        "422 /graph required /name required /trigger required"
    );
    let graph = json!({"nodes": [
        {"id": "s", "kind": "send", "config": {"subject_override": "{{ event.", "channel": "fax"}},
        {"id": "w", "kind": "webhook", "config": {"url": "not an address"}},
        {"id": "s", "kind": "wait", "config": {"duration": {"value": 0, "unit": "days"}}}],
        "edges": [{"from": "s", "to": "nowhere"}], "goals": 1});
    let wrong = shop.request("/automations", draft(json!({"kind": "manual", "config": {"x": 1}}), graph)).await;
    assert_eq!(
        wrong.summary(),
        "422 /graph/edges/0/to not_found /graph/goals unknown_field /graph/nodes/0/config/channel unknown_value \
         /graph/nodes/0/config/subject_override syntax /graph/nodes/1/config/url invalid_format \
         /graph/nodes/2/config/duration/value out_of_range /graph/nodes/2/id duplicate /trigger/config/x unknown_field"
    );
    let types = json!({"name": "D", "trigger": [], "graph": "x", "re_entry": "sometimes", "re_entry_key": "cart"});
    assert_eq!(
        shop.request("/automations", types).await.summary(),
        "422 /graph invalid_type /re_entry unknown_value /re_entry_key invalid_format /trigger invalid_type"
    );
    assert_eq!(shop.read("/automations").await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn unknown_members_are_left_out_where_that_is_asked_for() {
    let shop = Shop::start().await;
    let mut body = manual(json!({"colour": "red"}));
    body["graph"]["nodes"][0]["config"]["colour"] = json!("red");
    let (path, bed): (String, &Bed) = (shop.path("/automations"), &shop);
    assert_eq!(
        shop.request("/automations", body.clone()).await.summary(),
        "422 /colour unknown_field /graph/nodes/0/config/colour unknown_field"
    );
    let made = bed.call(Call::new(&shop.caller, Method::POST, &path).body(&body).leniently()).await;
    assert_eq!((made.summary().as_str(), &made["graph"]), ("201", &tagging()));
}

#[tokio::test]
async fn an_active_automation_is_changed_only_into_a_complete_one() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({}))).await;
    let before = shop.read(&path).await.body;
    let incomplete = patch(&shop, &path, json!({"graph": {"nodes": [{"id": "n", "kind": "condition"}]}})).await;
    assert_eq!(gaps(&incomplete), "/graph/nodes/0/config/filter required");
    let wrong = patch(&shop, &path, json!({"graph": {"nodes": [{"id": "n", "kind": "sleep"}]}})).await;
    assert_eq!(wrong.summary(), "422 /graph/nodes/0/kind unknown_value");
    assert_eq!(gaps(&patch(&shop, &path, json!({"trigger": {}})).await), "/trigger/kind required");
    assert_eq!(shop.read(&path).await.body, before);
    let changed = patch(&shop, &path, json!({"graph": {"nodes": [{"id": "n", "kind": "exit"}]}})).await;
    assert_eq!((changed.summary().as_str(), &changed["version"]), ("200", &json!(2)));
    assert_eq!(changed["status"], "active");
    assert_eq!(remove(&shop, &path).await.summary(), "409 invalid_state");
    // Paused it may be incomplete again.
    assert_eq!(shop.request(&format!("{path}/pause"), Value::Null).await.summary(), "202");
    assert_eq!(patch(&shop, &path, json!({"trigger": {}})).await.summary(), "200");
    assert_eq!(gaps(&shop.request(&format!("{path}/activate"), Value::Null).await), "/trigger/kind required");
}

#[tokio::test]
async fn a_repeated_request_makes_no_second_automation() {
    let shop = Shop::start().await;
    let (path, bed, body): (String, &Bed, Value) = (shop.path("/automations"), &shop, manual(json!({})));
    let call = || Call::new(&shop.caller, Method::POST, &path).body(&body).key("k1");
    let (first, second) = (bed.call(call()).await, bed.call(call()).await);
    assert_eq!((first.summary().as_str(), second.summary().as_str()), ("201", "201 replayed"));
    assert_eq!(first["id"], second["id"]);
    assert_eq!(shop.read("/automations").await["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn automations_are_listed_page_by_page_newest_first() {
    let shop = Shop::start().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(shop.made("/automations", with(manual(json!({})), json!({"name": format!("A{number}")}))).await);
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = shop.read(&format!("/automations?limit=2{cursor}")).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ids.reverse();
    assert_eq!(found, ids);
    let other = shop.read(&format!("/automations?status=draft{cursor}")).await;
    assert_eq!(other.summary(), "400 invalid_cursor");
}
