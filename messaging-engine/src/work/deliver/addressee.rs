//! Progress of a delivery job for each of its recipients.
//!
//! The progress is stored with the job, which names recipients by keys and never by address. A transaction that is
//! recorded as begun when the job is claimed belongs to a run that never ended: whether the copy arrived is not known.

use messaging_core::domain::delivery::{AttemptResult, RecipientResult};
use messaging_core::domain::message::recipients::Recipient;

use crate::jobs::deliver_message::RecipientProgress;

/// A recipient whom the job still serves.
#[derive(Debug, Clone)]
pub(super) struct Addressee {
    pub(super) recipient: Recipient,
    pub(super) progress: RecipientProgress,
}

impl Addressee {
    /// Returns the result of a recipient that the job is done with.
    pub(super) fn ended(self, result: AttemptResult) -> RecipientResult {
        let RecipientProgress { ambiguous, lost, .. } = self.progress;
        RecipientResult { recipient: self.recipient, result, ambiguous, lost }
    }
}
