//! Effect of a dead domain on the other domains, and of a bulk mailing on single messages: time from acceptance to
//! delivery, with and without.
//!
//! `cargo bench -p messaging-benches --bench lanes`; `dead` or `bulk` behind `--` runs one of the two. Messages to 20
//! domains come at a fixed rate, in turns; each domain has a mail server. In every other turn the server of the first
//! domain accepts connections and never answers. The 99th percentiles of the other 19 domains are compared.
//!
//! Then single messages are sent from the same workspace to the same domains, in every other turn while a million bulk
//! messages are due before them (fewer with `--bulk N`).

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::sink::Sink;
use messaging_benches::{BenchOptions, median, message_to};
use messaging_core::changes::{Changes, JobWrite, NewJob, Write};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::ports::store::{PageRequest, Priority};
use messaging_engine::Sweep;
use messaging_engine::jobs::JobData as _;
use messaging_engine::jobs::deliver_message::DeliverMessage;
use messaging_engine::work::Workers;
use messaging_testing::TestDns;
use messaging_transport::{DirectDelivery, Dns};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

const DOMAINS: u64 = 20;

/// Messages a second, all domains together.
const RATE: u64 = 400;

/// Address of the silent mail server; the others are at 127.0.0.1.
const SILENT: [u8; 4] = [127, 0, 0, 9];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let arguments: Vec<String> = std::env::args().collect();
    let is_wanted = |part: &str| {
        let other = if part == "bulk" { "dead" } else { "bulk" };
        !arguments.iter().any(|argument| argument == other) || arguments.iter().any(|argument| argument == part)
    };
    let given = arguments.iter().skip_while(|argument| *argument != "--bulk").nth(1);
    let bulk = match given {
        Some(count) => count.parse()?,
        None if options.rounds == 1 => 1_000,
        None => 1_000_000,
    };
    let turn = if options.rounds == 1 { options.turn } else { Duration::from_secs(5) };
    let directory = tempfile::tempdir_in(".")?;
    let numbers = AtomicU64::new(0);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    if is_wanted("dead") {
        for round in 0..options.rounds {
            for is_dead in [false, true] {
                let path = directory.path().join(format!("{round}-{is_dead}.db"));
                let p99 = measure(&path, is_dead, turn, &numbers).await?;
                if is_dead { with.push(p99) } else { without.push(p99) }
            }
        }
        let (without, with) = (median(without), median(with));
        println!(
            "p99 to delivery, 20 domains alive {without:.1} ms, one of them dead {with:.1} ms, ratio {:.2}",
            with / without
        );
    }
    if is_wanted("bulk") {
        let (mut alone, mut beside, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let path = |round, count| directory.path().join(format!("{round}-{count}-bulk.db"));
        for round in 0..options.rounds {
            alone.push(beside_bulk(&path(round, 0), 0, turn).await?.p99);
            let busy = beside_bulk(&path(round, bulk), bulk, turn).await?;
            beside.push(busy.p99);
            rates.push(busy.bulk_rate);
            std::fs::remove_file(path(round, bulk))?;
        }
        let (alone, beside, rate) = (median(alone), median(beside), median(rates));
        println!(
            "p99 to delivery, alone {alone:.1} ms, with {bulk} bulk messages due {beside:.1} ms, ratio {:.2}; \
             {rate:.0} bulk messages a second",
            beside / alone
        );
    }
    Ok(())
}

/// The 99th percentile in milliseconds of all domains but the first.
async fn measure(
    path: &std::path::Path,
    is_dead: bool,
    turn: Duration,
    numbers: &AtomicU64,
) -> Result<f64, Box<dyn Error>> {
    let sink = Sink::start().await?;
    let silent = TcpListener::bind(SocketAddr::from((SILENT, sink.address.port()))).await?;
    let silence = tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            taken.push(stream);
        }
    });
    let dns = TestDns::start().await;
    for number in 0..DOMAINS {
        let host = format!("mx.{}", domain(number));
        dns.mx(&domain(number), &[(10, &host)]);
        let address = if is_dead && number == 0 { SILENT } else { [127, 0, 0, 1] };
        dns.addresses(&host, &[IpAddr::from(address)]);
    }
    let direct = DirectDelivery::builder("bench.test", Dns::new(Some(dns.addr())))
        .port(sink.address.port())
        .allow_private(true)
        .build();
    let product = Product::delivering(path, Arc::new(direct), Algorithm::Ed25519Sha256).await?;
    let workers = Workers::start(&product.app, &Handle::current());

    let mut accepted = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_secs(1) / u32::try_from(RATE)?);
    let began = Instant::now();
    while began.elapsed() < turn {
        tick.tick().await;
        let n = numbers.fetch_add(1, Ordering::Relaxed);
        let product = product.clone();
        accepted.push(tokio::spawn(async move {
            let at = Instant::now();
            assert!(product.accept_body(n, message_to(n, &domain(n % DOMAINS))).await, "the product accepts");
            (n, at)
        }));
    }
    let mut begun = Vec::new();
    for task in accepted {
        begun.push(task.await?);
    }
    let alive: Vec<_> = begun.iter().filter(|(n, _)| n % DOMAINS != 0).collect();
    let dead = u64::try_from(begun.len() - alive.len())?;
    sink.reach(u64::try_from(alive.len())? + if is_dead { 0 } else { dead }).await;
    silence.abort();
    workers.stop().await;
    let arrivals = sink.take_arrivals();
    let mut times: Vec<f64> =
        alive.iter().filter_map(|(n, at)| Some(arrivals.get(n)?.duration_since(*at).as_secs_f64() * 1000.0)).collect();
    assert_eq!(times.len(), alive.len(), "every message to a living domain arrived");
    times.sort_by(f64::total_cmp);
    product.app.store().close().await;
    Ok(times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN))
}

fn domain(number: u64) -> String {
    format!("domain-{number}.test")
}

/// Transactional messages a second beside the bulk ones.
const SINGLE_RATE: u32 = 50;

/// Lowest number of a bulk message.
const FIRST_BULK: u64 = 1_000_000_000;

/// Measurements of single messages sent beside bulk messages.
struct Beside {
    /// The 99th percentile in milliseconds of single messages.
    p99: f64,
    /// Bulk messages that arrived in a second.
    bulk_rate: f64,
}

/// Sends single messages while `bulk` messages of their workspace are due.
async fn beside_bulk(path: &std::path::Path, bulk: u64, turn: Duration) -> Result<Beside, Box<dyn Error>> {
    let sink = Sink::start().await?;
    let dns = TestDns::start().await;
    for number in 0..DOMAINS {
        let host = format!("mx.{}", domain(number));
        dns.mx(&domain(number), &[(10, &host)]);
        dns.addresses(&host, &[IpAddr::from([127, 0, 0, 1])]);
    }
    let direct = DirectDelivery::builder("bench.test", Dns::new(Some(dns.addr())))
        .port(sink.address.port())
        .allow_private(true)
        .build();
    let product = Product::delivering(path, Arc::new(direct), Algorithm::Ed25519Sha256).await?;
    enqueue_bulk(&product, bulk).await?;
    let workers = Workers::start(&product.app, &Handle::current());
    let started = Instant::now();
    // The first moments are not measured: no connection is open yet.
    tokio::time::sleep(turn / 4).await;
    let mut accepted = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_secs(1) / SINGLE_RATE);
    let began = Instant::now();
    while began.elapsed() < turn {
        tick.tick().await;
        let n = 1 + accepted.len() as u64;
        let at = Instant::now();
        assert!(product.accept_body(n, message_to(n, &domain(n % DOMAINS))).await, "the product accepts");
        accepted.push(at);
    }
    let (mut arrivals, mut bulk_count) = (HashMap::new(), 0_u32);
    let last = Instant::now() + Duration::from_mins(1);
    while arrivals.len() < accepted.len() {
        assert!(Instant::now() < last, "{} of {} single messages arrived", arrivals.len(), accepted.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
        for (n, at) in sink.take_arrivals() {
            if n < FIRST_BULK {
                arrivals.insert(n, at);
            } else {
                bulk_count += 1;
            }
        }
    }
    assert!(bulk == 0 || bulk_count > 0, "bulk messages arrive as well");
    let bulk_rate = f64::from(bulk_count) / started.elapsed().as_secs_f64();
    let left = product.app.store().job_count().await?;
    assert!(bulk < 100_000 || left > Sweep::ALL.len() as u64, "bulk messages are due all the time");
    workers.stop().await;
    product.app.store().close().await;
    let mut times: Vec<f64> = (1_u64..)
        .zip(&accepted)
        .filter_map(|(n, at)| Some(arrivals.get(&n)?.duration_since(*at).as_secs_f64() * 1000.0))
        .collect();
    times.sort_by(f64::total_cmp);
    Ok(Beside { p99: times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN), bulk_rate })
}

/// Stores `count` due bulk messages, each as if it had been accepted.
async fn enqueue_bulk(product: &Product, count: u64) -> Result<(), Box<dyn Error>> {
    if count == 0 {
        return Ok(());
    }
    let (app, store) = (&product.app, product.app.store());
    assert!(product.accept_body(0, message_to(0, &domain(0))).await, "the product accepts");
    let page = PageRequest { after: None, limit: 1 };
    let found = store.messages(product.workspace, &MessageFilter::default(), page).await?.items;
    let first = found.first().ok_or("a message was accepted")?;
    let (sample, content) =
        store.message_with_content(product.workspace, first.id).await?.ok_or("a message was accepted")?;
    let content = content.ok_or("a message has content")?;
    for from in (0..count).step_by(500) {
        let mut changes = Changes::default();
        for n in from..(from + 500).min(count) {
            let now = app.now();
            let to = format!("user-{:012}@{}", FIRST_BULK + n, domain(n % DOMAINS));
            let message = Message { id: app.new_id(now), to, ..sample.clone() };
            for job in DeliverMessage::jobs_of(&message, None, None) {
                let job = job.enqueue(app.new_id(now), now);
                let lane = Lane::new(JobClass::Bulk, product.workspace, job.lane.resource());
                changes.push(Write::Job(JobWrite::Enqueue(NewJob { lane, ..job })));
            }
            changes.push(Write::InsertMessage(Box::new(message), content.clone()));
        }
        store.commit(changes, Priority::Background).await?;
    }
    Ok(())
}
