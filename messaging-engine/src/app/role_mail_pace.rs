//! Limit on the mail that is forwarded to the operator: it is unsolicited, and anybody can write it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::time::Monotonic;

/// Number of mails that are forwarded in a window.
const MOST: u32 = 30;
const WINDOW: Duration = Duration::from_hours(1);

/// Start of the current window, and number of mails forwarded in it.
#[derive(Debug, Default)]
pub(crate) struct RoleMailPace(Mutex<Option<(Monotonic, u32)>>);

impl RoleMailPace {
    /// Counts one more mail; returns true if it may be forwarded.
    pub(crate) fn admit(&self, now: Monotonic) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, count) = window.filter(|(began, _)| now.since(*began) < WINDOW).unwrap_or((now, 0));
        *window = Some((began, count.saturating_add(1).min(MOST)));
        count < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_its_share() {
        let pace = RoleMailPace::default();
        let at = |minutes: u64| Monotonic::new(Duration::from_mins(minutes));
        assert_eq!((0..100).filter(|number| pace.admit(at(number / 10))).count(), 30);
        assert!(!pace.admit(at(59)));
        assert!(pace.admit(at(60)));
    }
}
