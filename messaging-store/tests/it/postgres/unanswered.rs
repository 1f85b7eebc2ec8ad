//! A server that is away is told apart from one that refuses us: the first is waited for when a server starts.

use messaging_conformance::cluster::Database;
use messaging_store::{OpenError, PostgresOptions, PostgresStore, PostgresUrl};
use tokio::net::TcpListener;

async fn open(url: &str) -> OpenError {
    PostgresStore::open(PostgresOptions::new(PostgresUrl::parse(url).unwrap())).await.unwrap_err()
}

#[tokio::test]
async fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = open(&format!("postgres://messaging@127.0.0.1:{port}/messaging")).await;
    assert!(matches!(error, OpenError::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn the_connection_is_closed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hanging_up = tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(connection);
        }
    });
    let error = open(&format!("postgres://messaging@127.0.0.1:{port}/messaging?sslmode=disable")).await;
    assert!(matches!(error, OpenError::NoAnswer { .. }), "{error:?}");
    hanging_up.abort();
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_waited_for() {
    let Some(database) = Database::create().await else { return };
    let error = open(&database.url.replace("/test_", "/no_such_")).await;
    assert!(matches!(error, OpenError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("createdb"), "{error}");
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_named_as_such() {
    let Some(database) = Database::create().await else { return };
    let name = database.url.split(['/', '?']).nth(3).unwrap();
    let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    super::connect(&database).await.batch_execute(&sql).await.unwrap();
    let error = open(&database.url).await;
    assert!(error.to_string().contains("standby or read-only"), "{error:?}");
}
