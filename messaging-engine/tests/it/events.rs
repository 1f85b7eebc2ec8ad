//! Contract section 5: product events.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::domain::audience::product_event::UNIQUE_FOR;
use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use messaging_engine::work::sweep::sweep;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply, fault};

/// A workspace and a key for everything.
async fn start() -> (Bed, WorkspaceId, Caller) {
    let (bed, workspace, _) = Bed::with_owner().await;
    let key = bed.key(workspace, &["*"]).await;
    (bed, workspace, key)
}

fn event(contact: Value) -> Value {
    json!({"name": "order_placed", "contact": contact})
}

fn unique(unique_id: &str, contact: Value) -> Value {
    json!({"name": "order_placed", "contact": contact, "unique_id": unique_id})
}

async fn tell(bed: &Bed, key: &Caller, body: Value) -> Reply {
    bed.post(key, "/events", body).await
}

async fn tell_many(bed: &Bed, key: &Caller, events: Value) -> Reply {
    bed.post(key, "/events/bulk", json!({"events": events})).await
}

/// `accepted 2, duplicates 0, rejected 1; 1: validation_failed /name required`
fn told(reply: &Reply) -> String {
    assert_eq!(reply.summary(), "202");
    let counts = ["accepted", "duplicates", "rejected"].map(|name| format!("{name} {}", reply[name]));
    let one = |refused: &Value| {
        let error = &refused["error"];
        let faults = error["details"]["errors"].as_array().into_iter().flatten().map(fault);
        let words: Vec<_> = [error["code"].as_str().unwrap().to_owned()].into_iter().chain(faults).collect();
        format!("{}: {}", refused["index"], words.join(" "))
    };
    let refused: Vec<_> = reply["errors"].as_array().unwrap().iter().map(one).collect();
    [counts.join(", ")].into_iter().chain(refused).collect::<Vec<_>>().join("; ")
}

async fn upsert(bed: &Bed, workspace: WorkspaceId, key: &Caller, body: Value) -> String {
    let reply = bed.post(key, &format!("/workspaces/{workspace}/contacts"), body).await;
    reply["id"].as_str().unwrap().to_owned()
}

/// Events in the export of a contact.
async fn exported(bed: &Bed, workspace: WorkspaceId, key: &Caller, contact: &str) -> Vec<Value> {
    let reply = bed.get(key, &format!("/workspaces/{workspace}/contacts/{contact}/export")).await;
    assert_eq!(reply.summary(), "200");
    reply["events"].as_array().unwrap().clone()
}

async fn contact_count(bed: &Bed, workspace: WorkspaceId) -> u64 {
    bed.store.contact_count(workspace).await.unwrap()
}

#[tokio::test]
async fn an_event_is_of_the_contact_it_names() {
    let (bed, workspace, key) = start().await;
    let ann = upsert(&bed, workspace, &key, json!({"external_id": "u-1", "email": "ann@example.com"})).await;
    let mut full = unique("order-17", json!({"external_id": "u-1", "email": "other@example.com"}));
    full["name"] = json!(" order_placed ");
    full["occurred_at"] = json!("2026-01-01T09:15:00+01:00");
    full["properties"] = json!({"total": 59.90, "items": [{"sku": "A1"}], "note": null});
    let first = tell(&bed, &key, full.clone()).await;
    assert_eq!(first.summary(), "202");
    assert!(first["event_id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!((&first["contact_id"], &first["status"]), (&json!(ann), &json!("accepted")));
    for contact in [json!({"id": ann}), json!({"email": "Ann@Example.com", "external_id": null})] {
        assert_eq!(tell(&bed, &key, event(contact)).await["contact_id"], json!(ann));
    }
    let repeated = tell(&bed, &key, full).await;
    assert_eq!((repeated.summary().as_str(), &repeated["status"]), ("202", &json!("duplicate")));
    assert_eq!((&repeated["event_id"], &repeated["contact_id"]), (&first["event_id"], &first["contact_id"]));

    let events = exported(&bed, workspace, &key, &ann).await;
    assert_eq!(events.len(), 3);
    assert_eq!(
        events[2],
        json!({"event_id": first["event_id"], "name": "order_placed", "occurred_at": "2026-01-01T08:15:00.000Z",
            "properties": {"total": 59.9, "items": [{"sku": "A1"}], "note": null}, "unique_id": "order-17"})
    );
    assert_eq!(
        (&events[0]["occurred_at"], &events[0]["properties"], &events[0]["unique_id"]),
        (&json!("2026-01-31T09:15:00.000Z"), &json!({}), &Value::Null)
    );
    let contact = bed.get(&key, &format!("/workspaces/{workspace}/contacts/{ann}")).await;
    assert_eq!(contact["email"], "ann@example.com", "its identifiers are not changed");
    assert_eq!(contact_count(&bed, workspace).await, 1);
}

#[tokio::test]
async fn whoever_is_not_there_is_created_without_consent() {
    let (bed, workspace, key) = start().await;
    let first = tell(&bed, &key, event(json!({"external_id": "u-9", "email": "Bob@Example.com"}))).await;
    let contact = first["contact_id"].as_str().unwrap();
    let shown = bed.get(&key, &format!("/workspaces/{workspace}/contacts/{contact}")).await;
    assert_eq!(
        [&shown["external_id"], &shown["email"], &shown["consent"]],
        [&json!("u-9"), &json!("bob@example.com"), &json!({"marketing_email": null, "sms": null})]
    );
    let second = tell(&bed, &key, event(json!({"email": "bob@example.com"}))).await;
    assert_eq!(second["contact_id"], first["contact_id"]);
    assert_eq!(contact_count(&bed, workspace).await, 1);
}

#[tokio::test]
async fn refusals_leave_nothing() {
    let (bed, workspace, key) = start().await;
    let nobody = json!({"id": "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "email": "bob@example.com"});
    let mut late = event(json!({"email": "bob@example.com"}));
    late["occurred_at"] = json!("2026-01-31T10:15:00.001Z");
    for (body, expected) in [
        (json!({}), "422 /contact required /name required"),
        (event(nobody.clone()), "422 /contact/id not_found"),
        (late, "422 /occurred_at out_of_range"),
        (
            json!({"name": "$open", "contact": nobody, "occurred_at": "1999-01-01T00:00:00Z"}),
            "422 /contact/id not_found /name invalid_format /occurred_at out_of_range",
        ),
    ] {
        assert_eq!(tell(&bed, &key, body).await.summary(), expected);
    }
    assert_eq!(contact_count(&bed, workspace).await, 0);
    // The operator can name a workspace that does not exist.
    let nowhere = Caller::Operator(Some("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap()));
    let reply = tell(&bed, &nowhere, event(json!({"email": "bob@example.com"}))).await;
    assert_eq!(reply.summary(), "403 workspace_forbidden");
}

#[tokio::test]
async fn items_are_judged_one_by_one_and_see_those_before() {
    let (bed, workspace, key) = start().await;
    let reply = tell_many(
        &bed,
        &key,
        json!([
            unique("a", json!({"external_id": "u-1", "email": "ann@example.com"})),
            event(json!({"email": "ANN@example.com"})),
            unique("a", json!({"external_id": "never-created"})),
            {"name": "", "contact": {"email": "ann"}},
            7,
            event(json!({"id": "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"})),
            {"name": "x", "contact": {"external_id": "u-1"}, "occurred_at": "2030-01-01T00:00:00Z"},
            unique("b", json!({"external_id": "u-1"}))
        ]),
    )
    .await;
    assert_eq!(
        told(&reply),
        "accepted 3, duplicates 1, rejected 4; \
         3: validation_failed /name required /contact/email invalid_format; \
         4: validation_failed  invalid_type; \
         5: validation_failed /contact/id not_found; \
         6: validation_failed /occurred_at out_of_range"
    );
    assert_eq!(contact_count(&bed, workspace).await, 1);
    let all_refused = tell_many(&bed, &key, json!([{}, {}])).await;
    assert_eq!((all_refused["accepted"].as_u64(), all_refused["rejected"].as_u64()), (Some(0), Some(2)));
}

#[tokio::test]
async fn a_request_has_one_to_a_thousand_items() {
    let (bed, workspace, key) = start().await;
    let many = |count: usize| (0..count).map(|_| event(json!({"external_id": "u-1"}))).collect::<Value>();
    for (events, expected) in [
        (json!([]), "422 /events too_short"),
        (many(1001), "422 /events too_many_items"),
        (Value::Null, "422 /events required"),
    ] {
        assert_eq!(tell_many(&bed, &key, events).await.summary(), expected);
    }
    assert_eq!(told(&tell_many(&bed, &key, many(1000)).await), "accepted 1000, duplicates 0, rejected 0");
    assert_eq!(contact_count(&bed, workspace).await, 1, "one person, created once");
    // Long properties make several parts, which refer to one another.
    let text = "x".repeat(30_000);
    let long = |n: usize| {
        let mut body = unique(&format!("n-{}", n % 60), json!({"email": "bob@example.com"}));
        body["properties"] = json!({ "text": text });
        body
    };
    let reply = tell_many(&bed, &key, (0..80).map(long).collect()).await;
    assert_eq!(told(&reply), "accepted 60, duplicates 20, rejected 0");
    assert_eq!(contact_count(&bed, workspace).await, 2);
}

#[tokio::test]
async fn a_repeated_key_does_nothing_again() {
    let (bed, workspace, key) = start().await;
    let one = event(json!({"external_id": "u-1"}));
    let many = json!({"events": [one, one]});
    for (path, body) in [("/events", &one), ("/events/bulk", &many)] {
        let call = || Call::new(&key, Method::POST, path).body(body).key("k");
        let first = bed.call(call()).await;
        let second = bed.call(call()).await;
        assert_eq!((first.summary().as_str(), second.summary().as_str()), ("202", "202 replayed"));
        assert_eq!(first.body, second.body);
    }
    let contact = upsert(&bed, workspace, &key, json!({"external_id": "u-1"})).await;
    assert_eq!(exported(&bed, workspace, &key, &contact).await.len(), 3);
}

#[tokio::test]
async fn a_unique_id_is_forgotten_after_seven_days() {
    let (bed, _, key) = start().await;
    let body = unique("order-17", json!({"external_id": "u-1"}));
    let first = tell(&bed, &key, body.clone()).await;
    bed.clock.advance(UNIQUE_FOR);
    sweep(&bed.app).await.unwrap();
    assert_eq!(tell(&bed, &key, body.clone()).await["event_id"], first["event_id"]);
    bed.clock.advance(Duration::from_millis(1));
    // Before the sweep has run.
    let second = tell(&bed, &key, body.clone()).await;
    assert_eq!(second["status"], "accepted");
    assert_eq!(tell(&bed, &key, body.clone()).await["event_id"], second["event_id"]);
    bed.clock.advance(UNIQUE_FOR + Duration::from_millis(1));
    sweep(&bed.app).await.unwrap();
    assert_eq!(tell(&bed, &key, body).await["status"], "accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_one_is_the_first() {
    let (bed, workspace, key) = start().await;
    let bed = Arc::new(bed);
    let senders: Vec<_> = (0..8)
        .map(|sender| {
            let (bed, key) = (Arc::clone(&bed), key.clone());
            tokio::spawn(async move {
                let item = |n: usize| unique(&format!("n-{n}"), json!({"email": format!("u{n}@example.com")}));
                if sender % 2 == 0 {
                    let mut reply = tell_many(&bed, &key, (0..20).map(item).collect()).await;
                    // A request that is overtaken repeatedly gets 503, and has changed nothing.
                    while reply.summary() == "503 unavailable" {
                        reply = tell_many(&bed, &key, (0..20).map(item).collect()).await;
                    }
                    return ["accepted", "duplicates"].map(|name| reply[name].as_u64().unwrap());
                }
                let mut counts = [0, 0];
                for n in 0..20 {
                    let reply = tell(&bed, &key, item(n)).await;
                    assert_eq!(reply.summary(), "202");
                    counts[usize::from(reply["status"] == "duplicate")] += 1;
                }
                counts
            })
        })
        .collect();
    let mut sums = [0, 0];
    for sender in senders {
        let counts = sender.await.unwrap();
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    assert_eq!(sums, [20, 140]);
    assert_eq!(contact_count(&bed, workspace).await, 20);
}

#[tokio::test]
async fn merging_moves_the_events() {
    let (bed, workspace, key) = start().await;
    let ann = upsert(&bed, workspace, &key, json!({"external_id": "u-1"})).await;
    let twin = upsert(&bed, workspace, &key, json!({"email": "ann@example.com"})).await;
    let item = |n: usize| unique(&format!("n-{n}"), json!({"id": twin}));
    for start in [0, 700] {
        tell_many(&bed, &key, (start..start + 700).map(item).collect()).await;
    }
    let body = json!({"primary_id": ann, "duplicate_id": twin});
    let reply = bed.post(&key, &format!("/workspaces/{workspace}/contacts/merge"), body).await;
    assert_eq!(reply.summary(), "200");
    assert_eq!(exported(&bed, workspace, &key, &ann).await.len(), 500, "as many as one commit moves");
    let repeated = tell(&bed, &key, item(1399)).await;
    assert_eq!((&repeated["status"], &repeated["contact_id"]), (&json!("duplicate"), &json!(ann)));
    assert_eq!(tell(&bed, &key, event(json!({"id": twin}))).await.summary(), "422 /contact/id not_found");
    bed.app.run_until_idle().await.unwrap();
    let events = exported(&bed, workspace, &key, &ann).await;
    let names: Vec<_> = events.iter().map(|event| event["unique_id"].clone()).collect();
    assert!(names.iter().cloned().eq((0..1400).rev().map(|n| json!(format!("n-{n}")))), "in their order");
}

/// Sends events of a contact by its external id until told to stop; returns the contact id in each answer.
async fn keep_telling(bed: &Bed, key: &Caller, stop: &std::sync::atomic::AtomicBool) -> Vec<String> {
    let mut owners = Vec::new();
    // At least a few, whichever task is faster.
    while owners.len() < 20 || !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let reply = tell(bed, key, event(json!({"external_id": "twin"}))).await;
        assert_eq!(reply.summary(), "202");
        owners.push(reply["contact_id"].as_str().unwrap().to_owned());
        tokio::task::yield_now().await;
    }
    owners
}

/// Sends events of the contact `twin` while `what` runs; returns the contact id in each answer.
async fn meanwhile(bed: &Arc<Bed>, key: &Caller, what: impl Future<Output = ()>) -> Vec<String> {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let (bed, key, stop) = (Arc::clone(bed), key.clone(), Arc::clone(&stop));
            tokio::spawn(async move { keep_telling(&bed, &key, &stop).await })
        })
        .collect();
    what.await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut owners = Vec::new();
    for sender in senders {
        owners.extend(sender.await.unwrap());
    }
    bed.app.run_until_idle().await.unwrap();
    owners
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_to_a_merge() {
    let (bed, workspace, key) = start().await;
    let bed = Arc::new(bed);
    for round in 0..5 {
        let ann = upsert(&bed, workspace, &key, json!({"email": format!("ann{round}@example.com")})).await;
        let twin = upsert(&bed, workspace, &key, json!({"external_id": "twin"})).await;
        let owners = meanwhile(&bed, &key, async {
            let path = format!("/workspaces/{workspace}/contacts/merge");
            let reply = bed.post(&key, &path, json!({"primary_id": ann, "duplicate_id": twin})).await;
            assert_eq!(reply.summary(), "200");
        })
        .await;
        assert!(owners.iter().all(|owner| *owner == ann || *owner == twin));
        assert_eq!(exported(&bed, workspace, &key, &ann).await.len(), owners.len(), "round {round}");
        bed.delete(&key, &format!("/workspaces/{workspace}/contacts/{ann}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_contact_leaves_no_event() {
    let (bed, workspace, key) = start().await;
    let bed = Arc::new(bed);
    let twin = upsert(&bed, workspace, &key, json!({"external_id": "twin"})).await;
    let owners = meanwhile(&bed, &key, async {
        let reply = bed.delete(&key, &format!("/workspaces/{workspace}/contacts/{twin}")).await;
        assert_eq!(reply.summary(), "204");
    })
    .await;
    // Later events are of a new contact.
    let after = upsert(&bed, workspace, &key, json!({"external_id": "twin"})).await;
    assert_ne!(after, twin);
    assert!(owners.iter().all(|owner| *owner == after || *owner == twin));
    let kept = owners.iter().filter(|owner| **owner == after).count();
    assert_eq!(exported(&bed, workspace, &key, &after).await.len(), kept);
    assert!(!bed.store.has_left_events(workspace, twin.parse().unwrap()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_after_an_interruption_adds_nothing_twice() {
    const EVENTS: usize = 120;
    let (bed, workspace, key) = start().await;
    let bed = Arc::new(bed);
    let text = "x".repeat(30_000);
    let mut interrupted = 0;
    for attempt in 0..20 {
        let contact = upsert(&bed, workspace, &key, json!({"external_id": format!("u-{attempt}")})).await;
        let one = json!({"name": "seen", "contact": {"id": contact}, "properties": {"text": text}});
        let body = json!({"events": vec![one; EVENTS]});
        let name = format!("k{attempt}");
        let request = {
            let (bed, key, body, name) = (Arc::clone(&bed), key.clone(), body.clone(), name.clone());
            tokio::spawn(
                async move { bed.call(Call::new(&key, Method::POST, "/events/bulk").body(&body).key(&name)).await },
            )
        };
        let id = contact.parse().unwrap();
        let page = |limit| messaging_core::ports::store::PageRequest { after: None, limit };
        let stored = async || bed.store.product_events(workspace, id, page(1000)).await.unwrap().items.len();
        while stored().await == 0 {
            tokio::task::yield_now().await;
        }
        request.abort();
        if request.await.is_ok() {
            continue;
        }
        interrupted += 1;
        let repeated = bed.call(Call::new(&key, Method::POST, "/events/bulk").body(&body).key(&name)).await;
        assert_eq!(repeated.summary(), "202");
        let counts = ["accepted", "duplicates", "rejected"].map(|name| repeated[name].as_u64().unwrap());
        assert_eq!(counts, [EVENTS as u64, 0, 0]);
        assert_eq!(stored().await, EVENTS);
        if interrupted == 3 {
            break;
        }
    }
    assert!(interrupted > 0, "no request was interrupted");
}
