//! One server works on a database, whatever path it came by.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use messaging_conformance::sample::{claim, enqueue, finish, user};
use messaging_conformance::{commit, put};
use messaging_core::changes::{Expect, Write};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::{Jobs as _, StoreError, StoreHealth};
use messaging_store::{OpenError, SqliteOptions, SqliteStore};

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(SqliteOptions::new(path))
}

#[test]
fn a_second_server_is_refused_by_whatever_path_it_comes() {
    let place = tempfile::tempdir().unwrap();
    let (data, database) = (place.path().join("data"), place.path().join("data/messaging.db"));
    let first = open(&database).unwrap();
    let (directory, file) = (place.path().join("link"), place.path().join("link.db"));
    symlink(&data, &directory).unwrap();
    symlink(&database, &file).unwrap();
    for path in [&database, &directory.join("messaging.db"), &file, &data.join("../data/messaging.db")] {
        let refused = open(path);
        assert!(matches!(refused, Err(OpenError::InUse)), "{}: {refused:?}", path.display());
    }
    drop(first);
    open(&file).unwrap();
}

#[tokio::test]
async fn a_server_that_was_passed_by_stops() {
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("messaging.db");
    let first = open(&database).unwrap();
    put(&first, [enqueue("lane", 0), enqueue("lane", 0)]).await;
    let claimed = first.claim(claim(0)).await.unwrap();
    assert_eq!(claimed.len(), 2);
    let mut health = first.watch_health();
    fs::remove_file(place.path().join("messaging.db.lock")).unwrap();
    let second = open(&database).unwrap();

    // What is in work there is not finished here any more, and nothing else is begun.
    assert!(matches!(first.claim(claim(0)).await, Err(StoreError::Unavailable)));
    assert_eq!(first.health(), StoreHealth::Displaced);
    tokio::time::timeout(Duration::from_secs(10), health.wait_for(|health| health.is_final())).await.unwrap().unwrap();
    assert!(commit(&first, finish(&claimed)).await.is_err());
    let refused = commit(&first, [Write::put(user(), Expect::Absent)]);
    assert!(refused.await.is_err());

    let again = second.claim(claim(0)).await.unwrap();
    assert_eq!(again.len(), 2);
    put(&second, finish(&again)).await;
    assert_eq!(second.health(), StoreHealth::Healthy);
    // It goes on as if it were alone, also when others write beside it.
    let beside = SqliteStore::open(SqliteOptions { exclusive: false, ..SqliteOptions::new(&database) }).unwrap();
    put(&beside, [enqueue("lane", 1)]).await;
    assert_eq!(second.claim(claim(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_commit_finds_out_as_well() {
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("messaging.db");
    let first = open(&database).unwrap();
    fs::remove_file(place.path().join("messaging.db.lock")).unwrap();
    let _second = open(&database).unwrap();
    let refused = commit(&first, [Write::put(user(), Expect::Absent)]);
    assert!(refused.await.is_err());
    assert_eq!(first.health(), StoreHealth::Displaced);
}
