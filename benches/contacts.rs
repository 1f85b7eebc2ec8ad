//! Bulk upserts compared with their floor, and the latency of accepting messages meanwhile.
//!
//! `cargo bench -p messaging-benches --bench contacts`. The floor writes the rows of contacts, two unique
//! indexes and a membership, a thousand to a commit, without reading a request or deciding anything.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::load::closed_loop;
use messaging_benches::product::Product;
use messaging_benches::requests::{self, BATCH};
use messaging_benches::{BenchOptions, floor, report};
use rusqlite::{Connection, params};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let directory = tempfile::tempdir_in(".")?;
    let mut floor = Floor::open(&directory.path().join("floor.db"))?;
    let product = Product::open(&directory.path().join("messaging.db")).await?;
    let numbers = Arc::new(AtomicU64::new(1));

    for callers in [1, 4] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            floors.push(tokio::task::block_in_place(|| floor.run(options.turn)));
            ours.push(bulk(&product, callers, options.turn, &numbers, 0).await);
        }
        report(&format!("new contacts, {callers} callers"), floors, ours);
    }
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        floor.next = 0;
        floors.push(tokio::task::block_in_place(|| floor.run(options.turn)));
        ours.push(bulk(&product, 4, options.turn, &Arc::new(AtomicU64::new(1)), 1).await);
    }
    report("changed contacts, 4 callers", floors, ours);
    beside(&product, options.turn, &numbers).await;
    Ok(())
}

/// Contacts a second of callers that each wait for their answer.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
async fn bulk(product: &Product, callers: usize, turn: Duration, numbers: &Arc<AtomicU64>, version: u64) -> f64 {
    let product = product.clone();
    let one = move |n| {
        let product = product.clone();
        async move { assert_eq!(product.upsert(requests::contacts(n, version)).await, 0, "nothing is refused") }
    };
    closed_loop(callers, turn, numbers, one).await * BATCH as f64
}

/// Measures the latency of accepting a message while contacts are written.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn beside(product: &Product, turn: Duration, numbers: &Arc<AtomicU64>) {
    let writing = tokio::spawn({
        let (product, numbers) = (product.clone(), Arc::clone(numbers));
        async move { bulk(&product, 4, turn, &numbers, 0).await }
    });
    let began = Instant::now();
    let mut waits = Vec::new();
    while began.elapsed() < turn {
        let asked = Instant::now();
        assert!(product.accept(numbers.fetch_add(1, Ordering::Relaxed)).await, "the product accepts");
        waits.push(asked.elapsed());
    }
    let rows = writing.await.unwrap_or(f64::NAN);
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).or(waits.last()).copied().unwrap_or_default();
    let (half, most) = (at(50), at(99));
    println!("accepting beside {rows:.0} contacts/s: median {half:.1?}, p99 {most:.1?} of {} messages", waits.len());
}

/// The least work that storing contacts takes.
struct Floor {
    database: Connection,
    next: u64,
}

impl Floor {
    fn open(path: &Path) -> rusqlite::Result<Self> {
        Ok(Self { database: floor::database(path, floor::CONTACTS)?, next: 0 })
    }

    /// Contacts a second.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn run(&mut self, turn: Duration) -> f64 {
        let began = Instant::now();
        let mut upsert = self
            .database
            .prepare_cached(
                "INSERT INTO contacts(id, external_id, email, phone, attributes, tags, locale, tz, consent, created_at, updated_at)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?9)
                 ON CONFLICT(email) DO UPDATE SET external_id = excluded.external_id, phone = excluded.phone,
                     attributes = json_patch(attributes, excluded.attributes), tags = excluded.tags,
                     updated_at = excluded.updated_at
                 RETURNING n",
            )
            .expect("the table exists");
        let mut join =
            self.database.prepare_cached("INSERT OR IGNORE INTO members VALUES(1, ?1)").expect("the table exists");
        let mut done = 0_u64;
        while began.elapsed() < turn {
            self.database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
            for _ in 0..BATCH {
                let n = self.next;
                let attributes = format!(
                    r#"{{"first_name":"Alex","last_name":"Doe","plan":"pro","visits":{},"city":"Berlin","ltv":129.5}}"#,
                    n % 100
                );
                let number: i64 = upsert
                    .query_row(
                        params![
                            u128::from(n).to_be_bytes(),
                            format!("ext-{n:012}"),
                            format!("user-{n:012}@example.test"),
                            "+15550000000",
                            attributes,
                            r#"["newsletter","beta"]"#,
                            "en",
                            "Europe/Berlin",
                            i64::try_from(n).unwrap_or(0)
                        ],
                        |row| row.get(0),
                    )
                    .expect("the row is stored");
                join.execute([number]).expect("the row is stored");
                self.next += 1;
            }
            self.database.execute_batch("COMMIT").expect("the disk has room");
            done += BATCH;
        }
        done as f64 / began.elapsed().as_secs_f64()
    }
}
