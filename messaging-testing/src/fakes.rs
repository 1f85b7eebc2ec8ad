//! Providers on loopback sockets that speak the real ones' protocol.
//!
//! A [`FakeProvider`] is an HTTP server, which answers in the words of a [`FakeApi`]: one for each provider. What
//! becomes of a message is chosen by the last two digits of its recipient ([`Case`]); a test may script the next
//! answers besides. It records requests and when they came, and calls back.

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

/// A number for something that comes in, which nothing else has had: in this process, and most probably in those before
/// it, whose numbers somebody may remember.
fn fresh() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0_u8) >> 20));
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What a fake says: one provider's API.
pub trait FakeApi: Send + Sync + 'static {
    /// The call that the provider makes before it answers a request, and its answer should that call not be answered with
    /// success; `None` for requests that it answers at once.
    fn asks_first(&self, _request: &FakeRequest) -> Option<(FakeCallback, FakeAnswer)> {
        None
    }

    /// Reads a request: the message that it submits, or what is answered to anything else, such as a wrong key, a
    /// request for an access token, or fields that the provider does not take.
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer>;

    /// Answers a message that is taken.
    fn accepted(&self, submission: &Submission) -> FakeAnswer;

    /// Answers a message that is refused. What the provider has no words for is refused otherwise.
    fn refused(&self, submission: &Submission, refusal: Refusal) -> FakeAnswer;

    /// The call that reports about messages; they are several where the provider batches. `None` where it reports
    /// nothing of that kind.
    fn report(&self, _reports: &[(Submission, Report)], _signature: Signature) -> Option<FakeCallback> {
        None
    }

    /// The call that brings what a recipient wrote, to the callback address of the channel. `None` where there is none.
    fn inbound(&self, _url: &str, _from: &str, _text: &str, _signature: Signature) -> Option<FakeCallback> {
        None
    }
}

/// A request that a fake has read.
#[derive(Debug, Clone)]
pub struct FakeRequest {
    /// The method.
    pub method: Method,
    /// The path, with the query behind.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Which version of HTTP was spoken.
    pub version: http::Version,
    /// When it was read.
    pub at: Instant,
    /// The number of its connection, from 1.
    pub connection: u64,
}

impl FakeRequest {
    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    /// A header that is text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A field of a form; empty when it is not there.
    pub fn field(&self, name: &str) -> String {
        url::form_urlencoded::parse(&self.body)
            .find_map(|(found, value)| (found == name).then(|| value.into_owned()))
            .unwrap_or_default()
    }
}

/// A message that was submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Whom it is for, as the request names it; the last two digits choose the [`Case`].
    pub recipient: String,
    /// The fake's name for it: the fake server sets it, unique and of digits.
    pub id: String,
    /// Where its receipts go, if anywhere.
    pub callback_url: Option<String>,
    /// What the provider was told to send back with receipts.
    pub reference: Option<String>,
    /// The text, for what is counted.
    pub text: String,
}

impl Submission {
    /// For this recipient; everything else empty.
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
    /// JSON with a status.
    ///
    /// # Panics
    ///
    /// If that is no status.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    /// A body of a type with a status.
    ///
    /// # Panics
    ///
    /// If that is no status.
    pub fn text(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
    }

    /// With a header; its name in lower case.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A call of a fake to us.
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

    /// With a header; its name in lower case.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What became of a call to us.
#[derive(Debug, Clone)]
pub struct CalledBack {
    /// The call.
    pub callback: FakeCallback,
    /// The status that it was answered with; `None` without an answer.
    pub status: Option<StatusCode>,
    /// The body of the answer, as far as 64 KiB.
    pub body: Bytes,
}
