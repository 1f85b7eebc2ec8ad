//! Why the content of a message is not made.

use messaging_core::domain::delivery::AttemptResult;
use messaging_core::ports::store::StoreError;

/// Nothing can be sent, whatever the recipients are.
pub(super) struct Impossible {
    reason: &'static str,
    message: String,
}

impl Impossible {
    pub(super) fn new(reason: &'static str, message: impl std::fmt::Display) -> Self {
        Self { reason, message: format!("{message}") }
    }

    /// What it means for one recipient.
    pub(super) fn result(&self) -> AttemptResult {
        AttemptResult::Failed { reason: self.reason, message: self.message.clone() }
    }
}

/// Why the content of a message is not made.
pub(super) enum Unprepared {
    /// The content can never be made; the message fails.
    Impossible(Impossible),
    /// Not now: the store failed.
    Store(StoreError),
    /// Not now, for a reason on our side that somebody has to mend.
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
