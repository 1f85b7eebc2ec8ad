//! Claims begin to read where the last one found something. What is dated before that is found all the same.

use messaging_conformance::cluster::Database;
use messaging_conformance::put;
use messaging_conformance::sample::{claim, enqueue, finish, monotonic};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::Jobs as _;
use messaging_core::ports::store::jobs::Claim;
use messaging_store::PostgresStore;

use super::connect;

const HOUR: i64 = 3_600_000;
const NOW: i64 = 100 * HOUR;

/// A claim at a time, so many milliseconds after the beginning of the monotonic clock.
fn claim_at(now: i64, since_beginning: i64) -> Claim {
    Claim { monotonic: monotonic(since_beginning), ..claim(now) }
}

/// The lanes of what is claimed, all of which is done at once.
async fn work(store: &PostgresStore, claim: Claim) -> Vec<String> {
    let claimed = store.claim(claim).await.unwrap();
    let mut lanes: Vec<_> = claimed.iter().map(|job| job.handle.lane.as_str().to_owned()).collect();
    lanes.sort();
    if !claimed.is_empty() {
        put(store, finish(&claimed)).await;
    }
    lanes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_dated_long_ago_is_found_at_once_where_it_was_dated() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    put(&store, [enqueue("t/a/x", NOW), enqueue("b/a/y", NOW)]).await;
    assert_eq!(work(&store, claim_at(NOW, 0)).await, ["b/a/y", "t/a/x"]);
    assert_eq!(work(&store, claim_at(NOW + 1, 1)).await, [""; 0]);
    put(&store, [enqueue("t/a/x", NOW - HOUR), enqueue("b/a/y", NOW - 9_000)]).await;
    assert_eq!(work(&store, claim_at(NOW + 2, 2)).await, ["b/a/y", "t/a/x"]);
    // Nor does a clock that is set back hide anything.
    put(&store, [enqueue("t/a/x", NOW - 2 * HOUR)]).await;
    assert_eq!(work(&store, claim_at(NOW - HOUR, 3)).await, ["t/a/x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_dates_long_ago_is_found_within_a_minute() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    let mut beside = database.options();
    beside.works = false;
    let other = PostgresStore::open(beside).await.unwrap();
    assert_eq!(work(&store, claim_at(NOW, 0)).await, [""; 0]);
    put(&other, [enqueue("t/a/x", NOW - 9_000)]).await;
    assert_eq!(work(&store, claim_at(NOW, 1)).await, ["t/a/x"], "what is committed late is not passed over");
    put(&other, [enqueue("t/a/x", NOW - HOUR)]).await;
    assert_eq!(work(&store, claim_at(NOW + 60_000, 60_000)).await, ["t/a/x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_comes_from_another_process_is_read_from_its_beginning() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    assert_eq!(work(&store, claim_at(NOW, 0)).await, [""; 0]);
    let client = connect(&database).await;
    let term: i64 = client.query_one("SELECT max(term) FROM places", &[]).await.unwrap().get(0);
    client.batch_execute("UPDATE places SET term = -1").await.unwrap();
    assert_eq!(work(&store, claim_at(NOW + 1, 1)).await, [""; 0]);
    // Whoever had it meanwhile has left this.
    client.execute("UPDATE places SET term = $1", &[&term]).await.unwrap();
    let mut beside = database.options();
    beside.works = false;
    let other = PostgresStore::open(beside).await.unwrap();
    put(&other, [enqueue("t/a/x", NOW - HOUR)]).await;
    assert_eq!(work(&store, claim_at(NOW + 2, 2)).await, ["t/a/x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_that_is_left_alone_holds_its_place_back() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    put(&store, [enqueue("t/a/x", NOW - HOUR), enqueue("t/a/y", NOW)]).await;
    let held = |now, until| {
        let claim = claim_at(now, now - NOW);
        let hold = vec![(messaging_core::domain::delivery::lane::Lane::parse("t/a/x"), monotonic(until))];
        Claim { hold, ..claim }
    };
    assert_eq!(work(&store, held(NOW, 30_000)).await, ["t/a/y"]);
    assert_eq!(work(&store, held(NOW + 1, 30_000)).await, [""; 0]);
    assert_eq!(work(&store, held(NOW + 30_000, 30_000)).await, ["t/a/x"]);
    store.close().await;
}
