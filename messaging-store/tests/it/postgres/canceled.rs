//! A statement that was canceled, as one is that takes too long.

use std::sync::Arc;

use messaging_conformance::cluster::Database;
use messaging_conformance::sample::user;
use messaging_core::ports::Store as _;
use messaging_core::ports::store::{Accounts as _, StoreError};
use messaging_store::PostgresStore;

use super::connect;

/// The database answers, and would answer the same when it is asked again: that is no outage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_statement_has_failed() {
    let Some(database) = Database::create().await else { return };
    let store = Arc::new(PostgresStore::open(database.options()).await.unwrap());
    let (holder, canceler) = (connect(&database).await, connect(&database).await);
    holder.batch_execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let asking = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.user(user().id).await }
    });
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while canceler.query(cancel, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let outcome = asking.await.unwrap();
    assert!(matches!(outcome, Err(StoreError::Failed(_))), "{outcome:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    store.close().await;
}
