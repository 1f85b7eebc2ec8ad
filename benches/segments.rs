//! Segments of a large workspace compared with a floor, and their effect on other work.
//!
//! `cargo bench -p messaging-benches --bench segments`. The floor is one statement of SQL over contacts with
//! the same attributes. Then the workspace gets events, and a segment of an attribute and a count of events
//! is previewed and calculated, while messages are accepted and contacts change.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::{BenchOptions, report};
use messaging_core::changes::{Changes, Expect, JobHandle, JobWrite, NewJob, Write};
use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::segment::filter::{Condition, Filter};
use messaging_core::domain::segment::parse::{Purpose, parse};
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{ContactId, Id as _, SegmentId};
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};
use messaging_core::ports::store::{Claim, Priority, Store};
use messaging_core::violation::Violations;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Events of each contact, on average.
const EVENTS: u64 = 5;
/// Contacts that change in a second while segments are calculated.
const CHANGES: u64 = 4;
/// Messages accepted in a second meanwhile.
const ACCEPTS: u64 = 200;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let contacts = if options.rounds == 1 { 20_000 } else { 1_000_000 };
    let directory = tempfile::tempdir_in(".")?;
    let path = directory.path().join("messaging.db");
    let mut floor = Floor::open(&directory.path().join("floor.db"), contacts)?;
    let product = Product::open(&path).await?;
    fill(&path, &product.workspace.to_bytes(), product.app.now().as_millis(), contacts)?;

    let attributes = json!({"and": [
        {"type": "attribute", "key": "plan", "op": "eq", "value": "pro"},
        {"type": "attribute", "key": "visits", "op": "gte", "value": 50},
    ]});
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        floors.push(tokio::task::block_in_place(|| floor.run(contacts)));
        let segment = StoredSegment::put(&product, &attributes).await?;
        let began = Instant::now();
        segment.calculate().await?;
        ours.push(rate(contacts, began));
    }
    report("contacts of a recalculation, attributes", floors, ours);
    events(&product, &path, contacts).await
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(rows: u64, began: Instant) -> f64 {
    rows as f64 / began.elapsed().as_secs_f64()
}

/// Preview, calculation and following of a segment that counts events.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn events(product: &Product, path: &Path, contacts: u64) -> Result<(), Box<dyn Error>> {
    let filter = json!({"and": [
        {"type": "attribute", "key": "plan", "op": "eq", "value": "pro"},
        {"type": "event", "name": "order_paid", "count": {"op": "gte", "value": 2},
         "within": {"last": {"value": 90, "unit": "days"}}},
    ]});
    let segment = StoredSegment::put(product, &filter).await?;
    let store = product.app.store();
    let before = memory("VmRSS:");
    // Making the rows took more than anything that follows: the peak counts anew, where Linux allows it.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let conditions: Vec<_> =
        segment.query.filter.leaves().map(|leaf| Filter::Where(Condition::Leaf(leaf.clone()))).collect();
    for round in ["cold", "warm"] {
        let began = Instant::now();
        let preview = store.preview(product.workspace, &segment.query, &conditions, 20).await?;
        let (took, exact) = (began.elapsed(), preview.exact);
        println!("preview, {round}: {took:.1?}; {} match, {:?}, exact {exact}", preview.size, preview.sizes);
    }
    let began = Instant::now();
    let (joined, steps) = segment.calculate().await?;
    println!("calculation alone: {:.1?} in {steps} steps; {joined} members", began.elapsed());

    // Again for an empty segment, with others at work.
    let segment = StoredSegment::put(product, &filter).await?;
    let ends = Arc::new(AtomicBool::new(false));
    let accepting = tokio::spawn(accept(product.clone(), Arc::clone(&ends)));
    let changing = tokio::spawn(change(product.clone(), Connection::open(path)?, contacts, Arc::clone(&ends)));
    let (mut from, mut joined, began) = (Some(None), 0, Instant::now());
    let mut followed = 0;
    while let Some(next) = from {
        let calculated = store
            .calculate_members(product.workspace, segment.id, &segment.query, next, MoveNotes::Silent, &segment.job)
            .await?;
        joined += calculated.joined;
        from = calculated.next.map(Some);
        followed += segment.follow().await?;
    }
    println!("calculation beside others: {:.1?}; {joined} members, {followed} moved meanwhile", began.elapsed());
    // For some time more, so that following alone is seen too.
    let more = Instant::now();
    while !changing.is_finished() {
        ends.store(more.elapsed() >= Duration::from_secs(2), Ordering::Relaxed);
        followed += segment.follow().await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tell("messages accepted", accepting.await?);
    let (committed, reached) = changing.await?;
    tell("changes committed", committed);
    tell("changes that reached the segment", reached);
    println!("{followed} moves in all; memory {before} before, at most {}", memory("VmHWM:"));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
fn tell(what: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).or(waits.last()).copied().unwrap_or_default();
    let (half, most, all) = (at(50), at(99), waits.last().copied().unwrap_or_default());
    println!("{what}: median {half:.1?}, p99 {most:.1?}, longest {all:.1?} of {}", waits.len());
}

/// A line of `/proc/self/status`, such as the resident memory of the process.
fn memory(what: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or("unknown").trim().to_owned()
}

/// A claimed job with no other purpose.
async fn claimed(product: &Product) -> Result<JobHandle, Box<dyn Error>> {
    let (store, now) = (product.app.store(), product.app.now());
    let (id, lane) = (product.app.new_id(now), Lane::of_installation("bench"));
    let job = NewJob { id, kind: "bench", lane, due_at: now, payload: "{}".into() };
    store.commit(Changes::from_iter([Write::Job(JobWrite::Enqueue(job))]), Priority::Foreground).await?;
    let claim = Claim::new(product.app.now(), product.app.clock().monotonic(), Duration::from_hours(1));
    let claimed = store.claim(claim).await?;
    Ok(claimed.into_iter().find(|job| job.handle.id == id).ok_or("a claim")?.handle)
}

/// A stored segment and what it asks for.
struct StoredSegment {
    product: Product,
    id: SegmentId,
    query: MemberQuery,
    /// Claimed job on whose behalf the members are written.
    job: JobHandle,
}

impl StoredSegment {
    async fn put(product: &Product, filter: &Value) -> Result<Self, Box<dyn Error>> {
        let tree = parse(filter, "", Purpose::Segment, &mut Violations::new()).filter.ok_or("a filter")?;
        let now = product.app.now();
        let segment = Segment {
            id: product.app.new_id(now),
            workspace_id: product.workspace,
            name: "bench".to_owned(),
            kind: SegmentKind::Dynamic,
            filter: StoredFilter::new(filter, tree.clone()),
            status: SegmentStatus::Recalculating,
            size: None,
            calculated_at: None,
            created_at: now,
            updated_at: now,
            calculation: 1,
        };
        let id = segment.id;
        let write = Write::PutSegment(Box::new(segment), Expect::Absent);
        product.app.store().commit(Changes::from_iter([write]), Priority::Foreground).await?;
        let query = MemberQuery { filter: tree, now, zone: jiff::tz::TimeZone::UTC };
        Ok(Self { product: product.clone(), id, query, job: claimed(product).await? })
    }

    fn store(&self) -> &dyn Store {
        self.product.app.store()
    }

    /// Calculates all members; returns the number that joined, and the number of steps.
    async fn calculate(&self) -> Result<(u64, u64), Box<dyn Error>> {
        let (mut from, mut joined, mut steps) = (Some(None), 0, 0);
        while let Some(next) = from {
            let (workspace, job) = (self.product.workspace, &self.job);
            let calculated =
                self.store().calculate_members(workspace, self.id, &self.query, next, MoveNotes::Silent, job).await?;
            from = calculated.next.map(Some);
            joined += calculated.joined;
            steps += 1;
        }
        Ok((joined, steps))
    }

    async fn follow(&self) -> Result<usize, Box<dyn Error>> {
        let segments = [(self.id, self.query.clone())];
        Ok(self.store().follow_changes(self.product.workspace, &segments, 1000, &self.job).await?.0.len())
    }
}

/// Accepts messages at a steady rate; returns the latency of each, counted from the moment it was due.
async fn accept(product: Product, ends: Arc<AtomicBool>) -> Vec<Duration> {
    let mut due = tokio::time::interval(Duration::from_micros(1_000_000 / ACCEPTS));
    let mut waiting = tokio::task::JoinSet::new();
    let mut number = 0;
    while !ends.load(Ordering::Relaxed) {
        let asked = due.tick().await.into_std();
        number += 1;
        let product = product.clone();
        waiting.spawn(async move {
            assert!(product.accept(number).await, "the product accepts");
            asked.elapsed()
        });
    }
    waiting.join_all().await
}

/// Changes contacts; returns the latencies of the commits, and the delays until the segment had followed.
async fn change(
    product: Product,
    beside: Connection,
    contacts: u64,
    ends: Arc<AtomicBool>,
) -> (Vec<Duration>, Vec<Duration>) {
    let mut due = tokio::time::interval(Duration::from_millis(1000 / CHANGES));
    let (mut committed, mut reached) = (Vec::new(), Vec::new());
    let store = product.app.store();
    let mut number = 0;
    while !ends.load(Ordering::Relaxed) {
        due.tick().await;
        number += 7919;
        let named = vec![Identifier::ExternalId(external_id(number % contacts))];
        let found = store.contacts_identified(product.workspace, named).await.expect("the store reads");
        let Some(stored) = found.into_iter().next() else { continue };
        let mut contact: Contact = stored.record;
        let plan = if contact.attributes.get("plan") == Some(&json!("pro")) { "free" } else { "pro" };
        contact.attributes.edit().insert("plan".to_owned(), json!(plan));
        contact.updated_at = product.app.now();
        let began = Instant::now();
        let write = Write::put_contact(contact, Expect::Revision(stored.revision));
        store.commit(Changes::from_iter([write]), Priority::Foreground).await.expect("the store writes");
        committed.push(began.elapsed());
        // The note of a change is removed in the same transaction as its effect.
        while notes(&beside) > 0 && began.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        reached.push(began.elapsed());
    }
    (committed, reached)
}

/// The number of notes about changed contacts that are still in the database.
fn notes(beside: &Connection) -> i64 {
    beside.query_row("SELECT count(*) FROM changed_contacts", [], |row| row.get(0)).expect("the table exists")
}

fn external_id(n: u64) -> String {
    format!("ext-{n:012}")
}

fn attributes(n: u64) -> String {
    let plan = ["free", "basic", "pro", "enterprise"][usize::try_from(n % 4).unwrap_or(0)];
    let city = ["Berlin", "Paris", "Rome", "Madrid", "Oslo"][usize::try_from(n % 5).unwrap_or(0)];
    format!(
        r#"{{"first_name":"Name{}","last_name":"Surname{}","plan":"{plan}","visits":{},"city":"{city}","ltv":{}.5,"signup":"2025-{:02}-{:02}"}}"#,
        n % 1000,
        n % 7919,
        (n.wrapping_mul(2_654_435_761) >> 7) % 100,
        n % 500,
        1 + n % 12,
        1 + n % 28
    )
}

/// Writes contacts and their events straight into the tables: other benches measure storing them.
fn fill(path: &Path, workspace: &[u8], now: i64, contacts: u64) -> rusqlite::Result<()> {
    const DAY: i64 = 86_400_000;
    let mut database = Connection::open(path)?;
    database.pragma_update(None, "synchronous", "off")?;
    database.pragma_update(None, "cache_size", -256 * 1024)?;
    database.busy_timeout(Duration::from_secs(10))?;
    let transaction = database.transaction()?;
    let all = i64::try_from(contacts).unwrap_or(i64::MAX);
    transaction.execute(
        "INSERT INTO workspace_numbers (workspace, newest, contacts) VALUES (?1, ?2, ?2)",
        params![workspace, all],
    )?;
    let workspace_number = transaction.last_insert_rowid();
    transaction
        .execute("INSERT INTO event_names (workspace_number, name) VALUES (?1, 'order_paid')", [workspace_number])?;
    let name = transaction.last_insert_rowid();
    {
        let mut insert = transaction.prepare(
            "INSERT INTO contacts (n, workspace_number, id, revision, created_at, updated_at, marketing_email, external_id,
                 email, phone, locale, timezone, tags, attributes)
             VALUES (?1, ?2, ?3, 1, ?4, ?4, 1, ?5, ?6, ?7, 'en', 'Europe/Berlin', '[\"newsletter\"]', ?8)",
        )?;
        for n in 0..contacts {
            let number = (workspace_number << 40) | (i64::try_from(n).unwrap_or(0) + 1);
            insert.execute(params![
                number,
                workspace_number,
                ContactId::from_bytes(u128::from(n).to_be_bytes()).to_bytes(),
                now,
                external_id(n),
                format!("user-{n:012}@example.test"),
                format!("+1555{n:010}"),
                attributes(n),
            ])?;
        }
        // In the order of their arrival, which is nobody's own.
        transaction.execute_batch("DROP INDEX product_events_by_contact")?;
        let mut insert = transaction
            .prepare("INSERT INTO product_events (contact, name, at, id, properties) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for n in 0..contacts * EVENTS {
            let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let contact = (workspace_number << 40) | (i64::try_from(mixed % contacts).unwrap_or(0) + 1);
            let age = i64::try_from((mixed >> 8) % 365).unwrap_or(0) * DAY;
            let properties =
                format!(r#"{{"order_id":"{n:012}","total":49.9,"currency":"EUR","items":3,"source":"web"}}"#);
            insert.execute(params![contact, name, now - age, u128::from(n).to_be_bytes(), properties])?;
        }
        transaction.execute_batch("CREATE INDEX product_events_by_contact ON product_events (contact, name, at)")?;
    }
    transaction.commit()?;
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
}

/// The least work that a recalculation takes: one statement over contacts with the same attributes.
struct Floor {
    database: Connection,
}

impl Floor {
    fn open(path: &Path, contacts: u64) -> rusqlite::Result<Self> {
        let mut database = Connection::open(path)?;
        database.pragma_update(None, "journal_mode", "wal")?;
        database.pragma_update(None, "synchronous", "full")?;
        database.pragma_update(None, "cache_size", -64 * 1024)?;
        database.execute_batch(
            "CREATE TABLE contacts(n INTEGER PRIMARY KEY, id BLOB NOT NULL, workspace INTEGER NOT NULL,
                 external_id TEXT, email TEXT, phone TEXT, attributes TEXT NOT NULL, tags TEXT NOT NULL, locale TEXT,
                 tz TEXT, consent INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
             CREATE TABLE members(segment INTEGER NOT NULL, contact INTEGER NOT NULL,
                 PRIMARY KEY(segment, contact)) WITHOUT ROWID;",
        )?;
        let transaction = database.transaction()?;
        {
            let mut insert = transaction.prepare(
                "INSERT INTO contacts(id, workspace, external_id, email, phone, attributes, tags, locale, tz, consent,
                     created_at, updated_at)
                 VALUES(?1, 1, ?2, ?3, '+15550000000', ?4, '[\"newsletter\"]', 'en', 'Europe/Berlin', 1, 1, 1)",
            )?;
            for n in 0..contacts {
                let email = format!("user-{n:012}@example.test");
                insert.execute(params![u128::from(n).to_be_bytes(), external_id(n), email, attributes(n)])?;
            }
        }
        transaction.commit()?;
        database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(Self { database })
    }

    /// Contacts a second.
    fn run(&mut self, contacts: u64) -> f64 {
        self.database.execute_batch("DELETE FROM members").expect("the table exists");
        let began = Instant::now();
        self.database
            .execute(
                "INSERT INTO members SELECT 1, n FROM contacts WHERE workspace = 1
                     AND json_extract(attributes, '$.plan') = 'pro' AND json_extract(attributes, '$.visits') >= 50",
                [],
            )
            .expect("the disk has room");
        rate(contacts, began)
    }
}
