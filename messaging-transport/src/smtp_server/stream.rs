//! A server's connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of a TLS handshake, the type of its record (RFC 8446 section 5.1). No command begins with it.
const HANDSHAKE: u8 = 22;

/// A connection.
pub(super) enum Stream {
    /// Plain TCP, as it was accepted.
    Plain(TcpStream),
    /// TCP with TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// State while TLS begins, and after a failed handshake.
    Closed,
}

impl Stream {
    /// Returns true if the client begins with TLS before `patience` is over, without a greeting. It reads nothing from
    /// the connection.
    pub(super) async fn begins_with_tls(&self, patience: Duration) -> bool {
        let Self::Plain(socket) = self else { return false };
        let mut first = [0];
        matches!(timeout(patience, socket.peek(&mut first)).await, Ok(Ok(1)) if first == [HANDSHAKE])
    }

    /// Begins TLS. If that fails, the connection is over.
    pub(super) async fn upgrade(&mut self, config: Arc<ServerConfig>, limit: Duration) -> io::Result<()> {
        let Self::Plain(socket) = std::mem::replace(self, Self::Closed) else { return Err(closed()) };
        let handshake = timeout(limit, TlsAcceptor::from(config).accept(socket));
        *self = Self::Tls(Box::new(handshake.await.map_err(|_| io::ErrorKind::TimedOut)??));
        Ok(())
    }
}

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Closed => Poll::Ready(Err(closed())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Closed => Poll::Ready(Err(closed())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Closed => Poll::Ready(Ok(())),
        }
    }
}
