//! The product on PostgreSQL compared with its floors: the same rows written by bare tokio-postgres, on the same
//! server.
//!
//! `cargo bench -p messaging-benches --bench postgres`. It starts a server of its own, which syncs to disk, and finds
//! the server's program as the tests do. The server, floor and product share the processors.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures_util::SinkExt as _;
use messaging_benches::load::closed_loop;
use messaging_benches::product::Product;
use messaging_benches::requests::{self, BATCH, EVENT_NAMES, EventsOf};
use messaging_benches::{BenchOptions, message, report};
use messaging_conformance::cluster::Database;
use messaging_core::domain::audience::import::ImportStatus;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_engine::ops::segments::CreateSegment;
use messaging_store::PostgresStore;
use serde_json::json;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

/// Rows of a transaction of the floor that accepts, and of a read of the one that delivers.
const ACCEPTED: usize = 128;
const CLAIMED: i64 = 512;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let [Some(ours), Some(bare)] = [Database::create_durable().await, Database::create_durable().await] else {
        return Err("there is no PostgreSQL server to start: install postgresql, or set PG_BIN".into());
    };
    let product = Product::on(Arc::new(PostgresStore::open(ours.options()).await?)).await?;
    let floor = Floor::open(&bare.url).await?;
    accept(options, &product, &floor).await?;
    deliver(options, &product, &floor).await?;
    contacts(options, &product, &floor).await?;
    events(options, &product, &floor).await?;
    import(options, &product, &floor).await?;
    segments(options, &product, &floor, &connect(&ours.url).await?).await
}

async fn accept(options: BenchOptions, product: &Product, floor: &Floor) -> Result<(), Box<dyn Error>> {
    let numbers = Arc::new(AtomicU64::new(1));
    for callers in [1, 64] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let target = floor.acceptor.clone();
            let one = move |n| {
                let target = target.clone();
                async move { accept_bare(&target, Bytes::from(message(n))).await }
            };
            floors.push(closed_loop(callers, options.turn, &numbers, one).await);
            ours.push(product.accept_for(callers, options.turn, &numbers).await);
        }
        report(&format!("accept, {callers} callers"), floors, ours);
    }
    Ok(())
}

/// A queue emptied into the sandbox, beside reading and deleting as many rows.
async fn deliver(options: BenchOptions, product: &Product, floor: &Floor) -> Result<(), Box<dyn Error>> {
    let messages = if options.rounds == 1 { 500 } else { 5_000 };
    // Empties the queue first: messages accepted before do not count.
    product.app.run_until_idle().await?;
    let numbers = AtomicU64::new(1 << 40);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        floors.push(floor.deliver(messages).await?);
        let first = numbers.fetch_add(messages, Ordering::Relaxed);
        product.accept_all(first..first + messages, messaging_benches::message).await;
        let began = Instant::now();
        product.app.run_until_idle().await?;
        ours.push(rate(messages, began));
    }
    report("delivery into the sandbox", floors, ours);
    Ok(())
}

async fn contacts(options: BenchOptions, product: &Product, floor: &Floor) -> Result<(), Box<dyn Error>> {
    for (what, version) in [("new contacts, 4 callers", 0), ("changed contacts, 4 callers", 1)] {
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        let (at_floor, numbers) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        for _ in 0..options.rounds {
            let began = Instant::now();
            let mut done = 0;
            while began.elapsed() < options.turn {
                floor.upsert(at_floor.fetch_add(1, Ordering::Relaxed), version).await?;
                done += BATCH;
            }
            floors.push(rate(done, began));
            let target = product.clone();
            let one = move |n| {
                let target = target.clone();
                async move { assert_eq!(target.upsert(requests::contacts(n, version)).await, 0, "nothing is refused") }
            };
            ours.push(closed_loop(4, options.turn, &numbers, one).await * thousand());
        }
        report(what, floors, ours);
    }
    Ok(())
}

async fn events(options: BenchOptions, product: &Product, floor: &Floor) -> Result<(), Box<dyn Error>> {
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    let numbers = Arc::new(AtomicU64::new(1));
    for round in 0..=options.rounds as u64 {
        let began = Instant::now();
        let mut done = 0;
        while began.elapsed() < options.turn {
            floor.tell(done + round * 10_000_000).await?;
            done += BATCH;
        }
        floors.push(rate(done, began));
        let target = product.clone();
        let one = move |n| {
            let target = target.clone();
            async move {
                let body = requests::events(EventsOf::Known, n, target.app.now());
                assert_eq!(target.tell(body).await, 0, "nothing is refused");
            }
        };
        ours.push(closed_loop(4, options.turn, &numbers, one).await * thousand());
    }
    // In the first round most contacts are made by their first event.
    report("events, 4 callers", floors.split_off(1), ours.split_off(1));
    Ok(())
}

async fn import(options: BenchOptions, product: &Product, floor: &Floor) -> Result<(), Box<dyn Error>> {
    let rows = if options.rounds == 1 { 2_000 } else { 100_000 };
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for round in 0..options.rounds as u64 {
        let text = file((1 << 32) + round * rows, rows);
        let began = Instant::now();
        floor.import(&text).await?;
        floors.push(rate(rows, began));
        let uploaded = product.upload(text.as_bytes()).await?;
        let began = Instant::now();
        product.app.run_until_idle().await?;
        ours.push(rate(rows, began));
        let import = product.look(uploaded.import_id).await?;
        assert_eq!((import.status, import.failed), (ImportStatus::Completed, 0), "nothing is refused");
    }
    report("import of new contacts", floors, ours);
    Ok(())
}

async fn segments(
    options: BenchOptions,
    product: &Product,
    floor: &Floor,
    database: &Client,
) -> Result<(), Box<dyn Error>> {
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    let filter = json!({"and": [
        {"type": "attribute", "key": "plan", "op": "eq", "value": "pro"},
        {"type": "attribute", "key": "visits", "op": "gte", "value": 50},
    ]});
    let contacts: i64 = database.query_one("SELECT count(*) FROM contacts", &[]).await?.get(0);
    for round in 0..options.rounds {
        floors.push(floor.calculate().await?);
        let segment = json!({"name": format!("bench {round}"), "kind": "dynamic", "filter": filter});
        product.call::<CreateSegment>(None, &segment).await?;
        let began = Instant::now();
        product.app.run_until_idle().await?;
        ours.push(rate(contacts.unsigned_abs(), began));
    }
    report("contacts of a segment's first calculation", floors, ours);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(rows: u64, began: Instant) -> f64 {
    rows as f64 / began.elapsed().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a thousand")]
const fn thousand() -> f64 {
    BATCH as f64
}

/// A file of contacts from a number on.
fn file(from: u64, rows: u64) -> String {
    let row = |n: u64| {
        let (name, visits) = (n % 1000, n % 100);
        format!("user-{n:012}@example.test,ext-{n:012},Name{name},\"Sur, name\",pro,Berlin,{visits},+1555{n:010}\n")
    };
    let head = "email,external_id,attributes.first_name,attributes.last_name,attributes.plan,attributes.city,\
                attributes.visits,phone\n";
    std::iter::once(head.to_owned()).chain((from..from + rows).map(row)).collect()
}

/// A message that is to be stored, and who waits for it.
type PendingMessage = (String, Bytes, oneshot::Sender<()>);

/// The least work that storing the same rows takes: bare tokio-postgres.
struct Floor {
    client: Client,
    acceptor: mpsc::Sender<PendingMessage>,
    upsert: Statement,
    tell: Statement,
}

impl Floor {
    async fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let client = connect_floor(url).await?;
        client
            .batch_execute(
                "CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status smallint NOT NULL,
                     recipient text NOT NULL, request bytea NOT NULL);
                 CREATE INDEX due ON messages (id) WHERE status = 0;
                 CREATE TABLE jobs (id bigint PRIMARY KEY, due_at bigint NOT NULL, payload bytea NOT NULL);
                 CREATE INDEX by_time ON jobs (due_at);
                 CREATE TABLE contacts (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL,
                     external_id text UNIQUE, email text UNIQUE, phone text, attributes jsonb NOT NULL, tags text NOT NULL,
                     locale text, tz text, created_at bigint NOT NULL, updated_at bigint NOT NULL);
                 CREATE TABLE members (list bigint NOT NULL, contact bigint NOT NULL, PRIMARY KEY (list, contact));
                 CREATE TABLE events (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bigint NOT NULL,
                     contact bigint NOT NULL, at bigint NOT NULL, properties text NOT NULL);
                 CREATE INDEX by_contact ON events (contact, name, at);
                 CREATE TEMPORARY TABLE staging (email text, external_id text, phone text, attributes jsonb);",
            )
            .await?;
        let upsert = client
            .prepare(
                "INSERT INTO contacts (id, external_id, email, phone, attributes, tags, locale, tz, created_at, updated_at)
                 SELECT u.id, u.external_id, u.email, u.phone, u.attributes::jsonb, '[\"newsletter\",\"beta\"]', 'en',
                     'Europe/Berlin', 1, 1
                 FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])
                     AS u (id, external_id, email, phone, attributes)
                 ON CONFLICT (email) DO UPDATE SET external_id = excluded.external_id, phone = excluded.phone,
                     attributes = contacts.attributes || excluded.attributes, tags = excluded.tags,
                     updated_at = excluded.updated_at",
            )
            .await?;
        let tell = client
            .prepare(
                "INSERT INTO events (name, contact, at, properties)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])",
            )
            .await?;
        let (acceptor, waiting) = mpsc::channel(4096);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..2 {
            let client = connect_floor(url).await?;
            let waiting = Arc::clone(&waiting);
            tokio::spawn(async move { store_all(&client, &waiting).await.expect("the floor stores") });
        }
        Ok(Self { client, acceptor, upsert, tell })
    }

    /// Rows read and deleted, a second.
    async fn deliver(&self, rows: u64) -> Result<f64, Box<dyn Error>> {
        let sql =
            "INSERT INTO jobs SELECT n, n, decode(repeat('00', 100), 'hex') FROM generate_series(1, $1::bigint) AS n";
        self.client.execute(sql, &[&rows.cast_signed()]).await?;
        let began = Instant::now();
        let read = self.client.prepare("SELECT id, due_at, payload FROM jobs ORDER BY due_at LIMIT $1").await?;
        let delete = self.client.prepare("DELETE FROM jobs WHERE id = ANY ($1)").await?;
        loop {
            let found = self.client.query(&read, &[&CLAIMED]).await?;
            if found.is_empty() {
                return Ok(rate(rows, began));
            }
            let ids: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
            self.client.execute(&delete, &[&ids]).await?;
        }
    }

    /// Stores a thousand contacts.
    async fn upsert(&self, n: u64, version: u64) -> Result<(), Box<dyn Error>> {
        let rows = || n * BATCH..(n + 1) * BATCH;
        let ids: Vec<Uuid> = rows().map(|n| Uuid::from_u128(n.into())).collect();
        let text = |of: &dyn Fn(u64) -> String| rows().map(of).collect::<Vec<_>>();
        let attributes = text(&|n| {
            let visits = n % 100 + version;
            format!(
                r#"{{"first_name":"Alex","last_name":"Doe","plan":"pro","visits":{visits},"city":"Berlin","ltv":129.5}}"#
            )
        });
        let external_ids = text(&|n| format!("ext-{n:012}"));
        let emails = text(&|n| format!("user-{n:012}@example.test"));
        let phones = text(&|n| format!("+1555{n:09}"));
        self.client.execute(&self.upsert, &[&ids, &external_ids, &emails, &phones, &attributes]).await?;
        Ok(())
    }

    /// Stores a thousand events from a number on.
    async fn tell(&self, from: u64) -> Result<(), Box<dyn Error>> {
        let number = |of: &dyn Fn(u64) -> u64| (from..from + BATCH).map(|n| of(n).cast_signed()).collect::<Vec<_>>();
        let names = number(&|n| n % EVENT_NAMES);
        let contacts = number(&requests::somebody);
        let times = number(&|n| 1_769_850_900_000 + n);
        let properties: Vec<_> = (from..from + BATCH).map(requests::properties).collect();
        self.client.execute(&self.tell, &[&names, &contacts, &times, &properties]).await?;
        Ok(())
    }

    /// Parses a file, copies it to the server, and stores its rows, ten thousand to a transaction.
    async fn import(&self, text: &str) -> Result<(), Box<dyn Error>> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let mut records = reader.records();
        loop {
            let mut writer = csv::Writer::from_writer(Vec::new());
            let mut rows = 0;
            for record in records.by_ref().take(10_000) {
                let record = record?;
                let attributes = json!({"first_name": &record[2], "last_name": &record[3], "plan": &record[4],
                    "city": &record[5], "visits": record[6].parse::<i64>()?});
                writer.write_record([&record[0], &record[1], &record[7], &attributes.to_string()])?;
                rows += 1;
            }
            if rows == 0 {
                return Ok(());
            }
            self.client.batch_execute("BEGIN; TRUNCATE staging").await?;
            let sink = self.client.copy_in::<_, Bytes>("COPY staging FROM STDIN (FORMAT csv)").await?;
            let mut sink = std::pin::pin!(sink);
            sink.send(writer.into_inner()?.into()).await?;
            sink.close().await?;
            self.client
                .batch_execute(
                    "INSERT INTO contacts (id, external_id, email, phone, attributes, tags, created_at, updated_at)
                     SELECT gen_random_uuid(), external_id, email, phone, attributes, '[]', 1, 1 FROM staging
                     ON CONFLICT (email) DO UPDATE SET external_id = excluded.external_id, phone = excluded.phone,
                         attributes = contacts.attributes || excluded.attributes, updated_at = excluded.updated_at;
                     COMMIT",
                )
                .await?;
        }
    }

    /// Contacts a second that one statement looks at.
    async fn calculate(&self) -> Result<f64, Box<dyn Error>> {
        self.client.batch_execute("TRUNCATE members").await?;
        let count: i64 = self.client.query_one("SELECT count(*) FROM contacts", &[]).await?.get(0);
        let began = Instant::now();
        self.client
            .batch_execute(
                "INSERT INTO members SELECT 1, n FROM contacts
                 WHERE attributes->>'plan' = 'pro' AND (attributes->>'visits')::numeric >= 50",
            )
            .await?;
        Ok(rate(count.unsigned_abs(), began))
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Connects to the same database; the floor has tables of its own.
async fn connect_floor(url: &str) -> Result<Client, tokio_postgres::Error> {
    let client = connect(url).await?;
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS floor; SET search_path = floor").await?;
    Ok(client)
}

/// Parses a request and returns when its row is on disk.
async fn accept_bare(acceptor: &mpsc::Sender<PendingMessage>, body: Bytes) {
    let input: MessageInput = serde_json::from_slice(&body).expect("a request");
    let (done, committed) = oneshot::channel();
    acceptor.send((input.to.unwrap_or_default(), body, done)).await.expect("the floor runs");
    committed.await.expect("the floor stores");
}

/// Stores waiting messages, up to a bound in one transaction, which is one round trip.
async fn store_all(
    client: &Client,
    waiting: &Mutex<mpsc::Receiver<PendingMessage>>,
) -> Result<(), tokio_postgres::Error> {
    let begin = client.prepare("BEGIN").await?;
    let insert = client
        .prepare("INSERT INTO messages (status, recipient, request) SELECT 0, * FROM unnest($1::text[], $2::bytea[])")
        .await?;
    let commit = client.prepare("COMMIT").await?;
    loop {
        let mut batch = Vec::with_capacity(ACCEPTED);
        if waiting.lock().await.recv_many(&mut batch, ACCEPTED).await == 0 {
            return Ok(());
        }
        let (mut recipients, mut requests, mut callers) = (Vec::new(), Vec::new(), Vec::new());
        for (recipient, request, caller) in batch {
            recipients.push(recipient);
            requests.push(request.to_vec());
            callers.push(caller);
        }
        let row: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&recipients, &requests];
        tokio::try_join!(client.execute(&begin, &[]), client.execute(&insert, &row), client.execute(&commit, &[]))?;
        for caller in callers {
            let _ = caller.send(());
        }
    }
}
