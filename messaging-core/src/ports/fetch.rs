//! The port to web addresses that users gave: webhooks, providers, pages to import, webhook nodes of automations.
//!
//! Whoever implements it keeps the rules of contract section 15.4, for the request and for every redirect
//! that is followed: core hands an address over and never decides where a connection may go.

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};

use crate::domain::delivery::retry_after::retry_after;
use crate::domain::webhook::delivery::DeliveryError;
use crate::time::Timestamp;

/// Sends requests to addresses that users gave.
///
/// One that lets nothing but a receiver of your own be called:
///
/// ```
/// use async_trait::async_trait;
/// use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
///
/// #[derive(Debug)]
/// struct Only(&'static str);
///
/// #[async_trait]
/// impl Fetch for Only {
///     fn check(&self, url: &str) -> Result<(), UrlFault> {
///         if url == self.0 { Ok(()) } else { Err(UrlFault::NotAllowed) }
///     }
///
///     async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
///         self.check(&request.url).map_err(|_| FetchError::Blocked)?;
///         // Here is where a client of yours sends it.
///         Err(FetchError::Blocked)
///     }
/// }
///
/// assert_eq!(Only("https://example.org/hook").check("https://example.org/"), Err(UrlFault::NotAllowed));
/// ```
#[async_trait]
pub trait Fetch: Debug + Send + Sync {
    /// Whether the text of a URL alone breaks the rules: scheme, user info, an address that is not public.
    /// Says nothing about what a name resolves to.
    fn check(&self, url: &str) -> Result<(), UrlFault>;

    /// Sends one request and reads the answer, within its limits. What may have been written is never repeated.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError>;
}

/// What is wrong with a URL before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Not an absolute URL of a web server.
    #[error("not an absolute URL that begins with https://")]
    Malformed,
    /// Well-formed, but refused by the rules.
    #[error("this address may not be called")]
    NotAllowed,
}

/// Which HTTP a request speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 where the peer offers it in the TLS handshake, else HTTP/1.1.
    Negotiated,
    /// HTTP/2 alone; without TLS by prior knowledge (RFC 9113 section 3.3).
    Http2,
}

/// One request and its limits. What is shown of it for people who debug holds no path, header or body: some providers
/// have their key in the path.
#[derive(Clone)]
pub struct FetchRequest {
    /// Which HTTP it speaks.
    pub protocol: Protocol,
    /// The method.
    pub method: Method,
    /// An absolute URL.
    pub url: String,
    /// Headers besides those that HTTP needs.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// How long everything together may take: looking the name up, connecting, sending, reading.
    pub time_limit: Duration,
    /// How many bytes of the answer's body are read.
    pub body_limit: usize,
    /// How many redirects are followed; with 0 a redirect is an answer like any other.
    pub redirects: u8,
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FetchRequest");
        shown.field("method", &self.method).field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

/// The host of a URL, for people.
fn host(url: &str) -> String {
    url.parse::<http::Uri>().ok().and_then(|url| url.host().map(ToOwned::to_owned)).unwrap_or_default()
}

/// An answer. What is shown of it for people who debug is as little as of a request.
#[derive(Clone)]
pub struct Fetched {
    /// The URL that answered, after redirects.
    pub url: String,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as far as the limit.
    pub body: Bytes,
    /// Whether there was more than the limit.
    pub truncated: bool,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Fetched");
        shown.field("status", &self.status).field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

impl Fetched {
    /// How long the answer asks to wait, at most 24 hours; `None` when it does not say.
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let header = self.headers.get(RETRY_AFTER)?.to_str().ok()?;
        retry_after(header, now)
    }
}

/// There was no complete answer. Never tells more about the target than the contract allows.
///
/// Whether the request may have arrived is told by [`FetchError::may_have_arrived`]: a message that is sent by a
/// request whose answer was lost may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The rules refuse the address, or one that it redirects to.
    #[error("this address may not be called")]
    Blocked,
    /// The name does not resolve.
    #[error("the name does not resolve")]
    Dns,
    /// No connection, or it broke before anything of the request was written.
    #[error("the connection failed")]
    Connection,
    /// TLS was refused.
    #[error("no TLS connection could be made")]
    Tls,
    /// It took too long before anything of the request was written.
    #[error("no connection was made in time")]
    Timeout,
    /// The connection broke when the request may have been written, or within the answer.
    #[error("the connection broke before the answer was complete")]
    Lost,
    /// The request may have been written, and no complete answer came in time.
    #[error("there was no answer in time")]
    NoAnswer,
    /// More redirects than are followed.
    #[error("too many redirects")]
    Redirects,
}

impl FetchError {
    /// Whether the peer may have the request. Where it has not, repeating it makes no second one.
    pub const fn may_have_arrived(self) -> bool {
        matches!(self, Self::Lost | Self::NoAnswer | Self::Redirects)
    }
}

/// Fetches nothing: what an application without a client has.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFetch;

#[async_trait]
impl Fetch for NoFetch {
    fn check(&self, _url: &str) -> Result<(), UrlFault> {
        Err(UrlFault::NotAllowed)
    }

    async fn fetch(&self, _request: FetchRequest) -> Result<Fetched, FetchError> {
        Err(FetchError::Blocked)
    }
}

impl From<FetchError> for DeliveryError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Blocked => Self::BlockedAddress,
            FetchError::Dns => Self::DnsError,
            FetchError::Connection | FetchError::Lost => Self::ConnectionFailed,
            FetchError::Tls => Self::TlsError,
            FetchError::Timeout | FetchError::NoAnswer => Self::Timeout,
            // None are followed, so there can be none too many.
            FetchError::Redirects => Self::HttpStatus,
        }
    }
}
