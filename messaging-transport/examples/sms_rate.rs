//! Measures how many text messages a second go through an adapter, compared with the same requests of a bare HTTP
//! client over as many connections to the same fake provider.
//!
//! `cargo run --release -p messaging-transport --example sms_rate`; with `-- --test` it sends a few messages, to check
//! that it works.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::transport::{
    Content, DeliveryOptions, LastLook, Outcome, Outgoing, Reservation, SmsContent, Transport,
};
use messaging_testing::fakes::{FakeProvider, FakeTwilio};
use messaging_transport::{Dns, GuardedFetch, Twilio};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 16;
const PATH: &str = "/2010-04-01/Accounts/AC1/Messages.json";
const TEXT: &str = "Your code is 123456. It is valid for ten minutes.";
/// A recipient without receipts.
const RECIPIENT: &str = "+9990000012";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let count: u32 = if is_test { 500 } else { 100_000 };
    let api = FakeTwilio::new("AC1", "t0ken");
    let settings = |url: &str| Arc::new(api.settings(url).as_object().cloned().unwrap_or_default());
    let fake = FakeProvider::start(api.clone()).await?;
    let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
    let twilio = Arc::new(Twilio::new(fetch, Arc::new(SystemClock)));
    let settings = settings(&fake.url());
    let before = memory("VmRSS");
    // The first round warms up.
    for (name, count) in [("warm-up", count / 10), ("measured", count)] {
        let bare = bare(&fake, count).await?;
        let adapter = adapter(&twilio, &settings, count).await?;
        let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
        println!(
            "{name}: {count} messages, {CONNECTIONS} at a time: bare {:.0}/s, adapter {:.0}/s, {:.2} times as long",
            rate(bare),
            rate(adapter),
            adapter.as_secs_f64() / bare.as_secs_f64()
        );
    }
    println!(
        "memory grew by {} KiB, at most {} KiB were in use, what the fake remembers of 10,000 requests included; {} connections",
        memory("VmRSS") - before,
        memory("VmHWM"),
        fake.connections()
    );
    Ok(())
}

/// Returns the memory of this process, in KiB: current (`VmRSS`), or the maximum so far (`VmHWM`); 0 if the system does
/// not tell.
fn memory(line: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|one| one.strip_prefix(line)?.split_whitespace().nth(1)?.parse().ok());
    found.unwrap_or(0)
}

async fn bare(fake: &FakeProvider, count: u32) -> Result<Duration, Failure> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("To", RECIPIENT), ("From", "+15005550006"), ("Body", TEXT)])
        .finish();
    let (left, address) = (Arc::new(AtomicU32::new(count)), fake.address());
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (left, body) = (Arc::clone(&left), body.clone());
        tasks.spawn(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            let connection = tokio::spawn(connection);
            while left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let request = http::Request::post(PATH)
                    .header("host", address.to_string())
                    .header("content-type", "application/x-www-form-urlencoded")
                    .header("authorization", "Basic QUMxOnQwa2Vu")
                    .body(Full::new(bytes::Bytes::from(body.clone())))?;
                let answer = sender.send_request(request).await?;
                assert_eq!(answer.status(), 201);
                answer.into_body().collect().await?;
                std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
            }
            connection.abort();
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(began.elapsed())
}

async fn adapter(
    twilio: &Arc<Twilio>,
    settings: &Arc<serde_json::Map<String, serde_json::Value>>,
    count: u32,
) -> Result<Duration, Failure> {
    let left = Arc::new(AtomicU32::new(count));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (left, twilio, settings) = (Arc::clone(&left), Arc::clone(twilio), Arc::clone(settings));
        tasks.spawn(async move {
            while left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let sent = twilio.send(&message(Arc::clone(&settings))).await?;
                assert!(sent.outcomes.iter().all(Outcome::is_accepted), "{:?}", sent.outcomes);
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(began.elapsed())
}

fn message(settings: Arc<serde_json::Map<String, serde_json::Value>>) -> Outgoing {
    Outgoing {
        workspace_id: WorkspaceId::from_bytes([1; 16]),
        message_id: MessageId::from_bytes([2; 16]),
        settings,
        recipients: vec![RECIPIENT.to_owned()],
        content: Content::Sms(SmsContent { text: TEXT.to_owned() }),
        options: DeliveryOptions::default(),
        last_look: LastLook::default(),
        reservation: Reservation::default(),
        receipts: None,
    }
}
