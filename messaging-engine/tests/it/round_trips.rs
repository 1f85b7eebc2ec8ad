//! How often PostgreSQL is asked for a message: once to accept one, and together with others to deliver it.
//!
//! The clock stands still, so nothing that is remembered expires, and all tasks share one thread, so those that are ready
//! ask together. Counted is what the store counts; statements are prepared before.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use messaging_conformance::cluster::Database;
use messaging_conformance::first;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::clock::ManualClock;
use messaging_core::ports::store::{Jobs as _, Sandbox as _};
use messaging_engine::ops::messages::SendMessage;
use messaging_engine::ops::{Endpoint, Operation as _, Request};
use messaging_engine::{App, Caller, admin};
use messaging_store::PostgresStore;
use messaging_transport::Sandbox;
use serde_json::json;

use crate::bed::{KEY, START};

/// Messages that wait, all to one domain.
const QUEUED: u64 = 2_000;

/// An application on a database of its own, whose email goes into the sandbox.
struct Product {
    app: App,
    store: Arc<PostgresStore>,
    workspace: WorkspaceId,
}

impl Product {
    async fn start() -> Option<Self> {
        let database = Database::create().await?;
        let mut options = database.options();
        options.follows_clock = false;
        let store = Arc::new(PostgresStore::open(options).await.unwrap());
        let app = App::builder(Arc::clone(&store) as Arc<dyn Store>, KEY)
            .clock(Arc::new(ManualClock::new(START)))
            .transport(Channel::Email, "sandbox", Arc::new(Sandbox::default()))
            .build()
            .await
            .unwrap();
        admin::create_user(&app, "owner@sandbox.test", None, None).await.unwrap();
        let workspace = admin::create_workspace(&app, "Trips", "owner@sandbox.test").await.unwrap().id;
        admin::prepare_sandbox(&app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
        Some(Self { app, store, workspace })
    }

    async fn accept(&self, n: u64) {
        let body = json!({
            "channel": "email", "to": format!("user-{n}@example.test"), "from_email": "orders@sandbox.test",
            "subject": "Your order", "text": "Thank you.",
        });
        let caller = Caller::Operator(Some(self.workspace));
        let admitted = self.app.admit(caller, Endpoint::row::<SendMessage>(), &[], None).await.unwrap();
        let key = format!("key {n}");
        let request = Request {
            path: SendMessage::PATH,
            body: Bytes::from(body.to_string()),
            idempotency_key: Some(key.as_bytes()),
            ..Request::default()
        };
        admitted.run(request).await.unwrap();
    }

    async fn accept_all(&self, numbers: std::ops::Range<u64>) {
        join_all(numbers.map(|n| self.accept(n))).await;
    }
}

#[tokio::test]
async fn accepting_a_message_is_one_round_trip_and_delivering_it_a_tenth() {
    let Some(product) = Product::start().await else { return };
    // What is looked up once, and statements on their connections.
    product.accept_all(0..200).await;
    product.app.run_until_idle().await.unwrap();
    product.accept(QUEUED).await;

    let before = product.store.round_trips();
    for n in 200..220 {
        product.accept(n).await;
    }
    assert_eq!(product.store.round_trips() - before, 20, "a message that comes alone");
    let before = product.store.round_trips();
    product.accept_all(220..QUEUED).await;
    let accepting = product.store.round_trips() - before;
    assert!(accepting * 10 <= QUEUED, "{accepting} round trips for messages that come together");

    let before = product.store.round_trips();
    product.app.run_until_idle().await.unwrap();
    let delivering = product.store.round_trips() - before;
    assert!(!product.store.captures(product.workspace, first(1)).await.unwrap().items.is_empty());
    assert!(!product.store.queues(1).await.unwrap().sums.contains_key("email"), "all messages are delivered");
    assert!(delivering * 10 <= QUEUED, "{delivering} round trips to deliver {QUEUED} messages");
    product.store.close().await;
}
