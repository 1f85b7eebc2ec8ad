//! Reasons why the content of a message cannot be made.

use messaging_core::domain::delivery::AttemptResult;
use messaging_core::ports::store::StoreError;

/// Failure for all recipients of a message: nothing can be sent.
pub(super) struct Impossible {
    reason: &'static str,
    message: String,
}

impl Impossible {
    pub(super) fn new(reason: &'static str, message: impl std::fmt::Display) -> Self {
        Self { reason, message: format!("{message}") }
    }

    /// Returns the result for one recipient.
    pub(super) fn result(&self) -> AttemptResult {
        AttemptResult::Failed { reason: self.reason, message: self.message.clone() }
    }
}

/// Reason why the content of a message is not made.
pub(super) enum Unprepared {
    /// The content can never be made; the message fails.
    Impossible(Impossible),
    /// The store failed; it is tried again later.
    Store(StoreError),
    /// A cause on our side that somebody has to repair; it is tried again later.
    PutOff(String),
}

impl From<Impossible> for Unprepared {
    fn from(impossible: Impossible) -> Self {
        Self::Impossible(impossible)
    }
}

impl From<StoreError> for Unprepared {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
