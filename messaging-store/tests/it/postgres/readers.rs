//! A program of one version, on a database of another.

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
    migrate(&database, 1).await;
    // Of the older version: one that was there before, and one that starts.
    let started = PostgresStore::open(database.options()).await.unwrap();
    for store in [&running, &started] {
        let user = sample::user();
        put(store, [Write::put(user.clone(), Expect::Absent)]).await;
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

/// Before the first release there were many migrations, which are one now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_before_the_first_release_is_refused_and_left_alone() {
    let Some(database) = Database::create().await else { return };
    let client = connect(&database).await;
    client
        .batch_execute(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE users (id uuid);
             CREATE TABLE refinery_schema_history (version int4 PRIMARY KEY, name text, applied_on text, checksum text);
             INSERT INTO refinery_schema_history VALUES (1, 'start', 'now', '1')",
        )
        .await
        .unwrap();
    for later in ["SELECT 1", "INSERT INTO refinery_schema_history VALUES (77, 'later', 'now', '1')"] {
        client.batch_execute(later).await.unwrap();
        let refused = PostgresStore::open(database.options()).await.unwrap_err();
        assert!(matches!(refused, OpenError::BeforeFirstRelease), "{refused}");
    }
    let count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 2);
}
