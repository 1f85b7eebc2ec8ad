//! Signal that wakes the worker when a job was committed: nothing polls.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Signal of new work.
#[derive(Debug, Default)]
pub(crate) struct WorkSignal {
    changed: Notify,
    /// Outcomes of jobs that the store has not taken yet.
    unsettled: AtomicUsize,
}

/// An outcome that waits for the store; settled or given up when dropped.
#[derive(Debug)]
pub(crate) struct Unsettled<'a>(&'a AtomicUsize);

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl WorkSignal {
    /// Signals that a job was committed.
    pub(crate) fn announce(&self) {
        self.changed.notify_one();
    }

    /// Returns when a job was announced since the last call returned.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Counts an outcome that begins to wait for the store.
    pub(crate) fn unsettled(&self) -> Unsettled<'_> {
        self.unsettled.fetch_add(1, Ordering::AcqRel);
        Unsettled(&self.unsettled)
    }

    /// Returns true if outcomes wait for the store.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) > 0
    }
}
