//! Text messages through the provider `http` compared with their floor, and the share of a gateway's rate limit that is
//! used.
//!
//! `cargo bench -p messaging-benches --bench providers`. The floor posts the same bodies with a bare HTTP client over
//! kept connections, without queue, outcome or any other stored state. The second part has a gateway that takes 30
//! messages a second and 100 at a time, and answers 429 without `Retry-After` beyond that.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use messaging_benches::product::Product;
use messaging_benches::receiver::{Receiver, post};
use messaging_benches::{BenchOptions, report};
use messaging_core::domain::channel::Channel;
use messaging_engine::Caller;
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, SetChannel};
use messaging_engine::work::Workers;
use serde_json::json;
use tokio::runtime::Handle;

/// Connections of the floor.
const CONNECTIONS: usize = 100;

/// Limit of the throttling gateway: messages a second, and messages at a time.
const RATE: usize = 30;
const AT_A_TIME: usize = 100;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir_in(".")?;
    let options = BenchOptions::from_arguments();
    let argument = |name: &str| std::env::args().skip_while(|given| given != name).nth(1);
    let given: Option<u64> = argument("--messages").map(|text| text.parse()).transpose()?;
    let messages = given.unwrap_or(if options.rounds == 1 { 200 } else { 20_000 });
    for millis in [30, 0] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            let gateway = Gateway::start(Duration::from_millis(millis), None).await?;
            floors.push(floor(&gateway, messages).await?);
            let path = directory.path().join(format!("{millis}-{round}.db"));
            ours.push(product(&path, &gateway, messages).await?.of_all);
        }
        report(&format!("sms over http, answers after {millis} ms"), floors, ours);
    }
    let messages = if options.rounds == 1 { 60 } else { 2_000 };
    let gateway = Gateway::start(Duration::from_millis(30), Some(RATE)).await?;
    let Rates { of_most, of_all } = product(&directory.path().join("throttled.db"), &gateway, messages).await?;
    let refused = gateway.refused.load(Ordering::Relaxed);
    println!(
        "a gateway of {RATE} a second: {of_most:.1} a second until 95 of 100 have arrived, {of_all:.1} until the last of \
         {messages}, {refused} refused"
    );
    Ok(())
}

/// A gateway that counts what it takes.
struct Gateway {
    receiver: Receiver,
    refused: Arc<AtomicU64>,
}

struct Limits {
    delay: Duration,
    rate: Option<usize>,
    under_way: AtomicUsize,
    lately: Mutex<VecDeque<Instant>>,
}

impl Limits {
    fn takes(&self) -> bool {
        let Some(rate) = self.rate else { return true };
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        while lately.front().is_some_and(|at| at.elapsed() >= Duration::from_secs(1)) {
            lately.pop_front();
        }
        let takes = lately.len() < rate && self.under_way.load(Ordering::Relaxed) <= AT_A_TIME;
        if takes {
            lately.push_back(Instant::now());
        }
        takes
    }
}

impl Gateway {
    async fn start(delay: Duration, rate: Option<usize>) -> std::io::Result<Self> {
        let refused = Arc::new(AtomicU64::new(0));
        let limits = Arc::new(Limits { delay, rate, under_way: AtomicUsize::new(0), lately: Mutex::default() });
        let refusals = Arc::clone(&refused);
        let answer = move |_| {
            let (limits, refused) = (Arc::clone(&limits), Arc::clone(&refusals));
            async move {
                limits.under_way.fetch_add(1, Ordering::Relaxed);
                let takes = limits.takes();
                if !limits.delay.is_zero() {
                    tokio::time::sleep(limits.delay).await;
                }
                limits.under_way.fetch_sub(1, Ordering::Relaxed);
                let (status, body) = if takes { (202, r#"{"id":"1"}"#) } else { (429, "{}") };
                if !takes {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                let mut answer = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
                *answer.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
                answer
            }
        };
        Ok(Self { receiver: Receiver::start(answer).await?, refused })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(messages: u64, began: Instant) -> f64 {
    messages as f64 / began.elapsed().as_secs_f64()
}

/// Posts the same requests with a bare HTTP client.
async fn floor(gateway: &Gateway, messages: u64) -> Result<f64, Box<dyn Error>> {
    let body = || {
        let body = json!({"to": "+4915112345678", "from": "ACME", "text": TEXT,
            "message_id": "msg_00000000000000000000000000", "callback_url": "https://localhost/callback"});
        Bytes::from(body.to_string())
    };
    post(gateway.receiver.address, CONNECTIONS, messages, body).await
}

const TEXT: &str = "Your code is 123456. It is valid for ten minutes.";

/// Messages a second.
struct Rates {
    /// Until 95 of 100 have arrived: the messages refused last still wait for their next attempt.
    of_most: f64,
    /// Until the last has arrived.
    of_all: f64,
}

/// Messages that wait in the queue of a product, until the gateway has them all.
async fn product(path: &std::path::Path, gateway: &Gateway, messages: u64) -> Result<Rates, Box<dyn Error>> {
    let product = Product::open(path).await?;
    let (workspace_id, channel) = (product.workspace, Channel::Sms);
    let config = json!({"api_base": format!("http://{}/", gateway.receiver.address), "sender": "ACME"});
    let input = ChannelInput::new("http").config(config.as_object().cloned().unwrap_or_default());
    let caller = Caller::Operator(Some(workspace_id));
    product.app.run(SetChannel).path(ChannelPath { workspace_id, channel }).body(input).by(&caller).await?;
    let body = |n| json!({"channel": "sms", "to": format!("+4915{n:09}"), "text": TEXT}).to_string();
    product.accept_all(0..messages, body).await;
    let before = gateway.receiver.count();
    let began = Instant::now();
    let workers = Workers::start(&product.app, &Handle::current());
    let most = messages * 95 / 100;
    gateway.receiver.reach(before + most).await?;
    let of_most = rate(most, began);
    gateway.receiver.reach(before + messages).await?;
    let of_all = rate(messages, began);
    workers.stop().await;
    product.app.store().close().await;
    Ok(Rates { of_most, of_all })
}
