use serde_json::{Map, Value, json};

use crate::domain::segment::filter::{Filter, Leaf};
use crate::domain::segment::parse::{Purpose, parse};
use crate::violation::Violations;

fn read(filter: &Value) -> Filter {
    let mut violations = Violations::new();
    let parsed = parse(filter, "/filter", Purpose::Automation, &mut violations);
    assert!(violations.is_empty(), "{filter}: {violations:?}");
    parsed.filter.unwrap()
}

fn event(properties: Value) -> Map<String, Value> {
    let Value::Object(event) = properties else { panic!("an object") };
    event
}

/// Checks that a bound test equals the one that is parsed with the value itself.
#[track_caller]
fn same(op: &str, kind: Value, value: Value) {
    let leaf = |name: &str, value: Value| {
        let mut leaf = event(kind.clone());
        leaf.insert("op".to_owned(), op.into());
        leaf.insert(name.to_owned(), value);
        Value::Object(leaf)
    };
    let bound = read(&leaf("value_from", "event.a.b".into())).bind(&event(json!({"a": {"b": value}})));
    assert_eq!(bound, read(&leaf("value", value)));
}

#[test]
fn a_value_of_the_event_is_as_good_as_one_that_was_written() {
    let attribute = || json!({"type": "attribute", "key": "cart"});
    for op in ["eq", "neq", "contains", "not_contains"] {
        for value in [json!("X-1"), json!(17), json!(true)] {
            same(op, attribute(), value);
        }
    }
    for op in ["starts_with", "ends_with"] {
        same(op, attribute(), json!("X"));
    }
    for op in ["gt", "gte", "lt", "lte"] {
        same(op, attribute(), json!(59.9));
    }
    same("in", attribute(), json!(["a", 1]));
    same("between", attribute(), json!([1, 2]));
    same("before", attribute(), json!("2026-01-31"));
    same("last", attribute(), json!({"value": 3, "unit": "days"}));
    same("eq", json!({"type": "contact", "field": "email"}), json!("Ann@BÜCHER.example"));
    same("after", json!({"type": "contact", "field": "created_at"}), json!("2026-01-31T09:15:00Z"));
}

#[test]
fn nothing_passes_where_the_event_has_no_such_value() {
    let leaf = |op: &str| read(&json!({"type": "attribute", "key": "cart", "op": op, "value_from": "event.cart_id"}));
    let nothing =
        read(&json!({"type": "attribute", "key": "cart", "op": "eq", "value_from": "event.x"})).bind(&Map::new());
    for (op, properties) in [
        ("eq", json!({})),
        ("eq", json!({"cart_id": null})),
        ("eq", json!({"cart_id": ["a"]})),
        ("gt", json!({"cart_id": "5"})),
        ("before", json!({"cart_id": "soon"})),
        ("between", json!({"cart_id": [2, 1]})),
        ("in", json!({"cart_id": "a"})),
    ] {
        assert_eq!(leaf(op).bind(&event(properties)), nothing, "{op}");
    }
    // The complement holds.
    assert_eq!(leaf("neq").bind(&Map::new()), leaf("not_in").bind(&Map::new()));
    assert_ne!(leaf("neq").bind(&Map::new()), nothing);
}

#[test]
fn values_are_bound_wherever_a_filter_has_them() {
    let keyed = |name: &str, value: Value| {
        let mut test = event(json!({"property": "cart.id", "op": "eq"}));
        test.insert(name.to_owned(), value);
        let attribute = json!({"type": "attribute", "key": "a", "op": "exists"});
        let placed = json!({"type": "event", "name": "order_placed", "where": [test], "within": {"since_entry": true}});
        read(&json!({"and": [attribute, {"or": [{"not": placed}]}]}))
    };
    let bound = keyed("value_from", json!("event.cart_id")).bind(&event(json!({"cart_id": "c-1"})));
    assert_eq!(bound, keyed("value", json!("c-1")));
    assert_eq!(Filter::Everyone.bind(&Map::new()), Filter::Everyone);
    let places: Vec<_> = bound.leaves_at("/graph/goal").into_iter().map(|(at, leaf)| (at, is_event(leaf))).collect();
    assert_eq!(places, [("/graph/goal/and/0".to_owned(), false), ("/graph/goal/and/1/or/0/not".to_owned(), true)]);
}

fn is_event(leaf: &Leaf) -> bool {
    matches!(leaf, Leaf::Event(_))
}
