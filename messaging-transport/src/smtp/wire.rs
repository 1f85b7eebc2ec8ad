//! Connection of an SMTP client: commands out, replies in, both within bounds.

use std::io;
use std::time::Duration;

use messaging_core::domain::delivery::attempt::{AttemptTls, TlsVerification};
use rustls::{ProtocolVersion, SupportedCipherSuite};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::reply::{Collector, MAX_LINE, Reply};

/// Error after which the connection is of no further use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("the connection was closed")]
    Closed,
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the reply is malformed: {0}")]
    Malformed(&'static str),
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection, and the octets that were read beyond the last reply.
pub(super) struct Wire {
    stream: Stream,
    unread: Vec<u8>,
}

impl Wire {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self { stream: Stream::Plain(stream), unread: Vec::new() }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { stream: Stream::Tls(Box::new(stream)), unread: Vec::new() }
    }

    /// Returns version and cipher suite if TLS is in use, with the verification of the peer.
    pub(super) fn tls_in_use(&self, verified: TlsVerification) -> Option<AttemptTls> {
        let Stream::Tls(stream) = &self.stream else { return None };
        let connection = stream.get_ref().1;
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLS",
        };
        // The library names suites of TLS 1.3 with a prefix that the registry of IANA does not have.
        let name = |suite: SupportedCipherSuite| suite.suite().as_str().map(|name| name.replacen("TLS13_", "TLS_", 1));
        let cipher = connection.negotiated_cipher_suite().and_then(name);
        Some(AttemptTls { version: version.to_owned(), cipher, verified })
    }

    /// Returns the certificates that the peer presented, its own first; none in plain text.
    pub(super) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        match &self.stream {
            Stream::Tls(stream) => stream.get_ref().1.peer_certificates().unwrap_or_default(),
            Stream::Plain(_) => &[],
        }
    }

    /// Gives the connection back for the TLS handshake.
    ///
    /// Octets behind the reply to STARTTLS were sent before the peer proved its name. They must not be taken for an
    /// answer given under TLS, so they end the connection.
    pub(super) fn into_plain(self) -> Result<TcpStream, WireError> {
        match self.stream {
            Stream::Plain(stream) if self.unread.is_empty() => Ok(stream),
            _ => Err(WireError::Malformed("something was sent ahead of the TLS handshake")),
        }
    }

    /// Returns true if the peer sent more than the awaited replies.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Writes everything and flushes.
    pub(super) async fn write(&mut self, bytes: &[u8], limit: Duration) -> Result<(), WireError> {
        let written = timeout(limit, async {
            match &mut self.stream {
                Stream::Plain(stream) => stream.write_all(bytes).await,
                Stream::Tls(stream) => {
                    stream.write_all(bytes).await?;
                    stream.flush().await
                }
            }
        });
        written.await.map_err(|_| WireError::TimedOut(limit))?.map_err(WireError::Broken)
    }

    /// Reads one reply. The limit is for all of it: a line now and then does not extend it.
    pub(super) async fn reply(&mut self, limit: Duration) -> Result<Reply, WireError> {
        timeout(limit, self.read_reply()).await.map_err(|_| WireError::TimedOut(limit))?
    }

    async fn read_reply(&mut self) -> Result<Reply, WireError> {
        let mut collector = Collector::default();
        let mut searched = 0;
        loop {
            let Some(at) = self.unread[searched..].iter().position(|&byte| byte == b'\n') else {
                searched = self.unread.len();
                if searched >= MAX_LINE {
                    return Err(WireError::Malformed("a line is too long"));
                }
                self.fill().await?;
                continue;
            };
            let end = searched + at;
            if end >= MAX_LINE {
                return Err(WireError::Malformed("a line is too long"));
            }
            let line = &self.unread[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let complete = collector.push(line).map_err(WireError::Malformed)?;
            self.unread.drain(..=end);
            searched = 0;
            if let Some(reply) = complete {
                return Ok(reply);
            }
        }
    }

    async fn fill(&mut self) -> Result<(), WireError> {
        // Without reserved room a read could grow the buffer without bound.
        self.unread.reserve(MAX_LINE);
        let read = match &mut self.stream {
            Stream::Plain(stream) => stream.read_buf(&mut self.unread).await?,
            Stream::Tls(stream) => stream.read_buf(&mut self.unread).await?,
        };
        if read == 0 { Err(WireError::Closed) } else { Ok(()) }
    }

    /// Closes the connection; with TLS, the peer learns that nothing was cut off.
    pub(super) async fn shutdown(mut self, limit: Duration) {
        let closed = timeout(limit, async {
            match &mut self.stream {
                Stream::Plain(stream) => stream.shutdown().await,
                Stream::Tls(stream) => stream.shutdown().await,
            }
        });
        // The connection is gone either way.
        drop(closed.await);
    }
}
