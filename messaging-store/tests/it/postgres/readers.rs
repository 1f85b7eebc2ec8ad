//! A program of an older version, on a database that a newer one has migrated.

use messaging_conformance::cluster::Database;
use messaging_conformance::{put, sample};
use messaging_core::changes::{Expect, Write};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::Accounts as _;
use messaging_store::{OpenError, PostgresStore};

use super::connect;

/// What a newer version does to a database: adds, and says from which migration on programs may work with it.
async fn migrate(database: &Database, oldest: i64) {
    let newer = format!(
        "ALTER TABLE users ADD COLUMN added text NOT NULL DEFAULT 'later';
         INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (9999, 'later', 'now', '1');
         UPDATE schema_compatibility SET oldest_reader = {oldest}"
    );
    connect(database).await.batch_execute(&newer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_replaced_one_by_one_and_can_go_back() {
    let Some(database) = Database::create().await else { return };
    let running = PostgresStore::open(database.options()).await.unwrap();
    migrate(&database, 52).await;
    // Of the older version: one that was there before, and one that starts.
    let started = PostgresStore::open(database.options()).await.unwrap();
    for store in [&running, &started] {
        let user = sample::user();
        put(store, [Write::PutUser(user.clone(), Expect::Absent)]).await;
        assert_eq!(store.user(user.id).await.unwrap().unwrap().record, user);
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_too_old_is_not_let_in() {
    let Some(database) = Database::create().await else { return };
    migrate(&database, 9999).await;
    let refused = PostgresStore::open(database.options()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 9999, .. }), "{refused}");
}
