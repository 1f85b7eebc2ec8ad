//! Times of the last use of API keys and sessions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::time::Monotonic;

/// Shortest interval at which a last use is written.
const LAST_USE_INTERVAL: Duration = Duration::from_mins(1);

/// Time when the last use of each key and session was written, by its id.
#[derive(Debug, Default)]
pub(crate) struct LastUses(Mutex<HashMap<[u8; 16], Monotonic>>);

impl LastUses {
    /// Returns true if a use at `now` has to be written; it then counts as written.
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
