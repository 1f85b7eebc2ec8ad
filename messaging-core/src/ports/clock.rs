//! Time and randomness as ports, so that tests hold them still.

use std::fmt::Debug;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::watch;

use crate::time::{Monotonic, Timestamp};

/// Tells the time and waits.
///
/// The date may be set, forward or back, by any amount and at any moment. What only measures how long something
/// takes (leases, pauses, limits of rates) asks the monotonic clock.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
    /// The same moment on a clock that is never set.
    fn monotonic(&self) -> Monotonic;
    /// Returns after so long, whatever is done to the date meanwhile.
    async fn sleep(&self, span: Duration);
}

/// Fills buffers with unpredictable bytes.
pub trait Entropy: Debug + Send + Sync {
    /// Fills the whole buffer.
    fn fill(&self, buffer: &mut [u8]);
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

/// A clock that moves when told to; for tests and embedders' tests.
#[derive(Debug)]
pub struct ManualClock(watch::Sender<(Timestamp, Monotonic)>);

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(watch::Sender::new((now, Monotonic::new(Duration::ZERO))))
    }

    /// Moves it forward.
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

/// The operating system's generator.
#[derive(Debug)]
pub struct SystemEntropy(SystemRandom);

impl Default for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the port")]
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.fill(buffer).expect("the operating system provides randomness");
    }
}

/// Repeatable bytes; for tests only, and never the source of a secret.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<u64>);

impl SeededEntropy {
    /// A sequence that depends on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in buffer.chunks_mut(8) {
            // SplitMix64.
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = *state;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^= word >> 31;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}
