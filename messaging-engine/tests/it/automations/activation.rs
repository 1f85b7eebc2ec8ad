//! Requirements for activating an automation, and its changes of state.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use serde_json::{Value, json};

use super::{active, gaps, manual};
use crate::campaigns::{Shop, template};

/// Creates an automation with this body and returns the result of activating it.
async fn activate(shop: &Shop, body: Value) -> crate::bed::Reply {
    let id = shop.made("/automations", body).await;
    shop.request(&format!("/automations/{id}/activate"), Value::Null).await
}

#[tokio::test]
async fn every_move_is_possible_from_its_states_only() {
    let shop = Shop::start().await;
    let path = format!("/automations/{}", shop.made("/automations", manual(json!({}))).await);
    let step = async |action: &str| {
        let reply = shop.request(&format!("{path}/{action}"), Value::Null).await;
        (reply.summary(), reply.body)
    };
    let (summary, refused) = step("pause").await;
    assert_eq!(summary, "409 invalid_state");
    assert_eq!(refused["error"]["details"], json!({"status": "draft", "allowed": ["active"]}));
    shop.clock.advance(Duration::from_mins(1));
    let (summary, activated) = step("activate").await;
    assert_eq!(summary, "202");
    assert_eq!((&activated["result"], &activated["status"]), (&json!("activated"), &json!("active")));
    assert_eq!(activated["activated_at"], "2026-01-31T09:16:00.000Z");
    let (summary, refused) = step("activate").await;
    assert_eq!(summary, "409 invalid_state");
    assert_eq!(refused["error"]["details"], json!({"status": "active", "allowed": ["draft", "paused"]}));
    let (summary, paused) = step("pause").await;
    assert_eq!(summary, "202");
    assert_eq!((&paused["result"], &paused["status"]), (&json!("paused"), &json!("paused")));
    assert_eq!(step("pause").await.0, "409 invalid_state");
    let (summary, again) = step("activate").await;
    assert_eq!((summary.as_str(), &again["version"]), ("202", &json!(1)));
}

#[tokio::test]
async fn what_it_lacks_is_told_at_its_place() {
    let shop = Shop::start().await;
    let nothing = activate(&shop, json!({"name": "A", "trigger": {}, "graph": {}})).await;
    assert_eq!(gaps(&nothing), "/graph/nodes required, /trigger/kind required");
    let unknown = |kind: &str| format!("{kind}_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    let named = json!({"and": [{"type": "segment", "op": "member", "id": unknown("seg")},
        {"type": "message", "event": "open", "campaign_id": unknown("cmp")},
        {"type": "message", "event": "open", "automation_id": unknown("aut")}]});
    let body = json!({"name": "A", "trigger": {"kind": "list_added", "config": {"list_id": unknown("lst")}},
        "graph": {"nodes": [
            {"id": "c", "kind": "condition", "config": {"filter": named}},
            {"id": "s", "kind": "send", "config": {"template_id": unknown("tpl")}},
            {"id": "l", "kind": "add_to_list", "config": {"list_id": "lst_nothing"}},
            {"id": "u", "kind": "exit"}],
            "edges": [{"from": "c", "to": "s", "branch": "yes"}, {"from": "c", "to": "l", "branch": "no"}], "entry": "c"}});
    assert_eq!(
        gaps(&activate(&shop, body).await),
        "/graph/nodes/0/config/filter/and/0/id not_found, /graph/nodes/0/config/filter/and/1/campaign_id not_found, \
         /graph/nodes/0/config/filter/and/2/automation_id not_found, /graph/nodes/1/config/template_id not_found, \
         /graph/nodes/2/config/list_id not_found, /graph/nodes/3 conflict, /trigger/config/list_id not_found"
    );
}

#[tokio::test]
async fn what_is_wrong_with_nodes_and_edges_is_told_at_once() {
    let shop = Shop::start().await;
    let foreign = shop.made("/templates", template(json!({"from_email": "a@elsewhere.example"}))).await;
    let graph = json!({"entry": "s", "nodes": [
        {"id": "s", "kind": "send", "config": {"template_id": foreign}},
        {"id": "t", "kind": "add_tag", "config": {}},
        {"id": "x", "kind": "exit"}], "edges": [{"from": "s", "to": "t"}, {"from": "t", "to": "s"}]});
    assert_eq!(
        gaps(&activate(&shop, manual(json!({"graph": graph}))).await),
        "/graph/nodes/0/config/from_email not_allowed, /graph/nodes/1/config/tag required, /graph/nodes/2 conflict"
    );
}

#[tokio::test]
async fn sends_need_a_template_that_says_something_a_channel_and_a_sender() {
    let shop = Shop::start().await;
    let plain = |channel: &str| json!({"name": "T", "channel": channel, "text": "Hi"});
    let empty = shop.made("/templates", template(json!({"subject": null, "html": null}))).await;
    let foreign = shop.made("/templates", template(json!({"from_email": "a@elsewhere.example"}))).await;
    let push = shop.made("/templates", plain("push")).await;
    let send = |config: Value| json!({"nodes": [{"id": "s", "kind": "send", "config": config}]});
    for (config, expected) in [
        (json!({"template_id": shop.template}), ""),
        (json!({"template_id": shop.template, "from_email": "x@elsewhere.example"}), "from_email not_allowed"),
        (json!({"template_id": foreign}), "from_email not_allowed"),
        (json!({"template_id": empty}), "template_id required"),
        (json!({"template_id": shop.template, "channel": "sms"}), "template_id conflict"),
        (json!({"template_id": push}), "channel not_allowed"),
        (
            json!({"template_id": push, "channel": Channel::Push, "from_name": "A"}),
            "channel not_allowed, from_name not_allowed",
        ),
    ] {
        let reply = activate(&shop, manual(json!({"graph": send(config.clone())}))).await;
        let shown = if expected.is_empty() { reply.summary() } else { gaps(&reply) };
        let expected = if expected.is_empty() { "202" } else { expected };
        assert_eq!(shown.replace("/graph/nodes/0/config/", ""), expected, "{config}");
    }
}

#[tokio::test]
async fn an_automation_is_complete_again_when_what_it_lacked_is_there() {
    let shop = Shop::start().await;
    let text = json!({"name": "T", "channel": "sms", "text": "Hi"});
    let sms = shop.made("/templates", text).await;
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": sms}}]});
    let path = format!("/automations/{}", shop.made("/automations", manual(json!({"graph": graph}))).await);
    let activate = async || shop.request(&format!("{path}/activate"), Value::Null).await;
    assert_eq!(gaps(&activate().await), "/graph/nodes/0/config/channel not_allowed");
    let channel = shop.path("/channels/sms");
    let bed: &crate::bed::Bed = &shop;
    assert_eq!(bed.put(&shop.caller, &channel, json!({"provider": "sandbox", "config": {}})).await.summary(), "200");
    assert_eq!(activate().await.summary(), "202");
}

#[tokio::test]
async fn what_an_active_one_names_can_be_changed_but_it_stays_complete() {
    let shop = Shop::start().await;
    let path = active(
        &shop,
        manual(json!({"graph": {"nodes": [{"id": "s", "kind": "send",
        "config": {"template_id": shop.template}}]}})),
    )
    .await;
    let other = json!({"graph": {"nodes": [{"id": "s", "kind": "send", "config": {"template_id": "tpl_x"}}]}});
    assert_eq!(gaps(&super::patch(&shop, &path, other).await), "/graph/nodes/0/config/template_id not_found");
}
