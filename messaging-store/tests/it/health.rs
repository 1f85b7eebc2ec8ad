//! A store that cannot be written for a while.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_conformance::sample::{at, bare_message, claim, enqueue, finish, id, insert, next_due};
use messaging_conformance::{commit, put};
use messaging_core::changes::{JobHandle, JobWrite, Write};
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ports::store::{CommitError, Jobs as _, Messages as _, Store as _, StoreError, StoreHealth};
use messaging_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

fn path(directory: &Path) -> std::path::PathBuf {
    directory.join("messaging.db")
}

async fn wait_for(store: &SqliteStore, wanted: impl Fn(StoreHealth) -> bool) {
    let mut health = store.watch_health();
    let waited = tokio::time::timeout(Duration::from_secs(20), health.wait_for(|health| wanted(*health)));
    waited.await.expect("the store does not change").unwrap();
}

#[track_caller]
fn is_unavailable(outcome: &Result<(), CommitError>) {
    assert!(matches!(outcome, Err(CommitError::Store(StoreError::Unavailable))), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_lock_is_answered_within_five_seconds_and_forgotten_when_it_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(path(place.path()))).unwrap());
    put(&*store, [enqueue("lane", 0)]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    let foreign = Connection::open(path(place.path())).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();

    let began = Instant::now();
    is_unavailable(&commit(&*store, [insert(&bare_message(id()))]).await);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(store.health(), StoreHealth::Locked);
    // From now on at once, and nothing is claimed.
    let began = Instant::now();
    for _ in 0..50 {
        is_unavailable(&commit(&*store, [insert(&bare_message(id()))]).await);
        is_unavailable(&commit(&*store, finish(&claimed)).await);
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    foreign.execute_batch("ROLLBACK").unwrap();
    wait_for(&store, StoreHealth::is_healthy).await;

    let message = bare_message(id());
    put(&*store, [insert(&message)]).await;
    // What was refused has left nothing, and the claim still holds.
    put(&*store, finish(&claimed)).await;
    assert_eq!(store.message(message.workspace_id, message.id).await.unwrap(), Some(message));
    assert_eq!(next_due(&*store).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_reserve_what_adds_is_refused_and_what_ends_is_not() {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(SqliteOptions::new(path(place.path()))).unwrap();
    let message = bare_message(id());
    put(&store, [insert(&message), enqueue("lane", 0)]).await;
    let free = store.gauges().disk_free_bytes.unwrap();
    store.close().await;

    let reserve = |bytes| SqliteOptions { disk_reserve: Some(bytes), ..SqliteOptions::new(path(place.path())) };
    let store = SqliteStore::open(reserve(free / 2 * 3)).unwrap();
    assert_eq!(store.health(), StoreHealth::BelowReserve);
    is_unavailable(&commit(&store, [insert(&bare_message(id()))]).await);
    let blob = MessageBlob { workspace_id: id(), message_id: id(), id: id() };
    let put_file = store.blobs().put_blob(blob, bytes::Bytes::from_static(b"x")).await;
    assert!(matches!(put_file, Err(StoreError::Unavailable)));
    let claimed = store.claim(claim(0)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    // What a job puts on record before something leaves, with what the record needs.
    let record = |handle: &JobHandle| Write::Job(JobWrite::Save(handle.clone(), bytes::Bytes::from_static(b"{}")));
    let link = Write::PutUrl(message.workspace_id, "https://example.com".to_owned());
    put(&store, [record(&claimed[0].handle), link]).await;
    put(&store, finish(&claimed)).await;
    assert_eq!(store.message(message.workspace_id, message.id).await.unwrap(), Some(message));
    store.close().await;
    assert_eq!(store.health(), StoreHealth::Closed);

    let store = SqliteStore::open(reserve(0)).unwrap();
    assert_eq!(store.health(), StoreHealth::Healthy);
    put(&store, [insert(&bare_message(id())), enqueue("lane", 5)]).await;
    assert_eq!(next_due(&store).await, Some(at(5)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_moved_when_a_long_reader_ends_although_nothing_is_written_any_more() {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(SqliteOptions::new(path(place.path()))).unwrap();
    let reader = Connection::open(path(place.path())).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
    reader.query_row("SELECT count(*) FROM messages", [], |_| Ok(())).unwrap();
    for _ in 0..20 {
        put(&store, [insert(&bare_message(id()))]).await;
    }
    let left = || {
        let look = Connection::open(path(place.path())).unwrap();
        look.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
            .unwrap()
    };
    // Long enough for the checkpoint that is held up by the reader.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(left() > 0, "the reader was to hold the log");
    reader.execute_batch("COMMIT").unwrap();
    let began = Instant::now();
    while left() > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "{} pages stay in the log", left());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
