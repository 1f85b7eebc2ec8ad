//! Databases of the releases: today's stores open each of them and read back what it holds.
//!
//! `tests/releases/README.md` says what the files are and when one is added.

mod records;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use messaging_conformance::cluster::Database;
use messaging_core::ports::Store as _;
use messaging_store::{PostgresStore, SqliteOptions, SqliteStore};
use rusqlite::Connection;

use self::records::Records;
use crate::postgres::connect;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases")
}

/// The file of what is being built, which no release has yet: written with `UPDATE=1` and compared otherwise.
fn compare(database: &str, text: &str) {
    let path = folder().join(format!("unreleased.{database}.sql"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let place = kept.lines().zip(text.lines()).position(|(kept, text)| kept != text);
    assert!(
        kept == text,
        "{} is not what this version writes, from line {} on: write it with UPDATE=1",
        path.display(),
        place.unwrap_or_else(|| kept.lines().count().min(text.lines().count())) + 1
    );
}

/// The files of all releases on a database, with their texts.
fn releases(database: &str) -> Vec<(PathBuf, String)> {
    let ending = format!(".{database}.sql");
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.to_str().unwrap().ends_with(&ending));
    paths.sort();
    assert!(!paths.is_empty(), "no release is kept for {database}");
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn sqlite(directory: &Path) -> SqliteOptions {
    SqliteOptions::new(directory.join("messaging.db"))
}

#[tokio::test]
async fn the_unreleased_file_is_what_sqlite_holds() {
    let place = tempfile::tempdir().unwrap();
    let options = sqlite(place.path());
    let store = SqliteStore::open(options.clone()).unwrap();
    Box::pin(Records::new().put_into(&store)).await;
    store.close().await;
    compare("sqlite", &text::of_sqlite(&Connection::open(options.path).unwrap()));
}

#[tokio::test]
async fn the_sqlite_databases_of_all_releases_are_opened() {
    for (path, text) in releases("sqlite") {
        let place = tempfile::tempdir().unwrap();
        let options = sqlite(place.path());
        Connection::open(&options.path).unwrap().execute_batch(&text).unwrap();
        let store = SqliteStore::open(options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Box::pin(Records::new().assert_in(&store, &path)).await;
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_unreleased_file_is_what_postgres_holds() {
    let Some(database) = Database::create().await else { return };
    let store = PostgresStore::open(database.options()).await.unwrap();
    Box::pin(Records::new().put_into(&store)).await;
    store.close().await;
    compare("postgres", &text::of_postgres(&connect(&database).await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_databases_of_all_releases_are_opened() {
    for (path, text) in releases("postgres") {
        let Some(database) = Database::create().await else { return };
        let client = connect(&database).await;
        client.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
        client.batch_execute(&text).await.unwrap();
        let store = PostgresStore::open(database.options()).await;
        let store = store.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Box::pin(Records::new().assert_in(&store, &path)).await;
        store.close().await;
    }
}
