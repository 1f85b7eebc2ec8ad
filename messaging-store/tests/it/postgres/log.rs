//! The log of events beside transactions that are open, and after a failover.

use messaging_conformance::cluster::Database;
use messaging_conformance::{put, sample};
use messaging_core::changes::{LogEvent, Write};
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::store::EventLog as _;
use messaging_store::PostgresStore;

use super::connect;

async fn open(database: &Database) -> PostgresStore {
    PostgresStore::open(database.options()).await.unwrap()
}

/// Logs an event of a message.
async fn log(store: &dyn Store, message: &Message) -> MessageEvent {
    let event = sample::event(message, EventKind::Open, 10);
    let entry =
        LogEvent { workspace_id: event.workspace_id, message_id: event.message_id, at: event.at, event_id: event.id };
    put(store, [Write::AppendEvent(Box::new(event.clone())), Write::LogEvent(entry)]).await;
    event
}

async fn logged(store: &dyn Store, workspace: WorkspaceId) -> Vec<MessageEvent> {
    let found = store.events_after(workspace, None, 9).await.unwrap();
    found.into_iter().map(|(_, event, _)| event).collect()
}

/// An entry written after an older transaction began is read once that has ended; a transaction of another database
/// keeps nothing back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_wait_for_older_transactions_of_their_database() {
    let (Some(database), Some(foreign)) = (Database::create().await, Database::create().await) else { return };
    let store = open(&database).await;
    let message = sample::bare_message(sample::id());
    let workspace = message.workspace_id;
    put(&store, [sample::insert(&message)]).await;
    let (older, elsewhere) = (connect(&database).await, connect(&foreign).await);
    for client in [&older, &elsewhere] {
        client.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    }
    let event = log(&store, &message).await;
    assert_eq!(logged(&store, workspace).await, []);
    let end = store.log_position(workspace, sample::at(11)).await.unwrap();
    older.batch_execute("COMMIT").await.unwrap();
    assert_eq!(logged(&store, workspace).await, [event]);
    assert_eq!(store.events_after(workspace, Some(end), 9).await.unwrap().len(), 1, "it may have come after the older");
    let end = store.log_position(workspace, sample::at(11)).await.unwrap();
    assert_eq!(store.events_after(workspace, Some(end), 9).await.unwrap(), []);
    elsewhere.batch_execute("COMMIT").await.unwrap();
    store.close().await;
}

/// An entry on another timeline comes after everything before it, although its transactions have lower numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_era_begins_with_another_timeline() {
    let Some(database) = Database::create().await else { return };
    let before = open(&database).await;
    let message = sample::bare_message(sample::id());
    let workspace = message.workspace_id;
    put(&before, [sample::insert(&message)]).await;
    let first = log(&before, &message).await;
    let promote = "UPDATE event_log SET xid = xid + 1000000; UPDATE log_era SET timeline = 'of the old primary'";
    connect(&database).await.batch_execute(promote).await.unwrap();
    let after = open(&database).await;
    let second = log(&after, &message).await;
    assert_eq!(logged(&after, workspace).await, [first, second.clone()]);
    let place = after.events_after(workspace, None, 1).await.unwrap()[0].0;
    let rest = after.events_after(workspace, Some(place), 9).await.unwrap();
    assert_eq!(rest.into_iter().map(|(_, event, _)| event).collect::<Vec<_>>(), [second]);
    let beginning = after.log_position(workspace, sample::at(10)).await.unwrap();
    assert_eq!(after.events_after(workspace, Some(beginning), 9).await.unwrap().len(), 2);
    before.close().await;
    after.close().await;
}
