//! State of the installation that no process owns: its name, its sweeps, and changes by other processes.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::security::account::Workspace;
use messaging_core::ports::Store as _;
use messaging_core::ports::clock::SeededEntropy;
use messaging_core::ports::store::{Accounts as _, Priority};
use messaging_core::ports::transport::Content;
use messaging_engine::work::Workers;
use messaging_engine::{App, Settings, Sweep, admin};
use messaging_store::{SqliteOptions, SqliteStore};
use messaging_testing::MemoryTransport;
use serde_json::json;

use crate::bed::KEY;
use crate::support::Product;

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn every_sweep_is_a_job_once_and_comes_again() {
    let product = Product::start().await;
    let email = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    let (first, _) = product.post_message(&email, Some("k")).await.unwrap();
    product.work().await;
    for app in [&product.app, &product.another_process(), &product.app] {
        app.prepare_to_work().await.unwrap();
    }
    let count = async || product.store.job_count().await.unwrap();
    assert_eq!(count().await, Sweep::ALL.len() as u64);
    // Whichever process works runs the sweeps when they are due.
    product.another_process().run_until_idle().await.unwrap();
    assert!(product.post_message(&email, Some("k")).await.unwrap().1, "it is kept for a day");
    product.clock.advance(DAY);
    product.work().await;
    assert_eq!(count().await, Sweep::ALL.len() as u64);
    let rows = rusqlite::Connection::open(product.directory.path().join("messaging.db")).unwrap();
    let left = rows.query_row("SELECT count(*) FROM replies", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(left, 0, "the reply was swept");
    let (second, replayed) = product.post_message(&email, Some("k")).await.unwrap();
    assert!(!replayed && second != first);
    product.work().await;
    let next = product.store.next_due(product.app.now(), product.app.monotonic()).await.unwrap().unwrap();
    assert!(next <= 2 * Settings::default().sweep_every, "{next:?}");
}

#[tokio::test]
async fn what_one_run_does_not_come_to_is_gone_on_with() {
    let product = Product::start().await;
    product.app.prepare_to_work().await.unwrap();
    let rows = rusqlite::Connection::open(product.directory.path().join("messaging.db")).unwrap();
    let left = || rows.query_row("SELECT count(*) FROM replies", [], |row| row.get::<_, i64>(0)).unwrap();
    // More rows than one run removes.
    rows.execute_batch(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100700)
         INSERT INTO replies (key, credential, route, created_at, expires_at, fingerprint, status, content_type, body)
         SELECT 'k' || n, x'00', 'r', 0, 1, x'00', 200, '', x'' FROM n",
    )
    .unwrap();
    product.pass(Duration::from_mins(2)).await;
    assert_eq!(left(), 700);
    product.pass(Duration::from_secs(1)).await;
    assert_eq!(left(), 0);
}

#[tokio::test]
async fn workers_see_to_the_sweeps_themselves() {
    let product = Product::start().await;
    let workers = Workers::start(&product.app, &tokio::runtime::Handle::current());
    let prepared = async {
        while product.store.job_count().await.unwrap() < Sweep::ALL.len() as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), prepared).await.expect("the sweeps become jobs");
    workers.stop().await;
}

/// A process with another host name, and its transport.
async fn process(product: &Product, hostname: &str) -> (App, Arc<MemoryTransport>) {
    let transport = Arc::new(MemoryTransport::default());
    let app = App::builder(Arc::clone(&product.store), KEY)
        .clock(Arc::clone(&product.clock) as _)
        .entropy(Arc::new(SeededEntropy::new(hostname.len() as u64)))
        .transport(messaging_core::domain::channel::Channel::Email, "sandbox", Arc::clone(&transport) as _)
        .settings(Settings::default().hostname(hostname))
        .build()
        .await
        .unwrap();
    (app, transport)
}

fn message_ids(transport: &MemoryTransport) -> Vec<String> {
    let id = |content: &Content| match content {
        Content::Email(email) => email.message_id.clone(),
        _ => String::new(),
    };
    transport.sent().iter().map(|sent| id(&sent.content)).collect()
}

#[tokio::test]
async fn a_message_has_one_id_whichever_machine_sends_it() {
    let product = Product::start().await;
    let (one, first) = process(&product, "one.example").await;
    let (two, second) = process(&product, "machine-two.example").await;
    one.prepare_to_work().await.unwrap();
    two.prepare_to_work().await.unwrap();
    let id = product.send_to("ann@example.com").await;
    one.run_until_idle().await.unwrap();
    let other = product.send_to("ben@example.com").await;
    two.run_until_idle().await.unwrap();
    assert_eq!(message_ids(&first), [format!("{id}@one.example")]);
    assert_eq!(message_ids(&second), [format!("{other}@one.example")]);
    // Another name, set on purpose.
    admin::set_installation_name(&two, "Mail.Example").await.unwrap();
    for bad in ["bad name", "vm", "localhost", "printer.local"] {
        admin::set_installation_name(&one, bad).await.unwrap_err();
    }
    let id = product.send_to("cat@example.com").await;
    two.run_until_idle().await.unwrap();
    assert_eq!(message_ids(&second)[1], format!("{id}@mail.example"));
}

/// The clock stands still, so that no cached value expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_program_changes_is_heard_of() {
    let product = Product::start().await;
    // On the runtime of the test, on which the applications hear of changes.
    let (server, _) = process(&product, "one.example").await;
    let (beside, _) = process(&product, "two.example").await;
    let options =
        SqliteOptions { exclusive: false, ..SqliteOptions::new(product.directory.path().join("messaging.db")) };
    let command = SqliteStore::open(options).unwrap();
    let name = async || server.workspace(product.workspace).await.unwrap().unwrap().name.clone();
    assert_eq!(name().await, "Acme");
    let stored = command.workspace(product.workspace).await.unwrap().unwrap();
    let renamed = Workspace { name: "Other".to_owned(), ..stored.record };
    let put = Write::put(renamed, Expect::Revision(stored.revision));
    command.commit(Changes::from_iter([put]), Priority::Foreground).await.unwrap();
    let heard = async {
        while name().await != "Other" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), heard).await.expect("the server hears of it");
    // Two applications over one handle hear of each other.
    assert_eq!(beside.workspace(product.workspace).await.unwrap().unwrap().name, "Other");
    let stored = product.store.workspace(product.workspace).await.unwrap().unwrap();
    let again = Workspace { name: "Third".to_owned(), ..stored.record };
    let put = Write::put(again, Expect::Revision(stored.revision));
    product.commit(Changes::from_iter([put])).await;
    let heard = async {
        while beside.workspace(product.workspace).await.unwrap().unwrap().name != "Third" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), heard).await.expect("the other one hears of it");
    command.close().await;
}
