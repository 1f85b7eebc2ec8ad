//! Contract section 6.2: an erased person disappears from messages to others that copied the person.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::changes::Write;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::MessageId;
use messaging_testing::fetched;
use messaging_transport::Sandbox;
use serde_json::{Value, json};

use crate::bed::{self, Call};
use crate::contact_messages::kept_bytes;
use crate::mortal::MortalStore;
use crate::support::Product;
use crate::webhook_deliveries::{Hooks, URL, body};

const ADDRESS: &str = "unmistakable.copy@example.com";

/// A contact with the address.
async fn person(product: &Product) -> String {
    let path = format!("/workspaces/{}/contacts", product.workspace);
    let call = Call::new(&product.caller, Method::POST, &path).body(&json!({"email": ADDRESS}));
    let created = bed::send(&product.app, call).await;
    format!("{path}/{}", created["id"].as_str().unwrap())
}

async fn erase(product: &Product, person: &str) {
    let call = Call::new(&product.caller, Method::DELETE, person);
    assert_eq!(bed::send(&product.app, call).await.summary(), "204");
}

fn copied(to: &str, cc: &[&str], bcc: &[&str]) -> Value {
    json!({"channel": "email", "to": to, "cc": cc, "bcc": bcc, "subject": format!("About {ADDRESS}"),
        "html": format!("<p>Ask <a href='mailto:{ADDRESS}'>her</a>: ü {}</p>", "word ".repeat(50)),
        "metadata": {"asked": ADDRESS, "order": 17}, "tags": ["order", ADDRESS]})
}

/// Every answer of the API about the messages.
async fn answers(product: &Product, ids: &[MessageId]) -> String {
    let mut all = String::new();
    for id in ids {
        for path in [format!("/messages/{id}"), format!("/messages/{id}/attempts")] {
            let call = Call::new(&product.caller, Method::GET, &path);
            let reply = bed::send(&product.app, call).await;
            assert_eq!(reply.summary(), "200");
            all.push_str(&reply.body.to_string());
        }
    }
    let inbox = format!("/workspaces/{}/sandbox/messages", product.workspace);
    for path in ["/messages?limit=200".to_owned(), inbox] {
        all.push_str(&bed::send(&product.app, Call::new(&product.caller, Method::GET, &path)).await.body.to_string());
    }
    all
}

/// Checks that nothing stored shows the address.
async fn assert_gone(product: &Product, ids: &[MessageId]) {
    let shown = answers(product, ids).await.to_lowercase();
    let at = shown.find(ADDRESS);
    assert_eq!(at, None, "{}", at.map_or("", |at| &shown[at.saturating_sub(300)..(at + 100).min(shown.len())]));
    product.store.close().await;
    for (name, bytes) in kept_bytes(product.directory.path()).await {
        let found = bytes.windows(ADDRESS.len()).position(|window| window.eq_ignore_ascii_case(ADDRESS.as_bytes()));
        let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(300)..at + 60]).into_owned());
        assert_eq!(around, None, "{name}, {} bytes", bytes.len());
    }
}

#[tokio::test]
async fn a_copy_goes_and_the_message_stays() {
    let product = Product::carried_by(Arc::new(Sandbox::default())).await;
    let ann = person(&product).await;
    let mut ids = Vec::new();
    ids.push(product.send(&copied("bob@example.com", &["carol@example.com", ADDRESS], &["dora@example.com"])).await);
    ids.push(product.send(&copied("bob@example.com", &[ADDRESS], &[])).await);
    ids.push(product.send(&copied("bob@example.com", &[], &[&ADDRESS.to_uppercase()])).await);
    let mut large = copied("bob@example.com", &[ADDRESS], &[]);
    large["html"] = json!(format!("<p>{ADDRESS}</p>").repeat(3000));
    large["attachments"] = json!([{"filename": "a.txt", "content_b64": "Ym9i"}]);
    ids.push(product.send(&large).await);
    let other = product
        .send(&json!({"channel": "email", "to": "bob@example.com", "subject": "s", "text": "t",
        "cc": ["x.unmistakable.copy@example.com"]}))
        .await;
    product.work().await;
    assert!(answers(&product, &ids).await.contains(ADDRESS));
    erase(&product, &ann).await;
    product.work().await;

    for id in &ids {
        assert_eq!(product.story(*id).await.split_once(':').unwrap().0, "delivered");
        let report = product.report(*id).await;
        assert_eq!(Value::Object(report.metadata), json!({"asked": "***", "order": 17}));
        assert_eq!(report.tags, ["order"]);
        assert!(report.events.iter().any(|event| event.meta.get("recipient") == Some(&json!("bob@example.com"))));
        let capture = product.store.capture(product.workspace, *id).await.unwrap().unwrap();
        let source = String::from_utf8(capture.source.to_vec()).unwrap();
        assert!(source.contains("To: bob@example.com\r\n") && source.contains("Subject: About ***"), "{source}");
        assert_eq!(source.contains("Cc: carol@example.com\r\n"), *id == ids[0], "{source}");
        assert!(!source.contains("\r\nCc: \r\n") && !source.to_lowercase().contains(ADDRESS), "{source}");
    }
    // Other messages stay as they were.
    let report = serde_json::to_string(&product.report(other).await).unwrap();
    assert_eq!(report.matches("x.unmistakable.copy@example.com").count(), 2, "{report}");
    product.pass(Duration::from_secs(10)).await;
    product.pass(Duration::from_mins(1)).await;
    assert_eq!(product.store.job_count().await.unwrap(), 0);
    // The spelling of its address ends with the erased one.
    let stored = product.store.message_with_content(product.workspace, other).await.unwrap().unwrap();
    assert!(stored.1.is_some());
    assert_gone_but(&product, &ids, other).await;
}

/// Returns true if the stored request still names the person.
async fn asks_for_her(product: &Product, id: MessageId) -> bool {
    let (_, content) = product.store.message_with_content(product.workspace, id).await.unwrap().unwrap();
    String::from_utf8_lossy(&content.unwrap().request).to_lowercase().contains(ADDRESS)
}

/// Like [`assert_gone`], for files that hold a longer address which ends the same way.
async fn assert_gone_but(product: &Product, ids: &[MessageId], other: MessageId) {
    for id in ids.iter().filter(|id| **id != other) {
        assert!(!asks_for_her(product, *id).await);
    }
    product.store.close().await;
    for (name, bytes) in kept_bytes(product.directory.path()).await {
        for at in 2..bytes.len().saturating_sub(ADDRESS.len()) {
            if bytes[at..at + ADDRESS.len()].eq_ignore_ascii_case(ADDRESS.as_bytes()) {
                assert!(
                    bytes[..at].ends_with(b"x."),
                    "{name}: {}",
                    String::from_utf8_lossy(&bytes[at.saturating_sub(300)..at + 60])
                );
            }
        }
    }
}

#[tokio::test]
async fn erasure_beside_sending_leaves_no_copy_and_nobody_is_tried_again() {
    let product = Product::start().await;
    let ann = person(&product).await;
    let mut ids = Vec::new();
    for n in 0..60 {
        let to = format!("bob{}@example.com", n % 7);
        ids.push(product.send(&copied(&to, &[ADDRESS], &["carol@example.com"])).await);
    }
    product.transport.answer(ADDRESS, &format!("450 4.2.1 <{ADDRESS}> is busy"));
    for _ in 0..200 {
        product.transport.speak_next(Dialog {
            mx: None,
            remote_addr: None,
            tls: None,
            tls_failure: None,
            source: None,
            outcome: AttemptOutcome::Delivered,
            transcript: vec![format!("> RCPT TO:<{ADDRESS}>"), "< 450 busy".to_owned()],
        });
    }
    // A third has been tried and waits, a third is being sent, a third waits for its turn or is being sent.
    product.transport.hold();
    let meanwhile = async {
        product.transport.attempts(20).await;
        product.transport.release();
        product.transport.attempts(30).await;
        product.transport.hold();
        erase(&product, &ann).await;
        // Another worker erases while the first one sends, and may send the held messages as well.
        let erased = async {
            for id in &ids {
                while asks_for_her(&product, *id).await {
                    tokio::task::yield_now().await;
                }
            }
            product.transport.release();
        };
        tokio::join!(product.work(), erased);
    };
    tokio::join!(product.work(), meanwhile);
    product.work().await;
    product.transport.take();
    for _ in 0..6 {
        product.pass(Duration::from_mins(30)).await;
    }
    let again: Vec<_> = product.transport.take().into_iter().flat_map(|outgoing| outgoing.recipients).collect();
    assert!(!again.iter().any(|recipient| recipient == ADDRESS), "{again:?}");
    for id in &ids {
        let message = product.store.message(product.workspace, *id).await.unwrap().unwrap();
        assert_eq!(message.status, MessageStatus::Delivered);
        let report = serde_json::to_string(&product.report(*id).await).unwrap();
        assert!(report.contains("carol@example.com"), "{report}");
    }
    assert_eq!(product.store.job_count().await.unwrap(), 0);
    assert_gone(&product, &ids).await;
}

#[tokio::test]
async fn a_copy_that_waits_is_not_tried_after_erasure() {
    let product = Product::start().await;
    let ann = person(&product).await;
    product.transport.answer(ADDRESS, "450 4.2.1 later");
    product.transport.answer("carol@example.com", "450 4.2.1 later");
    let message = product.send(&copied("bob@example.com", &[ADDRESS, "carol@example.com"], &[])).await;
    product.work().await;
    product.pass(Duration::from_mins(1)).await;
    let tried: Vec<_> = product.transport.take().into_iter().map(|outgoing| outgoing.recipients).collect();
    assert_eq!(tried[1], [ADDRESS, "carol@example.com"]);
    // Waiting work names nobody: neither a job nor anything else holds the address once it is erased.
    erase(&product, &ann).await;
    product.work().await;
    product.pass(Duration::from_mins(5)).await;
    let tried: Vec<_> = product.transport.take().into_iter().map(|outgoing| outgoing.recipients).collect();
    assert_eq!(tried, [["carol@example.com"]]);
    assert_gone(&product, &[message]).await;
}

#[tokio::test]
async fn an_attempt_at_a_copy_that_ends_after_erasure_names_nobody() {
    let product = Product::start().await;
    let ann = person(&product).await;
    // The recipient has been delivered to, so that the state of the message does not change any more.
    product.transport.answer_next(ADDRESS, "450 4.2.1 later");
    let message = product.send(&copied("bob@example.com", &[ADDRESS], &[])).await;
    product.work().await;
    product.transport.hold();
    product.clock.advance(Duration::from_mins(1));
    product.transport.answer(ADDRESS, &format!("450 4.2.1 <{ADDRESS}> is busy"));
    let meanwhile = async {
        product.transport.attempts(2).await;
        erase(&product, &ann).await;
        product.work().await;
        product.transport.release();
    };
    tokio::join!(product.work(), meanwhile);
    product.pass(Duration::from_secs(10)).await;
    product.pass(Duration::from_mins(2)).await;
    assert_eq!(product.store.job_count().await.unwrap(), 0, "there is nobody left to try");
    assert_gone(&product, &[message]).await;
}

#[tokio::test]
async fn deliveries_and_the_log_of_webhooks_lose_the_copy() {
    let hooks = Hooks::hearing(&["delivered"]).await;
    let product = &hooks.product;
    let ann = person(product).await;
    let echo = format!("{{\"got\": \"{ADDRESS}\"}}");
    hooks.fetch.always(URL, Ok(fetched(500, &[], &echo)));
    product.transport.answer("bob@example.com", &format!("250 2.0.0 also for {ADDRESS}"));
    let message = product.send(&copied("bob@example.com", &[ADDRESS], &[])).await;
    product.work().await;
    let shows = async |target: &str| hooks.get(target).await.body.to_string().contains(ADDRESS);
    let log = format!("{}/events?wait=0", hooks.base);
    assert!(shows(&log).await);
    assert!(!shows(&format!("{}/deliveries", hooks.path)).await, "an echo is crossed out at once");
    erase(product, &ann).await;
    product.work().await;
    assert!(!shows(&log).await);
    hooks.fetch.take();
    hooks.fetch.always(URL, Ok(fetched(200, &[], "ok")));
    product.pass(Duration::from_secs(10)).await;
    let told: Vec<Value> = hooks.fetch.take().iter().map(body).collect();
    assert!(!told.is_empty());
    assert!(told.iter().all(|told| !told.to_string().contains(ADDRESS)), "{told:?}");
    assert_gone(product, &[message]).await;
}

/// An attempt ends after the erasure has read its SMTP transcript, and before it commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_ends_while_its_message_is_rewritten_keeps_no_address() {
    let product = Product::start().await;
    let ann = person(&product).await;
    // The copy waits for an attempt of its own, which does not change the message.
    product.transport.answer_next(ADDRESS, "451 4.7.1 later");
    let id = product.send(&copied("bob@elsewhere.example", &[ADDRESS], &[])).await;
    product.work().await;
    product.transport.speak_next(Dialog {
        mx: None,
        remote_addr: None,
        tls: None,
        tls_failure: None,
        source: None,
        outcome: AttemptOutcome::Delivered,
        transcript: vec![format!("> RCPT TO:<{ADDRESS}>"), "< 250 ok".to_owned()],
    });
    product.transport.hold();
    product.clock.advance(product.app.settings().message_retry[0] * 2);
    let attempts = product.transport.sent().len();
    let app = product.app.clone();
    let sending = tokio::spawn(async move { app.run_until_idle().await });
    product.transport.attempts(attempts + 1).await;

    erase(&product, &ann).await;
    let store = MortalStore::pausing_at(product.store.clone(), |write| matches!(write, Write::EraseCopy(_)));
    let app = product.another_process_on(store.clone());
    let erasing = tokio::spawn(async move { app.run_until_idle().await });
    store.died().await;
    product.transport.release();
    sending.await.unwrap().unwrap();
    store.go_on();
    erasing.await.unwrap().unwrap();
    product.pass(Duration::from_hours(2)).await;
    assert_eq!(answers(&product, &[id]).await.matches(ADDRESS).count(), 0);
}
