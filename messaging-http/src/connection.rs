//! One connection: its socket, how long it may be quiet, and its end.
//!
//! The time-outs are ours instead of hyper's: a connection that waits for its next request is not the
//! same as one whose request trickles in, both HTTP versions need them, and a deadline that is looked
//! at now and then costs a request nothing.

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::pipeline::Pipeline;

/// How long a peer may go on sending a body that nobody wanted, so that it gets to read the answer.
const LINGER: Duration = Duration::from_secs(2);

/// How the server winds down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Requests are taken.
    Running,
    /// Running requests are finished, no further ones are taken.
    Stopping,
    /// Time is up.
    Aborting,
}

/// Bounds of a connection's quiet times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte of a request to the end of its head; also for the first request.
    pub(crate) head: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
}

impl Patience {
    fn shorter(self) -> Duration {
        self.head.min(self.idle)
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve(
    socket: TcpStream,
    builder: Arc<Builder<TokioExecutor>>,
    pipeline: Arc<Pipeline>,
    patience: Patience,
    mut phase: watch::Receiver<Phase>,
) {
    let Ok(peer) = socket.peer_addr() else { return };
    // Answers are written in one piece; waiting for more would only delay them.
    let _ = socket.set_nodelay(true);
    let activity = Arc::new(Activity::new());
    let stream = Stream { socket, activity: Arc::clone(&activity), linger: None };
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request| Arc::clone(&pipeline).serve(request, peer.ip(), Arc::clone(&activity)))
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut watchdog = pin!(sleep(patience.shorter()));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = watchdog.as_mut() => match activity.verdict(patience) {
                Verdict::Wait(until) => watchdog.as_mut().reset(until),
                Verdict::Close => return,
            },
            now = next_phase(&mut phase, stopping) => {
                if now == Phase::Aborting {
                    return;
                }
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Waits for the phase after the present one.
async fn next_phase(phase: &mut watch::Receiver<Phase>, stopping: bool) -> Phase {
    let present = if stopping { Phase::Stopping } else { Phase::Running };
    // The server holds the sender until all connections are gone; without it there is nothing to serve.
    phase.wait_for(|phase| *phase != present).await.map_or(Phase::Aborting, |phase| *phase)
}

/// What happened on a connection and when; in milliseconds since it was accepted, plus one.
#[derive(Debug)]
pub(crate) struct Activity {
    accepted: Instant,
    /// Requests between the end of their head and their answer.
    running: AtomicU32,
    /// When the last byte moved or the last answer was given.
    quiet_since: AtomicU64,
    /// When the head of a request began to arrive; 0 while none does.
    head_since: AtomicU64,
    http2: AtomicBool,
    /// Whether an answer was given while the peer was still sending the body.
    unread: AtomicBool,
}

/// What a look at a connection tells.
enum Verdict {
    /// Nothing to be done before this.
    Wait(Instant),
    /// It was quiet for too long.
    Close,
}

impl Activity {
    fn new() -> Self {
        Self {
            accepted: Instant::now(),
            running: AtomicU32::new(0),
            quiet_since: AtomicU64::new(1),
            head_since: AtomicU64::new(1),
            http2: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.accepted.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Marks a request as running until the answer is dropped.
    pub(crate) fn begin(self: Arc<Self>, version: http::Version) -> Running {
        self.running.fetch_add(1, Relaxed);
        self.head_since.store(0, Relaxed);
        if version == http::Version::HTTP_2 {
            self.http2.store(true, Relaxed);
        }
        Running(self)
    }

    /// The request was answered without its body being read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    fn moved(&self, direction: Direction) {
        let now = self.now();
        self.quiet_since.store(now, Relaxed);
        if direction == Direction::In && self.running.load(Relaxed) == 0 {
            // Only the first byte of a head counts.
            let _ = self.head_since.compare_exchange(0, now, Relaxed, Relaxed);
        }
    }

    fn verdict(&self, patience: Patience) -> Verdict {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 4);
        let now = self.now();
        let head_since = self.head_since.load(Relaxed);
        let deadline = if self.running.load(Relaxed) > 0 {
            // The body has time-outs of its own.
            u64::MAX
        } else if head_since > 0 && !self.http2.load(Relaxed) {
            head_since + millis(patience.head)
        } else {
            self.quiet_since.load(Relaxed) + millis(patience.idle)
        };
        if deadline <= now {
            return Verdict::Close;
        }
        // A head may begin to arrive, or an answer be given, at any time: look again at least that often.
        let look_again = (deadline - now).min(millis(patience.shorter()));
        Verdict::Wait(Instant::now() + Duration::from_millis(look_again))
    }
}

/// A running request.
#[derive(Debug)]
pub(crate) struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.quiet_since.store(self.0.now(), Relaxed);
        self.0.running.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// A socket that notes when bytes move, and closes so that the peer can read the last answer.
#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    activity: Arc<Activity>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    fn note(&self, written: &io::Result<usize>) {
        if let Ok(1..) = written {
            self.activity.moved(Direction::Out);
        }
    }

    /// Reads and drops what the peer still sends. Closing with bytes unread would reset the connection,
    /// and the peer would lose the answer that told it to stop.
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
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.activity.moved(Direction::In);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes));
        self.note(&written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices));
        self.note(&written);
        Poll::Ready(written)
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
        if self.activity.unread.load(Relaxed) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
