//! Temporary: the cases of PostgreSQL alone, so that they compile quickly while the store is made.
#![allow(dead_code, unused_imports, missing_docs)]
#[path = "it/postgres/cluster.rs"]
mod cluster;
use cluster::Database;
use messaging_store::PostgresStore;
use messaging_store::conformance::{Opened, Twice};
use std::sync::Arc;

async fn open() -> Option<Opened> {
    let database = Database::create().await?;
    let store = PostgresStore::open(database.options()).await.unwrap();
    Some(Opened { store: Arc::new(store), keep: Box::new(database) })
}
async fn open_twice() -> Option<Twice> {
    let database = Database::create().await?;
    let first = PostgresStore::open(database.options()).await.unwrap();
    let second = PostgresStore::open(database.options()).await.unwrap();
    Some(Twice { first: Arc::new(first), second: Arc::new(second), claims: false, keep: Box::new(database) })
}
async fn open_two_handles() -> Option<Opened> {
    Some(open_twice().await?.alternating())
}

// Put your modules and cases here (copy them from conformance_tests! in src/conformance.rs), for both:
mod one_handle {
    messaging_store::conformance_tests! { super::super::open;
        accounts: users_round_trip, email_is_unique, sessions_begin_and_end, sessions_are_listed_by_user,
            tickets_are_taken_once, the_operator_lists_everybody, memberships_list_both_ways, owners_are_counted,
            listings_are_exact_while_rows_are_inserted, other_workspaces_are_not_there;
    }
}
mod two_handles {
    messaging_store::conformance_tests! { super::super::open_two_handles;
        accounts: users_round_trip, email_is_unique, sessions_begin_and_end, sessions_are_listed_by_user,
            tickets_are_taken_once, the_operator_lists_everybody, memberships_list_both_ways, owners_are_counted,
            listings_are_exact_while_rows_are_inserted, other_workspaces_are_not_there;
    }
}
