use serde_json::{Value, json};

use super::*;
use crate::domain::campaign::check::{ReferenceTarget, ResolvedReference, check_syntax};
use crate::domain::template::Parts;
use crate::input::{self, UnknownMembers};

const TEMPLATE: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const LIST: &str = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

fn faults(violations: &Violations) -> String {
    let text = |one: &crate::violation::Violation| {
        let one = serde_json::to_value(one).unwrap();
        format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
    };
    let mut texts: Vec<_> = violations.as_slice().iter().map(text).collect();
    texts.sort();
    texts.join(", ")
}

fn body(more: Value) -> Value {
    let mut body =
        json!({"name": "Spring", "channel": "email", "template_id": TEMPLATE, "audience": {"list_ids": [LIST]}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[track_caller]
fn check(more: Value, expected: &str) {
    let sent = body(more).to_string();
    let violations = match input::body_with_faults::<CampaignInput>(sent.as_bytes(), UnknownMembers::default()) {
        Ok((input, mut violations)) => {
            violations.merge(check_syntax(input.into_plan(&mut Violations::new()).sources()));
            violations
        }
        Err(crate::DomainError::Invalid(violations)) => violations,
        Err(error) => panic!("{sent}: {error}"),
    };
    assert_eq!(faults(&violations), expected, "{sent}");
}

fn plan(more: Value) -> CampaignPlan {
    let sent: CampaignInput = input::body(body(more).to_string().as_bytes()).unwrap();
    sent.into_plan(&mut Violations::new())
}

#[test]
fn what_is_required_and_what_is_not() {
    check(json!({}), "");
    check(json!({"name": "", "channel": null}), "/channel required, /name required");
    check(json!({"template_id": "", "audience": null}), "/audience required, /template_id required");
    check(
        json!({"kind": null, "subject_override": null, "from_name": null, "from_email": null, "reply_to": null,
            "variants": null, "settings": null}),
        "",
    );
    check(json!({"name": "x".repeat(201)}), "/name too_long");
    check(json!({"nmae": "x"}), "/nmae unknown_field");
    check(json!({"audience": {"lists": []}}), "/audience/lists unknown_field");
}

#[test]
fn what_is_no_id_is_not_found_at_its_place() {
    check(
        json!({"template_id": "tpl_1", "audience": {"list_ids": [LIST, "x"], "segment_ids": [LIST], "exclude_list_ids": [""]}}),
        "/audience/exclude_list_ids/0 not_found, /audience/list_ids/1 not_found, /audience/segment_ids/0 not_found, \
         /template_id not_found",
    );
    check(json!({"audience": {"list_ids": vec![LIST; 101]}}), "/audience/list_ids too_many_items");
}

#[test]
fn all_faults_are_told_at_once() {
    check(
        json!({"name": 5, "from_email": "x", "subject_override": "{{ a", "settings":
            {"quiet_hours": {"start": "22:00", "end": "22:00"}, "rate_limit": 0,
             "frequency_cap": {"per_day": 0}, "ab_test": {"test_percent": 91, "wait_minutes": 0}}}),
        "/from_email invalid_format, /name invalid_type, /settings/ab_test/test_percent out_of_range, \
         /settings/ab_test/wait_minutes out_of_range, /settings/frequency_cap/per_day out_of_range, \
         /settings/quiet_hours/end conflict, /settings/rate_limit out_of_range, /subject_override syntax",
    );
}

#[test]
fn settings_have_their_ranges() {
    let settings = |settings: Value| json!({"settings": settings});
    check(settings(json!({"quiet_hours": {"start": "22:00"}})), "/settings/quiet_hours/end required");
    check(
        settings(json!({"quiet_hours": {"start": "24:00", "end": "8:00"}})),
        "/settings/quiet_hours/end invalid_format, /settings/quiet_hours/start invalid_format",
    );
    check(settings(json!({"quiet_hours": {"start": "22:00", "end": "08:00"}})), "");
    check(settings(json!({"frequency_cap": {}})), "/settings/frequency_cap required");
    check(settings(json!({"frequency_cap": {"per_day": 1.5}})), "/settings/frequency_cap/per_day invalid_type");
    check(
        settings(json!({"frequency_cap": {"per_week": 1, "when_reached": "wait", "defer_hours": 169}})),
        "/settings/frequency_cap/defer_hours out_of_range, /settings/frequency_cap/when_reached unknown_value",
    );
    check(settings(json!({"frequency_cap": {"per_week": 1, "when_reached": "defer", "defer_hours": 168}})), "");
    check(settings(json!({"frequency_cap": {"per_week": 1, "when_reached": null, "defer_hours": null}})), "");
    check(settings(json!({"rate_limit": 1_000_001})), "/settings/rate_limit out_of_range");
    check(settings(json!({"rate_limit": 1_000_000, "utm": {"source": "news"}})), "");
    check(
        settings(json!({"utm": {"source": "", "term": "x"}})),
        "/settings/utm/source too_short, /settings/utm/term unknown_field",
    );
    check(
        settings(json!({"utm": null, "quiet_hours": null, "frequency_cap": null, "ab_test": null, "rate_limit": null})),
        "",
    );
}

#[test]
fn variants_belong_to_a_test_and_only_to_one() {
    let two = json!([{}, {}]);
    check(json!({"kind": "ab_test", "variants": two}), "");
    check(json!({"kind": "ab_test"}), "/variants required");
    check(json!({"kind": "ab_test", "variants": []}), "/variants required");
    check(json!({"kind": "ab_test", "variants": [{}]}), "/variants too_short");
    check(json!({"kind": "ab_test", "variants": [{}, {}, {}, {}, {}, {}]}), "/variants too_many_items");
    check(json!({"variants": []}), "");
    check(json!({"variants": two}), "/variants not_allowed");
    check(json!({"kind": "split", "variants": null}), "/kind unknown_value");
    let test = json!({"ab_test": {"test_percent": 20, "wait_minutes": 240}});
    check(json!({"settings": test}), "/settings/ab_test not_allowed");
    check(json!({"kind": "ab_test", "variants": two, "settings": test}), "");
    check(json!({"kind": "ab_test", "variants": [{"name": "B"}, {}]}), "/variants/1/name duplicate");
    check(
        json!({"kind": "ab_test", "variants": [{"weight": 0}, {"weight": "1"}]}),
        "/variants/0/weight out_of_range, /variants/1/weight invalid_type",
    );
    check(
        json!({"kind": "ab_test", "variants": [{"subject": "{% if %}"}, {"subject": "a\nb", "template_id": "x"}]}),
        "/variants/0/subject syntax, /variants/1/subject invalid_format, /variants/1/template_id not_found",
    );
    let names: Vec<_> = plan(json!({"kind": "ab_test", "variants": [{}, {"name": "x"}, {}]}))
        .variants
        .into_iter()
        .map(|v| v.name)
        .collect();
    assert_eq!(names, ["A", "x", "C"]);
}

#[test]
fn members_of_the_test_have_their_ranges() {
    let test = |members: Value| {
        let mut test = json!({"test_percent": 1, "wait_minutes": 10_080});
        test.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"kind": "ab_test", "variants": [{}, {}], "settings": {"ab_test": test}})
    };
    check(test(json!({"winner_metric": "manual", "min_probability": 0.99, "otherwise": "first"})), "");
    check(test(json!({"winner_metric": null, "min_probability": null, "otherwise": null})), "");
    check(test(json!({"winner_metric": "rate"})), "/settings/ab_test/winner_metric unknown_value");
    check(test(json!({"min_probability": 0.49})), "/settings/ab_test/min_probability out_of_range");
    check(test(json!({"min_probability": 1})), "/settings/ab_test/min_probability out_of_range");
    check(test(json!({"test_percent": null})), "/settings/ab_test/test_percent required");
}

#[test]
fn channels_have_their_members() {
    check(
        json!({"channel": "sms", "from_name": "A", "from_email": "a@example.com", "reply_to": "a@example.com",
            "subject_override": "x", "kind": "ab_test", "variants": [{"subject": "x"}, {}]}),
        "/from_email not_allowed, /from_name not_allowed, /reply_to not_allowed, /subject_override not_allowed, \
         /variants/0/subject not_allowed",
    );
    check(json!({"channel": "push", "subject_override": "{{ contact.first_name }}"}), "");
    check(json!({"from_name": "{{ workspace.name }}", "from_email": "a***@example.com"}), "/from_email not_allowed");
    check(json!({"from_email": "", "reply_to": ""}), "/from_email invalid_format, /reply_to invalid_format");
}

#[test]
fn a_change_replaces_what_is_given_and_the_whole_is_judged() {
    #[track_caller]
    fn change(plan: &CampaignPlan, change: Value) -> (CampaignPlan, String) {
        let change: CampaignPatch = input::body(change.to_string().as_bytes()).unwrap();
        let mut violations = Violations::new();
        (change.apply(plan.clone(), &mut violations), faults(&violations))
    }
    let regular = plan(json!({"subject_override": "Hi", "settings": {"rate_limit": 5, "utm": {"source": "a"}}}));
    assert_eq!(change(&regular, json!({})), (regular.clone(), String::new()));

    let (changed, found) =
        change(&regular, json!({"name": "New", "subject_override": null, "settings": {"rate_limit": 6}}));
    assert_eq!(found, "");
    assert_eq!((changed.name.as_str(), changed.subject_override), ("New", None));
    assert_eq!(serde_json::to_value(&changed.settings).unwrap()["utm"], Value::Null);
    assert_eq!(changed.audience, regular.audience);

    assert_eq!(change(&regular, json!({"kind": "ab_test"})).1, "/variants required");
    assert_eq!(change(&regular, json!({"channel": "sms"})).1, "/subject_override not_allowed");
    let test = plan(
        json!({"kind": "ab_test", "variants": [{}, {}], "settings": {"ab_test": {"test_percent": 20, "wait_minutes": 1}}}),
    );
    assert_eq!(change(&test, json!({"kind": null})).1, "/settings/ab_test not_allowed, /variants not_allowed");
    assert_eq!(change(&test, json!({"kind": "regular", "variants": null, "settings": null})).1, "");
    assert_eq!(change(&test, json!({"variants": null})).1, "/variants required");

    let refused = |change: Value| match input::body::<CampaignPatch>(change.to_string().as_bytes()) {
        Err(crate::DomainError::Invalid(violations)) => faults(&violations),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(json!({"name": null, "template_id": "", "audience": null, "settings": {"rate_limit": 0}})),
        "/audience required, /name required, /settings/rate_limit out_of_range, /template_id required"
    );
    assert_eq!(refused(json!({"variants": [{"name": ""}, {}]})), "/variants/0/name too_short");
    assert_eq!(refused(json!({"audience": {"list_ids": vec![LIST; 101]}})), "/audience/list_ids too_many_items");
}

#[test]
fn what_was_found_is_judged() {
    let plan = plan(json!({"kind": "ab_test", "variants": [{"template_id": TEMPLATE}, {}]}));
    let pointers: Vec<_> = plan.references().into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(pointers, ["/template_id", "/audience/list_ids/0", "/variants/0/template_id"]);
    let whats = [
        ReferenceTarget::Template { channel: Channel::Sms, parts: Parts::default() },
        ReferenceTarget::Nothing,
        ReferenceTarget::Template { channel: Channel::Email, parts: Parts::default() },
    ];
    let found: Vec<_> = plan
        .references()
        .into_iter()
        .zip(whats)
        .map(|((pointer, reference), target)| ResolvedReference { pointer, reference, target })
        .collect();
    let mut violations = Violations::new();
    plan.judge(&found, &mut violations);
    assert_eq!(faults(&violations), "/audience/list_ids/0 not_found, /template_id conflict");
}

#[test]
fn an_estimate_takes_a_whole_campaign() {
    let sent = body(json!({"settings": {}, "variants": []})).to_string();
    assert!(input::body::<AudiencePreviewInput>(sent.as_bytes()).is_ok());
    assert!(input::body::<AudiencePreviewInput>(br#"{"channel":"sms","audience":{}}"#).is_ok());
    assert!(input::body::<AudiencePreviewInput>(br#"{"channel":"sms"}"#).is_err());
    assert!(input::body::<AudiencePreviewInput>(br#"{"channel":"sms","audience":{},"x":1}"#).is_err());
}
