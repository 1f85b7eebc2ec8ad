//! Delivery beside its floor: queued messages signed and pushed into a mail server on loopback.
//!
//! `cargo bench -p messaging-benches --bench deliver`. The floor builds and signs the same messages with the same code
//! and sends them over ten connections; it leaves out the queue, the outcome and everything else that is stored. Then a
//! campaign to as many contacts at fifty domains, all served by the same mail server; its floor also leaves out the
//! audience and rendering. `-- --into ADDRESS` delivers into a mail server elsewhere, with `--messages N` and
//! `--key rsa|ed25519`, and measures nothing: the server counts.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::sink::{Sink, fill};
use messaging_benches::{BenchOptions, report};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_engine::Sweep;
use messaging_engine::ops::campaigns::CreateCampaign;
use messaging_engine::ops::campaigns::actions::ScheduleCampaign;
use messaging_engine::ops::lists::CreateList;
use messaging_engine::ops::templates::CreateTemplate;
use messaging_engine::work::Workers;
use messaging_transport::{DirectDelivery, Dns, MxOverride, mime};
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// Connections of the floor.
const CONNECTIONS: u64 = 10;

/// Domains of the recipients of a campaign.
const DOMAINS: u64 = 50;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir_in(".")?;
    let argument = |name: &str| std::env::args().skip_while(|given| given != name).nth(1);
    let messages: Option<u64> = argument("--messages").map(|text| text.parse()).transpose()?;
    if let Some(address) = argument("--into") {
        let algorithm = if argument("--key").as_deref() == Some("ed25519") { ED25519 } else { RSA };
        let address = address.parse()?;
        let product = queue(&directory.path().join("m.db"), address, algorithm, 1..=messages.unwrap_or(20_000)).await?;
        let workers = Workers::start(&product.app, &Handle::current());
        while product.app.store().job_count().await? > Sweep::ALL.len() as u64 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        workers.stop().await;
        return Ok(());
    }
    let options = BenchOptions::from_arguments();
    let messages = messages.unwrap_or(if options.rounds == 1 { 200 } else { 5000 });
    for (name, algorithm) in [("RSA-2048", RSA), ("Ed25519", ED25519)] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            let sink = Sink::start().await?;
            let first = round as u64 * messages + 1;
            let numbers = first..=first + messages - 1;
            let path = directory.path().join(format!("{name}-{round}.db"));
            let product = queue(&path, sink.address, algorithm, numbers.clone()).await?;
            floors.push(floor(&product, &sink, numbers).await?);
            let (began, before) = (Instant::now(), sink.count());
            let workers = Workers::start(&product.app, &Handle::current());
            sink.reach(before + messages).await;
            ours.push(rate(messages, began));
            workers.stop().await;
            product.app.store().close().await;
        }
        report(&format!("deliver, {name} signature"), floors, ours);
    }
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let sink = Sink::start().await?;
        let product = open(&directory.path().join(format!("campaign-{round}.db")), sink.address, RSA).await?;
        let campaign = campaign(&product, messages).await?;
        floors.push(floor(&product, &sink, 1..=messages).await?);
        let (began, before) = (Instant::now(), sink.count());
        let workers = Workers::start(&product.app, &Handle::current());
        product.call::<ScheduleCampaign>(Some(&campaign), &json!({"send_now": true})).await?;
        sink.reach(before + messages).await;
        ours.push(rate(messages, began));
        workers.stop().await;
        product.app.store().close().await;
    }
    report(&format!("campaign to {DOMAINS} domains, RSA-2048 signature"), floors, ours);
    Ok(())
}

/// Creates a campaign to this number of contacts; returns its id.
async fn campaign(product: &Product, contacts: u64) -> Result<String, Box<dyn Error>> {
    let id = |made: &Value| made["id"].as_str().unwrap_or_default().to_owned();
    let list = id(&product.call::<CreateList>(None, &json!({"name": "all"})).await?);
    let row = |n| format!("n{n}@d{}.test,true,{list}\n", n % DOMAINS);
    let rows: String = (0..contacts).map(row).collect();
    product.upload(format!("email,consent.marketing_email,list_ids\n{rows}").as_bytes()).await?;
    product.app.run_until_idle().await?;
    let template = json!({"name": "bench", "channel": "email", "subject": "News for {{ contact.email }}",
        "from_email": "news@sandbox.test",
        "html": "<p>Hello {{ contact.email }}</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
    let template = id(&product.call::<CreateTemplate>(None, &template).await?);
    let campaign =
        json!({"name": "bench", "channel": "email", "template_id": template, "audience": {"list_ids": [list]}});
    Ok(id(&product.call::<CreateCampaign>(None, &campaign).await?))
}

const RSA: Algorithm = Algorithm::RsaSha256;
const ED25519: Algorithm = Algorithm::Ed25519Sha256;

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(messages: u64, began: Instant) -> f64 {
    messages as f64 / began.elapsed().as_secs_f64()
}

/// A product that delivers to `address`.
async fn open(path: &std::path::Path, address: SocketAddr, algorithm: Algorithm) -> Result<Product, Box<dyn Error>> {
    let to: MxOverride = address.to_string().parse()?;
    let direct = DirectDelivery::builder("bench.test", Dns::new(None)).mx_override(Some(to)).build();
    Product::delivering(path, Arc::new(direct), algorithm).await
}

/// A product that delivers to `address`, with these messages in its queue.
async fn queue(
    path: &std::path::Path,
    address: SocketAddr,
    algorithm: Algorithm,
    numbers: std::ops::RangeInclusive<u64>,
) -> Result<Product, Box<dyn Error>> {
    let product = open(path, address, algorithm).await?;
    product.accept_all(*numbers.start()..numbers.end() + 1, messaging_benches::message).await;
    Ok(product)
}

/// Builds, signs and sends the same messages, and does nothing else; returns messages a second.
async fn floor(product: &Product, sink: &Sink, numbers: std::ops::RangeInclusive<u64>) -> Result<f64, Box<dyn Error>> {
    let model = product.email().await?;
    let (next, last) = (Arc::new(AtomicU64::new(*numbers.start())), *numbers.end());
    let began = Instant::now();
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (model, next, address) = (model.clone(), Arc::clone(&next), sink.address);
            tokio::spawn(fill(address, next, last, move |n| {
                let mut email = model.clone();
                email.message_id = format!("{n:026}@bench.test");
                mime::build(&email).expect("a message of ours can be built")
            }))
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(rate(last - numbers.start() + 1, began))
}
