//! Fake providers on loopback sockets that speak the real ones' protocols.
//!
//! A [`FakeProvider`] is an HTTP server that answers like a [`FakeApi`]: one for each provider. The last two digits of
//! the recipient choose the outcome of a message ([`Case`]); a test may also script the next answers. The provider
//! records requests and their times, and makes callbacks.

mod apns;
mod callbacks;
mod case;
mod dns;
mod fcm;
pub(crate) mod keys;
mod server;
mod signed;
mod smpp;
mod sms_http;
mod telegram;
#[cfg(all(test, feature = "peers"))]
mod tests;
mod twilio;
mod viber;
mod vonage;
mod webpush;
mod whatsapp;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

pub use apns::FakeApns;
pub use case::{CASES, Case, Order, Refusal, Report, Signature, Trouble, Wait};
pub use dns::{FakeCloudflare, FakeDigitalOcean, FakeDnsRecord, FakeDnsZone, FakeHetzner, FakeRoute53};
pub use fcm::FakeFcm;
pub use server::FakeProvider;
pub use smpp::{FakePart, FakeSmpp};
pub use sms_http::FakeHttp;
pub use telegram::FakeTelegram;
pub use twilio::FakeTwilio;
pub use viber::FakeViberBot;
pub use vonage::FakeVonage;
pub use webpush::FakeWebpush;
pub use whatsapp::FakeWhatsapp;

/// Returns a number for an incoming item that is unique in this process, and most probably differs from those of
/// earlier processes, which a server may remember.
fn fresh() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0_u8) >> 20));
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// API of one provider.
pub trait FakeApi: Send + Sync + 'static {
    /// Returns the call that the provider makes before it answers a request, and the answer if that call is not
    /// answered with success; `None` for requests that it answers at once.
    fn asks_first(&self, _request: &FakeRequest) -> Option<(FakeCallback, FakeAnswer)> {
        None
    }

    /// Reads a request: the message that it submits, or the answer to any other request, such as one with a wrong key,
    /// for an access token, or with fields that the provider does not accept.
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer>;

    /// Returns the answer to a message that is accepted.
    fn accepted(&self, submission: &Submission) -> FakeAnswer;

    /// Returns the answer to a message that is refused. A refusal that the provider does not have becomes a similar
    /// one.
    fn refused(&self, submission: &Submission, refusal: Refusal) -> FakeAnswer;

    /// Returns the call that reports about messages, several if the provider batches. `None` if it has no such reports.
    fn report(&self, _reports: &[(Submission, Report)], _signature: Signature) -> Option<FakeCallback> {
        None
    }

    /// Returns the call that brings a recipient's message to the callback address of the channel. `None` if there is
    /// none.
    fn inbound(&self, _url: &str, _from: &str, _text: &str, _signature: Signature) -> Option<FakeCallback> {
        None
    }
}

/// A request that a fake has received.
#[derive(Debug, Clone)]
pub struct FakeRequest {
    /// The method.
    pub method: Method,
    /// The path, with the query.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Version of HTTP.
    pub version: http::Version,
    /// Time at which it was read.
    pub at: Instant,
    /// Number of its connection, from 1.
    pub connection: u64,
}

impl FakeRequest {
    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    /// Returns a header as text; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns a field of a form; empty if it is absent.
    pub fn field(&self, name: &str) -> String {
        url::form_urlencoded::parse(&self.body)
            .find_map(|(found, value)| (found == name).then(|| value.into_owned()))
            .unwrap_or_default()
    }
}

/// A message that was submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The recipient as the request names it; its last two digits choose the [`Case`].
    pub recipient: String,
    /// The fake's id for it: unique, of digits, and set by the fake server.
    pub id: String,
    /// URL for its receipts, if there is one.
    pub callback_url: Option<String>,
    /// Reference that the provider sends back with receipts.
    pub reference: Option<String>,
    /// The text, from which segments are counted.
    pub text: String,
}

impl Submission {
    /// Creates a submission for this recipient; everything else is empty.
    pub fn to(recipient: impl Into<String>) -> Self {
        Self {
            recipient: recipient.into(),
            id: String::new(),
            callback_url: None,
            reference: None,
            text: String::new(),
        }
    }
}

/// The HTTP answer of a fake to a request.
#[derive(Debug, Clone)]
pub struct FakeAnswer {
    /// The status.
    pub status: StatusCode,
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl FakeAnswer {
    /// Returns JSON with a status.
    ///
    /// # Panics
    ///
    /// If that is no status.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    /// Returns a body of a type with a status.
    ///
    /// # Panics
    ///
    /// If that is no status.
    pub fn text(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
    }

    /// Adds a header; its name in lower case.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A call that a fake makes to the server under test.
#[derive(Debug, Clone)]
pub struct FakeCallback {
    /// The URL that the call goes to.
    pub url: String,
    /// The method.
    pub method: Method,
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl FakeCallback {
    /// POSTs a body of a type.
    pub fn post(url: impl Into<String>, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { url: url.into(), method: Method::POST, headers, body: body.into() }
    }

    /// POSTs JSON.
    pub fn json(url: impl Into<String>, body: &Value) -> Self {
        Self::post(url, "application/json", body.to_string())
    }

    /// Adds a header; its name in lower case.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Result of a call to the server under test.
#[derive(Debug, Clone)]
pub struct CalledBack {
    /// The call.
    pub callback: FakeCallback,
    /// Status of the answer; `None` without one.
    pub status: Option<StatusCode>,
    /// Body of the answer, up to 64 KiB.
    pub body: Bytes,
}
