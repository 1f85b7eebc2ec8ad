//! A server that says nothing any more, as when its machine or the cable to it is gone: no packet tells of it.

use std::time::{Duration, Instant};

use messaging_conformance::cluster::Database;
use messaging_conformance::proxy::{Passage, Proxy, url};
use messaging_conformance::sample::{claim, enqueue, user};
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::{Accounts as _, CommitError, Jobs as _, Priority, StoreError, StoreHealth};
use messaging_store::{OpenError, PostgresOptions, PostgresStore, PostgresUrl};

/// Whatever is asked of a database that is cut off is answered within this.
const ANSWERED: Duration = Duration::from_secs(5);

/// After a standby was promoted everything goes on within this.
const GOES_ON: Duration = Duration::from_secs(30);

async fn open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(PostgresOptions::new(PostgresUrl::parse(url).unwrap())).await
}

async fn put_user(store: &PostgresStore) -> Result<(), CommitError> {
    let changes = Changes::from_iter([Write::put(user(), Expect::Absent), enqueue("lane", 0)]);
    store.commit(changes, Priority::Foreground).await
}

/// Commits, reads and claims until all of it succeeds; answers after how long.
async fn goes_on(store: &PostgresStore) -> Duration {
    let began = Instant::now();
    while put_user(store).await.is_err()
        || store.user(user().id).await.is_err()
        || store.claim(claim(0)).await.is_err()
        || store.health() != StoreHealth::Healthy
    {
        assert!(began.elapsed() < GOES_ON, "nothing goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

async fn check_failover(passage: Passage) {
    let Some(database) = Database::create().await else { return };
    let primary = Proxy::start(&database, Duration::ZERO);
    let standby = Proxy::start(&database, Duration::ZERO);
    standby.set(Passage::Refused).await;
    let store = open(&url(&database, &[&primary, &standby])).await.unwrap();
    goes_on(&store).await;
    primary.set(passage).await;
    // Connections are in use when it happens.
    assert!(put_user(&store).await.is_err());
    standby.set(Passage::Open).await;
    let took = goes_on(&store).await;
    assert!(took < GOES_ON, "{took:?}");
    // Programs that are started now find their way as well.
    let another = open(&url(&database, &[&primary, &standby])).await.unwrap();
    tokio::join!(another.close(), store.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_elsewhere_when_a_primary_takes_connections_and_says_nothing() {
    check_failover(Passage::Silent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_elsewhere_when_a_primary_cannot_be_reached() {
    check_failover(Passage::Deaf).await;
}

async fn in_time<T>(what: &str, answer: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = answer.await;
    assert!(began.elapsed() < ANSWERED, "{what}: {:?}", began.elapsed());
    answer
}

/// Whoever asks hears in time that there is no answer, first over connections that were there, then over new ones; and
/// everything goes on when the cable is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_a_database_that_is_cut_off_hears_of_it_in_time() {
    let Some(database) = Database::create().await else { return };
    let proxy = Proxy::start(&database, Duration::ZERO);
    let store = open(&url(&database, &[&proxy])).await.unwrap();
    goes_on(&store).await;
    for passage in [Passage::Silent, Passage::Deaf] {
        proxy.set(passage).await;
        for has_connections in [true, false] {
            let (read, snapshot, ping, commit, claimed) = tokio::join!(
                in_time("a read", store.user(user().id)),
                in_time("several reads", store.cluster()),
                in_time("a ping", store.ping()),
                in_time("a commit", put_user(&store)),
                in_time("a claim", store.claim(claim(0))),
            );
            for outcome in [read.map(drop), snapshot.map(drop), ping, claimed.map(drop)] {
                assert!(matches!(outcome, Err(StoreError::Unavailable)), "{outcome:?}");
            }
            let Err(CommitError::Store(error)) = commit else { panic!("it cannot be committed: {commit:?}") };
            let is_unknown = matches!(error, StoreError::OutcomeUnknown) && has_connections;
            assert!(is_unknown || matches!(error, StoreError::Unavailable), "{error:?}, {has_connections}");
        }
        proxy.set(Passage::Open).await;
        let took = goes_on(&store).await;
        assert!(took < ANSWERED, "{took:?}");
    }
    store.close().await;
}

/// A program that is told of several hosts wants the one that takes writes, whether or not the URL says so.
#[tokio::test]
async fn a_host_that_takes_no_writes_is_not_the_one() {
    let Some(database) = Database::create().await else { return };
    let client = super::connect(&database).await;
    let name = database.url.split(['/', '?']).nth(3).unwrap();
    client.batch_execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await.unwrap();
    let (one, other) = (Proxy::start(&database, Duration::ZERO), Proxy::start(&database, Duration::ZERO));
    let error = open(&url(&database, &[&one, &other])).await.unwrap_err();
    assert!(matches!(error, OpenError::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_waited_for_when_a_program_starts() {
    let Some(database) = Database::create().await else { return };
    let proxy = Proxy::start(&database, Duration::ZERO);
    for passage in [Passage::Silent, Passage::Deaf] {
        proxy.set(passage).await;
        let error = open(&url(&database, &[&proxy])).await.unwrap_err();
        assert!(matches!(error, OpenError::NoAnswer { .. }), "{error:?}");
    }
}
