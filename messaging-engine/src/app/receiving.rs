//! Which imports receive their file at the moment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::ids::ImportId;

use crate::error::Error;

/// Imports whose file is being received by this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receiving(Arc<Mutex<HashSet<ImportId>>>);

/// A link that a file is being received at; free again when dropped.
#[derive(Debug)]
pub(crate) struct LinkInUse {
    receiving: Receiving,
    id: ImportId,
}

impl Receiving {
    fn lock(&self) -> MutexGuard<'_, HashSet<ImportId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Contract section 22: a second upload of one link at the same time is refused.
    pub(crate) fn begin(&self, id: ImportId) -> Result<LinkInUse, Error> {
        if self.lock().insert(id) {
            Ok(LinkInUse { receiving: self.clone(), id })
        } else {
            Err(Error::InvalidState { status: "uploading", allowed: &["awaiting_upload"] })
        }
    }
}

impl Drop for LinkInUse {
    fn drop(&mut self) {
        self.receiving.lock().remove(&self.id);
    }
}
