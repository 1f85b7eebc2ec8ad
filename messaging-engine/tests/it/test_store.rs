//! The store of a test: SQLite in a directory, or PostgreSQL where `TEST_STORE=postgres` asks for it.
//!
//! On PostgreSQL some tests cannot pass, and `.ci/run` leaves them out: those that look into the files of SQLite, that open very
//! many databases, or whose clock stands still where a job looks again after a moment because another transaction is open.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use messaging_conformance::cluster::Database;
use messaging_conformance::fresh_file::FreshFile;
use messaging_core::ports::Store;
use messaging_store::{PostgresStore, SqliteOptions, SqliteStore};
use tokio::runtime::Runtime;

/// The tasks of stores on PostgreSQL outlive the runtime of whoever opens one.
static TASKS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The database that tests on SQLite begin with.
static FRESH: FreshFile = FreshFile::new();

/// Whether the tests run on PostgreSQL.
pub(crate) fn is_postgres() -> bool {
    std::env::var_os("TEST_STORE").is_some_and(|name| name == "postgres")
}

/// A fresh database. One that is `temporary` waits for no disk.
pub(crate) fn open(directory: &Path, temporary: bool) -> Arc<dyn Store> {
    if is_postgres() {
        return std::thread::spawn(|| TASKS.block_on(open_postgres())).join().unwrap();
    }
    let mut options = SqliteOptions::new(directory.join("messaging.db"));
    options.temporary = temporary;
    if !options.path.exists() {
        FRESH.put_at(&options.path, |path| drop(SqliteStore::open(SqliteOptions::new(path)).unwrap()));
    }
    Arc::new(SqliteStore::open(options).unwrap())
}

async fn open_postgres() -> Arc<dyn Store> {
    let database = Database::create().await.expect("TEST_STORE=postgres needs a PostgreSQL server to start");
    let mut options = database.options();
    // The clock of a test stands still until the test moves it.
    options.follows_clock = false;
    Arc::new(PostgresStore::open(options).await.unwrap())
}
