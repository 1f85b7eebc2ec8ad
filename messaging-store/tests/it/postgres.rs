//! Tests of the store on PostgreSQL.
//!
//! The tests start a server of their own from Debian's packages, or from `PG_BIN` or `PATH`. Without one they say so
//! and pass, unless `REQUIRE_POSTGRES` is set.

mod batches;
mod bucket_server;
mod buckets;
mod canceled;
mod claims;
mod copies;
mod fencing;
mod log;
mod readers;
mod silence;
mod unanswered;

use std::sync::Arc;

use messaging_conformance::{Opened, OpenedPort, Twice};
use messaging_core::ports::store::Taking;
use messaging_core::ports::{BlobStore, Uploads};
use messaging_store::PostgresStore;

use messaging_conformance::cluster::Database;
use tokio_postgres::{Client, NoTls};

/// Connects for statements that no store makes.
pub(crate) async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn open() -> Option<Opened> {
    let database = Database::create().await?;
    let store = PostgresStore::open(database.options()).await.unwrap();
    Some(Opened { store: Arc::new(store), keep: Box::new(database) })
}

/// A server, and a program that works beside it and does no jobs.
async fn open_twice() -> Option<Twice> {
    let database = Database::create().await?;
    let first = PostgresStore::open(database.options()).await.unwrap();
    let mut beside = database.options();
    beside.works = false;
    let second = PostgresStore::open(beside).await.unwrap();
    Some(Twice { first: Arc::new(first), second: Arc::new(second), claims: false, keep: Box::new(database) })
}

async fn open_two_handles() -> Option<Opened> {
    Some(open_twice().await?.alternating())
}

mod one_handle {
    messaging_conformance::conformance_tests!(super::super::open);
}

mod two_handles {
    messaging_conformance::conformance_tests!(super::super::open_two_handles);
}

messaging_conformance::race_tests!(super::open_twice);

async fn open_blobs() -> Option<OpenedPort<dyn BlobStore>> {
    let opened = open().await?;
    Some(OpenedPort { port: opened.store.blobs(), keep: Box::new(opened) })
}

async fn open_uploads() -> Option<OpenedPort<dyn Uploads>> {
    let opened = open().await?;
    Some(OpenedPort { port: opened.store.uploads(), keep: Box::new(opened) })
}

messaging_conformance::blob_conformance_tests!(super::open_blobs);
messaging_conformance::upload_conformance_tests!(super::open_uploads);

#[tokio::test]
async fn nodes_hear_what_others_took() {
    let Some(Twice { first, second, keep, .. }) = open_twice().await else { return };
    let [one, other] = [first.shared_limits().unwrap(), second.shared_limits().unwrap()];
    let taking = |bucket: u8, tokens| Taking { bucket: [bucket; 16], limit: 600, tokens };
    assert_eq!(one.exchange(&[taking(1, 3), taking(2, 1)]).await.unwrap(), []);
    let mut heard = other.exchange(&[taking(1, 5)]).await.unwrap();
    heard.sort_by_key(|taking| taking.bucket);
    assert_eq!(heard, [taking(1, 3), taking(2, 1)]);
    assert_eq!(one.exchange(&[taking(1, 4)]).await.unwrap(), [taking(1, 5)]);
    assert_eq!(other.exchange(&[]).await.unwrap(), [taking(1, 4)], "what was heard is not heard again");
    assert_eq!(one.exchange(&[]).await.unwrap(), []);
    drop(keep);
}
