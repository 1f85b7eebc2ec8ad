//! Failures of work that is tried every few seconds: each is logged once, and not with every try.

use std::time::Duration;

use messaging_core::error::Chain;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Monotonic;

/// Time after which the same failure is logged again.
const LOG_EVERY: Duration = Duration::from_mins(10);

/// The failure that was logged last.
#[derive(Debug, Default)]
pub(super) struct RepeatedFailure(Option<(String, Monotonic)>);

impl RepeatedFailure {
    /// The text of a failure that is to be logged. `None` for one that was logged a moment ago, and for a store that
    /// takes no work, which logs the cause itself.
    pub(super) fn note(&mut self, error: &StoreError, now: Monotonic) -> Option<String> {
        if matches!(error, StoreError::Unavailable) {
            return None;
        }
        let text = Chain(error).to_string();
        if self.0.as_ref().is_some_and(|(logged, at)| *logged == text && now.since(*at) < LOG_EVERY) {
            return None;
        }
        self.0 = Some((text.clone(), now));
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_logged_every_ten_minutes_and_another_one_at_once() {
        let mut repeated = RepeatedFailure::default();
        let mut is_logged = |text: &'static str, minutes| {
            let error = StoreError::Failed(text.into());
            repeated.note(&error, Monotonic::new(Duration::from_mins(minutes))).is_some()
        };
        let logged = [("malformed", 0), ("malformed", 9), ("full", 9), ("full", 18), ("full", 19), ("malformed", 20)];
        assert_eq!(logged.map(|(text, minutes)| is_logged(text, minutes)), [true, false, true, false, true, true]);
        let told = repeated.note(&StoreError::Unavailable, Monotonic::NEVER);
        assert_eq!(told, None, "the store logs it");
    }
}
