//! Product events in bulk compared with their floor, and the latency of accepting messages meanwhile.
//!
//! `cargo bench -p messaging-benches --bench events`. The floor writes rows of events and their index by contact, a
//! thousand to a commit, without reading a request or looking up a contact. Events belong to a hundred thousand
//! contacts in no order and have twenty names. The last part measures the cost of automations that none of the events
//! starts.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::load::closed_loop;
use messaging_benches::product::Product;
use messaging_benches::requests::{self, BATCH, EVENT_CONTACTS as CONTACTS, EVENT_NAMES as NAMES, EventsOf};
use messaging_benches::{BenchOptions, floor, report};
use messaging_engine::ops::automations::CreateAutomation;
use messaging_engine::ops::automations::actions::ActivateAutomation;
use rusqlite::{Connection, params};
use serde_json::json;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let directory = tempfile::tempdir_in(".")?;
    let mut floor = Floor::open(&directory.path().join("floor.db"))?;
    let product = Product::open(&directory.path().join("messaging.db")).await?;
    for start in (0..CONTACTS).step_by(1000) {
        let items: Vec<_> = (start..start + 1000).map(|n| format!(r#"{{"external_id":"ext-{n:012}"}}"#)).collect();
        assert_eq!(product.upsert(format!(r#"{{"contacts":[{}]}}"#, items.join(",")).into()).await, 0);
    }
    let numbers = Arc::new(AtomicU64::new(1));
    for (kind, what, callers) in [
        (EventsOf::Known, "events, 1 caller", 1),
        (EventsOf::Known, "events, 4 callers", 4),
        (EventsOf::Unique, "events with unique ids, 4 callers", 4),
        (EventsOf::Strangers, "events of new contacts, 4 callers", 4),
    ] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            floors.push(tokio::task::block_in_place(|| floor.run(options.turn)));
            ours.push(bulk(&product, kind, callers, options.turn, &numbers).await);
        }
        report(what, floors, ours);
    }
    beside(&product, options.turn, &numbers).await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        without.push(bulk(&product, EventsOf::OneName, 4, options.turn, &numbers).await);
    }
    watch(&product).await?;
    for _ in 0..options.rounds {
        with.push(bulk(&product, EventsOf::OneName, 4, options.turn, &numbers).await);
    }
    report(&format!("events of a name with {AUTOMATIONS} automations, floor without"), without, with);
    Ok(())
}

/// Automations that the name of an event may start.
const AUTOMATIONS: u32 = 50;

/// Activates automations for orders of a size that none of the events is about.
async fn watch(product: &Product) -> Result<(), Box<dyn Error>> {
    let large = json!([{"property": "total", "op": "gt", "value": 50}]);
    let nodes = json!([{"id": "x", "kind": "exit", "config": {}}]);
    for number in 0..AUTOMATIONS {
        let body = json!({"name": format!("Large orders {number}"),
            "trigger": {"kind": "event", "config": {"name": "event_0", "where": large}},
            "graph": {"entry": "x", "nodes": nodes, "edges": []}});
        let automation = product.call::<CreateAutomation>(None, &body).await?;
        product.call::<ActivateAutomation>(automation["id"].as_str(), &json!({})).await?;
    }
    Ok(())
}

/// Events a second of callers that each wait for their answer.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
async fn bulk(product: &Product, kind: EventsOf, callers: usize, turn: Duration, numbers: &Arc<AtomicU64>) -> f64 {
    let product = product.clone();
    let one = move |n| {
        let product = product.clone();
        async move {
            let body = requests::events(kind, n, product.app.now());
            assert_eq!(product.tell(body).await, 0, "nothing is refused");
        }
    };
    closed_loop(callers, turn, numbers, one).await * BATCH as f64
}

/// Measures the latency of accepting a message while events are written.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn beside(product: &Product, turn: Duration, numbers: &Arc<AtomicU64>) {
    let writing = tokio::spawn({
        let (product, numbers) = (product.clone(), Arc::clone(numbers));
        async move { bulk(&product, EventsOf::Known, 4, turn, &numbers).await }
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
    let (half, most, last) = (at(50), at(99), at(100));
    let count = waits.len();
    println!("accepting beside {rows:.0} events/s: median {half:.1?}, p99 {most:.1?}, longest {last:.1?} of {count}");
}

/// The least work that storing events takes.
struct Floor {
    database: Connection,
    next: u64,
}

impl Floor {
    fn open(path: &Path) -> rusqlite::Result<Self> {
        Ok(Self {
            database: floor::database(
                path,
                "CREATE TABLE events(n INTEGER PRIMARY KEY, workspace INTEGER NOT NULL, name INTEGER NOT NULL,
                 contact INTEGER, at INTEGER NOT NULL, properties TEXT NOT NULL);
             CREATE INDEX by_contact ON events(contact, name, at);",
            )?,
            next: 0,
        })
    }

    /// Events a second.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn run(&mut self, turn: Duration) -> f64 {
        let began = Instant::now();
        let mut insertion = self
            .database
            .prepare_cached("INSERT INTO events(workspace, name, contact, at, properties) VALUES(1, ?1, ?2, ?3, ?4)")
            .expect("the table exists");
        let mut done = 0_u64;
        while began.elapsed() < turn {
            self.database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
            for _ in 0..BATCH {
                let n = self.next;
                let [name, contact, at] =
                    [n % NAMES, requests::somebody(n), 1_769_850_900_000 + n].map(u64::cast_signed);
                insertion.execute(params![name, contact, at, requests::properties(n)]).expect("the row is stored");
                self.next += 1;
            }
            self.database.execute_batch("COMMIT").expect("the disk has room");
            done += BATCH;
        }
        done as f64 / began.elapsed().as_secs_f64()
    }
}
