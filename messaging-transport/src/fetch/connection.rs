//! One HTTP/1.1 or HTTP/2 connection.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use messaging_core::ports::fetch::{FetchError, Protocol};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::{Position, Url};

use super::tls::Tls;

/// Time for which a connection may be idle, unless the peer announces less.
pub(super) const IDLE_TIME: Duration = Duration::from_mins(1);

/// Time limit for connecting to one address; a host may have several.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Time in which a peer that has answered must take the rest of the request for the connection to be used again.
const READY_TIME: Duration = Duration::from_millis(50);

/// Interval at which an HTTP/2 peer is pinged while requests are under way, and the time in which it must answer.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIME: Duration = Duration::from_secs(10);

/// Maximum length of the head of an answer, and of the part of its body that is read at a time.
const BUFFER: usize = 64 << 10;

/// Reason why a request has no answer.
pub(super) enum Unsent {
    /// Nothing was written; holds the request.
    Returned(Box<Request<Full<Bytes>>>),
    /// The peer may have read it.
    Lost,
}

/// A connection. When its last user drops it, the socket is closed, whatever the peer is doing.
#[derive(Debug)]
pub(super) struct Connection {
    sender: Sender,
    /// Task of the connection; it ends when the last user drops it.
    driver: Arc<Driver>,
    /// Time for which the peer keeps the idle connection, at most [`IDLE_TIME`].
    idle_time: Duration,
    /// Place of a request among those that the peer allows at the same time.
    stream: Option<Stream>,
}

/// A request that is under way on a shared connection.
#[derive(Debug)]
struct Stream(Arc<Driver>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Sender {
    /// HTTP/1.1, with one request at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// HTTP/2, with many requests at a time.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A socket, with or without TLS. Its type is erased, because HTTP/1 and HTTP/2 are compiled for each.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The task that reads and writes the socket.
#[derive(Debug)]
struct Driver {
    task: AbortHandle,
    /// Number of requests under way.
    streams: AtomicUsize,
    /// Number of requests that the peer allows at a time (RFC 9113 section 5.1.2).
    max_streams: Arc<AtomicUsize>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects to the host of a URL, with TLS if it is given, and negotiates the protocol.
    pub(super) async fn open(
        address: SocketAddr,
        tls: Option<&Tls>,
        url: &Url,
        protocol: Protocol,
    ) -> Result<Self, FetchError> {
        let stream = match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(_)) => return Err(FetchError::Connection),
            Err(_) => return Err(FetchError::Timeout),
        };
        // Requests are written in one piece; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        match tls {
            Some(tls) => {
                let stream = tls.handshake(stream, url, protocol).await?;
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                if protocol == Protocol::Http2 && !is_http2 {
                    return Err(FetchError::Connection);
                }
                Self::speak(Box::new(stream), is_http2).await
            }
            None => Self::speak(Box::new(stream), protocol == Protocol::Http2).await,
        }
    }

    async fn speak(stream: Box<dyn Duplex>, is_http2: bool) -> Result<Self, FetchError> {
        let stream = TokioIo::new(stream);
        // The driver's result is dropped: a request that waits for its answer gets the error itself.
        let max_streams = Arc::new(AtomicUsize::new(1));
        let (sender, driver) = if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.max_header_list_size(u32::try_from(BUFFER).unwrap_or(u32::MAX));
            // If the peer vanishes without a word, the requests of all users of the connection fail.
            builder.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_TIME);
            let (sender, connection) = builder.handshake(stream).await.map_err(|_| FetchError::Connection)?;
            max_streams.store(connection.current_max_send_streams(), Ordering::Relaxed);
            let (mut connection, allowed) = (Box::pin(connection), Arc::clone(&max_streams));
            let driver = tokio::spawn(poll_fn(move |cx| {
                let ended = connection.as_mut().poll(cx);
                allowed.store(connection.current_max_send_streams(), Ordering::Relaxed);
                ended.map(drop)
            }));
            (Sender::Http2(sender), driver)
        } else {
            let opened = http1::Builder::new().max_buf_size(BUFFER).handshake(stream).await;
            let (sender, connection) = opened.map_err(|_| FetchError::Connection)?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            (Sender::Http1(sender), driver)
        };
        let driver = Driver { task: driver.abort_handle(), streams: AtomicUsize::new(0), max_streams };
        Ok(Self { sender, driver: Arc::new(driver), idle_time: IDLE_TIME, stream: None })
    }

    /// Returns how long the connection may be idle.
    pub(super) const fn idle_time(&self) -> Duration {
        self.idle_time
    }

    /// Notes how long the peer keeps an idle connection (`Keep-Alive: timeout=5`), less one second.
    pub(super) fn note_keep_alive(&mut self, headers: &HeaderMap) {
        let said = headers.get("keep-alive").and_then(|value| value.to_str().ok());
        let mut parts = said.into_iter().flat_map(|said| said.split(','));
        let seconds = parts.find_map(|part| part.trim().strip_prefix("timeout=")?.trim().parse().ok());
        if let Some(seconds) = seconds {
            self.idle_time = Duration::from_secs(seconds).saturating_sub(Duration::from_secs(1)).min(IDLE_TIME);
        }
    }

    /// Returns true if several requests share the connection at the same time (HTTP/2).
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    /// Gives back the place of a request that has ended.
    pub(super) fn end_request(&mut self) {
        self.stream = None;
    }

    /// Returns true if both are the same connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.driver, &other.driver)
    }

    /// Returns the same connection for another request, if it can be shared and the peer allows one more.
    pub(super) fn share(&self) -> Option<Self> {
        let Sender::Http2(sender) = &self.sender else { return None };
        if sender.is_closed() {
            return None;
        }
        let max = self.driver.max_streams.load(Ordering::Relaxed);
        let more = |streams: usize| (streams < max).then_some(streams + 1);
        self.driver.streams.try_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let driver = Arc::clone(&self.driver);
        let stream = Some(Stream(Arc::clone(&driver)));
        Some(Self { sender: Sender::Http2(sender.clone()), driver, idle_time: self.idle_time, stream })
    }

    /// Sends a request to a URL and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        url: &Url,
        message: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unsent> {
        let message = spelled(url, message, self.is_shared()).ok_or(Unsent::Lost)?;
        let answer = match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(message).await,
            Sender::Http2(sender) => sender.try_send_request(message).await,
        };
        answer.map_err(|mut error| match error.take_message() {
            Some(message) => Unsent::Returned(Box::new(message)),
            None => Unsent::Lost,
        })
    }

    /// Returns true if another request may be sent, once an answer was read to its end.
    pub(super) async fn is_usable(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => matches!(timeout(READY_TIME, sender.ready()).await, Ok(Ok(()))),
            Sender::Http2(sender) => !sender.is_closed(),
        }
    }

    /// Returns true if an idle connection is still open, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => !sender.is_closed(),
        }
    }
}

/// Returns the request with its target as the protocol writes it: HTTP/1.1 a path and `Host`, HTTP/2 the whole URL (RFC
/// 9113 section 8.3.1).
fn spelled(url: &Url, mut message: Request<Full<Bytes>>, is_http2: bool) -> Option<Request<Full<Bytes>>> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let uri: Uri = if is_http2 {
        message.headers_mut().remove(HOST);
        format!("{}://{}{path}", url.scheme(), super::authority(url)).parse().ok()?
    } else {
        path.parse().ok()?
    };
    *message.uri_mut() = uri;
    Some(message)
}
