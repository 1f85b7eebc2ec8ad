//! Cached state of the fence: a fenced installation takes requests, and nothing leaves it.
//!
//! The check before anything leaves reads an atomic. A fence is put up only by a store that is opened, so it is never
//! noticed late; its end is announced by news, and looked for before every claim.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use messaging_core::domain::installation::fence::{Fence, MEANING};
use messaging_core::ports::Store;
use messaging_core::ports::store::StoreError;

/// State of the fence as this process knows it.
#[derive(Debug, Default)]
pub(crate) struct KnownFence {
    is_up: AtomicBool,
    fence: Mutex<Option<Fence>>,
}

impl KnownFence {
    /// True while the installation is fenced, so that nothing may leave it.
    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Acquire)
    }

    /// Returns the fence if it is up.
    pub(crate) fn get(&self) -> Option<Fence> {
        if self.is_up() { *self.fence.lock().unwrap_or_else(PoisonError::into_inner) } else { None }
    }

    /// Reads the fence from the store. Returns true if it came down.
    pub(crate) async fn look(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let found = store.fence().await?;
        let mut known = self.fence.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, found);
        self.is_up.store(found.is_some(), Ordering::Release);
        match (before, found) {
            (None, Some(fence)) => {
                tracing::warn!(since = %fence.since, cure = fence.state.cure(), "{MEANING}");
            }
            (Some(_), None) => tracing::info!("the fence is down: what waits goes on"),
            _ => {}
        }
        Ok(before.is_some() && found.is_none())
    }
}
