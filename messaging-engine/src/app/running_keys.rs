//! The Idempotency-Keys whose first request is running in this process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use messaging_core::changes::ReplyKey;

/// The Idempotency-Keys whose first request is running in this process.
#[derive(Debug, Default)]
pub(crate) struct RunningKeys(Mutex<HashSet<ReplyKey>>);

impl RunningKeys {
    /// Marks a key as running until the guard is dropped; `None` when it is already.
    pub(crate) fn enter(&self, key: ReplyKey) -> Option<Running<'_>> {
        let fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        fresh.then_some(Running { keys: self, key })
    }
}

pub(crate) struct Running<'a> {
    keys: &'a RunningKeys,
    key: ReplyKey,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.keys.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
