//! Messages and contacts: attribution, consent, merging, erasure.

use std::time::Duration;

use http::Method;
use messaging_core::changes::{Changes, ContactSends, Expect, RedactMessage, Write};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod::{Link, OneClick};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::{Link as LinkTo, UrlKey};
use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::{ContactId, MessageId};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::PageRequest;
use messaging_core::time::Timestamp;
use messaging_engine::ops::{self, Request};
use messaging_engine::services::Visitor;
use messaging_store::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::bed::START;
use crate::support::Product;

/// Calls an operation by its id, with an Idempotency-Key.
async fn call(product: &Product, id: &str, path: &[(&str, &str)], query: &str, body: Value) -> (u16, Value) {
    call_as(product, id, path, query, body, Some(b"key-of-the-test")).await
}

async fn call_as(
    product: &Product,
    id: &str,
    path: &[(&str, &str)],
    query: &str,
    body: Value,
    key: Option<&[u8]>,
) -> (u16, Value) {
    let endpoint = ops::all().iter().find(|endpoint| endpoint.id == id).unwrap();
    let mut parameters: Vec<_> = path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    parameters.push(("workspace_id".to_owned(), product.workspace.to_string()));
    let admitted = product.app.admit(product.caller.clone(), endpoint, &parameters, None).await.unwrap();
    let request = Request {
        path: endpoint.path,
        path_parameters: parameters,
        query,
        body: body.to_string().into_bytes().into(),
        idempotency_key: key.filter(|_| (endpoint.method)() == Method::POST),
        ..Request::default()
    };
    let answer = admitted.run(request).await;
    match answer {
        Ok(answer) => (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap_or(Value::Null)),
        Err(error) => (error.status().as_u16(), error.to_body("req_test")),
    }
}

async fn upsert(product: &Product, body: Value) -> Value {
    call_as(product, "upsertContact", &[], "", body, None).await.1
}

async fn get(product: &Product, contact: &Value) -> Value {
    call(product, "getContact", &[("id", contact["id"].as_str().unwrap())], "", Value::Null).await.1
}

fn email(member: &str, value: Value) -> Value {
    let mut body = json!({"channel": "email", "subject": "s", "text": "t"});
    body[member] = value;
    body
}

async fn contact_of(product: &Product, message: MessageId) -> Value {
    serde_json::to_value(product.report(message).await).unwrap()["contact_id"].clone()
}

#[tokio::test]
async fn a_message_goes_to_the_address_of_its_contact() {
    let product = Product::start().await;
    let ann = upsert(&product, json!({"email": "Ann@example.com"})).await;
    let message = product.send(&email("contact_id", ann["id"].clone())).await;
    assert_eq!(contact_of(&product, message).await, ann["id"]);
    product.work().await;
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.last_meta(message).await["recipient"], "ann@example.com");

    let mut both = email("contact_id", ann["id"].clone());
    both["to"] = json!("work@example.com");
    let message = product.send(&both).await;
    assert_eq!(contact_of(&product, message).await, ann["id"]);
    product.work().await;
    assert_eq!(product.last_meta(message).await["recipient"], "work@example.com");

    let bob = upsert(&product, json!({"external_id": "bob"})).await;
    let refused = product.post_message(&email("contact_id", bob["id"].clone()), None).await.unwrap_err();
    assert_eq!(refused.code(), "contact_address_missing");
    for unknown in [json!("con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"), json!("nonsense")] {
        let refused = product.post_message(&email("contact_id", unknown), None).await.unwrap_err();
        assert_eq!(refused.to_body("r")["error"]["details"]["errors"][0]["pointer"], "/contact_id");
    }
}

#[tokio::test]
async fn an_address_alone_finds_its_contact() {
    let product = Product::start().await;
    let before = product.send_to("ann@example.com").await;
    let ann = upsert(&product, json!({"email": "ann@example.com"})).await;
    let after = product.send_to("Ann@Example.com").await;
    let nobody = product.send_to("bob@example.com").await;
    assert_eq!(contact_of(&product, before).await, Value::Null);
    assert_eq!(contact_of(&product, after).await, ann["id"]);
    assert_eq!(contact_of(&product, nobody).await, Value::Null);
    let query = format!("contact_id={}", ann["id"].as_str().unwrap());
    let (_, listed) = call(&product, "listMessages", &[], &query, Value::Null).await;
    let ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| one["message_id"].clone()).collect();
    assert_eq!(ids, [json!(after)]);
}

#[tokio::test]
async fn unsubscribing_and_complaining_withdraw_consent() {
    let product = Product::start().await;
    let consent = json!({"marketing_email": true, "sms": true});
    let ann = upsert(&product, json!({"email": "ann@example.com", "consent": consent})).await;
    let message = product.send_to("ann@example.com").await;
    product.work().await;
    product.clock.advance(Duration::from_secs(5));
    assert!(product.app.unsubscribe(product.workspace, message, OneClick).await.unwrap());
    let withdrawn = get(&product, &ann).await;
    assert_eq!(withdrawn["consent"], json!({"marketing_email": false, "sms": true}));
    assert_eq!(withdrawn["suppressed_channels"], json!(["email"]));
    assert_ne!(withdrawn["updated_at"], ann["updated_at"]);
    assert!(!product.app.unsubscribe(product.workspace, message, Link).await.unwrap());
    // A contact that consents again can withdraw again, although the address is still suppressed.
    let again = upsert(&product, json!({"email": "ann@example.com", "consent": {"marketing_email": true}})).await;
    assert_eq!(again["suppressed_channels"], json!(["email"]));
    assert!(product.app.unsubscribe(product.workspace, message, Link).await.unwrap());
    assert_eq!(get(&product, &ann).await["consent"]["marketing_email"], false);
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered Unsubscribe");

    let carl = upsert(&product, json!({"email": "complaint@simulator.invalid"})).await;
    let message = product.send_to("complaint@simulator.invalid").await;
    product.work().await;
    assert_eq!(product.story(message).await, "complained: Queued Sent Delivered Complaint");
    assert_eq!(get(&product, &carl).await["consent"]["marketing_email"], false);
}

#[tokio::test]
async fn merging_moves_the_messages() {
    let product = Product::start().await;
    let ann = upsert(&product, json!({"external_id": "u-1"})).await;
    let twin = upsert(&product, json!({"email": "ann@example.com"})).await;
    let mut messages = Vec::new();
    for _ in 0..3 {
        messages.push(product.send_to("ann@example.com").await);
    }
    let body = json!({"primary_id": ann["id"], "duplicate_id": twin["id"]});
    let (status, merged) = call(&product, "mergeContacts", &[], "", body).await;
    assert_eq!((status, &merged["email"]), (200, &json!("ann@example.com")));
    product.work().await;
    for message in &messages {
        assert_eq!(contact_of(&product, *message).await, ann["id"]);
    }
    // The job ends with its second pass.
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn merged_contacts_were_sent_what_either_was() {
    let product = Product::start().await;
    let ids: [ContactId; 3] = [
        upsert(&product, json!({"external_id": "u-1"})).await,
        upsert(&product, json!({"email": "ann@example.com"})).await,
        upsert(&product, json!({"external_id": "u-3"})).await,
    ]
    .map(|contact| contact["id"].as_str().unwrap().parse().unwrap());
    let second = Duration::from_secs(1);
    let before = |seconds: u32| START - second * seconds;
    let sent = async |contact: ContactId, times: &[Timestamp]| {
        let (workspace_id, channel) = (product.workspace, Channel::Email);
        let sends = ContactSends { workspace_id, contact_id: contact, channel, times: times.to_vec() };
        product.commit(Changes::from_iter([Write::put(sends, Expect::Absent)])).await;
    };
    sent(ids[0], &[before(30), before(10)]).await;
    sent(ids[1], &[before(8 * 24 * 3600), before(20)]).await;
    for duplicate in &ids[1..] {
        let body = json!({"primary_id": ids[0].to_string(), "duplicate_id": duplicate.to_string()});
        assert_eq!(call_as(&product, "mergeContacts", &[], "", body, None).await.0, 200);
    }
    let found = product.store.contact_sends(product.workspace, ids[0], Channel::Email).await.unwrap().unwrap();
    assert_eq!(found.record.times, [before(30), before(20), before(10)]);
    assert_eq!(product.store.contact_sends(product.workspace, ids[0], Channel::Sms).await.unwrap(), None);
}

#[tokio::test]
async fn an_export_holds_everything() {
    let product = Product::start().await;
    let bob = upsert(&product, json!({"email": "bounce@simulator.invalid"})).await;
    let message = product.send_to("bounce@simulator.invalid").await;
    product.work().await;
    let (status, export) =
        call(&product, "exportContact", &[("id", bob["id"].as_str().unwrap())], "", Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(export["contact"], get(&product, &bob).await);
    assert_eq!(export["events"], json!([]));
    assert_eq!(export["messages"], json!([serde_json::to_value(product.report(message).await).unwrap()]));
    let listed = &export["suppressions"][0];
    assert_eq!((&listed["address"], &listed["reason"]), (&json!("bounce@simulator.invalid"), &json!("bounce")));
    assert_eq!(listed["source"], "system");
}

async fn erase(product: &Product, contact: &Value) {
    let (status, _) = call(product, "deleteContact", &[("id", contact["id"].as_str().unwrap())], "", Value::Null).await;
    assert_eq!(status, 204);
}

#[tokio::test]
async fn erasure_leaves_status_and_statistics() {
    let product = Product::start().await;
    // Messages before the contact existed, after that, to another spelling of the address, and to another contact.
    let early = product.send_to("ann@example.com").await;
    let ann = upsert(&product, json!({"email": "ann@example.com", "external_id": "user-17"})).await;
    let mut body = email("contact_id", ann["id"].clone());
    body["metadata"] = json!({"for": "Ann"});
    body["tags"] = json!(["order", "ann@example.com"]);
    let attachment = json!({"filename": "a.txt", "content_b64": "YW5u"});
    body["attachments"] = json!([attachment]);
    let full = product.send(&body).await;
    let other = product.send_to("bob@example.com").await;
    product.work().await;
    erase(&product, &ann).await;
    let (status, _) = call(&product, "getContact", &[("id", ann["id"].as_str().unwrap())], "", Value::Null).await;
    assert_eq!(status, 404, "the contact is gone at once");
    product.work().await;

    assert_eq!(product.story(early).await, "delivered: Queued Sent Delivered");
    assert_eq!(product.story(full).await, "delivered: Queued Sent Delivered");
    for message in [early, full] {
        let stored = product.store.message_with_content(product.workspace, message).await.unwrap().unwrap();
        assert_eq!((stored.0.to.as_str(), stored.0.contact_id, stored.1), ("", None, None));
        let shown = serde_json::to_string(&product.report(message).await).unwrap();
        assert!(!shown.to_lowercase().contains("ann@"), "{shown}");
        assert_eq!(product.store.capture(product.workspace, message).await.unwrap(), None);
        let page = PageRequest { after: None, limit: 10 };
        assert_eq!(product.store.attempts(product.workspace, message, page).await.unwrap().items, []);
    }
    let all_time = product.app.now() + Duration::from_hours(1);
    assert_eq!(product.app.blobs().blobs_before(all_time, 10).await.unwrap(), [], "the attachment is gone");
    let report = product.report(full).await;
    assert_eq!((report.tags, report.metadata.len()), (vec!["order".to_owned()], 0));
    assert_eq!(product.last_meta(other).await["recipient"], "bob@example.com");
    // An old unsubscribe link has no recipient any more.
    assert!(!product.app.unsubscribe(product.workspace, full, Link).await.unwrap());
    logged_requests_are_forgotten(&product).await;
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}

/// Lets the erasure get to the requests that were logged when it began.
async fn logged_requests_are_forgotten(product: &Product) {
    product.pass(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn what_waits_is_not_sent_to_an_erased_person() {
    let product = Product::start().await;
    let ann = upsert(&product, json!({"email": "deferred@simulator.invalid"})).await;
    let message = product.send_to("deferred@simulator.invalid").await;
    product.work().await;
    assert_eq!(product.story(message).await, "deferred: Queued Deferred");
    erase(&product, &ann).await;
    product.work().await;
    assert_eq!(product.story(message).await, "cancelled: Queued Deferred Cancelled");
    logged_requests_are_forgotten(&product).await;
    product.pass(Duration::from_hours(1)).await;
    assert_eq!(product.story(message).await, "cancelled: Queued Deferred Cancelled");
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn an_attempt_that_ends_after_erasure_names_nobody() {
    let product = Product::start().await;
    let message = product.send_to("ann@example.com").await;
    product.transport.hold();
    let meanwhile = async {
        product.transport.attempts(1).await;
        let stored = product.store.message(product.workspace, message).await.unwrap().unwrap();
        assert_eq!(stored.status, MessageStatus::Sending);
        let redaction = RedactMessage {
            workspace_id: product.workspace,
            message_id: message,
            revision: stored.revision,
            status: stored.status,
            updated_at: stored.updated_at,
            tags: Vec::new(),
            events: Vec::new(),
        };
        product.commit(Changes::from_iter([Write::RedactMessage(Box::new(redaction))])).await;
        product.transport.release();
    };
    tokio::join!(product.work(), meanwhile);
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered");
    let shown = serde_json::to_string(&product.report(message).await).unwrap();
    assert!(!shown.contains("ann@"), "{shown}");
    assert_eq!(product.store.capture(product.workspace, message).await.unwrap(), None);
}

#[tokio::test]
async fn visits_of_an_erased_persons_message_say_nothing_of_the_visitor() {
    let product = Product::start().await;
    let ann = upsert(&product, json!({"email": "ann@example.com", "external_id": "shop"})).await;
    let urls = ["https://shop.example/sale", "https://shop.example/?m=Ann%40example.com"];
    let html = format!("<a href='{}'>a</a><a href='{}'>b</a>", urls[0], urls[1]);
    let message =
        product.send(&json!({"channel": "email", "to": "ann@example.com", "subject": "s", "html": html})).await;
    product.work().await;
    erase(&product, &ann).await;
    product.work().await;
    product.clock.advance(Duration::from_hours(1));
    let visitor = Visitor {
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0".to_owned()),
        is_head: false,
        is_prefetch: false,
    };
    product.app.record_open(product.workspace, message, &visitor).await.unwrap();
    assert_eq!(product.last_meta(message).await, json!({"machine": false}));
    let token =
        |url: &str| product.app.link_key().link(product.workspace, message, LinkTo::Click(UrlKey::of(url), None));
    let click = product.app.click(&token(urls[0])).await.unwrap().expect("everybody's link leads on");
    product.app.record_click(&click, &visitor).await.unwrap();
    assert_eq!(product.last_meta(message).await, json!({"url": urls[0], "machine": false}));
    assert_eq!(product.app.click(&token(urls[1])).await.unwrap(), None, "the target named the person");
    // A later message may lead there again.
    let writes = product.app.store_urls(product.workspace, urls.map(str::to_owned).to_vec());
    assert!(writes.iter().any(|write| matches!(write, Write::PutUrl(_, url) if url == urls[1])));
}

#[tokio::test]
async fn suppressions_outlive_erasure() {
    let product = Product::start().await;
    let bob = upsert(&product, json!({"email": "bounce@simulator.invalid"})).await;
    let message = product.send_to("bounce@simulator.invalid").await;
    product.work().await;
    erase(&product, &bob).await;
    product.work().await;
    let asked = ["bounce@simulator.invalid".to_owned()];
    let listed = product.store.suppressed(product.workspace, Channel::Email, &asked).await.unwrap();
    assert_eq!(listed.len(), 1);
    let meta = product.last_meta(message).await;
    assert_eq!((&meta["smtp_code"], meta.get("recipient")), (&json!(550), None));
}

/// Every byte that is kept, the log moved into the database.
pub(crate) async fn kept_bytes(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    // Opening and closing the database writes the log into it.
    let store = SqliteStore::open(SqliteOptions::new(directory.join("messaging.db"))).unwrap();
    store.close().await;
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    files
}

/// An event of a person, of some length.
fn deed(address: &str, n: usize) -> Value {
    let properties = json!({"mail": address, "text": "x".repeat(if n.is_multiple_of(7) { 9000 } else { n })});
    json!({"name": "order_placed", "contact": {"email": address}, "properties": properties,
        "unique_id": format!("{address} {n}")})
}

#[tokio::test]
async fn after_erasure_the_address_is_in_no_file() {
    const ADDRESS: &str = "unmistakable.person@example.com";
    let product = Product::start().await;
    let noise = "x".repeat(700);
    for n in 0..200 {
        let body =
            json!({"external_id": format!("u-{n}"), "email": format!("u{n}@example.com"), "attributes": {"n": noise}});
        upsert(&product, body).await;
    }
    let body = json!({"email": ADDRESS, "phone": "+37129999999", "tags": [ADDRESS], "attributes": {"mail": ADDRESS}});
    // With a key, whose answer is remembered.
    let (status, person) = call(&product, "upsertContact", &[], "", body).await;
    assert_eq!(status, 201);
    let large = format!("<p>{ADDRESS}</p>").repeat(5000);
    for n in 0..5 {
        let mut body = json!({"channel": "email", "to": ADDRESS, "subject": "s", "text": "t", "metadata": {"n": n}});
        if n == 0 {
            body["html"] = json!(large);
        }
        product.send(&body).await;
    }
    let link = json!({"channel": "email", "to": ADDRESS, "subject": "s",
        "html": format!("<a href='https://shop.example/?m={ADDRESS}'>x</a>")});
    product.send(&link).await;
    // Events of the erased contact among events of others, in long rows and short ones.
    for n in 0..60 {
        let who = |item| if item % 10 == n % 10 { ADDRESS } else { "u1@example.com" };
        let events: Vec<_> = (10 * n..10 * n + 10).map(|item| deed(who(item), item)).collect();
        let (status, report) = call_as(&product, "sendEvents", &[], "", json!({"events": events}), None).await;
        assert_eq!((status, report["accepted"].as_u64()), (202, Some(10)));
    }
    let (status, _) = call(&product, "sendEvent", &[], "", deed(ADDRESS, 600)).await;
    assert_eq!(status, 202);
    product.work().await;
    upsert(&product, json!({"email": ADDRESS, "tags": ["plain"], "attributes": {"mail": large[..40_000]}})).await;
    erase(&product, &person).await;
    product.work().await;
    logged_requests_are_forgotten(&product).await;
    product.store.close().await;
    let directory = product.directory.path();
    for (name, bytes) in kept_bytes(directory).await {
        let found = bytes.windows(ADDRESS.len()).position(|window| window.eq_ignore_ascii_case(ADDRESS.as_bytes()));
        assert_eq!(found, None, "{name}, {} bytes", bytes.len());
    }
}
