//! Imports of contacts compared with their floor, and the latency of accepting messages meanwhile.
//!
//! `cargo bench -p messaging-benches --bench import`. The floor parses the same file and writes its rows, two unique
//! indexes and a membership, a thousand to a commit. The product's import is timed from the answer to the upload to the
//! last row, and done by the workers of a server.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::{BenchOptions, floor, report};
use messaging_core::domain::audience::import::ImportStatus;
use messaging_engine::work::Workers;
use rusqlite::{Connection, params};
use serde_json::json;

/// Rows of a file.
const ROWS: u64 = 200_000;

/// Rows of a commit of the floor.
const BATCH: u64 = 1000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let directory = tempfile::tempdir_in(".")?;
    let mut floor = Floor::open(&directory.path().join("floor.db"))?;
    let product = Product::open(&directory.path().join("messaging.db")).await?;
    let workers = Workers::start(&product.app, &tokio::runtime::Handle::current());

    for (name, is_new) in [("new contacts", true), ("changed contacts", false)] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 0..options.rounds as u64 {
            let text = file(if is_new { round * ROWS } else { 0 }, if is_new { 0 } else { round + 1 });
            floors.push(tokio::task::block_in_place(|| floor.run(&text)));
            ours.push(import(&product, &text).await?);
        }
        report(&format!("import of {name}"), floors, ours);
    }
    beside(&product, file(options.rounds as u64 * ROWS, 0)).await?;
    workers.stop().await;
    Ok(())
}

/// Rows a second.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
async fn import(product: &Product, text: &str) -> Result<f64, Box<dyn Error>> {
    let uploaded = product.upload(text.as_bytes()).await?;
    let began = Instant::now();
    loop {
        let import = product.look(uploaded.import_id).await?;
        if import.status != ImportStatus::Processing {
            assert_eq!((import.status, import.failed), (ImportStatus::Completed, 0), "nothing is refused");
            return Ok(ROWS as f64 / began.elapsed().as_secs_f64());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Measures the latency of accepting a message while a file is imported.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn beside(product: &Product, text: String) -> Result<(), Box<dyn Error>> {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let is_done = Cell::new(false);
    let importing = async {
        let rows = import(product, &text).await;
        is_done.set(true);
        rows
    };
    let accepting = async {
        let mut waits = Vec::new();
        while !is_done.get() {
            let asked = Instant::now();
            assert!(product.accept(NUMBERS.fetch_add(1, Ordering::Relaxed)).await, "the product accepts");
            waits.push(asked.elapsed());
        }
        waits
    };
    let (rows, mut waits) = tokio::join!(importing, accepting);
    let rows = rows?;
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).or(waits.last()).copied().unwrap_or_default();
    let (half, most) = (at(50), at(99));
    println!(
        "accepting beside {rows:.0} imported rows/s: median {half:.1?}, p99 {most:.1?} of {} messages",
        waits.len()
    );
    Ok(())
}

/// A file whose contacts begin with a number.
fn file(from: u64, version: u64) -> String {
    let mut text = String::from(
        "email,external_id,attributes.first_name,attributes.last_name,attributes.plan,attributes.city,attributes.visits,phone\n",
    );
    for n in from..from + ROWS {
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "user-{n:012}@example.test,ext-{n:012},Name{},\"Sur, name\",pro,Berlin,{},+1555{n:09}",
            n % 1000,
            n % 100 + version
        );
    }
    text
}

/// The least work that importing takes.
struct Floor {
    database: Connection,
}

impl Floor {
    fn open(path: &Path) -> rusqlite::Result<Self> {
        Ok(Self { database: floor::database(path, floor::CONTACTS)? })
    }

    /// Rows a second.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn run(&mut self, text: &str) -> f64 {
        let began = Instant::now();
        let mut upsert = self
            .database
            .prepare_cached(
                "INSERT INTO contacts(id, external_id, email, phone, attributes, tags, locale, tz, consent, created_at, updated_at)
                 VALUES(?1, ?2, ?3, ?4, ?5, '[]', 'en', 'UTC', 1, ?6, ?6)
                 ON CONFLICT(email) DO UPDATE SET external_id = excluded.external_id, phone = excluded.phone,
                     attributes = json_patch(attributes, excluded.attributes), tags = excluded.tags,
                     updated_at = excluded.updated_at
                 RETURNING n",
            )
            .expect("the table exists");
        let mut join =
            self.database.prepare_cached("INSERT OR IGNORE INTO members VALUES(1, ?1)").expect("the table exists");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let mut record = csv::StringRecord::new();
        let mut done = 0_u64;
        loop {
            self.database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
            for _ in 0..BATCH {
                if !reader.read_record(&mut record).expect("the file is well formed") {
                    break;
                }
                let attributes = json!({"first_name": &record[2], "last_name": &record[3], "plan": &record[4],
                    "city": &record[5], "visits": record[6].parse::<i64>().unwrap_or(0)});
                let id = u128::from(done).to_be_bytes();
                let row = params![id, &record[1], &record[0], &record[7], attributes.to_string(), done.cast_signed()];
                let number: i64 = upsert.query_row(row, |row| row.get(0)).expect("the row is stored");
                join.execute([number]).expect("the row is stored");
                done += 1;
            }
            self.database.execute_batch("COMMIT").expect("the disk has room");
            if done == ROWS {
                return ROWS as f64 / began.elapsed().as_secs_f64();
            }
        }
    }
}
