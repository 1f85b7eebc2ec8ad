//! A connection to the metrics listener, with its state: idle, or a page that is being made or written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// State of a connection to the metrics listener.
#[derive(Debug, Default)]
pub(super) struct Scraper {
    work: Mutex<Work>,
    leave: Notify,
}

/// State of a connection: idle, or a page that is being made or written.
#[derive(Debug, Default, Clone, Copy)]
enum Work {
    /// Idle: the next request has not arrived.
    #[default]
    Nothing,
    /// A page is being made.
    Making,
    /// A page is being written, since this time.
    Writing(Instant),
}

impl Scraper {
    /// Notes that a page is about to be made.
    pub(super) fn begin(&self) {
        *self.work() = Work::Making;
    }

    /// Notes that the page is made, and about to be written.
    pub(super) fn write(&self) {
        *self.work() = Work::Writing(Instant::now());
    }

    /// Notes that everything is written.
    fn flushed(&self) {
        let mut work = self.work();
        if matches!(*work, Work::Writing(_)) {
            *work = Work::Nothing;
        }
    }

    /// Returns true if the connection must not be closed in favour of another. Writing counts as busy for `timeout`
    /// only: a peer that reads nothing must not keep others out.
    pub(super) fn is_busy(&self, timeout: Duration) -> bool {
        match *self.work() {
            Work::Nothing => false,
            Work::Making => true,
            Work::Writing(since) => since.elapsed() < timeout,
        }
    }

    /// Ends the connection.
    pub(super) fn dismiss(&self) {
        self.leave.notify_one();
    }

    /// Waits until the connection is to end.
    pub(super) async fn dismissed(&self) {
        self.leave.notified().await;
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that notices when a page is written out.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    scraper: Arc<Scraper>,
}

impl<S> Watched<S> {
    pub(super) const fn new(socket: S, scraper: Arc<Scraper>) -> Self {
        Self { socket, scraper }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// The server flushes once it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.scraper.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_connection_is_busy_until_its_page_is_written_out() {
        const PATIENCE: Duration = Duration::from_mins(1);
        let scraper = Arc::<Scraper>::default();
        let mut watched = Watched::new(tokio::io::sink(), Arc::clone(&scraper));
        assert!(!scraper.is_busy(PATIENCE));
        scraper.begin();
        // Between two pieces of work the server flushes as well.
        watched.flush().await.unwrap();
        assert!(scraper.is_busy(PATIENCE));
        scraper.write();
        watched.write_all(b"page").await.unwrap();
        assert!(scraper.is_busy(PATIENCE) && !scraper.is_busy(Duration::ZERO));
        watched.flush().await.unwrap();
        assert!(!scraper.is_busy(PATIENCE));
    }
}
