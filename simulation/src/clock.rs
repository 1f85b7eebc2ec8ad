//! The virtual clock: time passes when nothing else can happen, and the date may be changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ports::Clock;
use messaging_core::time::{Monotonic, Timestamp};
use tokio::time::Instant;

use crate::world::World;

/// Date at which a run begins: 2026-01-31T09:15:00Z.
pub(crate) const BEGINNING: Timestamp = Timestamp::from_millis(1_769_850_900_000);

/// The clock of all processes of a run, which is that of its paused runtime.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    began: Instant,
    /// Milliseconds by which the date was set.
    set_by: AtomicI64,
}

impl VirtualClock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), set_by: AtomicI64::new(0) }
    }

    /// Moves the date by this many milliseconds, forward or back.
    pub(crate) fn jump(&self, millis: i64) {
        self.set_by.fetch_add(millis, Ordering::Relaxed);
    }

    /// Time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(BEGINNING.as_millis() + passed + self.set_by.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.elapsed())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// The clock of a machine, which differs from that of the store.
#[derive(Debug)]
pub(crate) struct MachineClock {
    pub(crate) world: Arc<World>,
    /// Milliseconds by which it is ahead.
    pub(crate) ahead_ms: i64,
}

#[async_trait]
impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.world.clock.now().as_millis() + self.ahead_ms)
    }

    fn monotonic(&self) -> Monotonic {
        self.world.clock.monotonic()
    }

    async fn sleep(&self, span: Duration) {
        self.world.clock.sleep(span).await;
    }
}
