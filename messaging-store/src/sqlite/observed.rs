//! Who is told of commits.

use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::ports::store::CommitObserver;

/// Who is told of commits; shared by the handle, which is told who, and the thread that commits.
#[derive(Debug, Default)]
pub(super) struct Observed(Mutex<Option<Arc<dyn CommitObserver>>>);

impl Observed {
    /// Tells `observer` from now on, and nobody else.
    pub(super) fn set(&self, observer: Arc<dyn CommitObserver>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    /// Who is told, if anybody is.
    pub(super) fn get(&self) -> Option<Arc<dyn CommitObserver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
