//! The store of a test: SQLite in a directory, or PostgreSQL where `TEST_STORE=postgres` asks for it.
//!
//! Some tests cannot pass on PostgreSQL, and `.ci/run` leaves them out: those that read the files of SQLite, that open
//! very many databases, or whose clock stands still while a job waits because another transaction is open.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use messaging_conformance::cluster::Database;
use messaging_conformance::fresh_file::FreshFile;
use messaging_core::ports::Store;
use messaging_store::{PostgresStore, SqliteOptions, SqliteStore};
use rusqlite::types::ValueRef;
use tokio::runtime::Runtime;

/// File in the directory of a test with the URL of its database, if that is on PostgreSQL.
const URL: &str = "postgres.url";

/// Runtime of the stores on PostgreSQL: it outlives the runtimes of the tests that open them.
static TASKS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The database that tests on SQLite begin with.
static FRESH: FreshFile = FreshFile::new();

/// Returns true if the tests run on PostgreSQL.
pub(crate) fn is_postgres() -> bool {
    std::env::var_os("TEST_STORE").is_some_and(|name| name == "postgres")
}

/// A fresh database. If it is `temporary`, it does not sync to disk.
pub(crate) fn open(directory: &Path, temporary: bool) -> Arc<dyn Store> {
    if is_postgres() {
        let database = std::thread::spawn(|| TASKS.block_on(Database::create())).join().unwrap();
        let database = database.expect("TEST_STORE=postgres needs a PostgreSQL server to start");
        std::fs::write(directory.join(URL), &database.url).unwrap();
        return std::thread::spawn(move || TASKS.block_on(open_postgres(&database))).join().unwrap();
    }
    let mut options = SqliteOptions::new(directory.join("messaging.db"));
    options.temporary = temporary;
    if !options.path.exists() {
        FRESH.put_at(&options.path, |path| drop(SqliteStore::open(SqliteOptions::new(path)).unwrap()));
    }
    Arc::new(SqliteStore::open(options).unwrap())
}

/// The rows of a table of the database that was opened in a directory, each as the text of its columns, in the form in
/// which the database stores them.
pub(crate) fn rows(directory: &Path, table: &'static str) -> Vec<String> {
    if is_postgres() {
        let database = Database { url: std::fs::read_to_string(directory.join(URL)).unwrap() };
        return std::thread::spawn(move || TASKS.block_on(database.rows(table))).join().unwrap();
    }
    let database = rusqlite::Connection::open(directory.join("messaging.db")).unwrap();
    let mut statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let mut text = String::new();
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
                other => write!(text, "{other:?}").unwrap(),
            }
            text.push('\t');
        }
        Ok(text)
    };
    statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

async fn open_postgres(database: &Database) -> Arc<dyn Store> {
    let mut options = database.options();
    // The clock of a test stands still until the test moves it.
    options.follows_clock = false;
    Arc::new(PostgresStore::open(options).await.unwrap())
}
