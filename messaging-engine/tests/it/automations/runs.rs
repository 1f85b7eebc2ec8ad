//! Letting contacts in by a call, listing runs, ending one, and the numbers.

use serde_json::{Value, json};

use super::{active, manual};
use crate::campaigns::Shop;

#[tokio::test]
async fn a_call_lets_a_contact_in() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({}))).await;
    let contact = shop.made("/contacts", json!({"external_id": "u-1", "email": "ann@example.com"})).await;
    let run = shop.request(&format!("{path}/trigger"), json!({"contact_id": contact, "variables": {"a": 1}})).await;
    assert_eq!(run.summary(), "202", "{}", run.body);
    let expected = json!({"id": run["id"], "automation_id": path.strip_prefix("/automations/").unwrap(),
        "contact_id": contact, "status": "active", "node_id": null, "version": 1,
        "entered_at": "2026-01-31T09:15:00.000Z", "ended_at": null, "exit_reason": null});
    assert_eq!(run.body, expected);
    let again = shop.request(&format!("{path}/trigger"), json!({"external_id": "u-1"})).await;
    assert_eq!(again.summary(), "409 re_entry_not_allowed");
    let runs = shop.read(&format!("{path}/runs")).await;
    assert_eq!(runs.body, json!({"data": [expected], "next_cursor": null}));
}

#[tokio::test]
async fn a_call_is_refused_for_what_is_wrong_with_it_first() {
    let shop = Shop::start().await;
    let draft = format!("/automations/{}", shop.made("/automations", manual(json!({}))).await);
    let filter = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let choosy = active(&shop, manual(json!({"trigger": {"kind": "manual", "config": {"filter": filter}}}))).await;
    let (ann, bob) = (
        shop.made("/contacts", json!({"external_id": "ann"})).await,
        shop.made("/contacts", json!({"external_id": "bob", "tags": ["vip"]})).await,
    );
    let call = async |path: &str, body: Value| shop.request(&format!("{path}/trigger"), body).await.summary();
    for path in [&draft, &choosy] {
        for (body, expected) in [
            (json!({}), "422  required"),
            (json!({"contact_id": ""}), "422  required"),
            (json!({"contact_id": "con_x"}), "422 /contact_id not_found"),
            (json!({"contact_id": "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"}), "422 /contact_id not_found"),
            (json!({"external_id": "cid"}), "422 /external_id not_found"),
            (json!({"contact_id": ann, "external_id": "bob"}), "422 /external_id conflict"),
            (json!({"contact_id": ann, "variables": []}), "422 /variables invalid_type"),
            (json!({"contact": ann}), "422  required /contact unknown_field"),
        ] {
            assert_eq!(call(path, body.clone()).await, expected, "{body}");
        }
    }
    assert_eq!(call(&draft, json!({"contact_id": bob})).await, "409 invalid_state");
    assert_eq!(call(&choosy, json!({"contact_id": ann})).await, "422 /contact_id not_allowed");
    assert_eq!(call(&choosy, json!({"contact_id": bob, "external_id": "bob"})).await, "202");
    assert_eq!(shop.request(&format!("{choosy}/pause"), Value::Null).await.summary(), "202");
    assert_eq!(call(&choosy, json!({"contact_id": bob})).await, "409 invalid_state");
}

#[tokio::test]
async fn a_rule_of_re_entry_holds_for_each_value_of_its_key() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({"re_entry": "after_exit", "re_entry_key": "event.cart.id"}))).await;
    let contact = shop.made("/contacts", json!({"external_id": "ann"})).await;
    let call = async |variables: Value| {
        let body = json!({"contact_id": contact, "variables": variables});
        shop.request(&format!("{path}/trigger"), body).await
    };
    let first = call(json!({"cart": {"id": "a"}})).await;
    assert_eq!(first.summary(), "202");
    assert_eq!(call(json!({"cart": {"id": "b"}})).await.summary(), "202");
    // A missing value counts as a separate value.
    assert_eq!(call(json!({})).await.summary(), "202");
    for variables in [json!({"cart": {"id": "a"}}), json!({"cart": {"id": "b"}}), json!({"cart": null})] {
        assert_eq!(call(variables).await.summary(), "409 re_entry_not_allowed");
    }
    let exit = format!("{path}/runs/{}/exit", first["id"].as_str().unwrap());
    assert_eq!(shop.request(&exit, Value::Null).await.summary(), "202");
    assert_eq!(call(json!({"cart": {"id": "a"}})).await.summary(), "202");
}

#[tokio::test]
async fn a_run_is_ended_by_a_person_once_also_while_paused() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({}))).await;
    let contact = shop.made("/contacts", json!({"external_id": "ann"})).await;
    let run = shop.request(&format!("{path}/trigger"), json!({"contact_id": contact})).await;
    assert_eq!(shop.request(&format!("{path}/pause"), Value::Null).await.summary(), "202");
    let place = format!("{path}/runs/{}", run["id"].as_str().unwrap());
    let ended = shop.request(&format!("{place}/exit"), Value::Null).await;
    assert_eq!(ended.summary(), "202");
    assert_eq!((&ended["status"], &ended["exit_reason"]), (&json!("exited"), &json!("manual")));
    assert_eq!(ended["ended_at"], "2026-01-31T09:15:00.000Z");
    let again = shop.request(&format!("{place}/exit"), Value::Null).await;
    assert_eq!(again.summary(), "409 invalid_state");
    assert_eq!(again["error"]["details"], json!({"status": "exited", "allowed": ["active", "waiting"]}));
    let shown = shop.read(&place).await;
    let last = shown["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        last,
        json!({"at": "2026-01-31T09:15:00.000Z", "node_id": null, "outcome": "exited", "branch": null,
            "reason": "manual", "detail": {}})
    );
    assert_eq!(shown["id"], run["id"]);
    for unknown in ["run_x", "run_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"] {
        assert_eq!(shop.read(&format!("{path}/runs/{unknown}")).await.summary(), "404 not_found");
    }
    // A run belongs to its automation.
    let other = active(&shop, manual(json!({}))).await;
    let elsewhere = place.replace(&path, &other);
    assert_eq!(shop.read(&elsewhere).await.summary(), "404 not_found");
    assert_eq!(shop.request(&format!("{elsewhere}/exit"), Value::Null).await.summary(), "404 not_found");
}

#[tokio::test]
async fn runs_are_listed_by_state_contact_and_node_and_counted() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({"re_entry": "always"}))).await;
    let mut contacts = Vec::new();
    for name in ["ann", "bob"] {
        contacts.push(shop.made("/contacts", json!({"external_id": name})).await);
    }
    let mut runs = Vec::new();
    for contact in [&contacts[0], &contacts[1], &contacts[0]] {
        let run = shop.request(&format!("{path}/trigger"), json!({"contact_id": contact})).await;
        runs.push(run["id"].as_str().unwrap().to_owned());
    }
    let ended = shop.request(&format!("{path}/runs/{}/exit", runs[1]), Value::Null).await;
    assert_eq!(ended.summary(), "202");
    let listed = async |query: &str| {
        let page = shop.read(&format!("{path}/runs{query}")).await;
        let ids = page["data"].as_array().unwrap_or_else(|| panic!("{}", page.body)).iter();
        ids.map(|run| run["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let of = |places: &[usize]| places.iter().map(|place| runs[*place].clone()).collect::<Vec<_>>();
    assert_eq!(listed("").await, of(&[2, 1, 0]));
    assert_eq!(listed("?status=exited").await, of(&[1]));
    assert_eq!(listed("?status=active").await, of(&[2, 0]));
    assert_eq!(listed(&format!("?contact_id={}", contacts[0])).await, of(&[2, 0]));
    assert_eq!(listed(&format!("?contact_id={}&status=exited", contacts[0])).await, of(&[]));
    assert_eq!(listed("?node_id=t").await, of(&[]));
    assert_eq!(shop.read(&format!("{path}/runs?status=done")).await.summary(), "422 status unknown_value");
    let first = shop.read(&format!("{path}/runs?limit=2")).await;
    let next = first["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&format!("?limit=2&cursor={next}")).await, of(&[0]));
    let stats = shop.read(&format!("{path}/stats")).await;
    assert_eq!(
        stats.body,
        json!({"entered": 3, "active": 2, "completed": 0, "exited": 1, "failed": 0,
            "nodes": [{"id": "t", "entered": 0, "waiting": 0, "branches": {}}]})
    );
}

#[tokio::test]
async fn a_call_that_is_repeated_lets_nobody_in_twice() {
    let shop = Shop::start().await;
    let path = active(&shop, manual(json!({"re_entry": "always"}))).await;
    let contact = shop.made("/contacts", json!({"external_id": "ann"})).await;
    let (target, body) = (shop.path(&format!("{path}/trigger")), json!({"contact_id": contact}));
    let bed: &crate::bed::Bed = &shop;
    let call = || crate::bed::Call::new(&shop.caller, http::Method::POST, &target).body(&body).key("once");
    let (first, second) = (bed.call(call()).await, bed.call(call()).await);
    assert_eq!((first.summary().as_str(), second.summary().as_str()), ("202", "202 replayed"));
    assert_eq!(shop.read(&format!("{path}/runs")).await["data"].as_array().unwrap().len(), 1);
}
