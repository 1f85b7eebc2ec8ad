//! What every store must do, on PostgreSQL.
//!
//! The tests start a server of their own from Debian's packages, or whatever `PG_BIN` or `PATH` leads to. Without one they
//! say so and pass, unless `REQUIRE_POSTGRES` is set.

pub(crate) mod cluster;
mod fencing;

use std::sync::Arc;

use messaging_store::PostgresStore;
use messaging_store::conformance::{Opened, Twice};

use self::cluster::Database;

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
    messaging_store::conformance_tests!(super::super::open);
}

mod two_handles {
    messaging_store::conformance_tests!(super::super::open_two_handles);
}

messaging_store::race_tests!(super::open_twice);
