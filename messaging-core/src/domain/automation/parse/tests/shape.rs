//! Faults that no automation may have, not even a draft.

use super::*;

#[track_caller]
fn trigger(trigger: Value, expected: &str) {
    assert_eq!(shown(&design(trigger.clone(), one("exit", json!({}))).read().shape), expected, "{trigger}");
}

#[track_caller]
fn graph(graph: Value, expected: &str) {
    assert_eq!(shown(&design(manual(), graph.clone()).read().shape), expected, "{graph}");
}

/// Checks the faults of a graph with one node, named by their places within its config.
#[track_caller]
fn config(kind: &str, config: Value, expected: &str) {
    let shown = shown(&design(manual(), one(kind, config.clone())).read().shape);
    assert_eq!(shown.replace("/graph/nodes/0/config", "."), expected, "{kind} {config}");
}

#[test]
fn faults_of_triggers_are_found_at_their_places() {
    for (config, expected) in [
        (json!({"kind": "nothing"}), "/trigger/kind unknown_value"),
        (json!({"kind": 1}), "/trigger/kind invalid_type"),
        (json!({"kind": "manual", "config": []}), "/trigger/config invalid_type"),
        (json!({"kind": "manual", "name": "x"}), "/trigger/name unknown_field"),
        (json!({"kind": "manual", "config": {"x": 1}}), "/trigger/config/x unknown_field"),
        (json!({"kind": "event", "config": {"name": 1}}), "/trigger/config/name invalid_type"),
        (json!({"kind": "event", "config": {"name": "x".repeat(129)}}), "/trigger/config/name too_long"),
        (json!({"kind": "event", "config": {"name": "x", "within": 1}}), "/trigger/config/within unknown_field"),
        (
            json!({"kind": "event", "config": {"where": [{"property": "a", "op": "x", "value": 1}, 5]}}),
            "/trigger/config/where/0/op unknown_value, /trigger/config/where/1 invalid_type",
        ),
        (
            json!({"kind": "segment_enter", "config": {"segment_id": 1, "include_existing": "yes"}}),
            "/trigger/config/include_existing invalid_type, /trigger/config/segment_id invalid_type",
        ),
        (
            json!({"kind": "segment_exit", "config": {"include_existing": true}}),
            "/trigger/config/include_existing unknown_field",
        ),
        (json!({"kind": "list_added", "config": {"list_id": [LIST]}}), "/trigger/config/list_id invalid_type"),
        (
            json!({"kind": "date", "config": {"attribute": "1x", "offset_days": 366, "time": "9:00", "repeat": "monthly"}}),
            "/trigger/config/attribute invalid_format, /trigger/config/offset_days out_of_range, \
             /trigger/config/repeat unknown_value, /trigger/config/time invalid_format",
        ),
        (json!({"kind": "date", "config": {"offset_days": 1.5}}), "/trigger/config/offset_days invalid_type"),
        (json!({"kind": "message_event", "config": {"event": "sent"}}), "/trigger/config/event unknown_value"),
        (
            json!({"kind": "contact_created", "config": {"filter": {"type": "attribute", "key": "a", "op": "huh", "value": 1}}}),
            "/trigger/config/filter/op unknown_value",
        ),
    ] {
        trigger(config, expected);
    }
}

#[test]
fn faults_of_graphs_are_found_at_their_places() {
    let node = |id: &str| json!({"id": id, "kind": "exit"});
    let tag = |id: &str| json!({"id": id, "kind": "add_tag", "config": {"tag": "a"}});
    for (sent, expected) in [
        (json!({"start": "a"}), "/graph/start unknown_field"),
        (json!({"nodes": {}}), "/graph/nodes invalid_type"),
        (json!({"nodes": [1]}), "/graph/nodes/0 invalid_type"),
        (json!({"nodes": [{}]}), "/graph/nodes/0/id required, /graph/nodes/0/kind required"),
        (
            json!({"nodes": [{"id": "a b", "kind": "sleep"}]}),
            "/graph/nodes/0/id invalid_format, /graph/nodes/0/kind unknown_value",
        ),
        (
            json!({"nodes": [{"id": "x".repeat(65), "kind": "exit", "label": 1}]}),
            "/graph/nodes/0/id invalid_format, /graph/nodes/0/label unknown_field",
        ),
        (
            json!({"nodes": [{"id": "a", "kind": "exit", "config": 1, "name": 2, "position": 3}]}),
            "/graph/nodes/0/config invalid_type, /graph/nodes/0/name invalid_type, /graph/nodes/0/position invalid_type",
        ),
        (json!({"nodes": [node("a"), node("b"), node("a")]}), "/graph/nodes/2/id duplicate"),
        (json!({"nodes": [node("a")], "entry": "b"}), "/graph/entry not_found"),
        (json!({"nodes": [node("a")], "entry": 1}), "/graph/entry invalid_type"),
        (json!({"nodes": (0..201).map(|n| node(&n.to_string())).collect::<Vec<_>>()}), "/graph/nodes too_many_items"),
        (
            json!({"nodes": [tag("a")], "edges": [{"from": "a", "to": "b"}, {"from": "c", "to": "a"}]}),
            "/graph/edges/0/to not_found, /graph/edges/1/from not_found",
        ),
        (
            json!({"nodes": [tag("a")], "edges": [{"to": "a"}, {"from": "a", "to": "", "label": 1}, 7]}),
            "/graph/edges/0/from required, /graph/edges/1/label unknown_field, /graph/edges/1/to required, /graph/edges/2 invalid_type",
        ),
        (
            // A node that is broken hides nothing of the edges.
            json!({"nodes": [tag("a"), {"id": "b", "kind": "sleep"}, {"id": "c", "kind": 1}],
                "edges": [{"from": "a", "to": "b", "branch": "yes"}, {"from": "b", "to": "d"}, {"from": "e", "to": "c"}]}),
            "/graph/edges/0/branch unknown_value, /graph/edges/1/to not_found, /graph/edges/2/from not_found, \
             /graph/nodes/1/kind unknown_value, /graph/nodes/2/kind invalid_type",
        ),
        (
            json!({"nodes": [tag("a"), node("b")], "edges": [{"from": "a", "to": "b", "branch": "yes"}]}),
            "/graph/edges/0/branch unknown_value",
        ),
        (
            json!({"nodes": [tag("a"), node("b")], "edges": [{"from": "b", "to": "a"}]}),
            "/graph/edges/0/branch unknown_value",
        ),
        (
            json!({"nodes": [tag("a"), node("b")], "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "a", "branch": "next"}]}),
            "/graph/edges/1/branch duplicate",
        ),
        (json!({"exit_conditions": {}}), "/graph/exit_conditions invalid_type"),
        (
            json!({"exit_conditions": [{"type": "tag", "op": "has_any", "values": [1]}]}),
            "/graph/exit_conditions/0/values/0 invalid_type",
        ),
        (json!({"goal": {"type": "sky"}}), "/graph/goal/type unknown_value"),
        (json!({"goal": "buy"}), "/graph/goal invalid_type"),
    ] {
        graph(sent, expected);
    }
}

#[test]
fn every_kind_of_node_has_its_own_branches() {
    let split = json!({"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]});
    for (kind, config, good, bad) in [
        ("send", json!({}), &["next"][..], &["yes", "event", "error"][..]),
        ("wait", json!({}), &["next"], &["timeout"]),
        ("wait_event", json!({}), &["event", "timeout"], &["next"]),
        ("condition", json!({}), &["yes", "no"], &["next", "maybe"]),
        ("split", split, &["a", "b"], &["c", "next"]),
        ("split", json!({}), &["a", "b"], &[]),
        ("update_contact", json!({}), &["next"], &["error"]),
        ("add_to_list", json!({}), &["next"], &["yes"]),
        ("remove_from_list", json!({}), &["next"], &["yes"]),
        ("add_tag", json!({}), &["next"], &["yes"]),
        ("remove_tag", json!({}), &["next"], &["yes"]),
        ("webhook", json!({}), &["next", "error"], &["timeout"]),
        ("exit", json!({}), &[], &["next"]),
    ] {
        let with = |branch: &str| {
            json!({"nodes": [{"id": "a", "kind": kind, "config": config}, {"id": "b", "kind": "exit"}],
                "edges": [{"from": "a", "to": "b", "branch": branch}]})
        };
        for branch in good {
            graph(with(branch), "");
        }
        for branch in bad {
            graph(with(branch), "/graph/edges/0/branch unknown_value");
        }
    }
}

#[test]
fn faults_of_sends_are_found_at_their_places() {
    config(
        "send",
        json!({"template_id": 5, "channel": "fax", "tone": 1}),
        "./channel unknown_value, ./template_id invalid_type, ./tone unknown_field",
    );
    config(
        "send",
        json!({"from_email": "x", "reply_to": "a***@example.com"}),
        "./from_email invalid_format, ./reply_to not_allowed",
    );
    config("send", json!({"from_email": "", "reply_to": ""}), "./from_email invalid_format, ./reply_to invalid_format");
    config(
        "send",
        json!({"from_name": "a\nb", "subject_override": ""}),
        "./from_name invalid_format, ./subject_override too_short",
    );
    config("send", json!({"category": "important"}), "./category unknown_value");
    config("send", json!({"quiet_hours": {"start": "22:00", "end": "22:00"}}), "./quiet_hours/end conflict");
    config(
        "send",
        json!({"quiet_hours": {"start": "22", "end": "8:00"}}),
        "./quiet_hours/end invalid_format, ./quiet_hours/start invalid_format",
    );
    config(
        "send",
        json!({"frequency_cap": {"per_day": 0, "when_reached": "wait"}}),
        "./frequency_cap/per_day out_of_range, ./frequency_cap/when_reached unknown_value",
    );
    config(
        "send",
        json!({"category": "transactional", "quiet_hours": {"start": "22:00", "end": "08:00"}, "frequency_cap": {"per_day": 1}}),
        "./frequency_cap conflict, ./quiet_hours conflict",
    );
    config("send", json!({"variables": [1]}), "./variables invalid_type");
    config("send", json!({"variables": {"x": "a".repeat(65 << 10)}}), "./variables too_large");
}

#[test]
fn faults_of_waits_are_found_at_their_places() {
    config("wait", json!({"duration": {"value": 0, "unit": "days"}}), "./duration/value out_of_range");
    config(
        "wait",
        json!({"duration": {"value": 1.5, "unit": "years"}}),
        "./duration/unit unknown_value, ./duration/value invalid_type",
    );
    config(
        "wait",
        json!({"duration": {"value": 5_000_000_000_u64, "unit": "seconds"}}),
        "./duration/value out_of_range",
    );
    config("wait", json!({"duration": {"value": 2.0, "unit": "seconds"}}), "");
    config("wait", json!({"duration": {"value": 1, "unit": "days"}, "until": {"time": "09:00"}}), ". conflict");
    config(
        "wait",
        json!({"until": {"time": "25:00"}, "until_attribute": {"key": "a"}}),
        ". conflict, ./until/time invalid_format",
    );
    config(
        "wait",
        json!({"until": {"weekdays": [0, 8], "timezone": "Mars/Base"}}),
        "./until/timezone invalid_format, ./until/weekdays/0 out_of_range, ./until/weekdays/1 out_of_range",
    );
    config(
        "wait",
        json!({"until": {"weekdays": [1, 1], "timezone": "localtime"}}),
        "./until/timezone invalid_format, ./until/weekdays/1 duplicate",
    );
    config("wait", json!({"until": {"day": 1}}), "./until/day unknown_field");
    config(
        "wait",
        json!({"until_attribute": {"key": "a.", "offset": {"value": 1, "unit": "x"}, "direction": "at"}}),
        "./until_attribute/direction unknown_value, ./until_attribute/key invalid_format, ./until_attribute/offset/unit unknown_value",
    );
    let timeout = json!({"value": 1, "unit": "days"});
    config(
        "wait_event",
        json!({"on": {"type": "event", "name": "x", "within": {"last": timeout}, "count": {"op": "gte", "value": 2}}, "timeout": timeout}),
        "./on/count not_allowed, ./on/within not_allowed",
    );
    config("wait_event", json!({"on": {"type": "tag"}}), "./on/type unknown_value");
    config("wait_event", json!({"on": {"type": 1}, "timeout": 5}), "./on/type invalid_type, ./timeout invalid_type");
    config("wait_event", json!({"on": []}), "./on invalid_type");
    config("wait_event", json!({"on": {"and": []}}), "./on/and unknown_field");
    config("wait_event", json!({"on": {"type": "event", "name": "x", "and": []}}), "./on/and unknown_field");
    config(
        "wait_event",
        json!({"on": {"type": "message", "event": "open", "url_contains": "/x", "name": "y"}}),
        "./on/name unknown_field, ./on/url_contains not_allowed",
    );
}

#[test]
fn faults_of_other_nodes_are_found_at_their_places() {
    config(
        "condition",
        json!({"filter": {"type": "attribute", "key": "a", "op": "eq", "value": 1, "value_from": "event.a"}}),
        "./filter/value_from conflict",
    );
    config(
        "condition",
        json!({"filter": {"type": "attribute", "key": "a", "op": "eq", "value_from": "cart"}}),
        "./filter/value_from invalid_format",
    );
    config("condition", json!({"filter": 5, "if": 1}), "./filter invalid_type, ./if unknown_field");
    config("split", json!({"branches": [{"name": "a", "weight": 1}]}), "./branches too_short");
    config("split", json!({"branches": vec![json!({"name": "a", "weight": 1}); 11]}), "./branches too_many_items");
    config(
        "split",
        json!({"branches": [{"name": "a", "weight": 0}, {"name": "b", "weight": -1}]}),
        "./branches/0/weight out_of_range, ./branches/1/weight out_of_range",
    );
    config(
        "split",
        json!({"branches": [{"name": "a", "weight": 1}, {"name": "a", "weight": 1}]}),
        "./branches/1/name duplicate",
    );
    config(
        "update_contact",
        json!({"attributes": {"1a": 1, "b": [[1]]}, "locale": "deutsch!", "timezone": "Mars", "tags_add": ["", "x".repeat(65)], "email": "a@b.c"}),
        "./attributes/1a invalid_format, ./attributes/b/0 invalid_type, ./email unknown_field, ./locale invalid_format, \
         ./tags_add/0 too_short, ./tags_add/1 too_long, ./timezone invalid_format",
    );
    config("add_to_list", json!({"list_id": 1}), "./list_id invalid_type");
    config("remove_from_list", json!({"list": LIST}), "./list unknown_field");
    config("add_tag", json!({"tag": "x".repeat(65)}), "./tag too_long");
    config("remove_tag", json!({"tag": ["a"]}), "./tag invalid_type");
    config(
        "webhook",
        json!({"url": 1, "method": "GET", "headers": {"a b": "1", "Host": "x", "X": 5}, "body": 7}),
        "./body invalid_type, ./headers/Host not_allowed, ./headers/X invalid_type, ./headers/a b invalid_format, \
         ./method unknown_value, ./url invalid_type",
    );
    config(
        "webhook",
        json!({"headers": {"a b": "1", "Host": "x", "X-Y": "a\r\nb", "Idempotency-Key": "1"}}),
        "./headers/Host not_allowed, ./headers/Idempotency-Key not_allowed, ./headers/X-Y invalid_format, ./headers/a b invalid_format",
    );
    let headers: Map<_, _> = (0..31).map(|n| (format!("x-{n}"), json!("1"))).collect();
    config("webhook", json!({"headers": headers}), "./headers too_many_items");
    config("webhook", json!({"url": format!("https://example.com/{}", "x".repeat(2048))}), "./url too_long");
    config("exit", json!({"reason": "x".repeat(201), "code": 1}), "./code unknown_field, ./reason too_long");
}

#[test]
fn a_key_of_re_entry_is_a_place_in_the_event() {
    for (key, expected) in
        [("event.cart.id", ""), ("cart.id", "/re_entry_key invalid_format"), ("event.", "/re_entry_key invalid_format")]
    {
        let sent = Design { re_entry_key: Some(key.to_owned()), ..design(manual(), cart()) };
        assert_eq!(shown(&sent.read().shape), expected, "{key}");
    }
}

#[test]
fn a_design_has_a_greatest_size() {
    let text = "x".repeat(60_000);
    let node = |n: usize| json!({"id": format!("n{n}"), "kind": "webhook", "config": {"url": "https://example.com", "body": text}});
    let nodes: Vec<_> = (0..18).map(node).collect();
    graph(json!({"nodes": nodes}), "/graph too_large");
}
