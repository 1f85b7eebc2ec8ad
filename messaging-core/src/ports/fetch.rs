//! The port for HTTP requests to URLs that users gave: webhooks, providers, pages to import, webhook nodes of
//! automations.
//!
//! An implementation enforces the rules of contract section 15.4 for the request and for every redirect that it
//! follows. Core passes URLs on and never decides which addresses may be connected to.

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};

use crate::domain::delivery::retry_after::retry_after;
use crate::domain::webhook::delivery::DeliveryError;
use crate::time::Timestamp;

/// Sends requests to URLs that users gave.
///
/// An implementation that permits one receiver alone:
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
///         // An HTTP client would send the request here.
///         Err(FetchError::Blocked)
///     }
/// }
///
/// assert_eq!(Only("https://example.org/hook").check("https://example.org/"), Err(UrlFault::NotAllowed));
/// ```
#[async_trait]
pub trait Fetch: Debug + Send + Sync {
    /// Checks the text of a URL: its scheme, no user info, no IP address that is not public. Host names are not
    /// resolved, so a URL that passes may still be refused by [`Fetch::fetch`].
    fn check(&self, url: &str) -> Result<(), UrlFault>;

    /// Sends one request and reads the answer, both within the limits of the request. A request of which a byte may
    /// have been written is never sent again.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError>;
}

/// Reason to refuse a URL before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Not an absolute URL of a web server.
    #[error("not an absolute URL that begins with https://")]
    Malformed,
    /// Well-formed, but refused by the rules.
    #[error("this address may not be called")]
    NotAllowed,
}

/// HTTP version of a request.
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

/// One request and its limits. Its `Debug` output has neither path, headers nor body, because some providers take their
/// key in the path.
#[derive(Clone)]
pub struct FetchRequest {
    /// HTTP version.
    pub protocol: Protocol,
    /// HTTP method.
    pub method: Method,
    /// An absolute URL.
    pub url: String,
    /// Headers besides those that HTTP needs.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Time limit for the whole exchange: resolving the name, connecting, sending and reading.
    pub time_limit: Duration,
    /// Maximum number of bytes of the answer's body that are read.
    pub body_limit: usize,
    /// Number of redirects that are followed; with 0 a redirect is an answer like any other.
    pub redirects: u8,
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FetchRequest");
        shown.field("method", &self.method).field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

/// Returns the host of a URL for `Debug` output; empty if the URL has none.
fn host(url: &str) -> String {
    url.parse::<http::Uri>().ok().and_then(|url| url.host().map(ToOwned::to_owned)).unwrap_or_default()
}

/// An answer. Its `Debug` output has the status and the host alone.
#[derive(Clone)]
pub struct Fetched {
    /// The URL that answered, after redirects.
    pub url: String,
    /// Status code.
    pub status: StatusCode,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// The body, cut at the limit of the request.
    pub body: Bytes,
    /// True if the body was longer than the limit.
    pub truncated: bool,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Fetched");
        shown.field("status", &self.status).field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

impl Fetched {
    /// Returns the wait that the header `Retry-After` asks for, at most 24 hours; `None` without a valid header.
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let header = self.headers.get(RETRY_AFTER)?.to_str().ok()?;
        retry_after(header, now)
    }
}

/// Reason why there is no complete answer. Its texts never tell more about the target than the contract permits.
///
/// After some errors the request may have arrived, so that sending it again might send a message twice:
/// [`FetchError::may_have_arrived`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The rules refuse the address, or one that it redirects to.
    #[error("this address may not be called")]
    Blocked,
    /// The name does not resolve.
    #[error("the name does not resolve")]
    Dns,
    /// No connection was made, or it broke before any byte of the request was written.
    #[error("the connection failed")]
    Connection,
    /// The TLS handshake failed.
    #[error("no TLS connection could be made")]
    Tls,
    /// The time limit passed before any byte of the request was written.
    #[error("no connection was made in time")]
    Timeout,
    /// The connection broke after a part of the request may have been written, or within the answer.
    #[error("the connection broke before the answer was complete")]
    Lost,
    /// The time limit passed after a part of the request may have been written.
    #[error("there was no answer in time")]
    NoAnswer,
    /// The answer was a redirect, and the permitted number of redirects was used up.
    #[error("too many redirects")]
    Redirects,
}

impl FetchError {
    /// Returns true if the peer may have received the request. If false, it is safe to send the request again.
    pub const fn may_have_arrived(self) -> bool {
        matches!(self, Self::Lost | Self::NoAnswer | Self::Redirects)
    }
}

/// An implementation that refuses every URL, for applications without an HTTP client.
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
            // Deliveries follow no redirects, so this does not occur.
            FetchError::Redirects => Self::HttpStatus,
        }
    }
}
