//! The tests of the store.

mod health;
mod ownership;
mod sqlite;

mod conformance {
    //! What every store must do, on SQLite.

    use std::future::{Ready, ready};
    use std::sync::Arc;

    use messaging_store::conformance::Opened;
    use messaging_store::{SqliteOptions, SqliteStore};

    fn open() -> Ready<Opened> {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(SqliteOptions::new(directory.path().join("messaging.db"))).unwrap();
        ready(Opened { store: Arc::new(store), keep: Box::new(directory) })
    }

    messaging_store::conformance_tests!(super::open);
}
