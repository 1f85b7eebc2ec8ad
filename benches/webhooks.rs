//! Deliveries to webhooks beside their floor: events of messages that go into the sandbox, sent to a receiver on
//! loopback.
//!
//! `cargo bench -p messaging-benches --bench webhooks`. The floor posts as many bodies of the same size with a bare
//! HTTP client over as many connections as a webhook gets; it leaves out the messages, the queue, signatures, outcomes
//! and everything else that is stored. The product is measured twice: it empties a queue of messages, each of which has
//! two events, and it does so while callers add to it. `-- --messages N` sets the number of messages,
//! `--key rsa|ed25519|none` their signature.

use std::error::Error;
use std::future::{Ready, ready};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use messaging_benches::product::Product;
use messaging_benches::receiver::{Answer, Receiver, post};
use messaging_benches::{BenchOptions, report};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_engine::ops::webhooks::CreateWebhook;
use messaging_engine::work::Workers;
use serde_json::json;
use tokio::runtime::Handle;

/// Connections of the floor: as many requests as one webhook gets at a time.
const CONNECTIONS: usize = 32;

/// Events of a message that the webhook hears of: sent and delivered.
const EVENTS: u64 = 2;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir_in(".")?;
    let options = BenchOptions::from_arguments();
    let argument = |name: &str| std::env::args().skip_while(|given| given != name).nth(1);
    let given: Option<u64> = argument("--messages").map(|text| text.parse()).transpose()?;
    let messages = given.unwrap_or(if options.rounds == 1 { 200 } else { 10_000 });
    let key = argument("--key");
    let all: [(&str, &[Algorithm]); 3] =
        [("none", &[]), ("ed25519", &[Algorithm::Ed25519Sha256]), ("rsa", &[Algorithm::RsaSha256])];
    for (name, algorithms) in all.into_iter().filter(|(name, _)| key.as_deref().is_none_or(|key| key == *name)) {
        let (mut floors, mut emptied, mut beside) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..options.rounds {
            let longest = Arc::new(AtomicUsize::new(0));
            let measured = Arc::clone(&longest);
            let receiver = Receiver::start(move |body| take(body, &measured)).await?;
            let place = |what: &str| directory.path().join(format!("{name}-{what}-{round}.db"));
            emptied.push(product(&place("queue"), algorithms, &receiver, messages, false).await?);
            let receiver = Receiver::start(|body| take(body, &AtomicUsize::new(0))).await?;
            beside.push(product(&place("beside"), algorithms, &receiver, messages, true).await?);
            let body = Bytes::from(vec![b'x'; longest.load(Ordering::Relaxed)]);
            floors.push(post(receiver.address, CONNECTIONS, messages * EVENTS, move || body.clone()).await?);
        }
        report(&format!("deliveries of a queue, mail signed: {name}"), floors.clone(), emptied);
        report(&format!("deliveries beside requests, mail signed: {name}"), floors, beside);
    }
    Ok(())
}

/// Takes a body, and notes the length of the longest.
fn take(body: Bytes, longest: &AtomicUsize) -> Ready<Answer> {
    longest.fetch_max(body.len(), Ordering::Relaxed);
    ready(Response::new(Full::new(Bytes::from_static(b"ok"))))
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: u64, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

/// Deliveries a second until the receiver has heard of all messages, which are accepted before the work begins or
/// `beside` it.
async fn product(
    path: &Path,
    algorithms: &[Algorithm],
    receiver: &Receiver,
    messages: u64,
    beside: bool,
) -> Result<f64, Box<dyn Error>> {
    let product = Product::signing(path, algorithms).await?;
    let webhook = json!({"url": format!("http://{}/hook", receiver.address), "events": ["sent", "delivered"]});
    product.call::<CreateWebhook>(None, &webhook).await?;
    if !beside {
        product.accept_all(0..messages, messaging_benches::message).await;
    }
    let (began, workers) = (Instant::now(), Workers::start(&product.app, &Handle::current()));
    if beside {
        product.accept_all(0..messages, messaging_benches::message).await;
    }
    receiver.reach(messages * EVENTS).await?;
    let reached = rate(messages * EVENTS, began);
    workers.stop().await;
    assert_eq!(receiver.count(), messages * EVENTS, "nothing is told twice");
    product.app.store().close().await;
    Ok(reached)
}
