//! A workspace that sends messages, and the states and events of its messages.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{self, Changes, Expect, Write};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::Transport;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::resolver::NoResolver;
use messaging_core::ports::store::Priority;
use messaging_engine::ops::attempts::ListAttempts;
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, SetChannel};
use messaging_engine::ops::messages::{GetMessage, MessagePath, MessageReport, SendMessage};
use messaging_engine::ops::{Endpoint, Operation, Request};
use messaging_engine::{App, Caller, Error, admin};
use messaging_testing::{MemoryFetch, MemoryTransport};
use serde_json::Value;

use crate::bed::{Bed, START};

/// A workspace that sends email through a [`MemoryTransport`], on its test bed.
pub(crate) struct Product {
    pub(crate) bed: Bed,
    pub(crate) transport: Arc<MemoryTransport>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) caller: Caller,
}

impl Deref for Product {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // The recorded messages refer to the application, which has the transport: the store would stay open.
        self.transport.take();
    }
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

    /// A product whose email is sent by another transport; its `transport` sees nothing.
    pub(crate) async fn carried_by(carrier: Arc<dyn Transport>) -> Self {
        Self::build(Arc::default(), carrier, Arc::new(MemoryFetch::default())).await
    }

    /// Like `carried_by`, with a database that does not sync to disk.
    pub(crate) async fn carried_undurably_by(carrier: Arc<dyn Transport>) -> Self {
        Self::build_on(Arc::default(), carrier, Arc::new(MemoryFetch::default()), true).await
    }

    /// A product whose database does not sync to disk, that calls web addresses with `fetch`.
    pub(crate) async fn undurable(fetch: Arc<dyn Fetch>) -> Self {
        let transport = Arc::new(MemoryTransport::default());
        Self::build_on(Arc::clone(&transport), transport, fetch, true).await
    }

    async fn build(transport: Arc<MemoryTransport>, carrier: Arc<dyn Transport>, fetch: Arc<dyn Fetch>) -> Self {
        Self::build_on(transport, carrier, fetch, false).await
    }

    async fn build_on(
        transport: Arc<MemoryTransport>,
        carrier: Arc<dyn Transport>,
        fetch: Arc<dyn Fetch>,
        temporary: bool,
    ) -> Self {
        let transports = Channel::ALL.map(|channel| (channel, "sandbox", Arc::clone(&carrier))).to_vec();
        let bed = Bed::build_on(Arc::new(NoResolver), fetch, transports, temporary);
        admin::create_user(&bed.app, "owner@acme.com", None, None).await.unwrap();
        let workspace = admin::create_workspace(&bed.app, "Acme", "owner@acme.com").await.unwrap().id;
        admin::prepare_sandbox(&bed.app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
        Self { bed, transport, workspace, caller: Caller::Operator(Some(workspace)) }
    }

    /// Sends the messages of every channel through the transport.
    pub(crate) async fn on_every_channel(self) -> Self {
        for channel in Channel::ALL {
            let path = ChannelPath { workspace_id: self.workspace, channel };
            let input = ChannelInput::new("sandbox");
            self.app.run(SetChannel).path(path).body(input).by(&self.caller).await.unwrap();
        }
        self
    }

    /// Calls `POST /messages` as a front end does.
    pub(crate) async fn post_message(&self, body: &Value, key: Option<&str>) -> Result<(Value, bool), Error> {
        self.post_as(&self.app, body, key, false).await
    }

    /// Calls `POST /messages` of another process, such as [`Bed::another_process`].
    pub(crate) async fn post_message_through(
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

    /// Sends a message and returns its id.
    pub(crate) async fn send(&self, body: &Value) -> MessageId {
        let (answer, _) = self.post_message(body, None).await.unwrap();
        answer["message_id"].as_str().unwrap().parse().unwrap()
    }

    /// Sends a message as with `Prefer: handling=lenient` and returns its id.
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

    /// The answer of `GET /messages/{id}/attempts` to a key with these scopes.
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

    /// The write that puts an address on the suppression list.
    pub(crate) fn suppression(&self, address: &str, reason: SuppressionReason) -> Write {
        let record = Suppression {
            id: self.app.new_id(START),
            workspace_id: self.workspace,
            channel: Channel::Email,
            address: address.to_owned(),
            reason,
            detail: None,
            source: SuppressionSource::Api,
            created_at: START,
        };
        Write::PutSuppression(record, Expect::Absent)
    }

    pub(crate) async fn commit(&self, changes: Changes) {
        self.store.commit(changes, Priority::Foreground).await.unwrap();
    }

    /// Changes the state of a message without the knowledge of its workers; returns its earlier state.
    pub(crate) async fn move_message(&self, id: MessageId, status: MessageStatus) -> MessageStatus {
        let before = self.store.message(self.workspace, id).await.unwrap().unwrap();
        self.commit(changes::moves(&before, &before.moved(status, START), None, START).into_iter().collect()).await;
        before.status
    }
}
