//! Round trips to PostgreSQL: one for an accepted message, and few for many deliveries.
//!
//! The store counts them; statements are prepared before.

use std::sync::Arc;

use bytes::Bytes;
use messaging_conformance::cluster::Database;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;
use messaging_core::ports::clock::ManualClock;
use messaging_engine::ops::messages::SendMessage;
use messaging_engine::ops::{Endpoint, Operation as _, Request};
use messaging_engine::{App, Caller, admin};
use messaging_store::PostgresStore;
use messaging_transport::Sandbox;
use serde_json::json;

use crate::bed::{KEY, START};

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
        let key = format!("key-{n}");
        let request = Request {
            path: SendMessage::PATH,
            body: Bytes::from(body.to_string()),
            idempotency_key: Some(key.as_bytes()),
            ..Request::default()
        };
        admitted.run(request).await.unwrap();
    }
}

#[tokio::test]
async fn accepting_a_message_is_one_round_trip() {
    let Some(product) = Product::start().await else { return };
    // Fills caches, and prepares statements on all connections.
    for n in 0..50 {
        product.accept(n).await;
    }
    let mut counts = Vec::new();
    for n in 50..90 {
        let before = product.store.round_trips();
        product.accept(n).await;
        counts.push(product.store.round_trips() - before);
    }
    // Higher counts include lookups whose cached results had expired.
    assert_eq!(counts.iter().min(), Some(&1), "a message that comes alone: {counts:?}");
    product.store.close().await;
}

#[tokio::test]
async fn delivering_many_messages_takes_few_round_trips() {
    const MESSAGES: u64 = 500;
    let Some(product) = Product::start().await else { return };
    // Fills caches, and prepares statements on all connections.
    for n in 0..10 {
        product.accept(n).await;
    }
    product.app.run_until_idle().await.unwrap();
    for n in 10..10 + MESSAGES {
        product.accept(n).await;
    }
    let before = product.store.round_trips();
    product.app.run_until_idle().await.unwrap();
    let took = product.store.round_trips() - before;
    // One for ten messages: one commit has the outcomes of the messages that ended at the same moment.
    assert!(took <= MESSAGES / 10, "{took} for {MESSAGES} messages");
    product.store.close().await;
}
