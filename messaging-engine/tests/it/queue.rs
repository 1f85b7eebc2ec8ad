//! Queue operations: waiting messages are listed, suspended, retried at once and cancelled.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::queue::MAX_SUSPENSIONS;
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::{Admitted, Outcome, Outgoing, Response, Sent, Transport, TransportError};
use messaging_engine::{App, Caller};
use serde_json::{Value, json};

use crate::bed::{Bed, KEY, Reply};
use crate::mortal::MortalStore;
use crate::support::Product;

const SECOND: Duration = Duration::from_secs(1);
const DELIVERED: &str = "delivered: Queued Sent Delivered";

/// The operator without a session, with all rights.
const OPERATOR: Caller = Caller::Operator(None);

async fn queue(bed: &Bed, query: &str) -> Reply {
    bed.get(&OPERATOR, &format!("/system/queue{query}")).await
}

/// Domain, `queued`, `deferred` and `suspended` of each row.
async fn rows(bed: &Bed, query: &str) -> Value {
    let page = queue(bed, query).await;
    let rows = page["data"].as_array().unwrap_or_else(|| panic!("{query}: {}", page.summary()));
    rows.iter().map(|row| json!([row["domain"], row["queued"], row["deferred"], row["suspended"]])).collect()
}

async fn act(bed: &Bed, action: &str, body: Value) -> Reply {
    bed.post(&OPERATOR, &format!("/system/queue/{action}"), body).await
}

/// Carries out an action on the queue; returns the number of messages affected.
async fn acted(bed: &Bed, action: &str, body: Value) -> u64 {
    let reply = act(bed, action, body).await;
    assert_eq!(reply.summary(), "200", "{action}");
    reply["messages"].as_u64().unwrap()
}

impl Product {
    /// Status, hold and cure of a message.
    async fn held(&self, id: MessageId) -> Value {
        let report = self.get(&self.caller, &format!("/messages/{id}")).await;
        let explanation = &report["explanation"];
        json!([report["status"], report["hold"], explanation["code"], explanation["cure"]])
    }

    /// Sends a message that the recipient's server defers.
    async fn put_off(&self, to: &str) -> MessageId {
        self.transport.answer(to, "450 4.2.1 later");
        self.send_to(to).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_listed_by_destination_the_longest_first() {
    let product = Product::start().await;
    assert_eq!(rows(&product, "").await, json!([]));
    for to in ["ann@a.example", "bob@a.example"] {
        product.send_to(to).await;
    }
    product.put_off("carl@b.example").await;
    let page = queue(&product, "").await;
    assert_eq!(rows(&product, "").await, json!([["a.example", 2, 0, false], ["b.example", 1, 0, false]]));
    assert_eq!(page["data"][0]["channel"], "email");
    assert_eq!(page["data"][0]["oldest_at"], page["data"][0]["next_attempt_at"]);
    for address in ["ann@", "bob", "carl", "@"] {
        assert!(!page.body.to_string().contains(address), "{}", page.body);
    }
    product.work().await;
    assert_eq!(rows(&product, "").await, json!([["b.example", 0, 1, false]]));
    let workspace = product.workspace;
    for (query, count) in [
        ("?domain=B.Example".to_owned(), 1),
        ("?domain=a.example".to_owned(), 0),
        (format!("?workspace_id={workspace}"), 1),
        (format!("?workspace_id={workspace}&domain=a.example"), 0),
        ("?workspace_id=wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".to_owned(), 0),
        ("?campaign_id=cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".to_owned(), 0),
    ] {
        assert_eq!(rows(&product, &query).await.as_array().unwrap().len(), count, "{query}");
    }

    // Page by page.
    for n in 0..3 {
        product.send_to(&format!("ann@c{n}.example")).await;
    }
    let first = queue(&product, "?limit=3").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(rows(&product, &format!("?limit=3&cursor={cursor}")).await, json!([["c2.example", 1, 0, false]]));
    assert_eq!(queue(&product, &format!("?limit=3&cursor={cursor}")).await["next_cursor"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_names_at_least_one_member_and_is_for_operators() {
    let product = Product::start().await;
    let owner = product.member(product.workspace, "eve@acme.com", "owner").await;
    let key = product.key(product.workspace, &["*"]).await;
    let body = || json!({"domain": "a.example", "workspace_id": product.workspace});
    for action in ["retry", "suspend", "resume", "cancel"] {
        assert_eq!(act(&product, action, json!({})).await.summary(), "422 /domain required", "{action}");
        let refused = act(&product, action, json!({"domain": "a b"})).await;
        assert_eq!(refused.summary(), "422 /domain invalid_format", "{action}");
        let path = format!("/system/queue/{action}");
        assert_eq!(product.post(&key, &path, body()).await.summary(), "403 session_required", "{action}");
        assert_eq!(product.post(&owner, &path, body()).await.summary(), "403 role_forbidden", "{action}");
    }
    assert_eq!(product.get(&owner, "/system/queue").await.summary(), "403 role_forbidden");
    assert_eq!(product.store.suspensions().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_suspended_waits_also_what_comes_later_until_it_is_resumed() {
    let product = Product::start().await;
    let waits = product.send_to("ann@a.example").await;
    assert_eq!(acted(&product, "suspend", json!({"domain": "A.example"})).await, 1);
    let later = product.send_to("bob@a.example").await;
    let other = product.send_to("carl@b.example").await;
    product.work().await;
    assert_eq!(product.story(other).await, DELIVERED);
    assert_eq!(product.transport.take().len(), 1);
    let cure = json!({"text": "Run `messaging queue resume --domain a.example`; only operators of the server can.",
        "operation": "resumeQueue", "path": "/system/queue/resume", "body": {"domain": "a.example"}});
    let hold = json!({"reason": "paused", "until": null});
    for id in [waits, later] {
        assert_eq!(product.held(id).await, json!(["queued", hold, "paused", cure]));
    }
    let system = product.get(&OPERATOR, "/system").await;
    assert_eq!(system["held"], json!([{"reason": "paused", "count": 2}]));
    let suspended = json!([{"domain": "a.example", "workspace_id": null, "campaign_id": null,
        "since": "2026-01-31T09:15:00.000Z"}]);
    assert_eq!(system["suspended"], suspended);
    assert_eq!(rows(&product, "").await, json!([["a.example", 2, 0, true]]));

    // A process that starts now knows as well, and a repetition changes nothing.
    product.another_process().run_until_idle().await.unwrap();
    assert_eq!(acted(&product, "suspend", json!({"domain": "a.example"})).await, 2);
    product.pass(Duration::from_hours(1)).await;
    assert_eq!(product.get(&OPERATOR, "/system").await["suspended"], suspended);
    assert_eq!(acted(&product, "resume", json!({"domain": "b.example"})).await, 0);
    product.work().await;
    assert_eq!(product.transport.take().len(), 0);
    assert_eq!(acted(&product, "resume", json!({"domain": "a.example"})).await, 2);
    product.work().await;
    for id in [waits, later] {
        assert_eq!(product.story(id).await, DELIVERED);
    }
    assert_eq!(product.get(&OPERATOR, "/system").await["held"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_is_of_the_messages_that_fit_all_its_members() {
    let product = Product::start().await;
    let workspace = product.workspace;
    let elsewhere = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    acted(&product, "suspend", json!({"domain": "a.example", "workspace_id": elsewhere})).await;
    acted(&product, "suspend", json!({"campaign_id": "cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"})).await;
    let sent = product.send_to("ann@a.example").await;
    product.work().await;
    assert_eq!(product.story(sent).await, DELIVERED);

    let narrow = || json!({"domain": "a.example", "workspace_id": workspace});
    acted(&product, "suspend", narrow()).await;
    acted(&product, "suspend", json!({"workspace_id": workspace})).await;
    let (one, two) = (product.send_to("ann@a.example").await, product.send_to("bob@b.example").await);
    // Messages under a wider suspension stay suspended.
    assert_eq!(acted(&product, "resume", narrow()).await, 0);
    product.work().await;
    assert!(
        product.held(one).await[3]["text"].as_str().unwrap().contains(&format!("resume --workspace-id {workspace}`"))
    );
    acted(&product, "suspend", narrow()).await;
    assert_eq!(acted(&product, "resume", json!({"workspace_id": workspace})).await, 2);
    product.work().await;
    for id in [one, two] {
        assert_eq!(product.story(id).await, DELIVERED);
    }
    assert_eq!(product.store.suspensions().await.unwrap().len(), 2, "those of others");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_much_is_suspended_at_one_time() {
    let product = Product::start().await;
    for n in 0..MAX_SUSPENSIONS {
        acted(&product, "suspend", json!({"domain": format!("d{n}.example")})).await;
    }
    let refused = act(&product, "suspend", json!({"domain": "more.example"})).await;
    assert_eq!(refused.summary(), "422  too_many_items");
    acted(&product, "resume", json!({"domain": "d7.example"})).await;
    assert_eq!(acted(&product, "suspend", json!({"domain": "more.example"})).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_begun_goes_on_and_nobody_begins() {
    let product = Product::start().await;
    product.transport.hold();
    let id = product.send_to("ann@a.example").await;
    // An application that runs on the runtime of this test, and hears changes by other processes.
    let app = App::builder(Arc::clone(&product.store), KEY)
        .clock(Arc::clone(&product.clock) as _)
        .transport(Channel::Email, "sandbox", Arc::clone(&product.transport) as _)
        .build()
        .await
        .unwrap();
    let working = tokio::spawn(async move { app.run_until_idle().await });
    product.transport.attempts(1).await;
    let outgoing = product.transport.take().remove(0);
    assert!(!outgoing.last_look.is_held());
    acted(&product, "suspend", json!({"domain": "a.example"})).await;
    for _ in 0..1000 {
        if outgoing.last_look.is_held() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(outgoing.last_look.is_held());
    assert_eq!(outgoing.last_look.begin(&outgoing.recipients).await, [Admitted::Held]);
    product.transport.release();
    working.await.unwrap().unwrap();
    assert_eq!(product.story(id).await, DELIVERED, "what had left is known");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_off_is_tried_at_once_and_what_is_scheduled_is_not() {
    let product = Product::start().await;
    let deferred = product.put_off("ann@a.example").await;
    let scheduled = product
        .send(&json!({"channel": "email", "to": "bob@a.example", "subject": "s", "text": "t",
            "send_at": "2026-02-02T00:00:00Z"}))
        .await;
    product.work().await;
    assert_eq!(product.transport.take().len(), 1);
    product.pass(SECOND).await;
    for (domain, messages) in [("b.example", 0), ("a.example", 1)] {
        assert_eq!(acted(&product, "retry", json!({"domain": domain})).await, messages);
        product.work().await;
        assert_eq!(product.transport.take().len(), usize::try_from(messages).unwrap(), "{domain}");
    }
    assert_eq!(product.story(deferred).await, "deferred: Queued Deferred Deferred");
    assert_eq!(product.story(scheduled).await, "queued: Queued");
}

/// A transport that reaches no server, and records the domains that it is told to forget as unreachable.
#[derive(Debug, Default)]
struct Unreachable {
    forgotten: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Transport for Unreachable {
    fn forget_unreachable(&self, domain: &str) {
        self.forgotten.lock().unwrap().push(domain.to_owned());
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let outcome = Outcome::deferred(Response::of_text("connection refused"));
        Ok(Sent { outcomes: vec![outcome; outgoing.recipients.len()], ..Sent::default() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_connects_to_a_domain_that_could_not_be_reached() {
    let carrier = Arc::new(Unreachable::default());
    let product = Product::carried_by(Arc::clone(&carrier) as Arc<dyn Transport>).await;
    for to in ["ann@a.example", "bob@a.example", "carl@b.example"] {
        product.send_to(to).await;
    }
    product.work().await;
    product.pass(SECOND).await;
    assert_eq!(acted(&product, "retry", json!({"domain": "a.example"})).await, 2);
    product.work().await;
    assert_eq!(*carrier.forgotten.lock().unwrap(), ["a.example"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_many_tries_each_once() {
    const MANY: usize = 410;
    let product = Product::start().await;
    for n in 0..MANY {
        product.put_off(&format!("u{n}@d{}.example", n % 3)).await;
    }
    product.work().await;
    assert_eq!(product.transport.take().len(), MANY);
    product.pass(SECOND).await;
    let workspace = json!({"workspace_id": product.workspace});
    assert_eq!(acted(&product, "retry", workspace).await, MANY as u64);
    product.work().await;
    let mut tried: Vec<_> = product.transport.take().into_iter().flat_map(|outgoing| outgoing.recipients).collect();
    assert_eq!(tried.len(), MANY);
    tried.sort();
    tried.dedup();
    assert_eq!(tried.len(), MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_cancelled_a_page_at_a_time_also_after_an_interruption() {
    const MANY: usize = 450;
    let product = Product::start().await;
    let body = || json!({"domain": "a.example"});
    acted(&product, "suspend", body()).await;
    let mut ids = Vec::new();
    for n in 0..MANY {
        ids.push(product.send_to(&format!("u{n}@a.example")).await);
    }
    let copied = json!({"channel": "email", "to": "ann@b.example", "cc": ["ben@a.example"], "subject": "s", "text": "t",
        "send_at": "2026-02-02T00:00:00Z"});
    let copied = product.send(&copied).await;
    let other = product.send_to("ann@b.example").await;
    assert_eq!(acted(&product, "cancel", body()).await, MANY as u64 + 1);
    product.clock.advance(SECOND);
    let later = product.send_to("later@a.example").await;

    // The process ends at the second page, which is not stored.
    let store = MortalStore::new(Arc::clone(&product.store), 3, false);
    let first = product.another_process_on(store.clone());
    let working = tokio::spawn(async move { first.run_until_idle().await });
    store.died().await;
    working.abort();
    product.pass(Duration::from_hours(2)).await;
    for id in [ids[0], ids[MANY / 2], ids[MANY - 1], copied] {
        assert_eq!(product.story(id).await, "cancelled: Queued Cancelled");
    }
    assert_eq!(product.story(other).await, DELIVERED);
    // Messages sent after the request are not affected.
    acted(&product, "resume", body()).await;
    product.work().await;
    assert_eq!(product.story(later).await, DELIVERED);
    product.pass(Duration::from_hours(100)).await;
    assert_eq!(product.transport.take().len(), 2);
    assert_eq!(rows(&product, "").await, json!([]));
}
