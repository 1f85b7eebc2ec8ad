//! Reads command lines and content from a client, within bounds.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::data::{Collector, Fault};

/// Maximum length of a command line, its end included (RFC 5321 section 4.5.3.1.4 has 512, extensions add).
pub(super) const MAX_LINE: usize = 1000;

/// Maximum number of octets read at once.
const CHUNK: usize = 8 * 1024;

/// Reason why no line could be read from the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// The client closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The connection is broken.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The line is longer than [`MAX_LINE`].
    #[error("a command line is too long")]
    TooLong,
    /// The line has a line feed without a carriage return, or the other way round.
    #[error("a bare CR or LF in a command line")]
    Bare,
}

/// A connection, with the octets that were read from it but not used yet.
pub(super) struct Incoming<R> {
    stream: R,
    /// Octets that were read but not used yet.
    unread: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) const fn new(stream: R) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// Returns the stream, for writing.
    pub(super) const fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// Discards the octets that were read. Input before TLS began may have been injected by an attacker (RFC 3207
    /// section 6).
    pub(super) fn discard(&mut self) {
        self.unread.clear();
    }

    /// Returns true if a whole line was read already, so that replies may wait for later ones (RFC 2920).
    pub(super) fn has_line(&self) -> bool {
        self.unread.contains(&b'\n')
    }

    /// Reads the next command line and returns it without its end.
    ///
    /// Only CRLF ends a line. A client with other line ends may see commands begin where another server on the way does
    /// not, so its input is not trusted.
    pub(super) async fn line(&mut self) -> Result<Vec<u8>, LineError> {
        loop {
            if let Some(at) = self.unread.iter().position(|&byte| byte == b'\n') {
                if at >= MAX_LINE {
                    return Err(LineError::TooLong);
                }
                let mut line: Vec<u8> = self.unread.drain(..=at).collect();
                line.pop();
                return match line.pop() {
                    Some(b'\r') if !line.contains(&b'\r') => Ok(line),
                    _ => Err(LineError::Bare),
                };
            }
            if self.unread.len() >= MAX_LINE {
                return Err(LineError::TooLong);
            }
            self.fill().await?;
        }
    }

    /// Reads content into `collector`, as much as comes at once; input after its end stays for [`Self::line`]. Returns
    /// the outcome once it is known.
    pub(super) async fn content(&mut self, collector: &mut Collector) -> Result<Option<Result<(), Fault>>, LineError> {
        if self.unread.is_empty() {
            self.fill().await?;
        }
        let (used, outcome) = collector.take(&self.unread);
        self.unread.drain(..used);
        Ok(outcome)
    }

    /// Reads and drops input, so that a client that is still writing gets to read the last reply.
    pub(super) async fn drain(&mut self, most: usize) {
        let mut drained = self.unread.len();
        while drained < most {
            self.unread.clear();
            if self.fill().await.is_err() {
                return;
            }
            drained += self.unread.len();
        }
    }

    async fn fill(&mut self) -> Result<(), LineError> {
        // Without reserved room a read could grow the buffer without bound.
        self.unread.reserve(CHUNK);
        match (&mut self.stream).take(CHUNK as u64).read_buf(&mut self.unread).await? {
            0 => Err(LineError::Closed),
            _ => Ok(()),
        }
    }
}
