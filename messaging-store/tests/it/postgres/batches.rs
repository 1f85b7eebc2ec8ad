//! Commits that wait together: one transaction, one round trip, and each its own outcome.

use futures_util::future::join_all;
use messaging_conformance::cluster::Database;
use messaging_conformance::sample;
use messaging_core::changes::{Changes, LogEvent, Write};
use messaging_core::domain::message::EventKind;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store as _;
use messaging_core::ports::store::{CommitError, Messages as _, Priority};
use messaging_store::PostgresStore;

/// The writes of a commit that accepts a message.
fn accept(workspace: WorkspaceId, n: usize) -> Vec<Write> {
    let message = sample::bare_message(workspace);
    let event = sample::event(&message, EventKind::Queued, 10);
    let logged = LogEvent { workspace_id: workspace, message_id: message.id, at: event.at, event_id: event.id };
    vec![
        sample::insert(&message),
        Write::AppendEvent(Box::new(event)),
        Write::LogEvent(logged),
        sample::enqueue(&format!("email:d{}.example", n % 5), 0),
        Write::Remember(Box::new(sample::reply(&format!("key {n}"), 0, 100))),
    ]
}

async fn open() -> Option<PostgresStore> {
    let database = Database::create().await?;
    Some(PostgresStore::open(database.options()).await.unwrap())
}

async fn commit_all(store: &PostgresStore, all: Vec<Vec<Write>>) -> Vec<Result<(), CommitError>> {
    let commit = |writes| store.commit(Changes::from_iter::<Vec<Write>>(writes), Priority::Foreground);
    join_all(all.into_iter().map(commit)).await
}

/// Transactions and round trips so far.
async fn counted(store: &PostgresStore) -> (u64, u64) {
    let cluster = store.cluster().await.unwrap().unwrap();
    (cluster.transactions, cluster.round_trips)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_takes_one_round_trip_for_many_requests() {
    let Some(store) = open().await else { return };
    let workspace = sample::id();
    let first = commit_all(&store, vec![accept(workspace, 0)]).await;
    assert!(first[0].is_ok(), "{first:?}");
    let before = counted(&store).await;
    let outcomes = commit_all(&store, (1..=512).map(|n| accept(workspace, n)).collect()).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let after = counted(&store).await;
    let (transactions, round_trips) = (after.0 - before.0, after.1 - before.1);
    assert_eq!(round_trips, transactions, "each transaction is one round trip");
    assert!(transactions < 64, "{transactions} transactions for 512 requests");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_refused_takes_nobody_with_it() {
    let Some(store) = open().await else { return };
    let workspace = sample::id();
    let mut all: Vec<_> = (0..100).map(|n| accept(workspace, n)).collect();
    // Two requests with one key: whichever comes second is refused, with all that it would have added.
    all.push(accept(workspace, 50));
    let mut messages = Vec::new();
    for writes in &all {
        let Some(Write::InsertMessage(message, _)) = writes.first() else { panic!("a message comes first") };
        messages.push(message.id);
    }
    let outcomes = commit_all(&store, all).await;
    let refused: Vec<_> = (0..outcomes.len()).filter(|n| outcomes[*n].is_err()).collect();
    assert!(refused == [50] || refused == [100], "{outcomes:?}");
    for (n, id) in messages.into_iter().enumerate() {
        let found = store.message(workspace, id).await.unwrap();
        assert_eq!(found.is_some(), !refused.contains(&n), "{n}");
        let events = store.message_events(workspace, id, 9).await.unwrap().len();
        assert_eq!(events, usize::from(found.is_some()), "{n}");
    }
    store.close().await;
}
