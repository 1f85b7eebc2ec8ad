//! Contract section 6.2: many contacts in one request.

use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply};

fn path(workspace: WorkspaceId) -> String {
    format!("/workspaces/{workspace}/contacts/bulk")
}

async fn bulk(bed: &Bed, workspace: WorkspaceId, caller: &Caller, contacts: Value) -> Reply {
    bed.post(caller, &path(workspace), json!({"contacts": contacts})).await
}

/// `created`, `updated`, `error: 409 identifier_conflict`, … in order.
fn told(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.summary(), "200");
    let results = reply["results"].as_array().unwrap();
    let one = |(index, result): (usize, &Value)| {
        assert_eq!(result["index"], index);
        let status = result["status"].as_str().unwrap();
        let Some(error) = result.get("error") else {
            assert!(result["id"].as_str().unwrap().starts_with("con_"));
            return status.to_owned();
        };
        assert_eq!((status, result.get("id")), ("error", None));
        let faults = error["details"]["errors"].as_array().into_iter().flatten().map(crate::bed::fault);
        [error["code"].as_str().unwrap().to_owned()].into_iter().chain(faults).collect::<Vec<_>>().join(" ")
    };
    results.iter().enumerate().map(one).collect()
}

#[tokio::test]
async fn items_are_judged_one_by_one_and_see_those_before() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let reply = bulk(
        &bed,
        workspace,
        &owner,
        json!([
            {"external_id": "u-1", "email": "ann@example.com"},
            {"email": "Ann@example.com", "tags": ["vip"]},
            {"external_id": "u-2", "email": "ann@example.com"},
            {},
            7,
            {"email": "nobody", "tags": [""], "list_ids": ["x"]},
            {"external_id": "a\u{0}b"},
            {"phone": 5},
            {"external_id": "u-1", "email": null},
            {"external_id": "u-2", "email": "ann@example.com"}
        ]),
    )
    .await;
    assert_eq!(
        told(&reply),
        [
            "created",
            "updated",
            "identifier_conflict",
            "validation_failed  required",
            "validation_failed  invalid_type",
            "validation_failed /email invalid_format /tags/0 too_short /list_ids/0 not_found",
            "validation_failed /external_id invalid_format",
            "validation_failed /phone invalid_type",
            "updated",
            "created",
        ]
    );
    let counts = ["created", "updated", "failed"].map(|name| reply[name].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 6]);
    let conflict = &reply["results"][2]["error"]["details"];
    assert_eq!(*conflict, json!({"pointer": "/external_id", "contact_id": reply["results"][0]["id"]}));
    let listed = bed.get(&owner, &format!("/workspaces/{workspace}/contacts")).await;
    let emails: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| one["email"].clone()).collect();
    assert_eq!(emails, [json!("ann@example.com"), Value::Null]);
}

#[tokio::test]
async fn a_request_has_one_to_a_thousand_items() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let many = |count: usize| (0..count).map(|n| json!({"external_id": format!("u-{n}")})).collect::<Value>();
    for (contacts, expected) in [
        (json!([]), "422 /contacts too_short"),
        (many(1001), "422 /contacts too_many_items"),
        (Value::Null, "422 /contacts required"),
        (json!({}), "422 /contacts invalid_type"),
    ] {
        assert_eq!(bulk(&bed, workspace, &owner, contacts).await.summary(), expected);
    }
    assert_eq!(bed.post(&owner, &path(workspace), json!({})).await.summary(), "422 /contacts required");
    let reply = bulk(&bed, workspace, &owner, many(1000)).await;
    assert_eq!((reply["created"].as_u64(), reply["failed"].as_u64()), (Some(1000), Some(0)));
    let again = bulk(&bed, workspace, &owner, many(1000)).await;
    assert_eq!((again["created"].as_u64(), again["updated"].as_u64()), (Some(0), Some(1000)));
    let id = |reply: &Reply, n: usize| reply["results"][n]["id"].clone();
    assert!((0..1000).all(|n| id(&reply, n) == id(&again, n)));
    // Contacts that are large make smaller parts.
    let text = "x".repeat(60_000);
    let large: Value = (0..40)
        .map(|n| json!({"external_id": format!("u-{n}"), "attributes": {"text": text}, "email": "same@example.com"}))
        .collect();
    let reply = bulk(&bed, workspace, &owner, large).await;
    assert_eq!((reply["updated"].as_u64(), reply["failed"].as_u64()), (Some(1), Some(39)));
}

#[tokio::test]
async fn a_repeated_key_does_nothing_again() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let target = path(workspace);
    let call = |body: &Value| Call::new(&owner, http::Method::POST, &target).body(body).key("k");
    let body = json!({"contacts": [{"external_id": "u-1", "locale": "en"}]});
    let first = bed.call(call(&body)).await;
    assert_eq!(told(&first), ["created"]);
    let contact = format!("/workspaces/{workspace}/contacts/{}", first["results"][0]["id"].as_str().unwrap());
    bed.patch(&owner, &contact, json!({"locale": "de"})).await;
    let second = bed.call(call(&body)).await;
    assert_eq!(second.summary(), "200 replayed");
    assert_eq!(second.body, first.body);
    assert_eq!(bed.get(&owner, &contact).await["locale"], "de", "the repetition has no effect");
    let other = json!({"contacts": [{"external_id": "u-9"}]});
    assert_eq!(bed.call(call(&other)).await.summary(), "422 idempotency_key_reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_the_same_contacts_agree() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let bed = std::sync::Arc::new(bed);
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (bed, owner) = (std::sync::Arc::clone(&bed), owner.clone());
            tokio::spawn(async move {
                let item =
                    |n: usize| json!({"email": format!("u{n}@example.com"), "attributes": {format!("w{writer}"): n}});
                bulk(&bed, workspace, &owner, (0..50).map(item).collect()).await
            })
        })
        .collect();
    let (mut created, mut failed) = (0, 0);
    for writer in writers {
        let reply = writer.await.unwrap();
        created += reply["created"].as_u64().unwrap();
        failed += reply["failed"].as_u64().unwrap();
    }
    assert_eq!((created, failed), (50, 0));
    let listed = bed.get(&owner, &format!("/workspaces/{workspace}/contacts?limit=200")).await;
    let contacts = listed["data"].as_array().unwrap();
    assert_eq!(contacts.len(), 50);
    assert!(contacts.iter().all(|contact| contact["attributes"].as_object().unwrap().len() == 8), "no write is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_after_an_interruption_goes_on_where_it_was() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let bed = std::sync::Arc::new(bed);
    let mut interrupted = 0;
    for attempt in 0..20 {
        let item = |n: usize| json!({"external_id": format!("u-{attempt}-{n}"), "attributes": {"n": n}});
        let body = json!({"contacts": (0..1000).map(item).collect::<Value>()}).to_string();
        let key = format!("k{attempt}");
        let before = bed.store.contact_count(workspace).await.unwrap();
        let request = {
            let (bed, owner, body, key) = (std::sync::Arc::clone(&bed), owner.clone(), body.clone(), key.clone());
            let target = path(workspace);
            tokio::spawn(
                async move { bed.call(Call::new(&owner, http::Method::POST, &target).text(&body).key(&key)).await },
            )
        };
        // The first part is there; whatever comes next does not happen, or is not told.
        while bed.store.contact_count(workspace).await.unwrap() == before {
            tokio::task::yield_now().await;
        }
        request.abort();
        if request.await.is_ok() {
            continue;
        }
        interrupted += 1;
        let target = path(workspace);
        let other = json!({"contacts": [{"external_id": "other"}]});
        let call = Call::new(&owner, http::Method::POST, &target).body(&other).key(&key);
        assert_eq!(bed.call(call).await.summary(), "422 idempotency_key_reused");
        let repeated = bed.call(Call::new(&owner, http::Method::POST, &target).text(&body).key(&key)).await;
        let counts = ["created", "updated", "failed"].map(|name| repeated[name].as_u64().unwrap());
        assert_eq!(counts, [1000, 0, 0], "what was done is told, not done again");
        // Replayed as a whole when all of it was done and only the answer was not told.
        assert!(matches!(repeated.summary().as_str(), "200" | "200 replayed"), "{}", repeated.summary());
        assert_eq!(repeated["results"].as_array().unwrap().len(), 1000);
        assert_eq!(bed.store.contact_count(workspace).await.unwrap(), before + 1000);
        if interrupted == 3 {
            break;
        }
    }
    assert!(interrupted > 0, "no request was interrupted");
}
