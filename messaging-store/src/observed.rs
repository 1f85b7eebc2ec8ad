//! The observer of commits, which is notified of every commit; there is one at most.

use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::ports::store::CommitObserver;

/// The observer, shared by the handle that sets it and the thread that commits.
#[derive(Debug, Default)]
pub(crate) struct Observed(Mutex<Option<Arc<dyn CommitObserver>>>);

impl Observed {
    /// Replaces the observer.
    pub(crate) fn set(&self, observer: Arc<dyn CommitObserver>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    /// Returns the observer, if one is set.
    pub(crate) fn get(&self) -> Option<Arc<dyn CommitObserver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
