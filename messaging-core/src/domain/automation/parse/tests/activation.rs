//! Faults that keep a draft from being active.

use super::*;

#[track_caller]
fn check(trigger: Value, graph: Value, expected: &str) {
    let read = design(trigger.clone(), graph.clone()).read();
    assert_eq!(shown(&read.shape), "", "{trigger} {graph}");
    assert_eq!(shown(&read.gaps), expected, "{trigger} {graph}");
    assert_eq!(read.plan.is_some(), expected.is_empty());
}

#[track_caller]
fn graph(sent: Value, expected: &str) {
    check(manual(), sent, expected);
}

#[test]
fn triggers_need_what_they_listen_for() {
    for (trigger, expected) in [
        (json!({"config": {}}), "/trigger/kind required"),
        (json!({"kind": "event"}), "/trigger/config/name required"),
        (json!({"kind": "event", "config": {"name": " "}}), "/trigger/config/name required"),
        (
            json!({"kind": "event", "config": {"name": "x", "where": [{"property": "a"}]}}),
            "/trigger/config/where/0/op required",
        ),
        (json!({"kind": "segment_enter", "config": {}}), "/trigger/config/segment_id required"),
        (json!({"kind": "segment_exit", "config": {"segment_id": ""}}), "/trigger/config/segment_id required"),
        (json!({"kind": "segment_exit", "config": {"segment_id": LIST}}), "/trigger/config/segment_id not_found"),
        (json!({"kind": "list_added", "config": {"list_id": null}}), "/trigger/config/list_id required"),
        (json!({"kind": "date", "config": {"time": "10:00"}}), "/trigger/config/attribute required"),
        (
            json!({"kind": "message_event", "config": {"campaign_id": "x"}}),
            "/trigger/config/campaign_id not_found, /trigger/config/event required",
        ),
        (
            json!({"kind": "contact_created", "config": {"filter": {"type": "attribute", "key": "a"}}}),
            "/trigger/config/filter/op required",
        ),
    ] {
        check(trigger, one("exit", json!({})), expected);
    }
}

#[test]
fn nodes_need_what_they_work_with() {
    let timeout = json!({"value": 1, "unit": "days"});
    for (kind, config, expected) in [
        ("send", json!({}), "/template_id required"),
        ("send", json!({"template_id": "tpl_x"}), "/template_id not_found"),
        ("send", json!({"template_id": TEMPLATE, "quiet_hours": {"start": "22:00"}}), "/quiet_hours/end required"),
        ("send", json!({"template_id": TEMPLATE, "frequency_cap": {}}), "/frequency_cap required"),
        ("wait", json!({}), " required"),
        ("wait", json!({"duration": {}}), "/duration/unit required, /duration/value required"),
        ("wait", json!({"until": {"weekdays": [1]}}), "/until/time required"),
        ("wait", json!({"until_attribute": {"direction": "before"}}), "/until_attribute/key required"),
        ("wait_event", json!({}), "/on required, /timeout required"),
        ("wait_event", json!({"on": {}, "timeout": timeout}), "/on/type required"),
        ("wait_event", json!({"on": {"type": "event"}, "timeout": timeout}), "/on/name required"),
        ("condition", json!({}), "/filter required"),
        ("condition", json!({"filter": null}), "/filter required"),
        ("split", json!({}), "/branches required"),
        (
            "split",
            json!({"branches": [{"name": "a"}, {"weight": 1}]}),
            "/branches/0/weight required, /branches/1/name required",
        ),
        ("add_to_list", json!({}), "/list_id required"),
        ("remove_from_list", json!({"list_id": "x"}), "/list_id not_found"),
        ("add_tag", json!({"tag": ""}), "/tag required"),
        ("remove_tag", json!({}), "/tag required"),
        ("webhook", json!({"method": "PUT"}), "/url required"),
        ("update_contact", json!({}), ""),
        ("exit", json!(null), ""),
    ] {
        let place =
            |fault: &str| if fault.is_empty() { String::new() } else { format!("/graph/nodes/0/config{fault}") };
        let expected: Vec<_> = expected.split(", ").map(place).collect();
        graph(one(kind, config), &expected.join(", "));
    }
}

#[test]
fn goals_and_exits_say_something() {
    graph(
        json!({"nodes": [{"id": "a", "kind": "exit"}], "goal": {}, "exit_conditions": [{}]}),
        "/graph/exit_conditions/0/type required, /graph/goal/type required",
    );
}

fn tags(ids: &[&str], edges: &[(&str, &str)]) -> Value {
    let nodes: Vec<_> = ids.iter().map(|id| json!({"id": id, "kind": "add_tag", "config": {"tag": "a"}})).collect();
    let edges: Vec<_> = edges.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"nodes": nodes, "edges": edges})
}

#[test]
fn a_graph_has_one_entry_from_which_every_node_is_reached() {
    graph(json!({"nodes": []}), "/graph/nodes required");
    graph(json!({"edges": []}), "/graph/nodes required");
    graph(tags(&["a"], &[]), "");
    graph(tags(&["b", "a"], &[("a", "b")]), "");
    let plan = design(manual(), tags(&["b", "a"], &[("a", "b")])).parse().unwrap();
    assert_eq!(plan.graph.entry, 1);
    // Two that nothing leads to, and none.
    graph(tags(&["a", "b"], &[]), "/graph/entry required");
    graph(tags(&["a", "b"], &[("a", "b"), ("b", "a")]), "/graph/entry required");
    let mut named = tags(&["a", "b", "c"], &[("c", "b")]);
    named["entry"] = json!("a");
    graph(named, "/graph/nodes/1 conflict, /graph/nodes/2 conflict");
}

/// A circle: a tag, then `node`, and back by each of `branches`.
fn circle(kind: &str, config: Value, branches: &[&str]) -> Value {
    let back = |branch: &&str| json!({"from": "n", "to": "t", "branch": branch});
    let mut edges: Vec<_> = branches.iter().map(back).collect();
    edges.push(json!({"from": "t", "to": "n"}));
    json!({"entry": "t", "nodes": [{"id": "t", "kind": "add_tag", "config": {"tag": "a"}},
        {"id": "n", "kind": kind, "config": config}], "edges": edges})
}

#[test]
fn whoever_goes_in_a_circle_waits() {
    let fault = "/graph/edges conflict";
    let lasting = |value: u32, unit: &str| json!({"value": value, "unit": unit});
    let on = json!({"type": "event", "name": "x"});
    let event = |timeout: Value| json!({"on": on, "timeout": timeout});
    for (kind, config, branches, expected) in [
        ("remove_tag", json!({"tag": "a"}), &["next"][..], fault),
        ("condition", json!({"filter": {}}), &["no"], fault),
        ("wait", json!({"duration": lasting(59, "seconds")}), &["next"], fault),
        ("wait", json!({"duration": lasting(60, "seconds")}), &["next"], ""),
        ("wait", json!({"duration": lasting(1, "minutes")}), &["next"], ""),
        ("wait", json!({"duration": lasting(1, "months")}), &["next"], ""),
        ("wait", json!({"until": {"time": "09:00"}}), &["next"], ""),
        ("wait", json!({"until_attribute": {"key": "a"}}), &["next"], fault),
        ("wait_event", event(lasting(1, "minutes")), &["timeout"], ""),
        ("wait_event", event(lasting(59, "seconds")), &["timeout"], fault),
        ("wait_event", event(lasting(1, "days")), &["event"], fault),
        ("wait_event", event(lasting(1, "days")), &["event", "timeout"], fault),
    ] {
        graph(circle(kind, config, branches), expected);
    }
    let itself = json!({"entry": "a", "nodes": [{"id": "a", "kind": "add_tag", "config": {"tag": "a"}}], "edges": [{"from": "a", "to": "a"}]});
    graph(itself, fault);
    // Branches that meet again are no circle.
    let mut diamond = tags(&["c", "d", "e"], &[("c", "e"), ("d", "e")]);
    diamond["nodes"].as_array_mut().unwrap().push(json!({"id": "q", "kind": "condition", "config": {"filter": {}}}));
    let edges = diamond["edges"].as_array_mut().unwrap();
    edges.extend([json!({"from": "q", "to": "c", "branch": "yes"}), json!({"from": "q", "to": "d", "branch": "no"})]);
    graph(diamond, "");
}
