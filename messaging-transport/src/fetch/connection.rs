//! One connection that speaks HTTP/1.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use messaging_core::ports::fetch::FetchError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::Url;

use super::tls::Tls;

/// How long one address may take to answer; a host may have several.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A peer that has answered and does not take the rest of the request is not waited for: the answer is there.
const READY_TIME: Duration = Duration::from_millis(50);

/// The head of an answer, and what is read of its body at a time, is no longer than this.
const BUFFER: usize = 64 << 10;

/// A request was not answered.
pub(super) enum Unsent {
    /// Nothing of it was written: here it is again.
    Returned(Box<Request<Full<Bytes>>>),
    /// It may have been read.
    Lost,
}

/// A connection. Dropping it closes the socket, whatever the peer is doing.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, with TLS for the host of a URL when it is given.
    pub(super) async fn open(address: SocketAddr, tls: Option<(&Tls, &Url)>) -> Result<Self, FetchError> {
        let stream = match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(_)) => return Err(FetchError::Connection),
            Err(_) => return Err(FetchError::Timeout),
        };
        // Requests are written in one piece; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        match tls {
            Some((tls, url)) => Self::speak(tls.handshake(stream, url).await?).await,
            None => Self::speak(stream).await,
        }
    }

    async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, FetchError> {
        let opened = Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|_| FetchError::Connection)?;
        let driver = tokio::spawn(async move {
            // How it ended, whoever waits for an answer hears.
            let _ = connection.await;
        });
        Ok(Self { sender, driver: driver.abort_handle() })
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(&mut self, message: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unsent> {
        self.sender.try_send_request(message).await.map_err(|mut error| match error.take_message() {
            Some(message) => Unsent::Returned(Box::new(message)),
            None => Unsent::Lost,
        })
    }

    /// Whether another request may be sent, once an answer was read to its end.
    pub(super) async fn is_usable(&mut self) -> bool {
        matches!(timeout(READY_TIME, self.sender.ready()).await, Ok(Ok(())))
    }

    /// Whether the peer has kept an idle connection open, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.sender.is_ready()
    }
}
