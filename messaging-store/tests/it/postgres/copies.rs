//! A database that was restored from a copy lets nothing out; a promoted standby is no copy.

use messaging_conformance::cluster::Database;
use messaging_conformance::{put, sample};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::installation::fence::FenceState;
use messaging_core::ports::Store as _;
use messaging_core::ports::store::Installation as _;
use messaging_store::PostgresStore;

use super::connect;

/// Starts on a database and ends; the fence that was met.
async fn fence_at_start(database: &Database) -> Option<FenceState> {
    let store = PostgresStore::open(database.options()).await.unwrap();
    let fence = store.fence().await.unwrap();
    store.close().await;
    fence.map(|fence| fence.state)
}

/// Takes the fence down, as `messaging admin resume` does.
async fn resume(database: &Database) {
    let store = PostgresStore::open(database.options()).await.unwrap();
    let fence = store.fence().await.unwrap();
    put(&store, [Write::PutFence(None, fence)]).await;
    store.close().await;
}

async fn with_a_workspace() -> Option<Database> {
    let database = Database::create().await?;
    let store = PostgresStore::open(database.options()).await.unwrap();
    put(&store, [Write::put(sample::workspace(), Expect::Absent)]).await;
    store.close().await;
    Some(database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_copy_is_fenced_until_somebody_says_otherwise() {
    let Some(database) = with_a_workspace().await else { return };
    let copy = database.copy().await;
    assert_eq!(fence_at_start(&database).await, None);
    assert_eq!(fence_at_start(&copy).await, Some(FenceState::Held));
    assert_eq!(fence_at_start(&copy).await, Some(FenceState::Held), "a second start changes nothing");

    resume(&copy).await;
    assert_eq!(fence_at_start(&copy).await, None, "from then on it is an installation of its own");
    assert_eq!(fence_at_start(&copy.copy().await).await, Some(FenceState::Held), "a copy of the copy is one too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_another_cluster_is_fenced_and_a_promoted_standby_is_not() {
    let Some(database) = with_a_workspace().await else { return };
    // Another timeline of the same cluster, then another cluster.
    let promoted = "UPDATE log_era SET timeline = split_part(timeline, '/', 1) || '/FFFFFFFF'";
    connect(&database).await.batch_execute(promoted).await.unwrap();
    assert_eq!(fence_at_start(&database).await, None);
    let elsewhere = "UPDATE log_era SET timeline = '1/00000001', database = '1/' || split_part(database, '/', 2)";
    connect(&database).await.batch_execute(elsewhere).await.unwrap();
    assert_eq!(fence_at_start(&database).await, Some(FenceState::Held));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_without_a_workspace_has_nothing_to_send_twice() {
    let Some(database) = Database::create().await else { return };
    assert_eq!(fence_at_start(&database).await, None);
    assert_eq!(fence_at_start(&database.copy().await).await, None);
}
