//! Deliveries of events to webhooks: attempts, retries, pauses, replays.

mod attempts;
mod groups;
mod lost_claims;
mod privacy;
mod receivers;
mod replays;
mod states;

use std::sync::Arc;

use http::Method;
use messaging_core::domain::security::signature::SigningKey;
use messaging_core::ids::MessageId;
use messaging_core::ports::fetch::FetchRequest;
use messaging_engine::Caller;
use messaging_testing::MemoryFetch;
use serde_json::{Value, json};

use crate::bed::{self, Call, Reply};
use crate::support::Product;

pub(crate) const URL: &str = "https://acme.com/hook";

/// A product with one webhook, and the receiver of its calls.
pub(crate) struct Hooks {
    pub(crate) product: Product,
    pub(crate) fetch: Arc<MemoryFetch>,
    /// `/workspaces/{workspace_id}/webhooks`
    pub(crate) base: String,
    /// The path of the webhook.
    pub(crate) path: String,
    pub(crate) secret: String,
}

impl Hooks {
    /// A webhook of all events.
    pub(crate) async fn start() -> Self {
        Self::hearing(&["*"]).await
    }

    pub(crate) async fn hearing(events: &[&str]) -> Self {
        let fetch = Arc::new(MemoryFetch::default());
        let product = Product::calling(Arc::clone(&fetch) as _).await;
        let base = format!("/workspaces/{}/webhooks", product.workspace);
        let mut hooks = Self { product, fetch, base, path: String::new(), secret: String::new() };
        let created = hooks.create(URL, events).await;
        hooks.path = format!("{}/{}", hooks.base, created["id"].as_str().unwrap());
        created["secret"].as_str().unwrap().clone_into(&mut hooks.secret);
        hooks
    }

    pub(crate) async fn create(&self, url: &str, events: &[&str]) -> Value {
        let reply = self.post(&self.base, json!({"url": url, "events": events})).await;
        assert_eq!(reply.summary(), "201");
        reply.body
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.product.caller
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        bed::send(&self.product.app, Call::new(self.caller(), Method::GET, target)).await
    }

    pub(crate) async fn post(&self, target: &str, body: Value) -> Reply {
        bed::send(&self.product.app, Call::new(self.caller(), Method::POST, target).body(&body)).await
    }

    /// `POST {webhook}/{verb}` with a body.
    pub(crate) async fn act(&self, verb: &str, body: Value) -> Reply {
        self.post(&format!("{}/{verb}", self.path), body).await
    }

    /// Sends a message and runs all jobs.
    pub(crate) async fn message(&self, to: &str) -> MessageId {
        let id = self.product.send_to(to).await;
        self.product.work().await;
        id
    }

    /// The deliveries of the webhook, oldest first.
    pub(crate) async fn deliveries(&self) -> Vec<Value> {
        let reply = self.get(&format!("{}/deliveries?limit=200", self.path)).await;
        let mut deliveries = reply["data"].as_array().unwrap().clone();
        deliveries.reverse();
        deliveries
    }

    /// `sent delivered 1, bounce pending 3`: type, status and attempts of the deliveries.
    pub(crate) async fn story(&self) -> String {
        let deliveries = self.deliveries().await;
        let told: Vec<_> = deliveries
            .iter()
            .map(|one| {
                let text = |member: &str| one[member].as_str().unwrap().to_owned();
                format!("{} {} {}", text("event_type"), text("status"), one["attempts"])
            })
            .collect();
        told.join(", ")
    }

    pub(crate) async fn status(&self) -> String {
        self.get(&self.path).await["status"].as_str().unwrap().to_owned()
    }

    /// Returns true if a request is signed with a secret, as of now.
    pub(crate) fn is_signed(&self, request: &FetchRequest, secret: &str) -> bool {
        let header = |name: &str| request.headers[name].to_str().unwrap();
        let key = SigningKey::parse(secret).unwrap();
        let (id, timestamp, signatures) =
            (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
        key.verify(id, timestamp, signatures, &request.body, self.product.app.now()).is_ok()
    }
}

pub(crate) fn body(request: &FetchRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// The types of the events in the order in which they were delivered.
pub(crate) fn types(requests: &[FetchRequest]) -> Vec<String> {
    requests.iter().map(|request| body(request)["type"].as_str().unwrap().to_owned()).collect()
}
