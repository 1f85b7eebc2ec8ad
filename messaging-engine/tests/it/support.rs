//! A whole product without its edges.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::dkim::Algorithm;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::Store as _;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::store::Priority;
use messaging_core::time::Timestamp;
use messaging_engine::ops::attempts::ListAttempts;
use messaging_engine::ops::messages::{GetMessage, MessagePath, MessageReport, SendMessage};
use messaging_engine::ops::{Endpoint, Operation, Request};
use messaging_engine::{App, Caller, Error, SecretKey, admin};
use messaging_store::{SqliteOptions, SqliteStore};
use messaging_transport::testing::{MemoryFetch, MemoryTransport};
use serde_json::Value;

/// The key of every database here.
pub(crate) const KEY: SecretKey = SecretKey::from_bytes([3; 32]);

/// A workspace that sends email through a [`MemoryTransport`], and its surroundings.
pub(crate) struct Product {
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) transport: Arc<MemoryTransport>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) caller: Caller,
    directory: tempfile::TempDir,
}

/// When every test begins: a Saturday morning.
pub(crate) fn beginning() -> Timestamp {
    "2026-01-31T09:15:00Z".parse().unwrap()
}

impl Product {
    pub(crate) async fn start() -> Self {
        Self::with(MemoryTransport::default()).await
    }

    pub(crate) async fn with(transport: MemoryTransport) -> Self {
        let transport = Arc::new(transport);
        Self::build(Arc::clone(&transport), transport, Arc::new(MemoryFetch::default())).await
    }

    /// A product that calls web addresses with `fetch`.
    pub(crate) async fn calling(fetch: Arc<dyn Fetch>) -> Self {
        let transport = Arc::new(MemoryTransport::default());
        Self::build(Arc::clone(&transport), transport, fetch).await
    }

    /// A product whose email is carried by something else; its `transport` sees nothing.
    pub(crate) async fn carried_by(carrier: Arc<dyn Transport>) -> Self {
        Self::build(Arc::default(), carrier, Arc::new(MemoryFetch::default())).await
    }

    async fn build(transport: Arc<MemoryTransport>, carrier: Arc<dyn Transport>, fetch: Arc<dyn Fetch>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(SqliteOptions::new(directory.path().join("m.db"))).unwrap());
        let clock = Arc::new(ManualClock::new(beginning()));
        let app = App::builder(Arc::clone(&store) as _, KEY)
            .clock(Arc::clone(&clock) as _)
            .entropy(Arc::new(SeededEntropy::new(7)))
            .transport(Channel::Email, "sandbox", carrier)
            // Retries come exactly when the schedule says.
            .settings(messaging_engine::Settings { message_retry_jitter: 0, ..messaging_engine::Settings::default() })
            .fetch(fetch)
            .build()
            .await
            .unwrap();
        let workspace = prepare(&app).await;
        let caller = Caller::Operator(Some(workspace));
        Self { app, clock, transport, store, workspace, caller, directory }
    }

    /// Where the database is.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Calls `POST /messages` as a front end does.
    pub(crate) async fn post(&self, body: &Value, key: Option<&str>) -> Result<(Value, bool), Error> {
        self.post_as(&self.app, body, key, false).await
    }

    /// The same through another process, such as [`Product::beside`].
    pub(crate) async fn post_through(
        &self,
        app: &App,
        body: &Value,
        key: Option<&str>,
    ) -> Result<(Value, bool), Error> {
        self.post_as(app, body, key, false).await
    }

    async fn post_as(&self, app: &App, body: &Value, key: Option<&str>, lenient: bool) -> Result<(Value, bool), Error> {
        let admitted = app.admit(self.caller.clone(), Endpoint::row::<SendMessage>(), &[], None).await?;
        let request = Request {
            path: SendMessage::PATH,
            body: body.to_string().into_bytes().into(),
            idempotency_key: key.map(str::as_bytes),
            lenient,
            ..Request::default()
        };
        let answer = admitted.run(request).await?;
        Ok((serde_json::from_slice(&answer.body).unwrap(), answer.replayed))
    }

    /// Another process on the same database.
    pub(crate) async fn beside(&self) -> App {
        self.beside_calling(Arc::new(MemoryFetch::default())).await
    }

    /// The same, which calls web addresses with `fetch`.
    pub(crate) async fn beside_calling(&self, fetch: Arc<dyn Fetch>) -> App {
        App::builder(Arc::clone(&self.store) as _, KEY)
            .clock(Arc::clone(&self.clock) as _)
            .entropy(Arc::new(SeededEntropy::new(8)))
            .transport(Channel::Email, "sandbox", Arc::clone(&self.transport) as _)
            .fetch(fetch)
            .build()
            .await
            .unwrap()
    }

    /// Sends a message and answers its id.
    pub(crate) async fn send(&self, body: &Value) -> MessageId {
        let (answer, _) = self.post(body, None).await.unwrap();
        answer["message_id"].as_str().unwrap().parse().unwrap()
    }

    /// Sends a message as with `Prefer: handling=lenient` and answers its id.
    pub(crate) async fn send_leniently(&self, body: &Value) -> MessageId {
        let (answer, _) = self.post_as(&self.app, body, None, true).await.unwrap();
        answer["message_id"].as_str().unwrap().parse().unwrap()
    }

    /// Sends a plain email.
    pub(crate) async fn send_to(&self, to: &str) -> MessageId {
        self.send(&serde_json::json!({"channel": "email", "to": to, "subject": "s", "text": "t"})).await
    }

    pub(crate) async fn report(&self, id: MessageId) -> MessageReport {
        let path = MessagePath { id };
        self.app.run(GetMessage).path(path).by(&self.caller).await.unwrap()
    }

    /// What `GET /messages/{id}/attempts` answers a key with these scopes.
    pub(crate) async fn attempts(&self, id: MessageId, scopes: &str) -> Value {
        let scopes: Vec<_> = scopes.split(',').collect();
        let input = serde_json::from_value(serde_json::json!({"name": "attempts", "scopes": scopes})).unwrap();
        let key = admin::create_key(&self.app, self.workspace, &input).await.unwrap();
        let caller = self.app.authenticate(key.key.unwrap().expose()).await.unwrap();
        let path = MessagePath { id };
        let page = self.app.run(ListAttempts).path(path).by(&caller).await.unwrap();
        serde_json::to_value(page).unwrap()
    }

    /// `delivered: Queued Sent Delivered`
    pub(crate) async fn story(&self, id: MessageId) -> String {
        let report = self.report(id).await;
        let events: Vec<_> = report.events.iter().map(|event| format!("{:?}", event.kind)).collect();
        format!("{}: {}", report.status.as_str(), events.join(" "))
    }

    /// The `meta` of the last event.
    pub(crate) async fn last_meta(&self, id: MessageId) -> Value {
        Value::Object(self.report(id).await.events.pop().unwrap().meta)
    }

    pub(crate) async fn work(&self) {
        self.app.run_until_idle().await.unwrap();
    }

    pub(crate) async fn pass(&self, span: Duration) {
        self.clock.advance(span);
        self.work().await;
    }

    pub(crate) async fn commit(&self, changes: Changes) {
        self.store.commit(changes, Priority::Foreground).await.unwrap();
    }
}

/// What `messaging dev` sets up, without what takes long: no password, and no RSA key.
async fn prepare(app: &App) -> WorkspaceId {
    admin::create_user(app, "owner@acme.com", None, None).await.unwrap();
    let workspace = admin::create_workspace(app, "Acme", "owner@acme.com").await.unwrap().id;
    admin::prepare_sandbox(app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
    workspace
}
