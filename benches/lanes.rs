//! What one dead domain costs the others: time from acceptance to delivery, with and without it.
//!
//! `cargo bench -p messaging-benches --bench lanes`. Messages to 20 domains come at a fixed rate, in turns;
//! each domain has an exchanger. In every other turn the exchanger of the first domain takes connections
//! and says nothing. What is compared is the 99th percentile of the other 19 domains.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::sink::Sink;
use messaging_benches::{Plan, median, message_to};
use messaging_core::domain::dkim::Algorithm;
use messaging_engine::work::Workers;
use messaging_transport::testing::TestDns;
use messaging_transport::{DirectDelivery, Dns};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

const DOMAINS: u64 = 20;

/// Messages a second, all domains together.
const RATE: u64 = 400;

/// Where the silent exchanger is; the others are at 127.0.0.1.
const SILENT: [u8; 4] = [127, 0, 0, 9];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::from_arguments();
    let turn = if plan.rounds == 1 { plan.turn } else { Duration::from_secs(5) };
    let directory = tempfile::tempdir_in(".")?;
    let numbers = AtomicU64::new(0);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
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
