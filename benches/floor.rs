//! The least that durable acceptance costs: parse, commit in a group, answer.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use messaging_core::domain::message::message_input::MessageInput;
use rusqlite::{Connection, params};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Commits that may wait.
const QUEUE: usize = 8192;
/// Rows in one commit.
const BATCH: usize = 512;

/// Opens the database of a floor that writes many rows at a time, and makes its tables.
pub fn database(path: &Path, tables: &str) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "journal_mode", "wal")?;
    database.pragma_update(None, "synchronous", "full")?;
    database.pragma_update(None, "wal_autocheckpoint", 4000)?;
    database.pragma_update(None, "cache_size", -64 * 1024)?;
    database.execute_batch(tables)?;
    Ok(database)
}

/// The tables of a floor that stores contacts: two unique indexes, and the members of a list.
pub const CONTACTS: &str = "
    CREATE TABLE contacts(n INTEGER PRIMARY KEY, id BLOB NOT NULL, external_id TEXT, email TEXT, phone TEXT,
        attributes TEXT NOT NULL, tags TEXT NOT NULL, locale TEXT, tz TEXT, consent INTEGER NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
    CREATE UNIQUE INDEX by_external_id ON contacts(external_id);
    CREATE UNIQUE INDEX by_email ON contacts(email);
    CREATE TABLE members(list INTEGER NOT NULL, contact INTEGER NOT NULL, PRIMARY KEY(list, contact)) WITHOUT ROWID;";

/// A writer thread with one table and one index.
#[derive(Debug, Clone)]
pub struct Floor(SyncSender<(String, Bytes, oneshot::Sender<()>)>);

impl Floor {
    /// Opens a database and starts its writer.
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        database.pragma_update(None, "journal_mode", "wal")?;
        database.pragma_update(None, "synchronous", "full")?;
        database.pragma_update(None, "wal_autocheckpoint", 4000)?;
        database.execute_batch(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, status INTEGER NOT NULL, recipient TEXT NOT NULL, request BLOB NOT NULL);
             CREATE INDEX due ON messages(id) WHERE status = 0;",
        )?;
        let (sender, receiver) = sync_channel(QUEUE);
        thread::spawn(move || write(&database, &receiver));
        Ok(Self(sender))
    }

    /// Parses a request and returns when its row is on disk.
    pub async fn accept(&self, body: Bytes) -> bool {
        let Ok(input) = serde_json::from_slice::<MessageInput>(&body) else { return false };
        let (done, committed) = oneshot::channel();
        // Fewer callers than places: never blocks.
        self.0.try_send((input.to.unwrap_or_default(), body, done)).is_ok() && committed.await.is_ok()
    }

    /// Answers `POST` on a listener until the runtime ends.
    pub async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let floor = self.clone();
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let floor = floor.clone();
                    async move {
                        let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
                        let accepted = match body {
                            Ok(body) => floor.accept(body).await,
                            Err(_) => false,
                        };
                        let status = if accepted { StatusCode::ACCEPTED } else { StatusCode::BAD_REQUEST };
                        Response::builder().status(status).body(Full::new(Bytes::from_static(b"{}")))
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .pipeline_flush(true)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }
}

fn write(database: &Connection, receiver: &Receiver<(String, Bytes, oneshot::Sender<()>)>) {
    let mut insert = database
        .prepare("INSERT INTO messages(status, recipient, request) VALUES(0, ?1, ?2)")
        .expect("the table exists");
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        while let (true, Ok(next)) = (batch.len() < BATCH, receiver.try_recv()) {
            batch.push(next);
        }
        database.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        for (recipient, request, _) in &batch {
            insert.execute(params![recipient, &request[..]]).expect("the row is new");
        }
        database.execute_batch("COMMIT").expect("the disk has room");
        for (_, _, done) in batch {
            let _ = done.send(());
        }
    }
}
