//! Telegram, WhatsApp and Viber through the whole product: the real transports, fake providers, and their callbacks.

mod telegram;
mod viber;
mod whatsapp;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_core::ports::clock::{Clock, ManualClock};
use messaging_core::ports::resolver::NoResolver;
use messaging_core::time::{Monotonic, Timestamp};
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, ListChannels, SetChannel};
use messaging_engine::ops::{self, InWorkspace, Request};
use messaging_engine::services::callbacks::CallbackCall;
use messaging_engine::{App, Caller, Error, admin};
use messaging_testing::MemoryFetch;
use messaging_testing::fakes::{FakeAnswer, FakeApi, FakeCallback, FakeHttp, FakeProvider};
use messaging_transport::{Dns, GuardedFetch, Options, defaults};
use serde_json::{Value, json};

use crate::bed::{self, Bed, START};
use crate::support::Product;

/// The clock of a transport: sleeping advances the time.
#[derive(Debug)]
struct Hurried(ManualClock);

#[async_trait]
impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Monotonic {
        self.0.monotonic()
    }

    async fn sleep(&self, span: Duration) {
        self.0.advance(span);
    }
}

/// A product with one channel, whose provider is a fake.
struct Chat {
    product: Product,
    channel: Channel,
    fake: FakeProvider,
    /// Answers the check that the fake makes before it accepts a callback address: there is no server here.
    _door: FakeProvider,
    pace: Arc<Hurried>,
}

impl Deref for Chat {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Chat {
    async fn start(
        channel: Channel,
        provider: &'static str,
        api: impl FakeApi,
        settings: impl FnOnce(&str) -> Value,
    ) -> Self {
        let fake = FakeProvider::start(api).await.unwrap();
        let door = FakeProvider::start(FakeHttp::new(None)).await.unwrap();
        door.next_answer(FakeAnswer::text(200, "text/plain", ""));
        fake.call_straight(bed::PUBLIC_URL, door.address());
        let pace = Arc::new(Hurried(ManualClock::new(START)));
        let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
        let options = Options { fetch, clock: Arc::clone(&pace) as _, ..Options::new("mail.test") };
        let transports = defaults(&options);
        let carried: Vec<_> =
            transports.into_iter().filter(|(known, name, _)| (*known, *name) == (channel, provider)).collect();
        assert_eq!(carried.len(), 1);
        let bed = Bed::build(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), carried);
        admin::create_user(&bed.app, "owner@acme.com", None, None).await.unwrap();
        let workspace = admin::create_workspace(&bed.app, "Acme", "owner@acme.com").await.unwrap().id;
        let product = Product { bed, transport: Arc::default(), workspace, caller: Caller::Operator(Some(workspace)) };
        let mut input = ChannelInput::new(provider);
        input.config = settings(&fake.url()).as_object().cloned();
        let path = ChannelPath { workspace_id: workspace, channel };
        product.app.run(SetChannel).path(path).body(input).by(&product.caller).await.unwrap();
        let this = Self { product, channel, fake, _door: door, pace };
        // The provider gets its callback address.
        this.work().await;
        this
    }

    /// Advances the clocks of the product and of its transports.
    async fn pass(&self, span: Duration) {
        self.pace.0.advance(span);
        self.product.pass(span).await;
    }

    async fn message(&self, to: &str) -> MessageId {
        self.send(&json!({"channel": self.channel, "to": to, "text": "Hi"})).await
    }

    /// Sends a message; returns its id, status and events.
    async fn story_of(&self, to: &str) -> (MessageId, String) {
        let id = self.message(to).await;
        self.work().await;
        (id, self.story(id).await)
    }

    /// The channel as the API shows it.
    async fn shown(&self) -> Value {
        let path = InWorkspace { workspace_id: self.workspace };
        let page = self.app.run(ListChannels).path(path).by(&self.caller).await.unwrap();
        serde_json::to_value(page.data.into_iter().find(|item| item.channel == self.channel).unwrap()).unwrap()
    }

    /// The status of the answer to a callback of the provider.
    async fn called(&self, callback: &FakeCallback) -> u16 {
        self.called_at(&self.app, callback).await
    }

    /// Like `called`, in another process.
    async fn called_at(&self, app: &App, callback: &FakeCallback) -> u16 {
        let (_, rest) = callback.url.split_once("/callbacks/").expect("a callback address");
        let (channel, token) = rest.split_once('/').unwrap();
        let Some(target) = app.callback_target(channel, token) else { return 404 };
        let header = |(name, value): &(&'static str, String)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers = callback.headers.iter().map(header).collect::<HeaderMap>();
        let call = CallbackCall { method: &callback.method, query: None, headers: &headers, body: &callback.body };
        match app.receive_callback(target, token, call).await {
            Ok(reply) => reply.status.as_u16(),
            Err(error) => Error::status(&error).as_u16(),
        }
    }

    /// Reason, source and detail of the suppression of an address.
    async fn listed_as(&self, address: &str) -> String {
        let found = self.store.suppressed(self.workspace, self.channel, &[address.to_owned()]).await.unwrap().pop();
        found.map_or_else(String::new, |found| {
            let record = found.record;
            let source = serde_json::to_value(record.source).unwrap();
            let words = [record.reason.as_str(), source.as_str().unwrap_or_default()];
            [words.join(" "), record.detail.unwrap_or_default()].join(" ").trim_end().to_owned()
        })
    }

    async fn upsert_contact(&self, body: &Value) -> Value {
        self.call("upsertContact", &[], body).await
    }

    async fn contact(&self, id: &str) -> Value {
        self.call("getContact", &[("id", id)], &Value::Null).await
    }

    async fn call(&self, id: &str, path: &[(&str, &str)], body: &Value) -> Value {
        let endpoint = ops::all().iter().find(|endpoint| endpoint.id == id).unwrap();
        let mut parameters: Vec<_> =
            path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        parameters.push(("workspace_id".to_owned(), self.workspace.to_string()));
        let admitted = self.app.admit(self.caller.clone(), endpoint, &parameters, None).await.unwrap();
        let body = if (endpoint.method)() == Method::GET { String::new() } else { body.to_string() };
        let request = Request {
            path: endpoint.path,
            path_parameters: parameters,
            body: body.into_bytes().into(),
            ..Request::default()
        };
        serde_json::from_slice(&admitted.run(request).await.unwrap().body).unwrap()
    }
}
