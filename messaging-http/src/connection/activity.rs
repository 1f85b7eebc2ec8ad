//! Activity of a connection: times of its last bytes, and requests in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// Bounds of a connection's quiet times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuietTimeouts {
    /// From the first byte of a request to the end of its head; also for the first request.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
}

impl QuietTimeouts {
    /// The shorter of the two.
    pub(super) fn shorter(self) -> Duration {
        self.head.min(self.idle)
    }
}

/// Activity of a connection; times are in milliseconds since it was accepted, plus one.
#[derive(Debug)]
pub(crate) struct Activity {
    accepted: Instant,
    /// Requests between the end of their head and their answer.
    running: AtomicU32,
    /// Running requests that wait for their body to arrive.
    bodies_awaited: AtomicU32,
    /// Time of the last byte or of the last answer.
    quiet_since: AtomicU64,
    /// Time at which the head of a request began to arrive; 0 while none does.
    head_since: AtomicU64,
    http2: AtomicBool,
    /// True if an answer was given while the peer was still sending the body.
    pub(super) unread: AtomicBool,
}

/// Decision about a connection, by its activity.
pub(super) enum Verdict {
    /// Nothing to do before this time.
    Wait(Instant),
    /// The connection was quiet for too long.
    Close,
}

impl Activity {
    /// A connection that was just accepted.
    pub(crate) fn new() -> Self {
        Self {
            accepted: Instant::now(),
            running: AtomicU32::new(0),
            bodies_awaited: AtomicU32::new(0),
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

    /// Marks a running request as waiting for its body until the answer is dropped.
    pub(crate) fn await_body(&self) -> AwaitedBody<'_> {
        self.bodies_awaited.fetch_add(1, Relaxed);
        AwaitedBody(self)
    }

    /// Returns true if the server does nothing for the peer: it is idle, or has yet to send the rest of a request.
    pub(crate) fn waits_for_peer(&self) -> bool {
        self.running.load(Relaxed) <= self.bodies_awaited.load(Relaxed)
    }

    /// Notes that a request was answered without its body being read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Notes that bytes of a body, of several requests or of an answer moved.
    pub(super) fn moved(&self) {
        self.quiet_since.store(self.now(), Relaxed);
    }

    /// Notes received bytes. Returns their part of a head; `None` if they belong to a body.
    pub(super) fn received(&self) -> Option<HeadPart> {
        let now = self.now();
        self.quiet_since.store(now, Relaxed);
        if self.running.load(Relaxed) > 0 {
            return None;
        }
        // Only the first byte of a head counts.
        let begins = self.head_since.compare_exchange(0, now, Relaxed, Relaxed).is_ok();
        Some(if begins { HeadPart::Beginning } else { HeadPart::Rest })
    }

    /// Returns true if the peer is between the beginning and the end of a head.
    pub(super) fn is_in_head(&self) -> bool {
        self.head_since.load(Relaxed) > 0
    }

    /// Decides if the connection was quiet for too long, and otherwise when to check again.
    pub(super) fn verdict(&self, timeouts: QuietTimeouts) -> Verdict {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 4);
        let now = self.now();
        let head_since = self.head_since.load(Relaxed);
        let deadline = if self.running.load(Relaxed) > 0 {
            // The body has timeouts of its own.
            u64::MAX
        } else if head_since > 0 && !self.http2.load(Relaxed) {
            head_since + millis(timeouts.head)
        } else {
            self.quiet_since.load(Relaxed) + millis(timeouts.idle)
        };
        if deadline <= now {
            return Verdict::Close;
        }
        // A head may begin to arrive, or an answer be given, at any time: check again at least this often.
        let look_again = (deadline - now).min(millis(timeouts.shorter()));
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

/// A request that waits for its body.
#[derive(Debug)]
pub(crate) struct AwaitedBody<'a>(&'a Activity);

impl Drop for AwaitedBody<'_> {
    fn drop(&mut self) {
        self.0.bodies_awaited.fetch_sub(1, Relaxed);
    }
}

/// Part of a head that received bytes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadPart {
    Beginning,
    Rest,
}
