//! Reading of bodies: contract sections 1.1 and 1.4, on inputs made for the purpose.

use messaging_core::DomainError;
use messaging_core::domain::campaign::input::CampaignInput;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::input::{self, BodyKind};
use messaging_core::patch::{Patch, Replace};
use messaging_core::time::Timestamp;
use messaging_core::validate::Validate;
use messaging_core::violation::{FieldCode, Violations};
use messaging_engine::Error;
use messaging_engine::ops::Input;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::bed::fault;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
struct Order {
    #[validate(length(min = 1, max = 5))]
    name: String,
    #[validate(length(min = 1, max = 3), nested)]
    lines: Vec<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = 10))]
    priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gift: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    address: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coupon: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
struct Line {
    #[validate(length(min = 1, max = 4))]
    sku: String,
    #[validate(range(min = 1))]
    quantity: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
struct Address {
    #[validate(length(min = 2))]
    city: String,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "a/b~c")]
    #[validate(length(max = 1))]
    odd: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Documented variants have another schema than plain ones.
    Large,
    /// A second documented variant.
    Small,
}

impl Input for Order {
    const READ_ONLY: &'static [&'static str] = &["id"];

    fn check(&self, violations: &mut Violations) {
        if self.coupon.as_deref().is_some_and(|coupon| !coupon.starts_with("C-")) {
            violations.add("/coupon", FieldCode::InvalidFormat, "must start with C-");
        }
        if self.lines.is_empty() {
            violations.add("/lines", FieldCode::Conflict, "is not reported: its place has a fault already");
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
struct Change {
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = 5))]
    name: Replace<String>,
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    kind: Replace<Kind>,
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = 5))]
    note: Patch<String>,
}

impl Input for Change {
    const BODY: BodyKind = BodyKind::Optional;
}

fn read<T: Input>(text: &str) -> String {
    match input::body::<T>(text.as_bytes()) {
        Ok(_) => "ok".to_owned(),
        Err(DomainError::Invalid(violations)) => {
            let mut faults: Vec<_> =
                violations.as_slice().iter().map(|one| fault(&serde_json::to_value(one).unwrap())).collect();
            faults.sort();
            faults.join(", ")
        }
        Err(error) => error.code().to_owned(),
    }
}

/// Reads an order that is valid except for `changes`.
#[track_caller]
fn check(changes: &Value, expected: &str) {
    let mut body = json!({"name": "a", "lines": [{"sku": "x", "quantity": 1}]});
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    assert_eq!(read::<Order>(&body.to_string()), expected, "{changes}");
}

#[track_caller]
fn check_text(text: &str, expected: &str) {
    assert_eq!(read::<Order>(text), expected, "{text}");
}

#[test]
fn a_body_is_one_json_object() {
    for bad in [
        "",
        " ",
        "{",
        "[]",
        "[\"a\",[]]",
        "null",
        "1",
        "\"{}\"",
        "true",
        "{}{}",
        "{} x",
        "{'a':1}",
        "{\"a\":1,}",
        "\u{feff}{}",
    ] {
        check_text(bad, "invalid_json");
    }
    check_text("  {\"name\":\"a\",\n\t\"lines\":[{\"sku\":\"x\",\"quantity\":1}]}\r\n", "ok");
    let deep = format!("{{\"metadata\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    check_text(&deep, "invalid_json");
    assert!(matches!(input::body::<Order>(b"{\"name\":\"\xff\"}"), Err(DomainError::NotAnObject(_))));
}

#[test]
fn a_body_may_be_left_out_where_that_makes_sense() {
    assert_eq!(read::<Change>(""), "ok");
    assert_eq!(read::<Change>(" \n"), "ok");
    assert_eq!(read::<Change>("{}"), "ok");
    assert_eq!(read::<Change>("[]"), "invalid_json");
    assert_eq!(read::<messaging_engine::ops::Empty>("what is this"), "ok");
}

#[test]
fn required_members() {
    check_text("{}", "/lines required, /name required");
    check(&json!({"name": null, "lines": null}), "/lines required, /name required");
    check(&json!({"name": ""}), "/name required");
    check(&json!({"lines": []}), "/lines too_short");
    check(&json!({"lines": [{}]}), "/lines/0/quantity required, /lines/0/sku required");
    check(&json!({"lines": [{"sku": "", "quantity": null}]}), "/lines/0/quantity required, /lines/0/sku required");
    check(&json!({"address": {}}), "/address/city required");
}

#[test]
fn optional_members_take_null_and_unknown_ones_are_refused() {
    check(&json!({"priority": null, "kind": null, "due": null, "gift": null, "address": null, "metadata": null}), "ok");
    check(&json!({"unknown": {"deep": [1, "x"]}}), "/unknown unknown_field");
    check(&json!({"unknown": null, "priority": 11}), "/priority out_of_range, /unknown unknown_field");
    check(&json!({"lines": [{"sku": "x", "quantity": 1, "unknown": null}]}), "/lines/0/unknown unknown_field");
    check(&json!({"address": {"city": "Bonn", "a/b": 1}}), "/address/a~1b unknown_field");
    check(&json!({"metadata": {"unknown": {"deep": 1}}}), "ok");
    // A read-only member may be sent back, and is unknown inside of another object.
    check(&json!({"id": "ord_1"}), "ok");
    check(&json!({"address": {"city": "Bonn", "id": 1}}), "/address/id unknown_field");
}

#[test]
fn types() {
    check(
        &json!({"name": 1, "priority": "1", "gift": "true"}),
        "/gift invalid_type, /name invalid_type, /priority invalid_type",
    );
    check(&json!({"lines": {}}), "/lines invalid_type");
    check(
        &json!({"lines": ["x", null, {"sku": 1, "quantity": "1"}]}),
        "/lines/0 invalid_type, /lines/1 invalid_type, /lines/2/quantity invalid_type, /lines/2/sku invalid_type",
    );
    check(&json!({"metadata": []}), "/metadata invalid_type");
    check(&json!({"address": "Berlin"}), "/address invalid_type");
    check(&json!({"kind": 1}), "/kind invalid_type");
    check(&json!({"due": 1}), "/due invalid_type");
    check(&json!({"priority": true}), "/priority invalid_type");
    check(&json!({"priority": 1.5}), "/priority invalid_type");
}

#[test]
fn lengths_ranges_counts_and_values_at_their_limits() {
    check(&json!({"name": "äöüßé"}), "ok");
    check(&json!({"name": "äöüßéx"}), "/name too_long");
    check(&json!({"name": "👩‍👩‍👧"}), "ok");
    check(&json!({"address": {"city": "Xy"}}), "ok");
    check(&json!({"address": {"city": "X"}}), "/address/city too_short");
    check(&json!({"priority": 1}), "ok");
    check(&json!({"priority": 10}), "ok");
    check(&json!({"priority": 1e1}), "ok");
    check(&json!({"priority": 0}), "/priority out_of_range");
    check(&json!({"priority": 11}), "/priority out_of_range");
    check(&json!({"priority": 256}), "/priority out_of_range");
    check(&json!({"count": 65535}), "ok");
    check(&json!({"count": 65536}), "/count out_of_range");
    check(&json!({"count": -1}), "/count out_of_range");
    check(&json!({"count": 1e300}), "/count out_of_range");
    check(&json!({"lines": vec![json!({"sku": "x", "quantity": 1}); 3]}), "ok");
    check(&json!({"lines": vec![json!({"sku": "x", "quantity": 1}); 4]}), "/lines too_many_items");
    check(&json!({"lines": [{"sku": "x", "quantity": 0}]}), "/lines/0/quantity out_of_range");
    check(
        &json!({"lines": [{"sku": "xxxxx", "quantity": 4_294_967_296_u64}]}),
        "/lines/0/quantity out_of_range, /lines/0/sku too_long",
    );
    check(&json!({"kind": "large"}), "ok");
    check(&json!({"kind": "medium"}), "/kind unknown_value");
    check(&json!({"kind": ""}), "/kind unknown_value");
    check(&json!({"due": "2026-01-31T09:15:00+01:00"}), "ok");
    check(&json!({"due": "2026-01-31T09:15:00"}), "/due invalid_format");
}

#[test]
fn no_text_holds_u0000() {
    check_text(r#"{"name":"a\u0000","lines":[{"sku":"x","quantity":1}]}"#, "/name invalid_format");
    check_text(r#"{"name":"a","lines":[{"sku":"\u0000","quantity":1}]}"#, "/lines/0/sku invalid_format");
    check(&json!({"metadata": {"a": ["x", {"b": "\0"}]}}), "/metadata/a/1/b invalid_format");
    check(&json!({"metadata": {"a": "\0", "b": ["\0"]}}), "/metadata/a invalid_format, /metadata/b/0 invalid_format");
    check(&json!({"metadata": {"a\0": 1}}), "/metadata invalid_format");
    check(&json!({"coupon": "\0"}), "/coupon invalid_format");
    // An escaped backslash before u0000 is no U+0000.
    check(&json!({"name": "\\u00"}), "ok");
    check(&json!({"metadata": {"a": "\\u0000"}}), "ok");
}

#[test]
fn of_a_member_given_twice_the_last_counts() {
    check_text(r#"{"name":"toolong","lines":[{"sku":"x","quantity":1}],"name":"b"}"#, "ok");
    check_text(r#"{"name":"b","lines":[{"sku":"x","quantity":1}],"name":"toolong"}"#, "/name too_long");
    let order = input::body::<Order>(br#"{"name":"a","lines":[{"sku":"x","quantity":1}],"name":"b"}"#).unwrap();
    assert_eq!(order.name, "b");
}

#[test]
fn pointers_are_escaped() {
    check(&json!({"address": {"city": "Berlin", "a/b~c": "xx"}}), "/address/a~1b~0c too_long");
}

#[test]
fn everything_is_reported_at_once() {
    check_text(
        r#"{"lines":[{"sku":"x","quantity":0},{"quantity":1}],"priority":11,"kind":"x","due":"x","address":{"city":"X"},"coupon":"x"}"#,
        "/address/city too_short, /coupon invalid_format, /due invalid_format, /kind unknown_value, \
         /lines/0/quantity out_of_range, /lines/1/sku required, /name required, /priority out_of_range",
    );
    check_text(r#"{"coupon":"x"}"#, "/coupon invalid_format, /lines required, /name required");
}

#[test]
fn at_most_a_hundred_faults_are_reported() {
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
    struct Many {
        items: Vec<u8>,
    }
    impl Input for Many {}
    let body = json!({"items": vec!["x"; 250]}).to_string();
    let Err(DomainError::Invalid(violations)) = input::body::<Many>(body.as_bytes()) else { panic!("not refused") };
    assert_eq!(violations.as_slice().len(), 100);
    assert_eq!(violations.summary(), "100 fields are invalid");
}

#[test]
fn messages_never_repeat_what_was_sent() {
    let body = json!({"name": "sesame-name", "lines": "sesame-lines", "kind": "sesame-kind", "due": "sesame-due",
        "coupon": "sesame-coupon", "metadata": {"sesame": "\0"}})
    .to_string();
    let Err(error) = input::body::<Order>(body.as_bytes()) else { panic!("not refused") };
    let faults = Error::from(error).to_body("r")["error"]["details"]["errors"].clone();
    assert_eq!(faults.as_array().unwrap().len(), 6);
    for fault in faults.as_array().unwrap() {
        assert!(!fault["message"].as_str().unwrap().contains("sesame"), "{fault}");
    }
}

#[test]
fn members_of_a_patch() {
    let patch = |text: &str| read::<Change>(text);
    assert_eq!(patch(r#"{"name":null,"kind":null}"#), "/kind required, /name required");
    assert_eq!(patch(r#"{"name":"","kind":""}"#), "/kind required, /name required");
    assert_eq!(patch(r#"{"name":"toolong","kind":"x"}"#), "/kind unknown_value, /name too_long");
    assert_eq!(patch(r#"{"note":""}"#), "ok");
    assert_eq!(patch(r#"{"note":"toolong"}"#), "/note too_long");
    let read = |text: &str| input::body::<Change>(text.as_bytes()).unwrap();
    assert_eq!(read("{}").note, Patch::Absent);
    assert_eq!(read(r#"{"note":null}"#).note, Patch::Null);
    assert_eq!(read(r#"{"note":"x","name":"y"}"#).note, Patch::Set("x".to_owned()));
    assert_eq!(read(r#"{"note":"x","name":"y"}"#).name, Replace::with("y".to_owned()));
}

#[test]
fn what_stands_beside_a_fault_in_a_list_is_judged_too() {
    let message = |changes: Value| {
        let mut body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        read::<MessageInput>(&body.to_string())
    };
    // Two members of one element, several elements, and an element that is none.
    let cc = json!(["bad", 5, "bob@example.com", "worse", null]);
    assert_eq!(
        message(json!({"cc": cc, "bcc": ["bad"]})),
        "/bcc/0 invalid_format, /cc/0 invalid_format, /cc/1 invalid_type, /cc/3 invalid_format, /cc/4 invalid_type"
    );
    let too_many: Vec<_> = (0..51).map(|n| if n == 7 { json!(7) } else { json!("bob@example.com") }).collect();
    assert_eq!(message(json!({"cc": too_many})), "/cc too_many_items, /cc/7 invalid_type");
    let buttons = json!([{"text": "", "url": "https:x"}, {"url": "https:/x"}, 7, {"text": "b", "url": "https://x"},
        {"text": "b".repeat(31), "url": "https:///x"}, {"text": "b", "url": "https://x\\y"}, {"text": "b"}]);
    let telegram = json!({"channel": "telegram", "to": "123", "subject": null, "buttons": buttons});
    assert_eq!(
        message(telegram),
        "/buttons/0/text required, /buttons/0/url invalid_format, /buttons/1/text required, \
         /buttons/1/url invalid_format, /buttons/2 invalid_type, /buttons/4/text too_long, \
         /buttons/4/url invalid_format, /buttons/5/url invalid_format, /buttons/6/url required"
    );
    let attachments = json!([{"filename": "", "content_b64": "QQ=="}, {"filename": "a\nb", "content_b64": "QQ=="}, []]);
    assert_eq!(
        message(json!({"attachments": attachments})),
        "/attachments/0/filename required, /attachments/1/filename invalid_format, /attachments/2 invalid_type"
    );
    // Elements that replace unreadable ones are reported nowhere else.
    let campaign = json!({"name": "c", "channel": "email", "template_id": "x", "kind": "ab_test",
        "audience": {"list_ids": ["lst_1", 5]}, "variants": [{"name": "A", "weight": 0}, 5, {"name": "", "subject": ""}]});
    let faults = read::<CampaignInput>(&campaign.to_string());
    for expected in ["/audience/list_ids/1 invalid_type", "/variants/0/weight out_of_range", "/variants/1 invalid_type"]
    {
        assert!(faults.contains(expected), "{faults}");
    }
    assert!(!faults.contains("duplicate") && !faults.contains("/variants too"), "{faults}");
}
