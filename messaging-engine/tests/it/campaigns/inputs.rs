//! Creating, changing, showing and deleting campaigns, and previews.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{Shop, template, with};
use crate::bed::{Bed, Call};

#[tokio::test]
async fn a_campaign_is_created_changed_shown_and_deleted() {
    let shop = Shop::start().await;
    let created = shop.request("/campaigns", shop.body(json!({}))).await;
    assert_eq!(created.summary(), "201");
    let mut expected = json!({"id": created["id"], "name": "Spring", "channel": "email", "kind": "regular",
        "status": "draft", "phase": null, "template_id": shop.template, "subject_override": null, "from_name": null,
        "from_email": null, "reply_to": null,
        "audience": {"list_ids": [shop.list], "segment_ids": [], "exclude_list_ids": []}, "variants": [],
        "settings": {"utm": null, "quiet_hours": null, "frequency_cap": null, "ab_test": null, "rate_limit": null},
        "scheduled_at": null, "by_timezone": false, "started_at": null, "completed_at": null, "recipients": null,
        "winner_variant": null, "failure_reason": null, "waiting": 0, "pause_reason": null, "warnings": [], "archived": true, "archive_url": null,
        "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let path = format!("/campaigns/{}", created["id"].as_str().unwrap());
    assert_eq!(shop.read(&path).await.body, expected);
    let page = json!({"data": [expected], "next_cursor": null});
    assert_eq!(shop.read("/campaigns").await.body, page);
    assert_eq!(shop.read("/campaigns?status=draft").await.body, page);
    assert_eq!(shop.read("/campaigns?status=sent").await.body, json!({"data": [], "next_cursor": null}));
    assert_eq!(shop.read("/campaigns?status=done").await.summary(), "422 status unknown_value");
    assert_eq!(shop.read("/campaigns?limit=0").await.summary(), "422 limit out_of_range");

    shop.clock.advance(Duration::from_secs(1));
    let target = shop.path(&path);
    let patch = |body: Value| shop.patch(&shop.caller, &target, body);
    // An answer may be sent back, and changes nothing.
    assert_eq!(patch(expected.clone()).await.body, expected);
    let variants = json!([{"name": "A", "weight": 1, "subject": "Hello {{ contact.email }}"}, {"weight": 2.5}]);
    let change = json!({"name": "Summer", "kind": "ab_test", "variants": variants,
        "settings": {"quiet_hours": {"start": "22:00", "end": "08:00"}, "frequency_cap": {"per_day": 1},
            "ab_test": {"test_percent": 20, "wait_minutes": 240}}});
    let changed = patch(change).await;
    assert_eq!(changed.summary(), "200");
    expected["name"] = json!("Summer");
    expected["kind"] = json!("ab_test");
    expected["variants"] = json!([
        {"name": "A", "weight": 1, "subject": "Hello {{ contact.email }}", "template_id": null},
        {"name": "B", "weight": 2.5, "subject": null, "template_id": null}]);
    expected["settings"] = json!({"utm": null, "quiet_hours": {"start": "22:00", "end": "08:00"}, "rate_limit": null,
        "frequency_cap": {"per_day": 1, "per_week": null, "when_reached": "suppress", "defer_hours": 24},
        "ab_test": {"test_percent": 20, "wait_minutes": 240, "winner_metric": "open_rate", "min_probability": null,
            "otherwise": "manual"}});
    expected["updated_at"] = json!("2026-01-31T09:15:01.000Z");
    assert_eq!(changed.body, expected);
    // A given member replaces the earlier one as a whole; null clears it.
    let cleared = patch(json!({"settings": {"rate_limit": 5}, "kind": null, "variants": null})).await;
    assert_eq!((&cleared["kind"], &cleared["variants"]), (&json!("regular"), &json!([])));
    assert_eq!(
        cleared["settings"],
        json!({"utm": null, "quiet_hours": null, "frequency_cap": null, "ab_test": null, "rate_limit": 5})
    );

    assert_eq!(shop.delete(&shop.caller, &target).await.summary(), "204");
    for gone in [
        shop.read(&path).await,
        shop.delete(&shop.caller, &target).await,
        shop.patch(&shop.caller, &target, json!({"name": ""})).await,
        shop.read(&format!("{path}/recipients")).await,
        shop.request(&format!("{path}/schedule"), json!({"at": "x"})).await,
        shop.request(&format!("{path}/winner"), json!({})).await,
        shop.request(&format!("{path}/pause"), json!(null)).await,
    ] {
        assert_eq!(gone.summary(), "404 not_found");
    }
}

/// Errors of a campaign, each with its pointer.
#[tokio::test]
async fn every_fault_is_told_at_its_place() {
    let shop = Shop::start().await;
    let sms = shop.made("/templates", json!({"name": "S", "channel": "sms", "text": "hi"})).await;
    let foreign = other_workspace(&shop.product).await;
    let none = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let ab = |more: Value| with(json!({"kind": "ab_test", "variants": [{}, {}]}), more);
    let settings = |settings: Value| json!({"settings": settings});
    for (more, expected) in [
        (json!({"name": ""}), "422 /name required"),
        (json!({"name": null}), "422 /name required"),
        (json!({"name": "x".repeat(201)}), "422 /name too_long"),
        (json!({"channel": null}), "422 /channel required"),
        (json!({"channel": "fax"}), "422 /channel unknown_value"),
        (json!({"template_id": null}), "422 /template_id required"),
        (json!({"template_id": none}), "422 /template_id not_found"),
        (json!({"template_id": "x"}), "422 /template_id not_found"),
        (json!({"template_id": foreign.template}), "422 /template_id not_found"),
        (json!({"template_id": sms}), "422 /template_id conflict"),
        (json!({"channel": "sms", "template_id": sms, "subject_override": "x"}), "422 /subject_override not_allowed"),
        (json!({"audience": null}), "422 /audience required"),
        (json!({"audience": {"list_ids": "x"}}), "422 /audience/list_ids invalid_type"),
        // A derived decoder would read a list as an object with its members in order.
        (json!({"audience": [null, null]}), "422 /audience invalid_type"),
        (
            json!({"audience": {"list_ids": [shop.list, "lst_x"], "segment_ids": ["seg_x"], "exclude_list_ids": [foreign.list]}}),
            "422 /audience/exclude_list_ids/0 not_found /audience/list_ids/1 not_found /audience/segment_ids/0 not_found",
        ),
        (json!({"audience": {"lists": []}}), "422 /audience/lists unknown_field"),
        (json!({"kind": "other"}), "422 /kind unknown_value"),
        (json!({"variants": [{}, {}]}), "422 /variants not_allowed"),
        (json!({"kind": "ab_test"}), "422 /variants required"),
        (ab(json!({"variants": []})), "422 /variants required"),
        (ab(json!({"variants": [{}]})), "422 /variants too_short"),
        (ab(json!({"variants": [{}, {}, {}, {}, {}, {}]})), "422 /variants too_many_items"),
        (ab(json!({"variants": [{"weight": 0}, {}]})), "422 /variants/0/weight out_of_range"),
        (ab(json!({"variants": [{"weight": "x"}, {}]})), "422 /variants/0/weight invalid_type"),
        (ab(json!({"variants": [{"name": "B"}, {}]})), "422 /variants/1/name duplicate"),
        (ab(json!({"variants": [{"template_id": sms}, {}]})), "422 /variants/0/template_id conflict"),
        (
            ab(json!({"variants": [{"subject": "{{"}, {"subject": "{% endif %}", "template_id": none}]})),
            "422 /variants/0/subject syntax /variants/1/subject syntax /variants/1/template_id not_found",
        ),
        (
            json!({"subject_override": "{{ x", "from_name": "{% if %}"}),
            "422 /from_name syntax /subject_override syntax",
        ),
        (json!({"subject_override": "a\nb"}), "422 /subject_override invalid_format"),
        (
            json!({"from_email": "nobody", "reply_to": "a***@example.com"}),
            "422 /from_email invalid_format /reply_to not_allowed",
        ),
        (
            settings(json!({"quiet_hours": {"start": "22:00", "end": "22:00"}})),
            "422 /settings/quiet_hours/end conflict",
        ),
        (
            settings(json!({"quiet_hours": {"start": "9:00", "end": "22:00"}})),
            "422 /settings/quiet_hours/start invalid_format",
        ),
        (settings(json!({"frequency_cap": {}})), "422 /settings/frequency_cap required"),
        (settings(json!({"frequency_cap": {"per_day": 0}})), "422 /settings/frequency_cap/per_day out_of_range"),
        (
            settings(json!({"frequency_cap": {"per_day": 1, "when_reached": "x", "defer_hours": 0}})),
            "422 /settings/frequency_cap/defer_hours out_of_range /settings/frequency_cap/when_reached unknown_value",
        ),
        (settings(json!({"rate_limit": 0})), "422 /settings/rate_limit out_of_range"),
        (settings(json!({"utm": {"medium": ""}})), "422 /settings/utm/medium too_short"),
        (settings(json!({"utm": {"term": "x"}})), "422 /settings/utm/term unknown_field"),
        (settings(json!({"ab_test": {"test_percent": 20, "wait_minutes": 1}})), "422 /settings/ab_test not_allowed"),
        (
            ab(settings(json!({"ab_test": {"test_percent": 0, "wait_minutes": 10_081, "winner_metric": "x"}}))),
            "422 /settings/ab_test/test_percent out_of_range /settings/ab_test/wait_minutes out_of_range \
             /settings/ab_test/winner_metric unknown_value",
        ),
        (
            ab(settings(json!({"ab_test": {}}))),
            "422 /settings/ab_test/test_percent required /settings/ab_test/wait_minutes required",
        ),
        (
            ab(settings(
                json!({"ab_test": {"test_percent": 20, "wait_minutes": 1, "min_probability": 0.4, "otherwise": "x"}}),
            )),
            "422 /settings/ab_test/min_probability out_of_range /settings/ab_test/otherwise unknown_value",
        ),
        (json!({"nmae": "x"}), "422 /nmae unknown_field"),
        // A member that cannot be read does not stop the check of the others.
        (
            json!({"name": 5, "template_id": none, "subject_override": "{{", "settings": {"rate_limit": 0}}),
            "422 /name invalid_type /settings/rate_limit out_of_range /subject_override syntax /template_id not_found",
        ),
    ] {
        let body = shop.body(more.clone());
        assert_eq!(shop.request("/campaigns", body).await.summary(), expected, "{more}");
        // A change is checked by the same rules.
        let target = shop.path(&format!("/campaigns/{}", shop.campaign(json!({})).await));
        assert_eq!(shop.patch(&shop.caller, &target, more.clone()).await.summary(), expected, "{more}");
    }
    for (more, expected) in [
        (json!({"channel": "sms"}), "422 /template_id conflict"),
        (json!({"kind": "ab_test"}), "422 /variants required"),
    ] {
        let target = shop.path(&format!("/campaigns/{}", shop.campaign(json!({})).await));
        assert_eq!(shop.patch(&shop.caller, &target, more).await.summary(), expected);
    }
    assert_eq!(
        shop.request("/campaigns", json!({})).await.summary(),
        "422 /audience required /channel required /name required /template_id required"
    );
    let all = shop.read("/campaigns?limit=200").await;
    assert!(all["data"].as_array().unwrap().iter().all(|one| one["name"] == "Spring"), "nothing was kept");
}

struct Foreign {
    template: String,
    list: String,
}

/// Creates another workspace that has a template and a list.
async fn other_workspace(product: &crate::support::Product) -> Foreign {
    let workspace =
        messaging_engine::admin::create_workspace(&product.app, "Other", "owner@acme.com").await.unwrap().id;
    let caller = messaging_engine::Caller::Operator(Some(workspace));
    let made = async |path: &str, body: Value| {
        let reply = product.post(&caller, &format!("/workspaces/{workspace}{path}"), body).await;
        assert_eq!(reply.summary(), "201");
        reply["id"].as_str().unwrap().to_owned()
    };
    Foreign {
        template: made("/templates", template(json!({}))).await,
        list: made("/lists", json!({"name": "Theirs"})).await,
    }
}

#[tokio::test]
async fn the_campaigns_of_another_workspace_are_unknown() {
    let shop = Shop::start().await;
    let id = shop.campaign(json!({})).await;
    let owner = "owner@acme.com";
    let other = messaging_engine::admin::create_workspace(&shop.app, "Other", owner).await.unwrap().id;
    let caller = messaging_engine::Caller::Operator(Some(other));
    let base = format!("/workspaces/{other}/campaigns/{id}");
    let bed: &Bed = &shop;
    assert_eq!(bed.get(&caller, &base).await.summary(), "404 not_found");
    assert_eq!(bed.get(&caller, &format!("{base}/recipients")).await.summary(), "404 not_found");
    assert_eq!(bed.patch(&caller, &base, json!({"name": "x"})).await.summary(), "404 not_found");
    assert_eq!(bed.delete(&caller, &base).await.summary(), "404 not_found");
    for action in ["schedule", "pause", "cancel", "unschedule"] {
        let target = format!("{base}/{action}");
        assert_eq!(bed.post(&caller, &target, json!({"send_now": true})).await.summary(), "404 not_found", "{action}");
    }
    assert_eq!(bed.post(&caller, &format!("{base}/winner"), json!({"variant": "A"})).await.summary(), "404 not_found");
    let listed = bed.get(&caller, &format!("/workspaces/{other}/campaigns")).await;
    assert_eq!(listed.body, json!({"data": [], "next_cursor": null}));
    assert_eq!(shop.read(&format!("/campaigns/{id}")).await["status"], "draft");
}

#[tokio::test]
async fn campaigns_are_read_with_one_scope_and_changed_with_another() {
    let shop = Shop::start().await;
    let id = shop.campaign(json!({})).await;
    let (reader, writer) =
        (shop.key(shop.workspace, &["campaigns:read"]).await, shop.key(shop.workspace, &["campaigns:write"]).await);
    let preview = json!({"channel": "email", "audience": {"list_ids": [shop.list]}});
    for caller in [&reader, &writer] {
        assert_eq!(shop.get(caller, &shop.path("/campaigns")).await.summary(), "200");
        assert_eq!(shop.get(caller, &shop.path(&format!("/campaigns/{id}/recipients"))).await.summary(), "200");
        let target = shop.path("/campaigns/preview-audience");
        assert_eq!(shop.post(caller, &target, preview.clone()).await.summary(), "200");
    }
    let target = shop.path(&format!("/campaigns/{id}"));
    for reply in [
        shop.post(&reader, &shop.path("/campaigns"), shop.body(json!({}))).await,
        shop.patch(&reader, &target, json!({})).await,
        shop.delete(&reader, &target).await,
        shop.post(&reader, &format!("{target}/schedule"), json!({})).await,
    ] {
        assert_eq!(reply.summary(), "403 scope required: campaigns:write");
    }
    assert_eq!(shop.post(&writer, &format!("{target}/schedule"), json!({"send_now": true})).await.summary(), "202");
}

/// A template without an unsubscribe link gets a footer, and its author is warned.
#[tokio::test]
async fn a_template_without_a_way_to_unsubscribe_is_told() {
    let shop = Shop::start().await;
    let bare = shop.made("/templates", template(json!({"html": "<p>Hi</p>"}))).await;
    let text = shop.made("/templates", template(json!({"html": null, "text": "Hi"}))).await;
    let warnings = async |more: Value| {
        let id = shop.campaign(more).await;
        let shown = shop.read(&format!("/campaigns/{id}")).await["warnings"].clone();
        assert_eq!(shop.read("/campaigns").await["data"][0]["warnings"], shown);
        shown
    };
    let footer = json!([{"code": "unsubscribe_footer", "template_id": bare,
        "message": "the HTML has no unsubscribe_url: a footer with one is added"}]);
    assert_eq!(warnings(json!({})).await, json!([]));
    assert_eq!(warnings(json!({"template_id": bare})).await, footer);
    assert_eq!(warnings(json!({"template_id": text})).await, json!([]));
    let variants = json!({"kind": "ab_test", "variants": [{}, {"template_id": bare}, {"template_id": bare}]});
    assert_eq!(warnings(variants).await, footer);
    // The campaign's own template is not used if each variant has another.
    let variants = json!({"template_id": bare, "kind": "ab_test",
        "variants": [{"template_id": shop.template}, {"template_id": text}]});
    assert_eq!(warnings(variants).await, json!([]));
}

#[tokio::test]
async fn a_repeated_request_has_one_effect() {
    let shop = Shop::start().await;
    let call = async |method: Method, path: &str, key: &str, body: &Value| {
        let target = shop.path(path);
        shop.call(Call::new(&shop.caller, method, &target).key(key).body(body)).await
    };
    let body = shop.body(json!({}));
    let first = call(Method::POST, "/campaigns", "c", &body).await;
    let again = call(Method::POST, "/campaigns", "c", &body).await;
    assert_eq!((first.summary(), again.summary()), ("201".to_owned(), "201 replayed".to_owned()));
    assert_eq!(first.body, again.body);
    assert_eq!(shop.read("/campaigns").await["data"].as_array().unwrap().len(), 1);
    let path = format!("/campaigns/{}", first["id"].as_str().unwrap());
    for (action, body) in [
        ("schedule", json!({"at": "2026-02-01T09:00:00Z"})),
        ("pause", json!({})),
        ("schedule", json!({})),
        ("cancel", json!({})),
    ] {
        let target = format!("{path}/{action}");
        let key = format!("{action}-{}", body.as_object().unwrap().len());
        let first = call(Method::POST, &target, &key, &body).await;
        assert_eq!(first.summary(), "202", "{action}");
        let again = call(Method::POST, &target, &key, &body).await;
        assert_eq!((again.summary().as_str(), &again.body), ("202 replayed", &first.body), "{action}");
    }
    let deleted = call(Method::DELETE, &path, "d", &json!({})).await;
    assert_eq!(deleted.summary(), "204");
    assert_eq!(call(Method::DELETE, &path, "d", &json!({})).await.summary(), "204 replayed");
}

#[tokio::test]
async fn a_preview_counts_everybody_once() {
    let shop = Shop::start().await;
    for email in ["ann@example.com", "bob@example.com", "cid@example.com"] {
        shop.contact(email).await;
    }
    shop.contact_with(json!({"external_id": "no address", "consent": {"marketing_email": true}})).await;
    shop.contact_with(json!({"email": "silent@example.com"})).await;
    let out = shop.contact("out@example.com").await;
    let excluded = shop.made("/lists", json!({"name": "Out"})).await;
    let members = format!("/lists/{excluded}/contacts");
    assert_eq!(shop.request(&members, json!({"contact_ids": [out]})).await.summary(), "200");
    let listed = json!({"channel": "email", "address": "cid@example.com", "reason": "unsubscribe"});
    assert_eq!(shop.request("/suppressions", listed).await.summary(), "201");

    let audience = json!({"list_ids": [shop.list], "exclude_list_ids": [excluded]});
    let preview = shop.request("/campaigns/preview-audience", json!({"channel": "email", "audience": audience})).await;
    let expected = json!({"audience_estimate": 2, "exact": true, "breakdown":
        {"matched": 6, "excluded": 1, "no_address": 1, "suppressed": 1, "no_consent": 1, "duplicates": 0}});
    assert_eq!(preview.body, expected);
    // The body of a whole campaign is accepted.
    let whole = shop.request("/campaigns/preview-audience", shop.body(json!({"audience": audience}))).await;
    assert_eq!(whole.body, expected);
    // A filter is evaluated as of now, also before its members have been calculated.
    let pro = json!({"email": "pro@example.com", "attributes": {"plan": "pro"}, "consent": {"marketing_email": true}});
    shop.made("/contacts", pro).await;
    let filter = json!({"type": "attribute", "key": "plan", "op": "eq", "value": "pro"});
    let segment = shop.made("/segments", json!({"name": "Pro", "filter": filter})).await;
    let audience = json!({"segment_ids": [segment]});
    let preview = shop.request("/campaigns/preview-audience", json!({"channel": "email", "audience": audience})).await;
    assert_eq!((&preview["audience_estimate"], &preview["breakdown"]["matched"]), (&json!(1), &json!(1)));
    let nobody = shop.request("/campaigns/preview-audience", json!({"channel": "sms", "audience": {}})).await;
    assert_eq!(nobody["audience_estimate"], 0);
    for (body, expected) in [
        (json!({}), "422 /audience required /channel required"),
        (json!({"channel": "fax", "audience": {}}), "422 /channel unknown_value"),
        (json!({"channel": "sms", "audience": {"list_ids": ["x"]}}), "422 /audience/list_ids/0 not_found"),
        (
            json!({"channel": "sms", "audience": {"list_ids": [shop.list, "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"], "x": 1}}),
            "422 /audience/list_ids/1 not_found /audience/x unknown_field",
        ),
        (json!({"channel": "sms", "audience": {}, "send_now": true}), "422 /send_now unknown_field"),
    ] {
        assert_eq!(shop.request("/campaigns/preview-audience", body).await.summary(), expected);
    }
}
