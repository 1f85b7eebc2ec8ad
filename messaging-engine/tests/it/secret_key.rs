//! A database is used with its own secret key, and mail that cannot be signed waits.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::mail::sending_domain::DkimKey;
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::store::Priority;
use messaging_engine::vault::{KeyRefused, Vault};
use messaging_engine::{App, KeyRing, SecretKey};
use messaging_store::key_file;
use messaging_store::{SqliteOptions, SqliteStore};

use crate::bed::KEY;
use crate::support::Product;

const OTHER: SecretKey = SecretKey::from_bytes([4; 32]);

fn open(directory: &std::path::Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::new(directory.join("messaging.db"))).unwrap())
}

async fn build(store: &Arc<SqliteStore>, key: impl Into<KeyRing>) -> Result<App, KeyRefused> {
    App::builder(Arc::clone(store) as _, key).build().await
}

#[tokio::test]
async fn a_database_is_opened_with_its_first_key_only() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    build(&store, KEY).await.unwrap();
    assert!(matches!(build(&store, OTHER).await, Err(KeyRefused::WrongKey)));
    build(&store, KEY).await.unwrap();
}

#[tokio::test]
async fn of_two_programs_that_begin_one_decides_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let (one, other) = tokio::join!(build(&store, KEY), build(&store, OTHER));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

#[tokio::test]
async fn a_key_file_is_made_for_a_new_database_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret.key");
    let store = open(directory.path());
    let key = key_file::open_or_create(&path, store.as_ref()).await.unwrap();
    build(&store, key.clone()).await.unwrap();
    assert_eq!(key_file::open_or_create(&path, store.as_ref()).await.unwrap(), key);
    std::fs::remove_file(&path).unwrap();
    let missing = key_file::open_or_create(&path, store.as_ref()).await.unwrap_err();
    assert!(missing.to_string().contains("restore the file from the backup"), "{missing}");
    assert!(!path.exists());
}

/// Seals the keys of the product's domain with a key that this server does not have.
async fn exchange_keys(product: &Product) {
    let other = Vault::new(OTHER.as_bytes());
    for stored in product.app.sending_domains(product.workspace).await.unwrap().iter() {
        let stored = product.store.domain_by_name(product.workspace, &stored.domain).await.unwrap().unwrap();
        let mut domain = stored.record;
        for key in &mut domain.dkim {
            let place = DkimKey::place(domain.id, &key.selector);
            key.sealed = other.seal(&place, "not a key of this server", &SystemEntropy::default());
        }
        let write = Write::put(domain, Expect::Revision(stored.revision));
        product.store.commit(Changes::from_iter([write]), Priority::Foreground).await.unwrap();
    }
    // The cached domains expire after a second.
    product.clock.advance(Duration::from_secs(2));
}

#[tokio::test]
async fn mail_that_cannot_be_signed_is_put_off_and_says_why() {
    let product = Product::start().await;
    exchange_keys(&product).await;
    let id = product.send_to("ann@example.com").await;
    product.work().await;
    let report = product.report(id).await;
    assert_eq!(report.status, MessageStatus::Deferred);
    let event = report.events.last().unwrap();
    assert_eq!(event.kind, EventKind::Deferred);
    let reason = event.meta["response"].as_str().unwrap();
    assert!(reason.contains("DKIM key"), "{reason}");
    assert_eq!(product.transport.sent().len(), 0, "nothing leaves unsigned");

    // When it stays so, the message has failed: that says nothing about its recipient.
    for _ in 0..80 {
        product.pass(Duration::from_hours(1)).await;
    }
    let report = product.report(id).await;
    assert_eq!(report.status, MessageStatus::Failed);
    let event = report.events.last().unwrap();
    assert_eq!((event.kind, &event.meta["reason"]), (EventKind::Failed, &"provider_error".into()));
    assert!(report.events.iter().all(|event| event.kind != EventKind::Bounce));
    assert_eq!(product.transport.sent().len(), 0);
}
