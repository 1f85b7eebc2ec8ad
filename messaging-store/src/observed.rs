//! The observer of commits, which is notified of every commit; there is one at most.

use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::ports::store::CommitObserver;

/// Who is told of commits; shared by the handle, which is told who, and the thread that commits.
#[derive(Debug, Default)]
pub(crate) struct Observed(Mutex<Option<Arc<dyn CommitObserver>>>);

impl Observed {
    /// Tells `observer` from now on, and nobody else.
    pub(crate) fn set(&self, observer: Arc<dyn CommitObserver>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    /// Who is told, if anybody is.
    pub(crate) fn get(&self) -> Option<Arc<dyn CommitObserver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
