use serde_json::json;

use super::*;
use crate::domain::segment::filter::{Positive, Scalar};

/// Reads a filter at `/filter` and answers its faults, in alphabetical order: `/filter/op unknown_value`.
fn faults(filter: &Value, purpose: Purpose) -> String {
    let mut violations = Violations::new();
    let parsed = parse(filter, "/filter", purpose, &mut violations);
    assert_eq!(parsed.filter.is_some(), violations.is_empty(), "{filter}");
    let shown = serde_json::to_value(violations.as_slice()).unwrap();
    let fault = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
    let mut faults: Vec<_> = shown.as_array().unwrap().iter().map(fault).collect();
    faults.sort();
    faults.join(", ")
}

#[track_caller]
fn check(filter: Value, expected: &str) {
    assert_eq!(faults(&filter, Purpose::Segment), expected, "{filter}");
}

/// The members of a condition on an attribute, in place of `value`.
fn attribute(op: &str, value: &Value) -> Value {
    json!({"type": "attribute", "key": "a", "op": op, "value": value})
}

fn tag() -> Value {
    json!({"type": "tag", "op": "has_any", "values": ["a"]})
}

/// `leaf` within so many groups.
fn nested(groups: usize, leaf: Value) -> Value {
    (0..groups).fold(leaf, |inner, _| json!({"not": inner}))
}

#[test]
fn everything_of_the_contract_is_a_filter() {
    let id = |kind: &str| format!("{kind}_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    let list = json!({"type": "list", "op": "member", "id": id("lst")});
    check(json!({}), "");
    check(
        json!({"and": [{"type": "attribute", "key": "plan", "op": "in", "value": ["pro", "team"]},
            {"type": "event", "name": "order_placed", "count": {"op": "gte", "value": 2},
                "within": {"last": {"value": 90, "unit": "days"}},
                "where": [{"property": "total", "op": "gt", "value": 50}]},
            {"not": {"type": "message", "event": "open", "campaign_id": id("cmp")}},
            {"or": [{"type": "tag", "op": "has_any", "values": ["vip"]}, list]}]}),
        "",
    );
    for field in ["email", "phone", "external_id", "locale", "timezone"] {
        for op in ["eq", "neq", "contains", "not_contains", "starts_with", "ends_with"] {
            check(json!({"type": "contact", "field": field, "op": op, "value": "x"}), "");
        }
        for op in ["in", "not_in"] {
            check(json!({"type": "contact", "field": field, "op": op, "value": ["x", ""]}), "");
        }
    }
    for field in ["email", "created_at", "updated_at"] {
        for op in ["exists", "not_exists"] {
            check(json!({"type": "contact", "field": field, "op": op}), "");
            check(json!({"type": "contact", "field": field, "op": op, "value": null}), "");
        }
    }
    for field in ["created_at", "updated_at"] {
        for (op, value) in dates() {
            check(json!({"type": "contact", "field": field, "op": op, "value": value}), "");
        }
    }
    let texts = ["eq", "neq", "contains", "not_contains", "starts_with", "ends_with"].map(|op| (op, json!("x")));
    let numbers = ["eq", "neq", "gt", "gte", "lt", "lte", "contains", "not_contains"].map(|op| (op, json!(-1.5)));
    let booleans = ["eq", "neq", "contains", "not_contains"].map(|op| (op, json!(true)));
    let several = [("in", json!(["x", 1])), ("not_in", json!([1, 2])), ("between", json!([1, 2.5]))];
    for (op, value) in texts.into_iter().chain(numbers).chain(booleans).chain(several).chain(dates()) {
        check(attribute(op, &value), "");
        check(json!({"type": "event", "name": "e", "where": [{"property": "a.b", "op": op, "value": value}]}), "");
    }
    for op in ["has_any", "has_all", "has_none"] {
        check(json!({"type": "tag", "op": op, "values": ["a", "b"]}), "");
    }
    for op in ["member", "not_member"] {
        check(json!({"type": "list", "op": op, "id": id("lst")}), "");
        check(json!({"type": "segment", "op": op, "id": id("seg")}), "");
    }
    for value in [json!(true), json!(false), json!(null)] {
        check(json!({"type": "consent", "channel": "sms", "value": value}), "");
        check(json!({"type": "consent", "channel": "marketing_email", "value": value}), "");
    }
    for (channel, _) in CHANNELS {
        check(json!({"type": "suppression", "channel": channel, "value": true}), "");
    }
    for op in ["gte", "lte", "eq"] {
        check(json!({"type": "event", "name": "e", "count": {"op": op, "value": 0}}), "");
    }
    for event in ["sent", "delivered", "open", "bounce", "complaint", "unsubscribe"] {
        check(json!({"type": "message", "event": event, "channel": "email"}), "");
    }
    check(
        json!({"type": "message", "event": "click", "channel": "sms", "campaign_id": id("cmp"),
            "automation_id": id("aut"), "template_id": id("tpl"), "url_contains": "/Sale",
            "count": {"op": "eq", "value": 2.0}, "within": {"before": "2026-01-31"}}),
        "",
    );
    let optional = json!({"type": "message", "event": "open", "channel": null, "campaign_id": null, "count": null,
        "within": null, "url_contains": null});
    check(optional, "");
}

/// The operators of dates with values.
fn dates() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("between", json!(["2026-01-31", "2026-02-01T00:00:00+01:00"])),
        ("anniversary", json!({"offset_days": -3})),
    ];
    for op in ["before", "after", "on"] {
        all.extend([(op, json!("2026-01-31")), (op, json!("2026-01-31T09:15:00Z"))]);
    }
    for op in ["last", "next", "older_than"] {
        for unit in ["minutes", "hours", "days", "weeks", "months"] {
            all.push((op, json!({"value": 1, "unit": unit})));
        }
    }
    all
}

#[test]
fn unknown_names_are_refused() {
    check(json!({"type": "nothing", "op": "eq"}), "/filter/type unknown_value");
    check(json!({"type": "contact", "field": "name", "op": "eq", "value": "x"}), "/filter/field unknown_value");
    check(attribute("equals", &json!("x")), "/filter/op unknown_value");
    check(json!({"type": "tag", "op": "contains", "values": ["a"]}), "/filter/op unknown_value");
    check(json!({"type": "consent", "channel": "email", "value": true}), "/filter/channel unknown_value");
    check(json!({"type": "suppression", "channel": "fax", "value": true}), "/filter/channel unknown_value");
    check(json!({"type": "message", "event": "queued"}), "/filter/event unknown_value");
    check(attribute("last", &json!({"value": 1, "unit": "years"})), "/filter/value/unit unknown_value");
    let count = json!({"type": "event", "name": "e", "count": {"op": "gt", "value": 1}});
    check(count, "/filter/count/op unknown_value");

    check(json!({"and": [tag()], "or": [tag()]}), "/filter/or unknown_field");
    check(json!({"not": tag(), "type": "tag", "a/b": 1}), "/filter/a~1b unknown_field, /filter/type unknown_field");
    check(json!({"type": "tag", "op": "has_any", "values": ["a"], "value": 1}), "/filter/value unknown_field");
    check(attribute("last", &json!({"value": 1, "unit": "days", "x": 1})), "/filter/value/x unknown_field");
    check(attribute("anniversary", &json!({"offset_days": 1, "x": 1})), "/filter/value/x unknown_field");
    let event = json!({"type": "event", "name": "e", "count": {"op": "eq", "value": 1, "x": 1}, "within": {"x": 1},
        "where": [{"property": "p", "op": "exists", "x": 1}], "x": 1});
    check(
        event,
        "/filter/count/x unknown_field, /filter/where/0/x unknown_field, /filter/within required, \
         /filter/within/x unknown_field, /filter/x unknown_field",
    );
    check(json!({"nott": tag()}), "/filter/nott unknown_field, /filter/type required");
}

#[test]
fn what_is_missing_is_named() {
    check(json!({"and": [{}]}), "/filter/and/0/type required");
    check(json!({"type": ""}), "/filter/type required");
    check(json!({"type": "contact"}), "/filter/field required, /filter/op required");
    check(json!({"type": "attribute", "key": "", "op": "eq"}), "/filter/key required, /filter/value required");
    check(attribute("eq", &Value::Null), "/filter/value required");
    check(attribute("starts_with", &json!("")), "/filter/value required");
    check(json!({"type": "tag"}), "/filter/op required, /filter/values required");
    check(json!({"type": "list"}), "/filter/id required, /filter/op required");
    check(json!({"type": "segment", "op": "member", "id": ""}), "/filter/id required");
    check(json!({"type": "consent", "channel": "sms"}), "/filter/value required");
    check(json!({"type": "suppression", "value": null}), "/filter/channel required, /filter/value required");
    check(json!({"type": "event", "name": " "}), "/filter/name required");
    check(
        json!({"type": "event", "where": [{}]}),
        "/filter/name required, /filter/where/0/op required, /filter/where/0/property required",
    );
    check(json!({"type": "message"}), "/filter/event required");
    check(
        json!({"type": "event", "name": "e", "count": {}}),
        "/filter/count/op required, /filter/count/value required",
    );
    check(json!({"type": "event", "name": "e", "within": {}}), "/filter/within required");
    check(attribute("last", &json!({})), "/filter/value/unit required, /filter/value/value required");
    check(attribute("anniversary", &json!({})), "/filter/value/offset_days required");
}

#[test]
fn values_have_the_type_of_their_operator() {
    for other in [json!([]), json!("x"), json!(1), json!(true)] {
        check(other.clone(), "/filter invalid_type");
        check(json!({"and": [other]}), "/filter/and/0 invalid_type");
    }
    for other in [json!({}), json!("x"), json!(null)] {
        check(json!({"and": other}), "/filter/and invalid_type");
    }
    check(json!({"not": [tag()]}), "/filter/not invalid_type");
    check(json!({"type": 5}), "/filter/type invalid_type");
    check(json!({"type": "attribute", "key": 5, "op": 5}), "/filter/key invalid_type, /filter/op invalid_type");
    for (op, value, at) in [
        ("eq", json!(["x"]), ""),
        ("neq", json!({}), ""),
        ("contains", json!([]), ""),
        ("starts_with", json!(1), ""),
        ("ends_with", json!(true), ""),
        ("gt", json!("5"), ""),
        ("lte", json!(true), ""),
        ("in", json!("x"), ""),
        ("in", json!([1, true]), "/1"),
        ("not_in", json!([null]), "/0"),
        ("between", json!(5), ""),
        ("between", json!([1, "2026-01-31"]), "/1"),
        ("between", json!(["2026-01-31", 1]), "/1"),
        ("before", json!(5), ""),
        ("on", json!(true), ""),
        ("last", json!(5), ""),
        ("last", json!({"value": "5", "unit": "days"}), "/value"),
        ("next", json!({"value": 1.5, "unit": 5}), "/value invalid_type, /filter/value/unit"),
        ("anniversary", json!({"offset_days": "1"}), "/offset_days"),
    ] {
        let expected = format!("/filter/value{at} invalid_type");
        let mut parts: Vec<_> = expected.split(", ").collect();
        parts.sort_unstable();
        check(attribute(op, &value), &parts.join(", "));
    }
    check(json!({"type": "contact", "field": "email", "op": "eq", "value": 5}), "/filter/value invalid_type");
    check(json!({"type": "contact", "field": "email", "op": "in", "value": ["x", 5]}), "/filter/value/1 invalid_type");
    let numbers = json!({"type": "contact", "field": "created_at", "op": "between", "value": [1, 2]});
    check(numbers, "/filter/value/0 invalid_type, /filter/value/1 invalid_type");
    check(json!({"type": "tag", "op": "has_any", "values": [1, "a"]}), "/filter/values/0 invalid_type");
    check(json!({"type": "tag", "op": "has_any", "values": "a"}), "/filter/values invalid_type");
    check(json!({"type": "list", "op": "member", "id": 5}), "/filter/id invalid_type");
    check(json!({"type": "consent", "channel": "sms", "value": "yes"}), "/filter/value invalid_type");
    check(json!({"type": "suppression", "channel": "sms", "value": 1}), "/filter/value invalid_type");
    let event = json!({"type": "event", "name": 5, "count": 5, "within": [], "where": {}});
    check(
        event,
        "/filter/count invalid_type, /filter/name invalid_type, /filter/where invalid_type, /filter/within invalid_type",
    );
    check(json!({"type": "event", "name": "e", "where": ["x"]}), "/filter/where/0 invalid_type");
    check(json!({"type": "message", "event": "click", "url_contains": 5}), "/filter/url_contains invalid_type");
}

#[test]
fn texts_keep_their_formats_and_lengths() {
    for date in ["2026-02-30", "31.01.2026", "2026-01-31T09:15:00", "tomorrow"] {
        check(attribute("before", &json!(date)), "/filter/value invalid_format");
    }
    let between = attribute("between", &json!(["2026-01-31", "2026-13-01"]));
    check(between, "/filter/value/1 invalid_format");
    let within = json!({"type": "event", "name": "e", "within": {"after": "x"}});
    check(within, "/filter/within/after invalid_format");
    for key in ["1a", "a.", ".a", "a..b", "a b", "a.b.c.d.e"] {
        check(json!({"type": "attribute", "key": key, "op": "exists"}), "/filter/key invalid_format");
    }
    check(json!({"type": "attribute", "key": "a.b c.1.d", "op": "exists"}), "");
    check(json!({"type": "list", "op": "member", "id": "lst_1"}), "/filter/id not_found");
    let (list, segment) = ("lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "seg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    check(json!({"type": "list", "op": "member", "id": list, "status": "left"}), "");
    check(json!({"type": "list", "op": "member", "id": list, "status": "gone"}), "/filter/status unknown_value");
    check(json!({"type": "segment", "op": "member", "id": segment, "status": "left"}), "/filter/status unknown_field");
    check(json!({"type": "message", "event": "open", "template_id": "x"}), "/filter/template_id not_found");
    check(attribute("eq", &json!("a\u{0}")), "/filter/value invalid_format");
    check(attribute("eq", &json!("a".repeat(MAX_TEXT))), "");
    check(attribute("eq", &json!("a".repeat(MAX_TEXT + 1))), "/filter/value too_long");
    check(json!({"type": "tag", "op": "has_any", "values": ["a".repeat(65)]}), "/filter/values/0 too_long");
    check(json!({"type": "tag", "op": "has_any", "values": [""]}), "/filter/values/0 required");
    check(json!({"type": "event", "name": "e".repeat(129)}), "/filter/name too_long");
}

#[test]
fn numbers_keep_their_ranges() {
    let count = |value: Value| json!({"type": "event", "name": "e", "count": {"op": "eq", "value": value}});
    check(count(json!(4_294_967_295_u32)), "");
    for bad in [json!(-1), json!(4_294_967_296_u64), json!(1e300)] {
        check(count(bad), "/filter/count/value out_of_range");
    }
    for bad in [json!(0), json!(-5), json!(4_294_967_296_u64)] {
        check(attribute("last", &json!({"value": bad, "unit": "days"})), "/filter/value/value out_of_range");
    }
    for bad in [367, -367] {
        check(attribute("anniversary", &json!({"offset_days": bad})), "/filter/value/offset_days out_of_range");
    }
    check(attribute("between", &json!([2, 1])), "/filter/value out_of_range");
    check(attribute("between", &json!(["2026-02-01", "2026-01-31"])), "/filter/value out_of_range");
    let within = json!({"between": ["2026-01-31T09:15:00Z", "2026-01-31T09:14:00Z"]});
    check(json!({"type": "event", "name": "e", "within": within}), "/filter/within/between out_of_range");
}

#[test]
fn operators_that_cannot_apply_are_refused() {
    for op in ["gt", "between", "before", "last", "anniversary"] {
        let condition = json!({"type": "contact", "field": "email", "op": op, "value": "x"});
        check(condition, "/filter/op not_allowed");
    }
    for op in ["eq", "in", "contains", "gt", "starts_with"] {
        let condition = json!({"type": "contact", "field": "created_at", "op": op, "value": "x"});
        check(condition, "/filter/op not_allowed");
    }
    check(attribute("exists", &json!(true)), "/filter/value not_allowed");
    let url = json!({"type": "message", "event": "open", "url_contains": "x"});
    check(url, "/filter/url_contains not_allowed");
    let two = json!({"type": "event", "name": "e", "within": {"after": "2026-01-31", "before": "2026-02-01"}});
    check(two, "/filter/within conflict");
    let entry = json!({"type": "event", "name": "e", "within": {"since_entry": true}});
    check(entry.clone(), "/filter/within/since_entry not_allowed");
    assert_eq!(faults(&entry, Purpose::Automation), "");
    let wrong = json!({"type": "event", "name": "e", "within": {"since_entry": false}});
    assert_eq!(faults(&wrong, Purpose::Automation), "/filter/within/since_entry invalid_type");
}

#[test]
fn lists_are_neither_empty_nor_endless() {
    check(json!({"and": []}), "/filter/and too_short");
    check(json!({"or": []}), "/filter/or too_short");
    check(json!({"type": "tag", "op": "has_any", "values": []}), "/filter/values too_short");
    check(attribute("in", &json!([])), "/filter/value too_short");
    check(attribute("between", &json!([1])), "/filter/value too_short");
    check(attribute("between", &json!([1, 2, 3])), "/filter/value too_many_items");
    let values = |count: usize| Value::Array((0..count).map(Value::from).collect());
    check(attribute("in", &values(MAX_VALUES)), "");
    check(attribute("in", &values(MAX_VALUES + 1)), "/filter/value too_many_items");
    let leaves = |count: usize| Value::Array((0..count).map(|_| tag()).collect());
    check(json!({"or": leaves(MAX_LEAVES)}), "");
    check(json!({"or": leaves(MAX_LEAVES + 1)}), "/filter/or too_many_items");
    check(json!({"or": leaves(100_000)}), "/filter/or too_many_items");
    let last = json!({"and": [{"or": leaves(60)}, {"or": leaves(41)}, {"nothing": 1}]});
    check(last, "/filter/and/1/or too_many_items");
}

#[test]
fn groups_nest_eight_deep() {
    check(nested(MAX_GROUPS, tag()), "");
    let place = "/not".repeat(MAX_GROUPS);
    check(nested(MAX_GROUPS + 1, tag()), &format!("/filter{place} too_many_items"));
    check(nested(100, tag()), &format!("/filter{place} too_many_items"));
}

#[test]
fn all_faults_are_found_at_once_and_not_more_than_a_hundred() {
    check(
        json!({"and": [{"type": "tag"}, {"or": [tag(), {"type": "x"}]}, {"not": {"type": "list", "id": 1}}, 5]}),
        "/filter/and/0/op required, /filter/and/0/values required, /filter/and/1/or/1/type unknown_value, \
         /filter/and/2/not/id invalid_type, /filter/and/2/not/op required, /filter/and/3 invalid_type",
    );
    let broken: Vec<_> = (0..90).map(|_| json!({"type": "tag"})).collect();
    assert_eq!(faults(&json!({"and": broken}), Purpose::Segment).split(", ").count(), 100);
}

#[test]
fn leaves_and_what_they_name_come_with_their_places() {
    let list = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let filter = json!({"and": [tag(), {"or": [{"type": "list", "op": "member", "id": list}, tag()]}, {"not": tag()}]});
    let parsed = parse(&filter, "/where", Purpose::Segment, &mut Violations::new());
    assert_eq!(parsed.leaves, ["/where/and/0", "/where/and/1/or/0", "/where/and/1/or/1", "/where/and/2/not"]);
    assert_eq!(parsed.references, [("/where/and/1/or/0/id".to_owned(), Reference::List(list.parse().unwrap()))]);
    let tree = parsed.filter.unwrap();
    let kinds: Vec<_> = tree.leaves().map(|leaf| matches!(leaf, Leaf::List { .. })).collect();
    assert_eq!(kinds, [false, true, false, false]);
    let alone = parse(&tag(), "/filter", Purpose::Segment, &mut Violations::new());
    assert_eq!(alone.leaves, ["/filter"]);
}

#[test]
fn values_of_an_email_address_are_spelled_as_one() {
    for (op, value, expected) in [
        ("eq", "Ann@B\u{dc}CHER.example", "ann@xn--bcher-kva.example"),
        ("eq", "\u{212a}im@Example.com", "\u{212a}im@example.com"),
        ("neq", "J\u{d6}rg@example.com", "j\u{d6}rg@example.com"),
        ("ends_with", "@b\u{fc}cher.example", "@xn--bcher-kva.example"),
        ("ends_with", ".B\u{fc}cher.Example", ".xn--bcher-kva.example"),
        ("starts_with", "ann@b\u{fc}cher.ex", "ann@xn--bcher-kva.ex"),
        ("starts_with", "J\u{fc}rgen.example", "j\u{fc}rgen.example"),
        ("contains", "b\u{fc}cher.example", "xn--bcher-kva.example"),
        ("contains", "J\u{fc}rgen", "j\u{fc}rgen"),
        ("contains", "J\u{fc}rgen.M\u{fc}ller", "j\u{fc}rgen.m\u{fc}ller"),
    ] {
        let filter = json!({"type": "contact", "field": "email", "op": op, "value": value});
        let parsed = parse(&filter, "", Purpose::Segment, &mut Violations::new());
        let tree = parsed.filter.unwrap();
        let Some(Leaf::Field(_, test)) = tree.leaves().next() else { panic!("{filter}") };
        let (Positive::StartsWith(found) | Positive::EndsWith(found) | Positive::Contains(Scalar::Text(found))) =
            (match &test.positive {
                Positive::OneOf(values) => &Positive::Contains(values[0].clone()),
                other => other,
            })
        else {
            panic!("{filter}")
        };
        assert_eq!(found, expected, "{filter}");
    }
}

#[test]
fn unknown_members_are_refused_or_noted() {
    let filter = json!({"and": [
        {"type": "tag", "op": "has_any", "values": ["a"], "va/lue": 1},
        {"type": "event", "name": "x", "count": {"op": "gte", "value": 1, "more": 1}},
    ], "comment": "x"});
    check(
        filter.clone(),
        "/filter/and/0/va~1lue unknown_field, /filter/and/1/count/more unknown_field, /filter/comment unknown_field",
    );
    let mut violations = Violations::new();
    let mut parsed = parse_ignoring_unknown(&filter, "/filter", Purpose::Segment, &mut violations);
    assert!(parsed.filter.is_some() && violations.is_empty());
    parsed.ignored.sort();
    assert_eq!(parsed.ignored, ["/filter/and/0/va~1lue", "/filter/and/1/count/more", "/filter/comment"]);
    // Of two groups in one object nobody knows which is meant.
    let two = json!({"and": [tag()], "not": tag()});
    assert!(parse_ignoring_unknown(&two, "/filter", Purpose::Segment, &mut violations).filter.is_none());
}
