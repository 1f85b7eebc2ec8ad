//! A value whose changes can be awaited.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// A value whose changes can be awaited. Waiters are woken in the order in which they came; `tokio::sync::watch` wakes
/// them in random order.
#[derive(Debug, Default)]
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Clone> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn get(&self) -> T {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Returns when the value is as wanted.
    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(&T) -> bool) {
        if is_wanted(&self.get()) {
            return;
        }
        loop {
            let changed = self.changed.notified();
            if is_wanted(&self.get()) {
                return;
            }
            changed.await;
        }
    }
}
