//! Deliveries to webhooks beside their floor: events of messages that go into the sandbox, told to a receiver on loopback.
//!
//! `cargo bench -p messaging-benches --bench webhooks`. The floor posts as many bodies of the same size with a bare HTTP
//! client over as many connections as a webhook gets; what it leaves out is the messages, the queue, signatures, outcomes
//! and everything else that is kept. The product is measured twice: it empties a queue of messages, each of which has two
//! events, and it does so while callers add to it. `-- --messages N` says how many, `--key rsa|ed25519|none` how they are
//! signed.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use messaging_benches::product::Product;
use messaging_benches::{BenchOptions, report};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_engine::ops::webhooks::CreateWebhook;
use messaging_engine::work::Workers;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Connections of the floor: as many requests as one webhook gets at a time.
const CONNECTIONS: usize = 32;

/// Callers who send messages.
const CALLERS: usize = 64;

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
            let receiver = Receiver::start().await?;
            let place = |what: &str| directory.path().join(format!("{name}-{what}-{round}.db"));
            emptied.push(product(&place("queue"), algorithms, &receiver, messages, false).await?);
            let receiver = Receiver::start().await?;
            beside.push(product(&place("beside"), algorithms, &receiver, messages, true).await?);
            floors.push(floor(&receiver, messages * EVENTS).await?);
        }
        report(&format!("deliveries of a queue, mail signed: {name}"), floors.clone(), emptied);
        report(&format!("deliveries beside requests, mail signed: {name}"), floors, beside);
    }
    Ok(())
}

/// A receiver that takes everything and counts.
struct Receiver {
    address: SocketAddr,
    taken: Arc<watch::Sender<u64>>,
    /// The longest body so far.
    longest: Arc<AtomicU64>,
}

impl Receiver {
    async fn start() -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (taken, longest) = (Arc::new(watch::Sender::new(0)), Arc::new(AtomicU64::new(0)));
        let (counted, measured) = (Arc::clone(&taken), Arc::clone(&longest));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let (taken, longest) = (Arc::clone(&counted), Arc::clone(&measured));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (taken, longest) = (Arc::clone(&taken), Arc::clone(&longest));
                    async move {
                        let body = request.into_body().collect().await;
                        let length = body.map_or(0, |body| body.to_bytes().len());
                        longest.fetch_max(length as u64, Ordering::Relaxed);
                        taken.send_modify(|count| *count += 1);
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Ok(Self { address, taken, longest })
    }

    fn count(&self) -> u64 {
        *self.taken.borrow()
    }

    async fn reach(&self, count: u64) {
        let _ = self.taken.subscribe().wait_for(|taken| *taken >= count).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: u64, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

/// As many requests with bodies of the same size, and nothing else.
async fn floor(receiver: &Receiver, requests: u64) -> Result<f64, Box<dyn Error>> {
    let left = Arc::new(AtomicU64::new(requests));
    let length = usize::try_from(receiver.longest.load(Ordering::Relaxed))?;
    let (address, body) = (receiver.address, Bytes::from(vec![b'x'; length]));
    let began = Instant::now();
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (left, body) = (Arc::clone(&left), body.clone());
            tokio::spawn(async move {
                let stream = TcpStream::connect(address).await.expect("the receiver listens");
                stream.set_nodelay(true).expect("a TCP socket");
                let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                let (mut sender, connection) = opened.expect("a new connection");
                tokio::spawn(connection);
                while left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let request =
                        Request::post("/").header("host", "localhost").header("content-type", "application/json");
                    let request = request.body(Full::new(body.clone())).expect("a request");
                    let answer = sender.send_request(request).await.expect("an answer");
                    answer.into_body().collect().await.expect("a body");
                    sender.ready().await.expect("a connection that is kept");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    Ok(rate(requests, began))
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
    let (began, workers) = if beside {
        let (began, workers) = (Instant::now(), Workers::start(&product.app, &Handle::current()));
        accept(&product, messages).await?;
        (began, workers)
    } else {
        accept(&product, messages).await?;
        (Instant::now(), Workers::start(&product.app, &Handle::current()))
    };
    receiver.reach(messages * EVENTS).await;
    let reached = rate(messages * EVENTS, began);
    workers.stop().await;
    assert_eq!(receiver.count(), messages * EVENTS, "nothing is told twice");
    product.app.store().close().await;
    Ok(reached)
}

/// Accepts messages from some callers.
async fn accept(product: &Product, messages: u64) -> Result<(), Box<dyn Error>> {
    let next = Arc::new(AtomicU64::new(0));
    let accepting: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (product, next) = (product.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= messages {
                        return;
                    }
                    assert!(product.accept(n).await, "the product accepts");
                }
            })
        })
        .collect();
    for task in accepting {
        task.await?;
    }
    Ok(())
}
