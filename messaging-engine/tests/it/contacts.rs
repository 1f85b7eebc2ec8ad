//! Contract section 6: contacts one by one.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Priority;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply, START};

fn contacts(workspace: WorkspaceId) -> String {
    format!("/workspaces/{workspace}/contacts")
}

fn contact(workspace: WorkspaceId, reply: &Reply) -> String {
    format!("{}/{}", contacts(workspace), reply["id"].as_str().unwrap())
}

async fn upsert(bed: &Bed, workspace: WorkspaceId, caller: &Caller, body: Value) -> Reply {
    bed.post(caller, &contacts(workspace), body).await
}

/// The ids of a listing.
async fn ids(bed: &Bed, workspace: WorkspaceId, caller: &Caller, query: &str) -> Vec<Value> {
    let reply = bed.get(caller, &format!("{}?{query}", contacts(workspace))).await;
    assert_eq!(reply.summary(), "200", "{query}");
    reply["data"].as_array().unwrap().iter().map(|contact| contact["id"].clone()).collect()
}

#[tokio::test]
async fn a_contact_is_created_updated_shown_and_changed() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let list = bed.post(&owner, &format!("/workspaces/{workspace}/lists"), json!({"name": "News"})).await;
    let body = json!({"external_id": "u-42", "email": "Ann@Example.com", "phone": "+14155550123",
        "attributes": {"plan": "pro", "age": 31}, "tags": ["vip", "vip"], "locale": "en-US",
        "timezone": "Europe/Berlin", "list_ids": [list["id"]], "consent": {"marketing_email": true}});
    let created = upsert(&bed, workspace, &owner, body).await;
    assert_eq!(created.summary(), "201");
    let mut expected = json!({"id": created["id"], "external_id": "u-42", "email": "ann@example.com",
        "phone": "+14155550123", "attributes": {"plan": "pro", "age": 31}, "tags": ["vip"], "locale": "en-US",
        "timezone": "Europe/Berlin", "list_ids": [list["id"]], "consent": {"marketing_email": true, "sms": null},
        "suppressed_channels": [], "created_at": "2026-01-31T09:15:00.000Z",
        "updated_at": "2026-01-31T09:15:00.000Z"});
    assert_eq!(created.body, expected);
    let path = contact(workspace, &created);
    assert_eq!(bed.get(&owner, &path).await.body, expected);

    bed.clock.advance(Duration::from_mins(1));
    let again = json!({"email": "ANN@example.com", "attributes": {"age": null, "city": "Riga"}, "tags": ["beta"]});
    let updated = upsert(&bed, workspace, &owner, again.clone()).await;
    assert_eq!(updated.summary(), "200");
    expected["attributes"] = json!({"plan": "pro", "city": "Riga"});
    expected["tags"] = json!(["beta"]);
    expected["updated_at"] = json!("2026-01-31T09:16:00.000Z");
    assert_eq!(updated.body, expected);
    // An upsert that changes nothing leaves `updated_at` as it was.
    bed.clock.advance(Duration::from_mins(1));
    assert_eq!(upsert(&bed, workspace, &owner, again).await.body, expected);

    let patched = bed.patch(&owner, &path, json!({"phone": null, "list_ids": [], "consent": {"sms": false}})).await;
    assert_eq!(patched.summary(), "200");
    expected["phone"] = Value::Null;
    expected["list_ids"] = json!([]);
    expected["consent"]["sms"] = json!(false);
    expected["updated_at"] = json!("2026-01-31T09:17:00.000Z");
    assert_eq!(patched.body, expected);
    assert_eq!(bed.get(&owner, &path).await.body, expected);
    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    for gone in [bed.get(&owner, &path).await, bed.delete(&owner, &path).await] {
        assert_eq!(gone.summary(), "404 not_found");
    }
    assert_eq!(bed.patch(&owner, &path, json!({"email": 5})).await.summary(), "404 not_found");
}

#[tokio::test]
async fn refusals_name_every_fault() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let unknown = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let field = json!({"key": "age", "type": "number"});
    bed.post(&owner, &format!("/workspaces/{workspace}/custom-fields"), field).await;
    for (body, expected) in [
        (json!({}), "422  required"),
        (json!({"email": "nobody", "locale": "x"}), "422 /email invalid_format /locale invalid_format"),
        (
            json!({"external_id": "u-1", "phone": 5, "list_ids": [unknown], "attributes": {"age": "old"}}),
            "422 /attributes/age invalid_type /list_ids/0 not_found /phone invalid_type",
        ),
        (json!({"external_id": "u-1", "list_ids": ["x"]}), "422 /list_ids/0 not_found"),
    ] {
        assert_eq!(upsert(&bed, workspace, &owner, body.clone()).await.summary(), expected, "{body}");
    }
    assert_eq!(ids(&bed, workspace, &owner, "").await, Vec::<Value>::new());
    let only = upsert(&bed, workspace, &owner, json!({"email": "ann@example.com"})).await;
    let path = contact(workspace, &only);
    assert_eq!(bed.patch(&owner, &path, json!({"email": null})).await.summary(), "422 /email required");
    let moved = bed.patch(&owner, &path, json!({"email": null, "external_id": "u-1"})).await;
    assert_eq!(moved.summary(), "200");
    assert_eq!(bed.patch(&owner, &path, json!({})).await.body, moved.body);
}

#[tokio::test]
async fn an_identifier_of_another_is_a_conflict() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let ann = upsert(&bed, workspace, &owner, json!({"external_id": "u-1", "email": "ann@example.com"})).await;
    let bob = upsert(&bed, workspace, &owner, json!({"external_id": "u-2", "phone": "+14155550123"})).await;
    let refused = upsert(&bed, workspace, &owner, json!({"external_id": "u-2", "email": "ann@example.com"})).await;
    assert_eq!(refused.summary(), "409 identifier_conflict");
    assert_eq!(refused["error"]["details"], json!({"pointer": "/email", "contact_id": ann["id"]}));
    let refused = upsert(&bed, workspace, &owner, json!({"external_id": "u-3", "email": "ann@example.com"})).await;
    assert_eq!(refused["error"]["details"], json!({"pointer": "/external_id", "contact_id": ann["id"]}));
    // Field errors come first.
    let both = json!({"external_id": "u-2", "email": "ann@example.com", "timezone": "Mars"});
    assert_eq!(upsert(&bed, workspace, &owner, both).await.summary(), "422 /timezone invalid_format");
    let path = contact(workspace, &ann);
    let refused = bed.patch(&owner, &path, json!({"phone": "+14155550123", "tags": ["x"]})).await;
    assert_eq!(refused["error"]["details"], json!({"pointer": "/phone", "contact_id": bob["id"]}));
    assert_eq!(bed.get(&owner, &path).await.body, ann.body, "nothing changed");
    // A contact may be renamed by its id.
    assert_eq!(bed.patch(&owner, &path, json!({"external_id": "u-9"})).await["external_id"], "u-9");
}

#[tokio::test]
async fn listings_filter_and_page() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let list = bed.post(&owner, &format!("/workspaces/{workspace}/lists"), json!({"name": "News"})).await;
    let mut all = Vec::new();
    for n in 0..5 {
        bed.clock.advance(Duration::from_secs(1));
        let mut body = json!({"external_id": format!("u-{n}"), "email": format!("u{n}@example.com"),
            "phone": format!("+1415555010{n}"), "tags": [if n % 2 == 0 { "even" } else { "odd" }]});
        if n < 2 {
            body["list_ids"] = json!([list["id"]]);
        }
        all.insert(0, upsert(&bed, workspace, &owner, body).await["id"].clone());
    }
    let list = list["id"].as_str().unwrap();
    for (query, expected) in [
        (String::new(), all.clone()),
        ("email=U3@Example.com".to_owned(), vec![all[1].clone()]),
        ("external_id=u-3".to_owned(), vec![all[1].clone()]),
        ("phone=%2B14155550103".to_owned(), vec![all[1].clone()]),
        ("email=nobody".to_owned(), vec![]),
        ("tag=even".to_owned(), vec![all[0].clone(), all[2].clone(), all[4].clone()]),
        (format!("list_id={list}"), vec![all[3].clone(), all[4].clone()]),
        (format!("list_id={list}&tag=even"), vec![all[4].clone()]),
        ("list_id=lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".to_owned(), vec![]),
        ("updated_since=2026-01-31T09:15:04Z".to_owned(), vec![all[0].clone(), all[1].clone()]),
        ("segment=anything&unknown=1".to_owned(), all.clone()),
    ] {
        assert_eq!(ids(&bed, workspace, &owner, &query).await, expected, "{query}");
    }
    let path = contacts(workspace);
    let bad = bed.get(&owner, &format!("{path}?list_id=x&updated_since=yesterday&limit=0")).await;
    assert_eq!(bad.summary(), "422 limit out_of_range list_id invalid_format updated_since invalid_format");

    let first = bed.get(&owner, &format!("{path}?tag=even&limit=2")).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = bed.get(&owner, &format!("{path}?tag=even&limit=2&cursor={cursor}")).await;
    assert_eq!((rest["data"][0]["id"].clone(), rest["next_cursor"].clone()), (all[4].clone(), Value::Null));
    assert_eq!(bed.get(&owner, &format!("{path}?tag=odd&cursor={cursor}")).await.summary(), "400 invalid_cursor");
}

#[tokio::test]
async fn addresses_are_masked_without_the_scope() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let key = bed.key(workspace, &["contacts:write"]).await;
    let body = json!({"external_id": "u-1", "email": "ann@example.com", "phone": "+14155554567",
        "attributes": {"note": "ann@example.com"}});
    let masked = (json!("a***@example.com"), json!("+*******4567"));
    let shown = |contact: &Value| (contact["email"].clone(), contact["phone"].clone());
    let created = upsert(&bed, workspace, &key, body).await;
    assert_eq!(shown(&created.body), masked);
    let path = contact(workspace, &created);
    assert_eq!(shown(&bed.get(&key, &path).await.body), masked);
    assert_eq!(shown(&bed.patch(&key, &path, json!({"locale": "en"})).await.body), masked);
    // Filters match the unmasked value.
    let listed = bed.get(&key, &format!("{}?email=ann@example.com", contacts(workspace))).await;
    assert_eq!(shown(&listed["data"][0]), masked);
    assert_eq!(bed.get(&owner, &path).await["email"], "ann@example.com");
    assert_eq!(bed.get(&key, &format!("{path}/export")).await.summary(), "403 scope required: pii:read");
}

#[tokio::test]
async fn suppressed_channels_are_those_of_the_contacts_addresses() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let suppress = |channel, address: &str| {
        Write::PutSuppression(
            Suppression {
                id: bed.app.new_id(START),
                workspace_id: workspace,
                channel,
                address: address.to_owned(),
                reason: SuppressionReason::Manual,
                detail: None,
                source: SuppressionSource::Api,
                created_at: START,
            },
            Expect::Absent,
        )
    };
    let writes = [
        suppress(Channel::Email, "ann@example.com"),
        suppress(Channel::Viber, "+14155550123"),
        suppress(Channel::Telegram, "17"),
        suppress(Channel::Push, "t2"),
    ];
    bed.store.commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();
    let ann = upsert(&bed, workspace, &owner, json!({"email": "Ann@example.com", "phone": "+14155550123"})).await;
    assert_eq!(ann["suppressed_channels"], json!(["email", "viber"]));
    let attributes = json!({"telegram_chat_id": 17, "push_token": ["t1", "t2"]});
    let bob = upsert(&bed, workspace, &owner, json!({"external_id": "bob", "attributes": attributes})).await;
    assert_eq!(bob["suppressed_channels"], json!(["push", "telegram"]));
    let carl = upsert(&bed, workspace, &owner, json!({"email": "carl@example.com"})).await;
    assert_eq!(carl["suppressed_channels"], json!([]));
    let listed = bed.get(&owner, &contacts(workspace)).await;
    let shown: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|one| one["suppressed_channels"].clone()).collect();
    assert_eq!(shown, [json!([]), json!(["push", "telegram"]), json!(["email", "viber"])]);
}

#[tokio::test]
async fn two_contacts_become_one() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let lists = format!("/workspaces/{workspace}/lists");
    let one = bed.post(&owner, &lists, json!({"name": "one"})).await["id"].clone();
    let two = bed.post(&owner, &lists, json!({"name": "two"})).await["id"].clone();
    let primary = json!({"external_id": "u-1", "list_ids": [one], "tags": ["a"], "consent": {"sms": true}});
    let primary = upsert(&bed, workspace, &owner, primary).await;
    let duplicate = json!({"external_id": "u-2", "email": "ann@example.com", "list_ids": [one, two],
        "tags": ["a", "b"], "attributes": {"plan": "pro"}, "consent": {"marketing_email": true, "sms": false}});
    let duplicate = upsert(&bed, workspace, &owner, duplicate).await;
    let path = format!("{}/merge", contacts(workspace));
    for (body, expected) in [
        (json!({}), "422 /duplicate_id required /primary_id required"),
        (json!({"primary_id": "x", "duplicate_id": "y"}), "422 /duplicate_id not_found /primary_id not_found"),
        (json!({"primary_id": primary["id"], "duplicate_id": primary["id"]}), "422 /duplicate_id conflict"),
        (json!({"primary_id": primary["id"], "duplicate_id": 7}), "422 /duplicate_id invalid_type"),
    ] {
        assert_eq!(bed.post(&owner, &path, body.clone()).await.summary(), expected, "{body}");
    }
    let body = json!({"primary_id": primary["id"], "duplicate_id": duplicate["id"]});
    let merged = bed.post(&owner, &path, body.clone()).await;
    assert_eq!(merged.summary(), "200");
    let mut expected = primary.body.clone();
    expected["email"] = json!("ann@example.com");
    expected["attributes"] = json!({"plan": "pro"});
    expected["tags"] = json!(["a", "b"]);
    expected["list_ids"] = json!([one, two]);
    expected["consent"] = json!({"marketing_email": true, "sms": false});
    assert_eq!(merged.body, expected);
    assert_eq!(bed.get(&owner, &contact(workspace, &primary)).await.body, expected);
    assert_eq!(bed.get(&owner, &contact(workspace, &duplicate)).await.summary(), "404 not_found");
    assert_eq!(bed.post(&owner, &path, body).await.summary(), "422 /duplicate_id not_found");
    let listed = bed.get(&owner, &lists).await;
    let counts: Vec<_> = listed["data"].as_array().unwrap().iter().map(|list| list["contact_count"].clone()).collect();
    assert_eq!(counts, [1, 1]);
}

#[tokio::test]
async fn a_repeated_key_answers_the_same_and_is_kept_sealed() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = contacts(workspace);
    let call = |body: Value| Call::new(&owner, http::Method::POST, &path).body(&body).key("k");
    let body = json!({"email": "ann@example.com"});
    let first = bed.call(call(body.clone())).await;
    let second = bed.call(call(body)).await;
    assert_eq!(second.summary(), "201 replayed");
    assert_eq!(first.body, second.body);
    assert_eq!(bed.call(call(json!({"email": "b@example.com"}))).await.summary(), "422 idempotency_key_reused");
}

#[tokio::test]
async fn other_workspaces_have_their_own_contacts() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let other = messaging_engine::admin::create_workspace(&bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let owner_of_both = bed.sign_in("owner@acme.com").await;
    let mine = upsert(&bed, workspace, &owner, json!({"email": "ann@example.com"})).await;
    let theirs = upsert(&bed, other, &owner_of_both, json!({"email": "ann@example.com"})).await;
    assert_eq!((mine.status, theirs.status), (201, 201));
    let foreign = format!("{}/{}", contacts(other), mine["id"].as_str().unwrap());
    assert_eq!(bed.get(&owner_of_both, &foreign).await.summary(), "404 not_found");
    assert_eq!(bed.delete(&owner_of_both, &foreign).await.summary(), "404 not_found");
    let nowhere = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let operator = Caller::Operator(Some(nowhere));
    let refused = upsert(&bed, nowhere, &operator, json!({"email": "ann@example.com"})).await;
    assert_eq!(refused.summary(), "404 not_found");
}
