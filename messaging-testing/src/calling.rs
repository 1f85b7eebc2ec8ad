//! Fake provider that makes callbacks.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use http::Method;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::inbound::ProviderSink;
use messaging_core::ports::transport::{
    About, Acceptance, AddressFault, Answer, Callback, CallbackAddress, CallbackEvent, CallbackFault, CallbackProof,
    CallbackReply, CallbackRequest, OutcomeClass, Outgoing, Registration, Response, Sent, Transport, TransportError,
};
use serde_json::{Map, Value, json};

use super::MemoryTransport;

/// Header that proves a call of the channel: it holds the setting that proves calls, else the secret of the address.
const SIGNATURE: &str = "x-signature";

/// Settings that prove calls.
const PROOFS: [&str; 3] = ["auth_token", "signature_secret", "app_secret"];

/// A [`MemoryTransport`] whose provider calls back with JSON, is told the callback address, and has generated settings.
///
/// A call is `{"receipts":[{"id"|"token","status":"delivered|read|gone"}],"messages":[{"from","text"}]}`; a receipt
/// that names no message is about the one whose address is called. A call of the channel carries the header
/// `x-signature`. A body of any other form reports nothing.
#[derive(Debug, Default)]
pub struct CallingProvider {
    memory: MemoryTransport,
    told: Mutex<Vec<CallbackAddress>>,
    refusal: Mutex<Option<String>>,
    sinks: Mutex<Vec<Weak<dyn ProviderSink>>>,
    pairs: AtomicUsize,
}

impl CallingProvider {
    /// Creates a provider that reports outcomes later.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { memory: MemoryTransport::new(Acceptance::Relayed), ..Self::default() })
    }

    /// Returns the callback addresses that it was given, in order.
    pub fn told(&self) -> Vec<CallbackAddress> {
        lock(&self.told).clone()
    }

    /// Refuses callback addresses with this text from now on; `None` accepts them again.
    pub fn refuse(&self, words: Option<&str>) {
        *lock(&self.refusal) = words.map(ToOwned::to_owned);
    }

    /// Returns the sinks that were attached to receive its reports, in order.
    pub fn sinks(&self) -> Vec<Weak<dyn ProviderSink>> {
        lock(&self.sinks).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for CallingProvider {
    type Target = MemoryTransport;

    fn deref(&self) -> &MemoryTransport {
        &self.memory
    }
}

#[async_trait]
impl Transport for CallingProvider {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.memory.send(outgoing).await
    }

    fn own_settings(&self) -> Map<String, Value> {
        let number = self.pairs.fetch_add(1, Ordering::Relaxed);
        let pair = json!({"public_key": format!("public {number}"), "private_key": format!("private {number}")});
        pair.as_object().cloned().unwrap_or_default()
    }

    fn callback(
        &self,
        settings: &Map<String, Value>,
        request: &CallbackRequest<'_>,
    ) -> Result<Callback, CallbackFault> {
        if request.method != Method::POST {
            return Err(CallbackFault::NotFound);
        }
        if let CallbackProof::Channel(address) = request.proof {
            let proof = PROOFS.iter().find_map(|name| settings.get(*name)?.as_str()).unwrap_or(&address.secret);
            let signature = request.headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
            if signature != Some(proof) {
                return Err(CallbackFault::Unauthorized);
            }
        }
        let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
        let receipts = body["receipts"].as_array().into_iter().flatten().filter_map(receipt);
        let messages = body["messages"].as_array().into_iter().flatten().filter_map(message);
        Ok(Callback { events: receipts.chain(messages).collect(), reply: CallbackReply::default() })
    }

    async fn register(&self, _: &Map<String, Value>, address: &CallbackAddress) -> Result<Registration, String> {
        lock(&self.told).push(address.clone());
        let refusal = lock(&self.refusal).clone();
        refusal.map_or(Ok(Registration::Registered), Err)
    }

    fn attach(&self, sink: Weak<dyn ProviderSink>) {
        lock(&self.sinks).push(sink);
    }
}

fn receipt(said: &Value) -> Option<CallbackEvent> {
    let text = |name: &str| said[name].as_str().map(ToOwned::to_owned);
    let about =
        text("id").map(About::ProviderMessage).or(text("token").map(About::Token)).unwrap_or(About::ThisMessage);
    let of = |class| Answer::new(class, Response::of_text("reported"));
    let delivered = OutcomeClass::Accepted(Acceptance::Delivered);
    let receipt = match said["status"].as_str()? {
        "delivered" => Receipt::Outcome(of(delivered)),
        "read" => Receipt::Read(of(delivered)),
        "gone" => Receipt::Outcome(of(OutcomeClass::Address(AddressFault::Recipient))),
        _ => return None,
    };
    Some(CallbackEvent::Receipt { about, receipt })
}

fn message(said: &Value) -> Option<CallbackEvent> {
    let (from, text) = (said["from"].as_str()?.to_owned(), said["text"].as_str()?.to_owned());
    let id = said["id"].as_str().map(ToOwned::to_owned);
    Some(CallbackEvent::Inbound { from, event: InboundEvent::Text(text), id })
}
