//! Contract sections 7 and 8: lists and custom fields.

use std::time::Duration;

use messaging_engine::work::sweep::sweep;
use serde_json::{Value, json};

use crate::bed::Bed;

#[tokio::test]
async fn a_list_is_created_renamed_shown_and_deleted() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let lists = format!("/workspaces/{workspace}/lists");
    for (body, expected) in [
        (json!({}), "422 /name required"),
        (json!({"name": ""}), "422 /name required"),
        (json!({"name": "x".repeat(201)}), "422 /name too_long"),
    ] {
        assert_eq!(bed.post(&owner, &lists, body).await.summary(), expected);
    }
    let created = bed.post(&owner, &lists, json!({"name": "News"})).await;
    assert_eq!(created.summary(), "201");
    let mut expected = json!({"id": created["id"], "name": "News", "visibility": "private", "opt_in": "single",
        "description": null, "contact_count": 0,
        "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let path = format!("{lists}/{}", created["id"].as_str().unwrap());
    assert_eq!(bed.get(&owner, &path).await.body, expected);
    let namesake = bed.post(&owner, &lists, json!({"name": "News"})).await;
    assert_eq!(namesake.summary(), "201");

    bed.clock.advance(Duration::from_secs(1));
    let renamed = bed.patch(&owner, &path, json!({"name": "Weekly"})).await;
    expected["name"] = json!("Weekly");
    expected["updated_at"] = json!("2026-01-31T09:15:01.000Z");
    assert_eq!(renamed.body, expected);
    assert_eq!(bed.patch(&owner, &path, json!({"name": null})).await.summary(), "422 /name required");
    let listed = bed.get(&owner, &lists).await;
    assert_eq!(listed.body, json!({"data": [namesake.body, expected], "next_cursor": null}));

    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    for gone in [
        bed.get(&owner, &path).await,
        bed.delete(&owner, &path).await,
        bed.patch(&owner, &path, json!({"name": ""})).await,
        bed.get(&owner, &format!("{path}/contacts")).await,
        bed.post(&owner, &format!("{path}/contacts"), json!({})).await,
    ] {
        assert_eq!(gone.summary(), "404 not_found");
    }
}

#[tokio::test]
async fn members_come_and_go() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let lists = format!("/workspaces/{workspace}/lists");
    let list = bed.post(&owner, &lists, json!({"name": "News"})).await["id"].as_str().unwrap().to_owned();
    let members = format!("{lists}/{list}/contacts");
    let mut ids = Vec::new();
    for n in 0..3 {
        let body = json!({"email": format!("u{n}@example.com")});
        ids.push(bed.post(&owner, &format!("/workspaces/{workspace}/contacts"), body).await["id"].clone());
    }
    let unknown = "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    for (body, expected) in [
        (json!({}), "422 /contact_ids required"),
        (json!({"contact_ids": []}), "422 /contact_ids too_short"),
        (json!({"contact_ids": vec![unknown; 1001]}), "422 /contact_ids too_many_items"),
        (json!({"contact_ids": [ids[0], unknown, "x"]}), "422 /contact_ids/1 not_found /contact_ids/2 not_found"),
    ] {
        assert_eq!(bed.post(&owner, &members, body).await.summary(), expected);
    }
    let add = async |ids: &[Value]| bed.post(&owner, &members, json!({"contact_ids": ids})).await.body;
    assert_eq!(add(&[ids[0].clone(), ids[2].clone(), ids[0].clone()]).await, json!({"added": 2, "already_member": 1}));
    assert_eq!(add(&ids).await, json!({"added": 1, "already_member": 2}));
    let shown = bed.get(&owner, &members).await;
    let newest: Vec<_> = shown["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(newest, ids.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(shown["data"][0]["list_ids"], json!([list]));
    let page = bed.get(&owner, &format!("{members}?limit=2")).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(bed.get(&owner, &format!("{members}?limit=2&cursor={cursor}")).await["data"][0]["id"], ids[0]);

    let count = async || bed.get(&owner, &format!("{lists}/{list}")).await["contact_count"].clone();
    assert_eq!(count().await, 3);
    let member = format!("{members}/{}", ids[0].as_str().unwrap());
    for _ in 0..2 {
        assert_eq!(bed.delete(&owner, &member).await.summary(), "204");
        assert_eq!(count().await, 2);
    }
    assert_eq!(bed.delete(&owner, &format!("{members}/{unknown}")).await.summary(), "404 not_found");
    let erased = format!("/workspaces/{workspace}/contacts/{}", ids[1].as_str().unwrap());
    assert_eq!(bed.delete(&owner, &erased).await.summary(), "204");
    assert_eq!(count().await, 1);

    let key = bed.key(workspace, &["contacts:read"]).await;
    assert_eq!(bed.get(&key, &members).await["data"][0]["email"], "u***@example.com");
    assert_eq!(
        bed.post(&key, &members, json!({"contact_ids": ids})).await.summary(),
        "403 scope required: contacts:write"
    );

    assert_eq!(bed.delete(&owner, &format!("{lists}/{list}")).await.summary(), "204");
    sweep(&bed.app).await.unwrap();
    let contact = format!("/workspaces/{workspace}/contacts/{}", ids[2].as_str().unwrap());
    assert_eq!(bed.get(&owner, &contact).await["list_ids"], json!([]));
    assert_eq!(bed.store.forget_members(10).await.unwrap(), 0, "the sweep let the members go");
}

#[tokio::test]
async fn a_custom_field_declares_a_type() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let fields = format!("/workspaces/{workspace}/custom-fields");
    for (body, expected) in [
        (json!({}), "422 /key required /type required"),
        (json!({"key": "a b", "type": "text"}), "422 /key invalid_format /type unknown_value"),
        (json!({"key": "plan", "type": "string", "label": ""}), "422 /label too_short"),
    ] {
        assert_eq!(bed.post(&owner, &fields, body.clone()).await.summary(), expected, "{body}");
    }
    let created = bed.post(&owner, &fields, json!({"key": "plan", "type": "string", "label": "Plan"})).await;
    assert_eq!(created.summary(), "201");
    let mut expected = json!({"id": created["id"], "key": "plan", "type": "string", "label": "Plan",
        "created_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let taken = bed.post(&owner, &fields, json!({"key": "plan", "type": "number"})).await;
    assert_eq!(taken.summary(), "409 already_exists");
    let path = format!("{fields}/{}", created["id"].as_str().unwrap());
    for (body, faults) in [
        (json!({"key": "other"}), "422 /key immutable"),
        (json!({"type": "number", "key": null}), "422 /key immutable /type immutable"),
    ] {
        assert_eq!(bed.patch(&owner, &path, body).await.summary(), faults);
    }
    expected["label"] = Value::Null;
    assert_eq!(bed.patch(&owner, &path, json!({"label": null})).await.body, expected);
    assert_eq!(bed.get(&owner, &fields).await.body, json!({"data": [expected], "next_cursor": null}));

    let contacts = format!("/workspaces/{workspace}/contacts");
    let body = |plan: Value| json!({"external_id": "u-1", "attributes": {"plan": plan}});
    assert_eq!(bed.post(&owner, &contacts, body(json!(5))).await.summary(), "422 /attributes/plan invalid_type");
    assert_eq!(bed.post(&owner, &contacts, body(json!("pro"))).await.summary(), "201");
    // Its values stay when the declaration goes, and from then on anything is allowed.
    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    assert_eq!(bed.delete(&owner, &path).await.summary(), "404 not_found");
    assert_eq!(bed.patch(&owner, &path, json!({"key": 1})).await.summary(), "404 not_found");
    let kept = bed.get(&owner, &contacts).await;
    assert_eq!(kept["data"][0]["attributes"], json!({"plan": "pro"}));
    assert_eq!(bed.post(&owner, &contacts, body(json!(5))).await.summary(), "200");
}
