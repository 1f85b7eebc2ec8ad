//! Time and randomness as ports, so that tests hold them still.

use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::time::{Monotonic, Timestamp};

pub use crate::entropy::{Entropy, SeededEntropy, SystemEntropy};

/// A source of time.
///
/// The date may be set, forward or back, by any amount and at any moment. Durations (leases, pauses, rate limits) are
/// measured by the monotonic clock.
///
/// ```
/// use std::time::Duration;
///
/// use messaging_core::ports::clock::{Clock, ManualClock};
/// use messaging_core::time::Timestamp;
///
/// let clock = ManualClock::new(Timestamp::from_millis(0));
/// let before = clock.monotonic();
/// clock.advance(Duration::from_secs(1));
/// clock.set(Timestamp::from_millis(0));
/// assert_eq!(clock.now(), Timestamp::from_millis(0));
/// assert_eq!(clock.monotonic(), before + Duration::from_secs(1), "who sets the date lets no time pass");
/// ```
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// Returns the present time.
    fn now(&self) -> Timestamp;
    /// The same moment on a clock that is never set.
    fn monotonic(&self) -> Monotonic;
    /// Returns after this time, even if the date is set meanwhile.
    async fn sleep(&self, span: Duration);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Monotonic {
        static BEGINNING: OnceLock<Instant> = OnceLock::new();
        Monotonic::new(BEGINNING.get_or_init(Instant::now).elapsed())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// A clock that is moved by hand; for tests and embedders' tests.
#[derive(Debug)]
pub struct ManualClock(watch::Sender<(Timestamp, Monotonic)>);

impl ManualClock {
    /// Returns a clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(watch::Sender::new((now, Monotonic::new(Duration::ZERO))))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.0.send_modify(|(now, monotonic)| (*now, *monotonic) = (*now + span, *monotonic + span));
    }

    /// Sets the date, forward or back, while no time passes.
    pub fn set(&self, date: Timestamp) {
        self.0.send_modify(|(now, _)| *now = date);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.borrow().0
    }

    fn monotonic(&self) -> Monotonic {
        self.0.borrow().1
    }

    async fn sleep(&self, span: Duration) {
        let until = self.monotonic() + span;
        let mut changes = self.0.subscribe();
        // An error means the clock is gone, and with it everybody who could wait.
        let _ = changes.wait_for(|(_, monotonic)| *monotonic >= until).await;
    }
}
