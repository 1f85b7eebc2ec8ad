//! Why an attempt to deliver does not begin.

use messaging_core::domain::delivery::Judgment;
use messaging_core::domain::recipients::RecipientKind;
use messaging_core::ports::store::StoreError;

use crate::work::delivery_progress::Addressee;

/// Nothing can be sent, whatever the recipients are.
pub(super) struct Impossible {
    reason: &'static str,
    message: String,
}

impl Impossible {
    pub(super) fn new(reason: &'static str, message: impl std::fmt::Display) -> Self {
        Self { reason, message: format!("{message}") }
    }

    /// What follows where these are the recipients: the message fails with its `to` recipient, a job for copies
    /// speaks for them alone.
    pub(super) fn judgment(&self, addressees: &[Addressee]) -> Judgment {
        let recipients: Vec<_> = addressees.iter().map(|one| one.recipient.clone()).collect();
        if recipients.is_empty() || recipients.iter().any(|one| one.kind == RecipientKind::To) {
            return Judgment::failed(self.reason, &self.message);
        }
        Judgment::failed_for(&recipients, self.reason, &self.message)
    }
}

/// Why an attempt does not begin.
pub(super) enum Unprepared {
    /// It never can.
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
