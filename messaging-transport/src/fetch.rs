//! Guarded HTTP client: calls URLs that users gave (contract section 15.4), webhooks and providers among them.
//!
//! Every call parses the URL, resolves its host once, judges every address that was found, and connects to one of
//! those; the name is not looked up again in between. A connection that is kept for the next call belongs to the
//! address it was made to, so a name that leads elsewhere meanwhile is judged anew and gets a new connection. No proxy
//! is used, whatever the environment says: a proxy would connect to addresses that the guard forbids.
//!
//! A request that may have been written is never sent again: the caller decides that, from
//! [`FetchError::may_have_arrived`].

mod connection;
mod pool;
mod tls;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, Protocol, UrlFault};
use rustls_pki_types::CertificateDer;
use tokio::time::timeout;
use url::Url;

use crate::dns::Dns;
use crate::guard::{Guard, Refusal};
use connection::{Connection, Unsent};
use pool::{Key, Pool};
use tls::Tls;

/// `User-Agent` of requests that bring none of their own.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("messaging/", env!("CARGO_PKG_VERSION")));

/// HTTP client that calls only permitted addresses.
#[derive(Debug)]
pub struct GuardedFetch {
    guard: Guard,
    dns: Dns,
    tls: Tls,
    pool: Pool,
    /// Address of every connection in place of the judged one; for tests.
    instead: Option<SocketAddr>,
}

/// Builder of a [`GuardedFetch`].
#[derive(Debug)]
pub struct GuardedFetchBuilder {
    allow_private: bool,
    dns: Dns,
    roots: Vec<CertificateDer<'static>>,
    instead: Option<SocketAddr>,
}

impl GuardedFetchBuilder {
    /// Permits `http` and addresses that are not public.
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// Adds a root certificate to those of the system.
    pub fn root(mut self, root: CertificateDer<'static>) -> Self {
        self.roots.push(root);
        self
    }

    /// Connects to `address` whenever an address has passed the guard, so that the rules can be tested without leaving
    /// the machine.
    pub fn connect_instead(mut self, address: SocketAddr) -> Self {
        self.instead = Some(address);
        self
    }

    /// Builds the client.
    pub fn build(self) -> GuardedFetch {
        GuardedFetch {
            guard: Guard { allow_private: self.allow_private },
            dns: self.dns,
            tls: Tls::new(self.roots),
            pool: Pool::default(),
            instead: self.instead,
        }
    }
}

impl GuardedFetch {
    /// Returns a builder for a client that looks names up with `dns`.
    pub fn builder(dns: Dns) -> GuardedFetchBuilder {
        GuardedFetchBuilder { allow_private: false, dns, roots: Vec::new(), instead: None }
    }

    async fn follow(&self, mut request: FetchRequest, is_written: &AtomicBool) -> Result<Fetched, FetchError> {
        let mut url = self.guard.check(&request.url).map_err(|_| FetchError::Blocked)?;
        let mut left = request.redirects;
        loop {
            let (fetched, connection) = self.exchange(&url, &request, is_written).await?;
            let next = (request.redirects > 0).then(|| redirect(&url, &fetched)).flatten();
            if let Some((key, connection)) = connection {
                self.pool.give(key, connection);
            }
            let Some(next) = next else { return Ok(fetched) };
            left = left.checked_sub(1).ok_or(FetchError::Redirects)?;
            let next = self.guard.check(&next).map_err(|_| FetchError::Blocked)?;
            adapt(&mut request, fetched.status, url.origin() == next.origin());
            url = next;
        }
    }

    /// Sends one request; returns its answer, and the connection if it can be used again.
    async fn exchange(
        &self,
        url: &Url,
        request: &FetchRequest,
        is_written: &AtomicBool,
    ) -> Result<(Fetched, Option<(Key, Connection)>), FetchError> {
        is_written.store(false, Ordering::Relaxed);
        let addresses = self.guard.resolve(url, &self.dns).await.map_err(|refusal| match refusal {
            Refusal::NotPublic => FetchError::Blocked,
            Refusal::Unknown => FetchError::Dns,
        })?;
        let mut message = message(url, request)?;
        let host = url.host_str().unwrap_or_default();
        let is_tls = url.scheme() == "https";
        let protocol = request.protocol;
        let key = |address: &SocketAddr| Key { is_tls, protocol, host: host.to_owned(), address: *address };
        let take = || addresses.iter().find_map(|address| self.pool.take(key(address)));
        let (mut kept, mut dialing) = (take(), None);
        if let (None, Protocol::Http2, Some(first)) = (&kept, protocol, addresses.first()) {
            // Another call may have opened a connection while this one waited.
            let turn = self.pool.dial(key(first)).await;
            kept = take();
            dialing = kept.is_none().then_some(turn);
        }
        while let Some((key, mut connection)) = kept {
            is_written.store(true, Ordering::Relaxed);
            match connection.send(url, message).await {
                Ok(response) => return read(url, response, request.body_limit, key, connection).await,
                // The peer closed the idle connection without having read anything.
                Err(Unsent::Returned(unsent)) => message = *unsent,
                Err(Unsent::Lost) => return Err(FetchError::Lost),
            }
            is_written.store(false, Ordering::Relaxed);
            kept = take();
        }
        let mut failure = FetchError::Connection;
        for address in &addresses {
            let dialed = self.instead.unwrap_or(*address);
            let mut connection = match Connection::open(dialed, is_tls.then_some(&self.tls), url, protocol).await {
                Ok(connection) => connection,
                Err(FetchError::Tls) => return Err(FetchError::Tls),
                Err(other) => {
                    failure = other;
                    continue;
                }
            };
            if let Some(shared) = connection.share() {
                self.pool.give(key(address), std::mem::replace(&mut connection, shared));
            }
            drop(dialing.take());
            is_written.store(true, Ordering::Relaxed);
            let response = connection.send(url, message).await.map_err(|unsent| match unsent {
                Unsent::Returned(_) => FetchError::Connection,
                Unsent::Lost => FetchError::Lost,
            })?;
            return read(url, response, request.body_limit, key(address), connection).await;
        }
        Err(failure)
    }
}

#[async_trait]
impl Fetch for GuardedFetch {
    fn check(&self, url: &str) -> Result<(), UrlFault> {
        self.guard.check(url).map(|_| ())
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let is_written = AtomicBool::new(false);
        timeout(request.time_limit, self.follow(request, &is_written)).await.unwrap_or_else(|_| {
            let is_written = is_written.load(Ordering::Relaxed);
            Err(if is_written { FetchError::NoAnswer } else { FetchError::Timeout })
        })
    }
}

/// Builds the request for HTTP/1.1, except for its target.
fn message(url: &Url, request: &FetchRequest) -> Result<Request<Full<Bytes>>, FetchError> {
    let malformed = |_| FetchError::Blocked;
    let mut message = Request::new(Full::new(request.body.clone()));
    *message.method_mut() = request.method.clone();
    *message.headers_mut() = request.headers.clone();
    let headers = message.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(authority(url)).map_err(malformed)?);
    headers.entry(USER_AGENT).or_insert(AGENT);
    Ok(message)
}

/// Returns host and port as a request names them.
fn authority(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    }
}

/// Reads the body up to the limit. A longer body ends the connection.
async fn read(
    url: &Url,
    response: Response<Incoming>,
    limit: usize,
    key: Key,
    mut connection: Connection,
) -> Result<(Fetched, Option<(Key, Connection)>), FetchError> {
    let (head, mut incoming) = response.into_parts();
    connection.note_keep_alive(&head.headers);
    let mut body = BytesMut::new();
    let mut truncated = false;
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame.map_err(|_| FetchError::Lost)?.into_data() else { continue };
        let room = limit - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            truncated = true;
            break;
        }
    }
    // The rest of a longer body would precede the next answer, unless each has a stream of its own.
    let kept = if truncated && !connection.is_shared() {
        None
    } else {
        connection.is_usable().await.then_some((key, connection))
    };
    let fetched = Fetched {
        url: url.as_str().to_owned(),
        status: head.status,
        headers: head.headers,
        body: body.freeze(),
        truncated,
    };
    Ok((fetched, kept))
}

/// Returns the URL that an answer redirects to.
fn redirect(url: &Url, fetched: &Fetched) -> Option<String> {
    const REDIRECTS: [StatusCode; 5] = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if !REDIRECTS.contains(&fetched.status) {
        return None;
    }
    let location = fetched.headers.get(LOCATION)?.to_str().ok()?;
    // An absolute URL is judged as it was written, user info included.
    if Url::parse(location).is_ok() { Some(location.to_owned()) } else { url.join(location).ok().map(Into::into) }
}

/// Adapts the request to a redirect (RFC 9110 section 15.4): headers meant for one host are not shown to another, and
/// after 303, or after 301 and 302 as browsers do, the body is dropped.
fn adapt(request: &mut FetchRequest, status: StatusCode, is_same_origin: bool) {
    let is_read = [Method::GET, Method::HEAD].contains(&request.method);
    let keeps_body = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&status);
    if !is_read && !keeps_body {
        request.method = Method::GET;
        request.body = Bytes::new();
        remove(&mut request.headers, [CONTENT_TYPE, CONTENT_LENGTH]);
    }
    if !is_same_origin {
        remove(&mut request.headers, [AUTHORIZATION, COOKIE]);
    }
}

fn remove<const N: usize>(headers: &mut HeaderMap, names: [http::HeaderName; N]) {
    for name in names {
        headers.remove(name);
    }
}
