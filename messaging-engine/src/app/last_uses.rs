//! When API keys and sessions were last used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::time::Monotonic;

/// A last use is written at most this often.
const LAST_USE_INTERVAL: Duration = Duration::from_mins(1);

/// When the last use of each key and session was written, by its id.
#[derive(Debug, Default)]
pub(crate) struct LastUses(Mutex<HashMap<[u8; 16], Monotonic>>);

impl LastUses {
    /// Whether a use at `now` is to be written; then it counts as written.
    pub(crate) fn is_news(&self, key: [u8; 16], now: Monotonic) -> bool {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.get(&key).is_some_and(|last| now.since(*last) < LAST_USE_INTERVAL) {
            return false;
        }
        if uses.len() >= 10_000 {
            uses.retain(|_, last| now.since(*last) < LAST_USE_INTERVAL);
        }
        uses.insert(key, now);
        true
    }
}
