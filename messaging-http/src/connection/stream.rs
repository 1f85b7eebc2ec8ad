//! The socket of a connection: notes when bytes move, and closes so that the peer can read the last answer.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::activity::{Activity, HeadPart};
use crate::pipeline::MAX_TARGET;

/// Time a peer may still send an unwanted body, so that it gets to read the answer.
const LINGER: Duration = Duration::from_secs(2);

/// Beginning of hyper's answer to a head that is too long, whichever part of it is.
const TOO_LARGE: &[u8] = b"HTTP/1.1 431 ";

/// The answer if the request's target is too long (RFC 9110 section 15.5.15).
const URI_TOO_LONG: &[u8] = b"HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A socket between hyper and the peer.
#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    activity: Arc<Activity>,
    linger: Option<Pin<Box<Sleep>>>,
    /// True if anything was received.
    has_received: bool,
    /// Bytes of the arriving request line; `None` once it has ended.
    line: Option<usize>,
    /// Remaining bytes of the answer that replaces hyper's.
    replacement: Option<&'static [u8]>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, activity: Arc<Activity>) -> Self {
        Self { socket, activity, linger: None, has_received: false, line: Some(0), replacement: None }
    }

    fn note_received(&mut self, bytes: &[u8]) {
        self.has_received = true;
        let Some(part) = self.activity.received() else { return };
        if part == HeadPart::Beginning {
            self.line = Some(0);
        }
        if let Some(length) = &mut self.line {
            if bytes.contains(&b'\n') {
                self.line = None;
            } else {
                *length += bytes.len();
            }
        }
    }

    /// Writes the replacement of an answer whose first bytes hyper is about to write; `None` if there is none.
    fn poll_replacement(&mut self, cx: &mut Context<'_>, answer: &[u8]) -> Option<Poll<io::Result<()>>> {
        if self.line.is_some_and(|length| length > MAX_TARGET) && answer.starts_with(TOO_LARGE) {
            self.line = None;
            self.replacement = Some(URI_TOO_LONG);
        }
        let mut left = self.replacement?;
        while !left.is_empty() {
            match Pin::new(&mut self.socket).poll_write(cx, left) {
                Poll::Ready(Ok(written)) => left = &left[written..],
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => {
                    self.replacement = Some(left);
                    return Some(Poll::Pending);
                }
            }
        }
        self.replacement = None;
        Some(Poll::Ready(Ok(())))
    }

    /// Reads and drops the bytes that the peer still sends. Closing with unread bytes would reset the connection, and
    /// the peer would lose the answer that told it to stop.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + LINGER)));
        let mut scratch = [0_u8; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.socket).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && !linger.is_elapsed() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return linger.as_mut().poll(cx),
            }
        }
    }

    /// Returns true if the peer may still be sending: an unwanted body, or the rest of a malformed head.
    fn may_receive_more(&self) -> bool {
        self.activity.unread.load(Relaxed) || self.has_received && self.activity.is_in_head()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.note_received(&buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(replaced) = self.poll_replacement(cx, bytes) {
            return replaced.map_ok(|()| bytes.len());
        }
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes))?;
        self.activity.moved();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = slices.first()
            && let Some(replaced) = self.poll_replacement(cx, first)
        {
            return replaced.map_ok(|()| slices.iter().map(|slice| slice.len()).sum());
        }
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices))?;
        self.activity.moved();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
        }
        if self.may_receive_more() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
