//! Durable acceptance beside its floor: through the core, and through HTTP.
//!
//! `cargo bench -p messaging-benches --bench accept`; with `-- --workers` the background work runs too.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use messaging_benches::floor::Floor;
use messaging_benches::load::{closed_loop, http};
use messaging_benches::product::Product;
use messaging_benches::{BenchOptions, message, report};
use messaging_engine::work::Workers;
use messaging_http::{Server, ServerOptions};
use tokio::net::TcpListener;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let directory = tempfile::tempdir_in(".")?;
    let floor = Floor::open(&directory.path().join("floor.db"))?;
    let product = Product::open(&directory.path().join("messaging.db")).await?;
    let with_workers = std::env::args().any(|argument| argument == "--workers");
    let _workers = with_workers.then(|| Workers::start(&product.app, &tokio::runtime::Handle::current()));
    let numbers = Arc::new(AtomicU64::new(1));

    for callers in [1, 64] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let target = floor.clone();
            let one = move |n| {
                let target = target.clone();
                async move { assert!(target.accept(Bytes::from(message(n))).await, "the floor accepts") }
            };
            floors.push(closed_loop(callers, options.turn, &numbers, one).await);
            ours.push(product.accept_for(callers, options.turn, &numbers).await);
        }
        report(&format!("accept through the core, {callers} callers"), floors, ours);
    }

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let floor_address = listener.local_addr()?;
    tokio::spawn(floor.serve(listener));
    let server = Server::bind(product.app.clone(), ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let address = server.local_addr();
    tokio::spawn(server.run(std::future::pending()));
    for connections in [1, 64] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let head = |_| "POST /messages HTTP/1.1\r\nHost: floor\r\n".to_owned();
            floors.push(http(floor_address, connections, options.turn, &numbers, head).await);
            // A key's bucket empties within seconds at this rate; a new one is full.
            let key = product.key().await?;
            let head = move |n: u64| {
                format!(
                    "POST /v1/messages HTTP/1.1\r\nHost: messaging\r\nAuthorization: Bearer {key}\r\n\
                     Content-Type: application/json\r\nIdempotency-Key: h-{n:012}\r\n"
                )
            };
            ours.push(http(address, connections, options.turn, &numbers, head).await);
        }
        report(&format!("accept through HTTP, {connections} connections"), floors, ours);
    }
    Ok(())
}
