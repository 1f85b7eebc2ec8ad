//! Clock of the application: wall time of the store, monotonic time of the process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::store::Store;
use messaging_core::time::{Monotonic, Timestamp};

/// Clock that shifts the process's wall time by the offset of the store's clock, so that all processes on one database
/// agree on due times and dates. Waits and monotonic time are the process's own.
#[derive(Debug)]
pub(super) struct StoreClock {
    /// The clock of the process.
    pub(super) own: Arc<dyn Clock>,
    pub(super) store: Arc<dyn Store>,
}

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let own = self.own.now().as_millis();
        Timestamp::from_millis(own.saturating_add(self.store.clock_offset_ms()))
    }

    fn monotonic(&self) -> Monotonic {
        self.own.monotonic()
    }

    async fn sleep(&self, span: Duration) {
        self.own.sleep(span).await;
    }
}
