//! What a client sends: command lines and content, within bounds.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::data::{Collector, Fault};

/// The longest command line, its end included (RFC 5321 section 4.5.3.1.4 has 512, extensions add).
pub(super) const MAX_LINE: usize = 1000;

/// How much is read at once.
const CHUNK: usize = 8 * 1024;

/// The reason why no line could be read from the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// The client has nothing more to say.
    #[error("the connection was closed")]
    Closed,
    /// The connection is broken.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The line is longer than [`MAX_LINE`].
    #[error("a command line is too long")]
    TooLong,
    /// A line feed without a carriage return, or the other way round.
    #[error("a bare CR or LF in a command line")]
    Bare,
}

/// A connection with what was read of it and not used yet.
pub(super) struct Incoming<R> {
    stream: R,
    /// What was read and not used yet.
    unread: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(super) const fn new(stream: R) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// The connection, to be written to.
    pub(super) const fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// Forgets what was read. What came before TLS began may be of somebody on the way (RFC 3207 section 6).
    pub(super) fn discard(&mut self) {
        self.unread.clear();
    }

    /// Whether a whole line was read already, so that replies may wait for those that follow (RFC 2920).
    pub(super) fn has_line(&self) -> bool {
        self.unread.contains(&b'\n')
    }

    /// The next command line without its end.
    ///
    /// Only CRLF ends a line. A client whose lines end otherwise disagrees with somebody on the way about
    /// where commands begin, so nothing it says is believed.
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

    /// Reads content into `collector`, as much as comes at once; what follows its end stays for [`Self::line`]. Answers
    /// the outcome once it is known.
    pub(super) async fn content(&mut self, collector: &mut Collector) -> Result<Option<Result<(), Fault>>, LineError> {
        if self.unread.is_empty() {
            self.fill().await?;
        }
        let (used, outcome) = collector.take(&self.unread);
        self.unread.drain(..used);
        Ok(outcome)
    }

    /// Reads on without looking, so that a client that is still writing gets to read why we are done.
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
        // Without room of its own a read could grow the buffer as it likes.
        self.unread.reserve(CHUNK);
        match (&mut self.stream).take(CHUNK as u64).read_buf(&mut self.unread).await? {
            0 => Err(LineError::Closed),
            _ => Ok(()),
        }
    }
}
