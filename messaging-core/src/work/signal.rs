//! Wakes whoever runs jobs when one was committed: nobody polls.

use tokio::sync::Notify;

use crate::time::Timestamp;

/// Tells of new work.
#[derive(Debug, Default)]
pub(crate) struct WorkSignal {
    changed: Notify,
}

impl WorkSignal {
    /// A job due at `_due` was committed.
    pub(crate) fn announce(&self, _due: Timestamp) {
        self.changed.notify_one();
    }

    /// Returns when something was announced since the last call returned.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}
