use serde_json::{Value, json};

use super::super::graph::{Awaited, Delay, DelayUnit, NodeKind, Wait};
use super::super::note::{EntrySubscription, RunSubscription};
use super::super::trigger::TriggerKind;
use super::*;

mod activation;
mod shape;

const LIST: &str = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const SEGMENT: &str = "seg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const TEMPLATE: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const CAMPAIGN: &str = "cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

fn design(trigger: Value, graph: Value) -> Design {
    let object = |value: Value| value.as_object().cloned().unwrap();
    Design { trigger: object(trigger), graph: object(graph), ..Design::default() }
}

/// Faults in alphabetical order: `/graph/nodes required`.
fn shown(violations: &Violations) -> String {
    let shown = serde_json::to_value(violations.as_slice()).unwrap();
    let fault = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
    let mut faults: Vec<_> = shown.as_array().unwrap().iter().map(fault).collect();
    faults.sort();
    faults.join(", ")
}

fn manual() -> Value {
    json!({"kind": "manual"})
}

/// A graph of one node.
fn one(kind: &str, config: Value) -> Value {
    json!({"nodes": [{"id": "n", "kind": kind, "config": config}]})
}

/// The graph of the contract.
fn cart() -> Value {
    json!({"entry": "w", "nodes": [
        {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": "order_placed"},
            "timeout": {"value": 2, "unit": "hours"}}},
        {"id": "s", "kind": "send", "config": {"template_id": TEMPLATE}}, {"id": "x", "kind": "exit"}],
      "edges": [{"from": "w", "to": "x", "branch": "event"}, {"from": "w", "to": "s", "branch": "timeout"},
        {"from": "s", "to": "x"}]})
}

#[test]
fn the_automation_of_the_contract_is_read() {
    let cart = design(json!({"kind": "event", "config": {"name": "cart_updated"}}), cart());
    let read = cart.read();
    assert_eq!(shown(&read.shape) + &shown(&read.gaps), "");
    let plan = cart.parse().unwrap();
    assert_eq!(
        plan.trigger.kind,
        TriggerKind::Event { name: "cart_updated".into(), properties: vec![], conditions: vec![] }
    );
    assert_eq!(plan.graph.entry, 0);
    let NodeKind::WaitEvent { on: Awaited::Event(on), timeout } = &plan.graph.nodes[0].kind else { panic!() };
    assert_eq!((on.name.as_str(), *timeout), ("order_placed", Delay { value: 2, unit: DelayUnit::Hours }));
    let branches: Vec<_> = plan.graph.nodes[0].branches.iter().map(|(name, to)| (name.as_str(), *to)).collect();
    assert_eq!(branches, [("event", 2), ("timeout", 1)]);
    let NodeKind::Send(send) = &plan.graph.nodes[1].kind else { panic!() };
    assert!(send.is_marketing && send.template_id.to_string() == TEMPLATE);
    assert_eq!(plan.graph.nodes[2].kind, NodeKind::Exit(None));
    assert_eq!(plan.subscription().entry, Some(EntrySubscription::Event("cart_updated".into())));
    let runs = RunSubscription { everything: false, events: vec!["order_placed".into()], messages: false };
    assert_eq!(plan.subscription().runs, runs);
    assert_eq!(read.holds().len(), 1);
}

#[test]
fn a_draft_may_be_empty() {
    let read = design(json!({}), json!({})).read();
    assert_eq!(shown(&read.shape), "");
    assert_eq!(shown(&read.gaps), "/graph/nodes required, /trigger/kind required");
    assert_eq!(read.plan, None);
}

#[test]
fn every_kind_of_trigger_is_read() {
    let graph = one("exit", json!({}));
    let kind = |trigger: Value| design(trigger, graph.clone()).parse().unwrap().trigger.kind;
    let where_ = json!([{"property": "total", "op": "gt", "value": 50}]);
    let event = kind(json!({"kind": "event", "config": {"name": " paid ", "where": where_.clone()}}));
    let subscription = EntrySubscription::EventWhere("paid".into(), where_.as_array().unwrap().clone());
    assert!(matches!(&event, TriggerKind::Event { properties, .. } if *properties == subscription.tests()));
    let holds = |properties: Value| {
        let members = properties.as_object().unwrap().clone();
        subscription.tests().iter().all(|test| test.may_hold(&members))
    };
    assert!(holds(json!({"total": 51})) && !holds(json!({"total": 50})) && !holds(json!({})));
    let dated = json!([{"property": "on", "op": "before", "value": "2020-01-01"}]);
    let dated = EntrySubscription::EventWhere("paid".into(), dated.as_array().unwrap().clone()).tests();
    assert!(dated.len() == 1 && dated[0].may_hold(&Map::new()), "what depends on the zone is asked later");
    assert!(matches!(event, TriggerKind::Event { name, properties, .. } if name == "paid" && properties.len() == 1));
    let enter = kind(json!({"kind": "segment_enter", "config": {"segment_id": SEGMENT, "include_existing": true}}));
    assert_eq!(enter, TriggerKind::SegmentEnter { segment_id: SEGMENT.parse().unwrap(), include_existing: true });
    let exit = kind(json!({"kind": "segment_exit", "config": {"segment_id": SEGMENT}}));
    assert_eq!(exit, TriggerKind::SegmentExit(SEGMENT.parse().unwrap()));
    let added = kind(json!({"kind": "list_added", "config": {"list_id": LIST}}));
    assert_eq!(added, TriggerKind::ListAdded(LIST.parse().unwrap()));
    assert_eq!(kind(json!({"kind": "contact_created", "config": null})), TriggerKind::ContactCreated);
    assert_eq!(kind(manual()), TriggerKind::Manual);
    let TriggerKind::Date(date) = kind(json!({"kind": "date", "config": {"attribute": "birthday.date"}})) else {
        panic!()
    };
    assert_eq!(
        (date.attribute, date.offset_days, date.time.to_string().as_str()),
        (vec!["birthday".into(), "date".into()], 0, "09:00:00")
    );
    assert_eq!(date.repeats, super::super::trigger::Repeat::Yearly);
    let date = json!({"attribute": "ends", "offset_days": -365, "time": "23:59", "repeat": "once"});
    let TriggerKind::Date(date) = kind(json!({"kind": "date", "config": date})) else { panic!() };
    assert_eq!((date.offset_days, date.time.to_string().as_str()), (-365, "23:59:00"));
    let message = json!({"event": "click", "campaign_id": CAMPAIGN, "template_id": TEMPLATE});
    let TriggerKind::MessageEvent { campaign_id, template_id, .. } =
        kind(json!({"kind": "message_event", "config": message}))
    else {
        panic!()
    };
    assert_eq!((campaign_id, template_id), (CAMPAIGN.parse().ok(), TEMPLATE.parse().ok()));
}

#[test]
fn every_kind_of_node_is_read() {
    let node = |kind: &str, config: Value| {
        let graph = one(kind, config);
        let read = design(manual(), graph).parse();
        read.unwrap_or_else(|faults| panic!("{kind}: {}", shown(&faults))).graph.nodes.remove(0).kind
    };
    let send = json!({"template_id": TEMPLATE, "channel": "email", "from_email": "a@example.com", "from_name": "A",
        "reply_to": "b@example.com", "subject_override": "Hi {{ event.name }}", "category": "marketing",
        "quiet_hours": {"start": "22:00", "end": "08:00"}, "frequency_cap": {"per_day": 1, "when_reached": "defer"},
        "variables": {"cart": "{{ event.cart }}", "n": 1}});
    assert!(matches!(node("send", send), NodeKind::Send(send) if send.is_marketing && send.variables.len() == 2));
    let plain = json!({"template_id": TEMPLATE, "category": "transactional"});
    assert!(matches!(node("send", plain), NodeKind::Send(send) if !send.is_marketing));
    let days = Delay { value: 3, unit: DelayUnit::Days };
    assert_eq!(node("wait", json!({"duration": {"value": 3, "unit": "days"}})), NodeKind::Wait(Wait::Duration(days)));
    let until = json!({"until": {"time": "09:30", "weekdays": [1, 5], "timezone": "europe/berlin"}});
    let NodeKind::Wait(Wait::Until { time, weekdays, timezone }) = node("wait", until) else { panic!() };
    assert_eq!(
        (time.to_string().as_str(), weekdays, timezone.as_deref()),
        ("09:30:00", vec![1, 5], Some("Europe/Berlin"))
    );
    let NodeKind::Wait(Wait::Until { timezone: None, .. }) =
        node("wait", json!({"until": {"time": "00:00", "timezone": "contact"}}))
    else {
        panic!()
    };
    let attribute = json!({"until_attribute": {"key": "trial.ends", "offset": {"value": 1, "unit": "weeks"}, "direction": "before"}});
    let NodeKind::Wait(Wait::UntilAttribute { key, offset, is_before: true }) = node("wait", attribute) else {
        panic!()
    };
    assert_eq!((key.len(), offset.map(|offset| offset.unit)), (2, Some(DelayUnit::Weeks)));
    let on = json!({"type": "message", "event": "click", "url_contains": "/buy"});
    let waiting = node("wait_event", json!({"on": on, "timeout": {"value": 1, "unit": "months"}}));
    assert!(matches!(waiting, NodeKind::WaitEvent { on: Awaited::Message(_), .. }));
    let keyed =
        json!({"type": "event", "name": "paid", "where": [{"property": "id", "op": "eq", "value_from": "event.id"}]});
    let waiting = node("wait_event", json!({"on": keyed, "timeout": {"value": 90, "unit": "seconds"}}));
    assert!(matches!(waiting, NodeKind::WaitEvent { on: Awaited::Event(on), .. } if on.properties.len() == 1));
    assert!(matches!(node("condition", json!({"filter": {}})), NodeKind::Condition(_)));
    let shares = json!({"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 0.5}]});
    assert!(matches!(node("split", shares), NodeKind::Split(shares) if shares[1].weight.millionths() == 500_000));
    let update = json!({"attributes": {"plan": "{{ event.plan }}", "old": null}, "locale": "{{ event.l }}",
        "timezone": "Europe/Berlin", "tags_add": ["a"], "tags_remove": ["b"]});
    assert!(matches!(node("update_contact", update), NodeKind::UpdateContact(update) if update.attributes.len() == 2));
    assert_eq!(node("add_to_list", json!({"list_id": LIST})), NodeKind::AddToList(LIST.parse().unwrap()));
    assert_eq!(node("remove_from_list", json!({"list_id": LIST})), NodeKind::RemoveFromList(LIST.parse().unwrap()));
    assert_eq!(node("add_tag", json!({"tag": "vip"})), NodeKind::AddTag("vip".into()));
    assert_eq!(node("remove_tag", json!({"tag": "{{ event.tag }}"})), NodeKind::RemoveTag("{{ event.tag }}".into()));
    let call = json!({"url": "https://example.com/x", "method": "PUT", "headers": {"X-Key": "{{ event.k }}"}, "body": {"a": ["{{ event.b }}"]}});
    assert!(matches!(node("webhook", call), NodeKind::Webhook(call) if call.is_put && call.headers.len() == 1));
    assert!(
        matches!(node("webhook", json!({"url": "https://example.com"})), NodeKind::Webhook(call) if call.body.is_none())
    );
    assert_eq!(node("exit", json!({"reason": "done"})), NodeKind::Exit(Some("done".into())));
}

#[test]
fn what_a_design_names_comes_out_with_its_places() {
    let filter = json!({"and": [{"type": "segment", "op": "member", "id": SEGMENT}, {"type": "list", "op": "member", "id": LIST}]});
    let graph = json!({"entry": "a", "nodes": [
        {"id": "a", "kind": "send", "config": {"template_id": TEMPLATE, "subject_override": "Hi {{ event.x }}", "variables": {"a/b": ["{{ 1 }}"]}}},
        {"id": "b", "kind": "webhook", "config": {"url": "https://example.com/", "headers": {"X-A": "1"}, "body": "t"}},
        {"id": "c", "kind": "add_to_list", "config": {"list_id": LIST}}],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c", "branch": "error"}],
        "goal": {"type": "message", "event": "open", "campaign_id": CAMPAIGN}, "exit_conditions": [filter]});
    let read = design(json!({"kind": "segment_enter", "config": {"segment_id": SEGMENT}}), graph).read();
    assert_eq!(shown(&read.shape) + &shown(&read.gaps), "");
    let mut places: Vec<_> = read.references.iter().map(|(pointer, _)| pointer.as_str()).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [
            "/graph/exit_conditions/0/and/0/id",
            "/graph/exit_conditions/0/and/1/id",
            "/graph/goal/campaign_id",
            "/graph/nodes/0/config/template_id",
            "/graph/nodes/2/config/list_id",
            "/trigger/config/segment_id"
        ]
    );
    assert_eq!(read.holds().len(), 3);
    assert_eq!(read.urls, [("/graph/nodes/1/config/url".to_owned(), "https://example.com/".to_owned())]);
    let sources: Vec<_> = read.sources.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        sources,
        [
            "/graph/nodes/0/config/subject_override",
            "/graph/nodes/0/config/variables/a~1b/0",
            "/graph/nodes/1/config/headers/X-A",
            "/graph/nodes/1/config/body"
        ]
    );
    let subscription = read.plan.unwrap().subscription();
    assert_eq!(
        subscription.entry,
        Some(EntrySubscription::SegmentEnter { segment_id: SEGMENT.parse().unwrap(), include_existing: false })
    );
    assert_eq!(subscription.runs, RunSubscription { everything: true, ..RunSubscription::default() });
}

#[test]
fn unknown_members_can_be_left_out() {
    let mut graph = cart();
    graph["comment"] = json!("x");
    graph["nodes"][1]["config"]["tone"] = json!("friendly");
    graph["nodes"][0]["config"]["on"]["note"] = json!(1);
    let many: Vec<_> = (0..150).map(|n| json!({"id": format!("e{n}"), "kind": "exit", "colour": 1})).collect();
    graph["nodes"].as_array_mut().unwrap().extend(many);
    let mut sent = design(json!({"kind": "event", "config": {"name": "x", "hint": 1}, "why": 1}), graph);
    assert_eq!(sent.read().shape.as_slice().len(), 100);
    sent = sent.without_unknown_members();
    assert_eq!(shown(&sent.read().shape), "");
    assert_eq!(sent.trigger, *json!({"kind": "event", "config": {"name": "x"}}).as_object().unwrap());
    assert_eq!(sent.graph["nodes"][1], cart()["nodes"][1]);
    // Of two groups nobody knows which is meant.
    let leaf = json!({"type": "tag", "op": "has_any", "values": ["a"]});
    let two = one("condition", json!({"filter": {"and": [leaf.clone()], "not": leaf}}));
    let kept = design(manual(), two).without_unknown_members();
    assert_eq!(shown(&kept.read().shape), "/graph/nodes/0/config/filter/not unknown_field");
}
