use jiff::tz::TimeZone;
use serde_json::json;

use super::*;
use crate::domain::audience::contact::Consent;
use crate::domain::audience::contact::tests::bare;
use crate::domain::segment::parse::{Purpose, parse};
use crate::domain::segment::value_test::{TagsTest, ValueTest};
use crate::violation::Violations;

const LIST: &str = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const OTHER_LIST: &str = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ";
const SEGMENT: &str = "seg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const CAMPAIGN: &str = "cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

/// Noon of 31 March 2026 in Berlin.
fn present() -> Present {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    Present { now: "2026-03-31T10:00:00Z".parse().unwrap(), zone }
}

/// All data that a filter can ask about.
struct Person {
    contact: Contact,
    suppressed: HashSet<Channel>,
    subscriptions: HashSet<(ListId, SubscriptionStatus)>,
    segments: HashSet<SegmentId>,
    events: Vec<EventFact>,
    messages: Vec<MessageFact>,
}

impl Person {
    fn new() -> Self {
        let attributes = json!({
            "plan": "Pro Ünlimited", "age": 31, "score": 2.5, "big": 9_007_199_254_740_993_u64, "active": true,
            "nothing": null, "empty": "", "number_text": "31", "colors": ["Red", "green", 7, true], "none": [],
            "address": {"city": "Köln", "geo": {"lat": 50.9}}, "day": "2026-03-31", "time": "2026-03-30T22:00:00Z",
            "born": "1990-04-03", "leap": "1992-02-29", "no_date": "31.03.2026",
        });
        let contact = Contact {
            email: Some("ann@example.com".to_owned()),
            attributes: attributes.as_object().unwrap().clone().into(),
            tags: vec!["vip".to_owned(), "Beta".to_owned()],
            locale: Some("de-AT".to_owned()),
            consent: Consent { marketing_email: Some(true), sms: None },
            list_ids: vec![LIST.parse().unwrap()],
            created_at: "2026-03-01T09:00:00Z".parse().unwrap(),
            updated_at: "2026-03-31T09:59:00Z".parse().unwrap(),
            ..bare()
        };
        let event = |name: &str, at: &str, properties: Value| EventFact {
            name: name.to_owned(),
            at: at.parse().unwrap(),
            properties: properties.as_object().unwrap().clone(),
        };
        let message = |event, at: &str, channel| MessageFact {
            event,
            at: at.parse().unwrap(),
            is_machine: false,
            url: None,
            channel,
            campaign_id: None,
            automation_id: None,
            template_id: None,
        };
        Self {
            contact,
            suppressed: HashSet::from([Channel::Sms]),
            subscriptions: HashSet::from([
                (LIST.parse().unwrap(), SubscriptionStatus::Confirmed),
                (OTHER_LIST.parse().unwrap(), SubscriptionStatus::Left),
            ]),
            segments: HashSet::from([SEGMENT.parse().unwrap()]),
            events: vec![
                event("order", "2026-03-30T10:00:00Z", json!({"total": 60, "items": {"sku": "A1"}})),
                event("order", "2026-03-01T10:00:00Z", json!({"total": 20, "coupon": null})),
                event("visit", "2026-03-31T11:00:00Z", json!({})),
            ],
            messages: vec![
                message(MessageEventKind::Sent, "2026-03-30T10:00:00Z", Channel::Email),
                MessageFact {
                    campaign_id: Some(CAMPAIGN.parse().unwrap()),
                    ..message(MessageEventKind::Sent, "2026-03-31T08:00:00Z", Channel::Sms)
                },
                MessageFact {
                    is_machine: true,
                    ..message(MessageEventKind::Open, "2026-03-30T10:00:00Z", Channel::Email)
                },
                MessageFact {
                    url: Some("https://example.com/SALE?x=1".to_owned()),
                    ..message(MessageEventKind::Click, "2026-03-30T10:05:00Z", Channel::Email)
                },
                MessageFact {
                    is_machine: true,
                    url: Some("https://example.com/other".to_owned()),
                    ..message(MessageEventKind::Click, "2026-03-30T10:05:00Z", Channel::Email)
                },
            ],
        }
    }
}

#[track_caller]
fn check(filter: &Value, expected: bool) {
    let mut violations = Violations::new();
    let parsed = parse(filter, "", Purpose::Segment, &mut violations);
    let filter = parsed.filter.unwrap_or_else(|| panic!("{filter}: {violations:?}"));
    let person = Person::new();
    let facts = Facts {
        contact: &person.contact,
        suppressed: &person.suppressed,
        subscriptions: &person.subscriptions,
        segments: &person.segments,
        events: &person.events,
        messages: &person.messages,
    };
    assert_eq!(filter.matches(facts, &present()), expected, "{filter:?}");
    if let Filter::Where(Condition::Leaf(leaf)) = &filter
        && let Some(passes) = prepared(leaf, &person)
    {
        assert_eq!(passes, expected, "as a store tests it: {filter:?}");
    }
}

/// Returns the outcome of the test that stores use, for a value in a contact's own row or in one product event.
fn prepared(leaf: &Leaf, person: &Person) -> Option<bool> {
    let contact = &person.contact;
    match leaf {
        Leaf::Field(field, test) => {
            let test = ValueTest::new(test, &present());
            Some(match field {
                FilterField::CreatedAt => test.of_time(contact.created_at.as_millis()),
                FilterField::UpdatedAt => test.of_time(contact.updated_at.as_millis()),
                FilterField::Text(ContactField::Email) => test.of_email(contact.email.as_deref()),
                FilterField::Text(field) => test.of_text(contact.field(*field).as_deref()),
            })
        }
        Leaf::Attribute(path, test) => {
            let json = serde_json::to_string(&*contact.attributes).unwrap();
            Some(ValueTest::new(test, &present()).of_member(Some(&json), path).unwrap())
        }
        Leaf::Tags { needs, values } => {
            let json = serde_json::to_string(&contact.tags).unwrap();
            Some(TagsTest::new(*needs, values).of_tags(Some(&json)).unwrap())
        }
        Leaf::Event(event) if event.within.is_none() => {
            let passes = |fact: &&EventFact| {
                let json = serde_json::to_string(&fact.properties).unwrap();
                fact.name == event.name
                    && event.properties.iter().all(|property| {
                        let test = ValueTest::new(&property.test, &present());
                        test.of_member(Some(&json), &property.path).unwrap()
                    })
            };
            Some(event.count.holds(person.events.iter().filter(passes).count()))
        }
        _ => None,
    }
}

/// A value that is not stored at all is missing: no object, no text, no tag.
#[test]
fn a_status_on_a_list_is_asked_for_by_name() {
    let on = |list: &str, op: &str, status: &str| json!({"type": "list", "op": op, "id": list, "status": status});
    check(&on(LIST, "member", "confirmed"), true);
    check(&on(LIST, "member", "left"), false);
    check(&on(OTHER_LIST, "member", "left"), true);
    check(&on(OTHER_LIST, "not_member", "left"), false);
    check(&on(OTHER_LIST, "member", "unconfirmed"), false);
    check(&json!({"type": "list", "op": "member", "id": OTHER_LIST}), false);
}

#[test]
fn nothing_is_missing_for_stores_too() {
    for negated in [false, true] {
        for positive in [Positive::Exists, Positive::AtLeast(0.0), Positive::OneOf(vec![Scalar::Text(String::new())])] {
            let test = ValueTest::new(&Test { negated, positive }, &present());
            assert_eq!(test.of_text(None), negated);
            assert_eq!(test.of_email(None), negated);
            assert_eq!(test.of_member(None, &["a".to_owned()]).unwrap(), negated);
            assert_eq!(test.of_member(Some("{}"), &["a".to_owned()]).unwrap(), negated);
        }
    }
    for (needs, passes) in [(TagsNeeded::Any, false), (TagsNeeded::All, false), (TagsNeeded::None, true)] {
        assert_eq!(TagsTest::new(needs, &["vip".to_owned()]).of_tags(None).unwrap(), passes);
    }
    assert!(ValueTest::contains("x").of_member(Some("[{"), &[]).is_err());
    let url = |text: &str| ValueTest::contains("/sale").of_member(Some(text), &["url".to_owned()]).unwrap();
    assert!(url(r#"{"url":"https://example.com/SALE"}"#) && !url(r#"{"url":"https://example.com/"}"#) && !url("{}"));
}

#[track_caller]
fn attribute(key: &str, op: &str, value: Value, expected: bool) {
    check(&json!({"type": "attribute", "key": key, "op": op, "value": value}), expected);
}

/// An operator and its complement, of which exactly one holds.
#[track_caller]
fn either(key: &str, ops: [&str; 2], value: Value, first: bool) {
    attribute(key, ops[0], value.clone(), first);
    attribute(key, ops[1], value, !first);
}

const EQUAL: [&str; 2] = ["eq", "neq"];
const IN: [&str; 2] = ["in", "not_in"];
const CONTAINS: [&str; 2] = ["contains", "not_contains"];
const EXISTS: [&str; 2] = ["exists", "not_exists"];

#[test]
fn complements_are_exact() {
    for key in ["plan", "age", "active", "empty", "colors", "none", "address", "address.city", "address.geo.lat"] {
        either(key, EXISTS, Value::Null, true);
    }
    for key in ["nothing", "missing", "address.street", "plan.x", "colors.0", "address.geo.lat.x"] {
        either(key, EXISTS, Value::Null, false);
        either(key, EQUAL, json!("x"), false);
        either(key, EQUAL, json!(false), false);
        either(key, IN, json!(["x", 1]), false);
        either(key, CONTAINS, json!("x"), false);
    }
}

#[test]
fn texts_are_compared_without_case() {
    either("plan", EQUAL, json!("pro ünlimited"), true);
    either("plan", EQUAL, json!("PRO ÜNLIMITED"), true);
    either("plan", EQUAL, json!("pro"), false);
    either("plan", IN, json!(["x", "PRO ÜNLIMITED"]), true);
    either("empty", IN, json!([""]), true);
    either("plan", CONTAINS, json!("O ÜN"), true);
    either("plan", CONTAINS, json!("un"), false);
    attribute("plan", "starts_with", json!("PRO"), true);
    attribute("plan", "starts_with", json!("ünlimited"), false);
    attribute("plan", "ends_with", json!("LIMITED"), true);
    attribute("plan", "ends_with", json!("pro"), false);
    attribute("address.city", "eq", json!("KÖLN"), true);
}

#[test]
fn the_type_of_the_value_decides() {
    either("number_text", EQUAL, json!("31"), true);
    either("number_text", EQUAL, json!(31), false);
    either("age", EQUAL, json!(31), true);
    either("age", EQUAL, json!(31.0), true);
    either("age", EQUAL, json!("31"), false);
    either("age", EQUAL, json!(true), false);
    either("age", IN, json!(["31", 31]), true);
    either("active", EQUAL, json!(true), true);
    either("active", EQUAL, json!(false), false);
    either("active", EQUAL, json!("true"), false);
    either("colors", EQUAL, json!("Red"), false);
    either("address", EQUAL, json!("x"), false);
    // Numbers are compared as floating point.
    either("big", EQUAL, json!(9_007_199_254_740_992_u64), true);
}

#[test]
fn numbers_are_compared_with_numbers_only() {
    for (op, below, same, above) in
        [("gt", true, false, false), ("gte", true, true, false), ("lt", false, false, true), ("lte", false, true, true)]
    {
        attribute("age", op, json!(30.9), below);
        attribute("age", op, json!(31), same);
        attribute("age", op, json!(32), above);
        for key in ["number_text", "active", "nothing", "missing", "colors"] {
            attribute(key, op, json!(0), false);
            attribute(key, op, json!(100), false);
        }
    }
    attribute("score", "between", json!([2.5, 3]), true);
    attribute("score", "between", json!([2, 2.5]), true);
    attribute("score", "between", json!([2.6, 3]), false);
    attribute("number_text", "between", json!([0, 100]), false);
}

#[test]
fn arrays_have_elements() {
    either("colors", CONTAINS, json!("RED"), true);
    either("colors", CONTAINS, json!("re"), false);
    either("colors", CONTAINS, json!(7), true);
    either("colors", CONTAINS, json!("7"), false);
    either("colors", CONTAINS, json!(true), true);
    either("colors", CONTAINS, json!(false), false);
    either("none", CONTAINS, json!("x"), false);
    either("age", CONTAINS, json!(31), false);
    attribute("colors", "starts_with", json!("re"), false);
}

#[test]
fn texts_that_are_dates_are_dates() {
    attribute("day", "on", json!("2026-03-31"), true);
    // 22:00 UTC is midnight in Berlin.
    attribute("time", "on", json!("2026-03-31"), true);
    attribute("time", "before", json!("2026-03-31"), false);
    attribute("time", "after", json!("2026-03-30"), true);
    attribute("day", "between", json!(["2026-03-30", "2026-03-31"]), true);
    attribute("day", "between", json!(["2026-04-01", "2026-04-02"]), false);
    attribute("day", "last", json!({"value": 1, "unit": "days"}), true);
    attribute("time", "last", json!({"value": 11, "unit": "hours"}), false);
    attribute("time", "older_than", json!({"value": 11, "unit": "hours"}), true);
    attribute("day", "next", json!({"value": 1, "unit": "days"}), false);
    attribute("born", "anniversary", json!({"offset_days": -3}), true);
    attribute("born", "anniversary", json!({"offset_days": 0}), false);
    attribute("leap", "anniversary", json!({"offset_days": 31}), true);
    for key in ["no_date", "plan", "age", "missing", "nothing", "empty"] {
        attribute(key, "before", json!("2100-01-01"), false);
        attribute(key, "after", json!("1900-01-01"), false);
        attribute(key, "older_than", json!({"value": 1, "unit": "days"}), false);
    }
}

#[test]
fn fields_are_texts_and_times() {
    for (condition, expected) in [
        (json!({"field": "email", "op": "ends_with", "value": "@EXAMPLE.com"}), true),
        (json!({"field": "external_id", "op": "eq", "value": "U-1"}), true),
        (json!({"field": "locale", "op": "starts_with", "value": "de-"}), true),
        (json!({"field": "phone", "op": "not_exists"}), true),
        (json!({"field": "timezone", "op": "neq", "value": "UTC"}), true),
        (json!({"field": "timezone", "op": "in", "value": ["UTC"]}), false),
        (json!({"field": "created_at", "op": "on", "value": "2026-03-01"}), true),
        (json!({"field": "created_at", "op": "last", "value": {"value": 1, "unit": "months"}}), true),
        (json!({"field": "created_at", "op": "older_than", "value": {"value": 31, "unit": "days"}}), false),
        (json!({"field": "created_at", "op": "anniversary", "value": {"offset_days": 30}}), true),
        (json!({"field": "updated_at", "op": "last", "value": {"value": 1, "unit": "minutes"}}), true),
        (json!({"field": "updated_at", "op": "exists"}), true),
    ] {
        let mut condition = condition;
        condition["type"] = json!("contact");
        check(&condition, expected);
    }
}

#[test]
fn tags_lists_segments_consent_and_suppressions() {
    for (condition, expected) in [
        (json!({"type": "tag", "op": "has_any", "values": ["x", "vip"]}), true),
        (json!({"type": "tag", "op": "has_any", "values": ["VIP", "beta"]}), false),
        (json!({"type": "tag", "op": "has_all", "values": ["Beta", "vip"]}), true),
        (json!({"type": "tag", "op": "has_all", "values": ["vip", "x"]}), false),
        (json!({"type": "tag", "op": "has_none", "values": ["x", "VIP"]}), true),
        (json!({"type": "tag", "op": "has_none", "values": ["x", "vip"]}), false),
        (json!({"type": "list", "op": "member", "id": LIST}), true),
        (json!({"type": "list", "op": "not_member", "id": LIST}), false),
        (json!({"type": "list", "op": "member", "id": "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGK"}), false),
        (json!({"type": "segment", "op": "member", "id": SEGMENT}), true),
        (json!({"type": "segment", "op": "not_member", "id": SEGMENT}), false),
        (json!({"type": "consent", "channel": "marketing_email", "value": true}), true),
        (json!({"type": "consent", "channel": "marketing_email", "value": null}), false),
        (json!({"type": "consent", "channel": "sms", "value": false}), false),
        (json!({"type": "consent", "channel": "sms", "value": null}), true),
        (json!({"type": "suppression", "channel": "sms", "value": true}), true),
        (json!({"type": "suppression", "channel": "sms", "value": false}), false),
        (json!({"type": "suppression", "channel": "email", "value": false}), true),
    ] {
        check(&condition, expected);
    }
}

#[track_caller]
fn counted(kind: &str, more: Value, count: usize) {
    for (op, value, expected) in [
        ("eq", count, true),
        ("eq", count + 1, false),
        ("gte", count, true),
        ("gte", count + 1, false),
        ("lte", count, true),
        ("lte", count.saturating_sub(1), count == 0),
    ] {
        let mut condition = json!({"type": kind, "count": {"op": op, "value": value}});
        condition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check(&condition, expected);
    }
    let mut plain = more;
    plain["type"] = json!(kind);
    check(&plain, count > 0);
}

#[test]
fn product_events_are_counted() {
    let event = |more: Value, count| counted("event", more, count);
    event(json!({"name": "order"}), 2);
    event(json!({"name": " order "}), 2);
    event(json!({"name": "Order"}), 0);
    event(json!({"name": "order", "within": {"last": {"value": 24, "unit": "hours"}}}), 1);
    event(json!({"name": "order", "within": {"last": {"value": 23, "unit": "hours"}}}), 0);
    event(json!({"name": "order", "within": {"before": "2026-03-30"}}), 1);
    event(json!({"name": "order", "within": {"after": "2026-03-01T10:00:00Z"}}), 1);
    event(json!({"name": "order", "within": {"between": ["2026-03-01", "2026-03-30"]}}), 2);
    // Future events are not within the last hours.
    event(json!({"name": "visit"}), 1);
    event(json!({"name": "visit", "within": {"last": {"value": 5, "unit": "hours"}}}), 0);
    let at_least_50 = json!({"property": "total", "op": "gte", "value": 50});
    event(json!({"name": "order", "where": []}), 2);
    event(json!({"name": "order", "where": [at_least_50]}), 1);
    event(json!({"name": "order", "where": [{"property": "items.sku", "op": "eq", "value": "a1"}]}), 1);
    event(json!({"name": "order", "where": [{"property": "coupon", "op": "not_exists"}]}), 2);
    event(json!({"name": "order", "where": [{"property": "items.sku", "op": "neq", "value": "A1"}]}), 1);
    // All of them must hold for the same event.
    event(json!({"name": "order", "where": [at_least_50, {"property": "total", "op": "lt", "value": 50}]}), 0);
}

#[test]
fn events_of_messages_are_counted_without_machines() {
    let message = |more: Value, count| counted("message", more, count);
    message(json!({"event": "sent"}), 2);
    message(json!({"event": "sent", "channel": "sms"}), 1);
    message(json!({"event": "sent", "campaign_id": CAMPAIGN}), 1);
    message(json!({"event": "sent", "template_id": "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}), 0);
    message(json!({"event": "sent", "automation_id": "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}), 0);
    message(json!({"event": "sent", "within": {"last": {"value": 2, "unit": "hours"}}}), 1);
    message(json!({"event": "open"}), 0);
    message(json!({"event": "click"}), 1);
    message(json!({"event": "click", "url_contains": "/Sale"}), 1);
    message(json!({"event": "click", "url_contains": "other"}), 0);
    for event in ["delivered", "bounce", "complaint", "unsubscribe"] {
        message(json!({"event": event}), 0);
    }
}

#[test]
fn conditions_are_combined() {
    let (yes, no) = (
        json!({"type": "tag", "op": "has_any", "values": ["vip"]}),
        json!({"type": "tag", "op": "has_any", "values": ["x"]}),
    );
    check(&json!({}), true);
    check(&json!({"and": [yes, yes]}), true);
    check(&json!({"and": [yes, no]}), false);
    check(&json!({"or": [no, yes]}), true);
    check(&json!({"or": [no, no]}), false);
    check(&json!({"not": no}), true);
    check(&json!({"and": [yes, {"not": {"or": [no, {"not": yes}]}}]}), true);
}
