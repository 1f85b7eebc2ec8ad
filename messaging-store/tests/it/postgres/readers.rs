//! A program of one version, on a database of another.

use messaging_conformance::cluster::Database;
use messaging_conformance::{put, sample};
use messaging_core::changes::{Expect, Write};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::Accounts as _;
use messaging_store::{OpenError, PostgresOptions, PostgresStore, PostgresUrl};

use super::connect;

/// Changes a database as a newer version does: adds a column, and sets the oldest migration that programs must know.
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
    // Programs of the older version: one that was open before, and one that starts.
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

/// All connections of the store end statements after five seconds and waits for locks after four.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_schema_may_take_long_and_other_programs_wait_for_it() {
    let Some(database) = Database::create().await else { return };
    // The first statement that creates a table takes longer than that.
    let slow = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE SEQUENCE public.turns;
        CREATE FUNCTION take_long() RETURNS event_trigger LANGUAGE plpgsql AS
            $$ BEGIN IF nextval('public.turns') = 1 THEN PERFORM pg_sleep(6); END IF; END $$;
        CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION take_long()";
    connect(&database).await.batch_execute(slow).await.unwrap();
    let (one, other) = tokio::join!(PostgresStore::open(database.options()), PostgresStore::open(database.options()));
    for store in [one.unwrap(), other.unwrap()] {
        assert!(store.user(sample::user().id).await.unwrap().is_none());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_a_session_holds_is_named_as_the_cause() {
    let Some(database) = Database::create().await else { return };
    let client = connect(&database).await;
    client.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    client.batch_execute("BEGIN; CREATE TABLE refinery_schema_history (version int4)").await.unwrap();
    let refused = PostgresStore::open(database.options()).await.unwrap_err();
    assert!(refused.to_string().contains("another session has a table locked"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_store_every_text_is_refused() {
    let Some(database) = Database::create().await else { return };
    let name = database.url.split(['/', '?']).nth(3).unwrap();
    let (ascii, make) = (format!("{name}_ascii"), connect(&database).await);
    let sql = format!("CREATE DATABASE {ascii} ENCODING 'SQL_ASCII' TEMPLATE template0");
    make.batch_execute(&sql).await.unwrap();
    let options = PostgresOptions::new(PostgresUrl::parse(&database.url.replace(name, &ascii)).unwrap());
    let refused = PostgresStore::open(options).await.unwrap_err();
    assert!(matches!(&refused, OpenError::Encoding(found) if found == "SQL_ASCII"), "{refused}");
    assert!(refused.to_string().contains("createdb --encoding UTF8"), "{refused}");
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
