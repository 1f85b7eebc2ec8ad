//! Refused filters, and access to segments. The grammar of filters has a table beside the parser.

use http::Method;
use serde_json::{Value, json};

use super::{Audience, pro};
use crate::bed::Call;

#[tokio::test]
async fn every_fault_is_named() {
    let audience = Audience::start().await;
    let unknown = |kind: &str| format!("{kind}_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    let message = |name: &str, kind: &str| json!({"type": "message", "event": "open", name: unknown(kind)});
    for (body, expected) in [
        (json!({}), "422 /filter required /name required"),
        (json!({"name": "S"}), "422 /filter required"),
        (json!({"name": "S", "filter": null}), "422 /filter required"),
        (json!({"name": "S", "filter": []}), "422 /filter invalid_type"),
        (json!({"name": "", "filter": {"and": []}}), "422 /filter/and too_short /name required"),
        (json!({"name": "n".repeat(201), "kind": "x", "filter": {}}), "422 /kind unknown_value /name too_long"),
        (
            json!({"name": 5, "filter": {"or": [{"type": "list", "op": "member", "id": unknown("lst")},
                {"type": "segment", "op": "member", "id": unknown("seg")}, {"type": "nothing"}]}}),
            "422 /filter/or/0/id not_found /filter/or/1/id not_found /filter/or/2/type unknown_value /name invalid_type",
        ),
        (json!({"name": "S", "filter": message("campaign_id", "cmp")}), "422 /filter/campaign_id not_found"),
        (json!({"name": "S", "filter": message("automation_id", "aut")}), "422 /filter/automation_id not_found"),
        (json!({"name": "S", "filter": message("template_id", "tpl")}), "422 /filter/template_id not_found"),
        (
            json!({"name": "S", "filter": {"type": "tag", "op": "has_any", "values": ["a\u{0}"]}}),
            "422 /filter/values/0 invalid_format",
        ),
    ] {
        assert_eq!(audience.post("segments", body.clone()).await.summary(), expected, "{body}");
    }
    let template = audience.post("templates", json!({"name": "T", "channel": "email"})).await;
    let known = json!({"filter": {"type": "message", "event": "open", "template_id": template.body["id"]}});
    assert_eq!(audience.post("segments/preview", known).await.summary(), "200");

    let values: Vec<_> = (0..1000).map(|number| format!("{number:0300}")).collect();
    let huge = json!({"name": "S", "filter": {"type": "attribute", "key": "a", "op": "in", "value": values}});
    assert_eq!(audience.post("segments", huge).await.summary(), "422 /filter too_large");
    assert_eq!(audience.get("segments").await["data"], json!([]));

    // The JSON parser refuses deep nesting; less deep nesting is refused at the bound of groups.
    for (depth, expected) in
        [(60, format!("422 /filter{} too_many_items", "/not".repeat(8))), (100_000, "400 invalid_json".to_owned())]
    {
        let body = format!(r#"{{"name": "S", "filter": {}{{}}{}}}"#, r#"{"not":"#.repeat(depth), "}".repeat(depth));
        let path = format!("/workspaces/{}/segments", audience.workspace);
        let reply = audience.bed.call(Call::new(&audience.key, http::Method::POST, &path).text(&body)).await;
        assert_eq!(reply.summary(), expected);
    }

    let id = audience.segment(pro()).await;
    for (body, expected) in [
        (json!({"name": null, "filter": null}), "422 /filter required /name required"),
        (json!({"kind": "static", "filter": {"not": {}}}), "422 /filter/not/type required /kind immutable"),
        (json!({}), "200"),
    ] {
        assert_eq!(audience.patch(&format!("segments/{id}"), body.clone()).await.summary(), expected, "{body}");
    }
}

#[tokio::test]
async fn what_belongs_to_another_workspace_is_not_there() {
    let audience = Audience::start().await;
    let other =
        messaging_engine::admin::create_workspace(&audience.bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let key = audience.bed.key(other, &["*"]).await;
    let segment = audience.segment(pro()).await;
    let list = audience.post("lists", json!({"name": "L"})).await;
    let path = format!("/workspaces/{other}/segments");
    for (kind, id) in [("segment", segment.as_str()), ("list", list["id"].as_str().unwrap())] {
        let body = json!({"name": "S", "filter": {"type": kind, "op": "member", "id": id}});
        assert_eq!(audience.bed.post(&key, &path, body).await.summary(), "422 /filter/id not_found");
    }
    assert_eq!(audience.bed.get(&key, &format!("{path}/{segment}")).await.summary(), "404 not_found");
    assert_eq!(audience.bed.get(&key, &path).await["data"], json!([]));
}

#[tokio::test]
async fn a_preview_counts_and_shows_without_keeping_anything() {
    let audience = Audience::start().await;
    for number in 0..30 {
        let plan = if number % 3 == 0 { "pro" } else { "free" };
        let more = json!({"email": format!("u{number}@example.com"), "attributes": {"plan": plan}, "tags": ["x"]});
        audience.contact(&format!("u{number}"), more).await;
    }
    let filter =
        json!({"and": [pro(), {"not": {"type": "contact", "field": "email", "op": "starts_with", "value": "U1"}}]});
    let preview = audience.post("segments/preview", json!({ "filter": filter })).await;
    assert_eq!(preview.summary(), "200");
    assert_eq!((&preview["size_estimate"], &preview["exact"]), (&json!(7), &json!(true)));
    let sample: Vec<_> = preview["sample"].as_array().unwrap().iter().map(|contact| &contact["external_id"]).collect();
    assert_eq!(sample, ["u27", "u24", "u21", "u9", "u6", "u3", "u0"]);
    assert_eq!(
        preview["conditions"],
        json!([{"pointer": "/filter/and/0", "size": 10}, {"pointer": "/filter/and/1/not", "size": 11}])
    );
    let everyone = audience.post("segments/preview", json!({"filter": {}})).await;
    assert_eq!(everyone["size_estimate"], 30);
    assert_eq!(everyone["sample"].as_array().unwrap().len(), 20);
    assert_eq!(everyone["conditions"], json!([]));
    let many = Value::Array((0..25).map(|_| pro()).collect());
    let many = audience.post("segments/preview", json!({"filter": {"or": many}})).await;
    assert_eq!(many["conditions"].as_array().unwrap().len(), 20);
    assert_eq!(
        audience.post("segments/preview", json!({"filter": {"or": 5}})).await.summary(),
        "422 /filter/or invalid_type"
    );
    assert_eq!(audience.get("segments").await["data"], json!([]));

    // Without `pii:read` addresses are masked, and `contacts:read` is enough.
    let reader = audience.bed.key(audience.workspace, &["contacts:read"]).await;
    let path = format!("/workspaces/{}/segments/preview", audience.workspace);
    let masked = audience.bed.post(&reader, &path, json!({"filter": {}})).await;
    assert_eq!(masked["sample"][0]["email"], "u***@example.com");
    let create = format!("/workspaces/{}/segments", audience.workspace);
    let refused = audience.bed.post(&reader, &create, json!({"name": "S", "filter": {}})).await;
    assert_eq!(refused.summary(), "403 scope required: contacts:write");
}

#[tokio::test]
async fn listings_go_on_where_they_stopped() {
    let audience = Audience::start().await;
    for number in 0..5 {
        audience.contact(&format!("u{number}"), json!({})).await;
        audience.segment(json!({})).await;
    }
    audience.work().await;
    let segment = audience.segment(json!({})).await;
    audience.work().await;
    for (path, count) in [("segments".to_owned(), 6), (format!("segments/{segment}/contacts"), 5)] {
        let (mut seen, mut query) = (Vec::new(), "limit=2".to_owned());
        loop {
            let page = audience.get(&format!("{path}?{query}")).await;
            seen.extend(page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            query = format!("limit=2&cursor={cursor}");
        }
        assert_eq!(seen.len(), count);
        assert!(seen.is_sorted_by(|newer, older| newer > older), "newest first, each once");
    }
}

#[tokio::test]
async fn a_lenient_request_ignores_unknown_members_of_a_filter_too() {
    let audience = Audience::start().await;
    audience.contact("a", json!({"tags": ["vip"]})).await;
    audience.contact("b", json!({})).await;
    let filter = json!({"type": "tag", "op": "has_any", "values": ["vip"], "comment": {"why": "x"}});
    let body = json!({"name": "S", "filter": filter});
    assert_eq!(audience.post("segments", body.clone()).await.summary(), "422 /filter/comment unknown_field");

    let send = async |method: Method, rest: &str, body: &Value| {
        let path = format!("/workspaces/{}/{rest}", audience.workspace);
        audience.bed.call(Call::new(&audience.key, method, &path).body(body).leniently()).await
    };
    let created = send(Method::POST, "segments", &body).await;
    assert_eq!(created.summary(), "201");
    // Ignored members are not stored: the stored filter is read strictly.
    assert_eq!(created["filter"], json!({"type": "tag", "op": "has_any", "values": ["vip"]}));
    audience.work().await;
    let id = created["id"].as_str().unwrap();
    assert_eq!(audience.members(id).await, "ready 1: a");
    let preview = send(Method::POST, "segments/preview", &json!({"filter": filter})).await;
    assert_eq!((preview.summary().as_str(), &preview["size_estimate"]), ("200", &json!(1)));
    let everyone = send(Method::PATCH, &format!("segments/{id}"), &json!({"filter": {"not": filter, "x": 1}})).await;
    assert_eq!((everyone.summary().as_str(), &everyone["filter"]["x"]), ("200", &Value::Null));
    audience.work().await;
    assert_eq!(audience.members(id).await, "ready 1: b");
    let wrong = send(Method::POST, "segments", &json!({"name": "S", "filter": {"type": "tga", "x": 1}})).await;
    assert_eq!(wrong.summary(), "422 /filter/type unknown_value");
}

#[tokio::test]
async fn filters_find_addresses_in_their_one_spelling() {
    let audience = Audience::start().await;
    audience.contact("a", json!({"email": "Ann@B\u{fc}cher.example"})).await;
    audience.contact("k", json!({"email": "kim@example.com"})).await;
    audience.contact("K", json!({"email": "\u{212a}im@example.com"})).await;
    for (op, value, expected) in [
        ("eq", json!("ANN@B\u{dc}CHER.example"), "a"),
        ("in", json!(["ann@xn--bcher-kva.example", "x@example.com"]), "a"),
        ("ends_with", json!("@b\u{fc}cher.example"), "a"),
        ("contains", json!("b\u{fc}cher.exam"), "a"),
        ("starts_with", json!("KIM@"), "k"),
        ("eq", json!("\u{212a}im@Example.com"), "K"),
    ] {
        let filter = json!({"type": "contact", "field": "email", "op": op, "value": value});
        let id = audience.segment(filter.clone()).await;
        audience.work().await;
        assert_eq!(audience.members(&id).await, format!("ready 1: {expected}"), "{filter}");
    }
}
