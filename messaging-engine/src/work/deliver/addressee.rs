//! How far a delivery job has come with each of its recipients.
//!
//! It is kept with the job, which names recipients by keys and never by address. What stands there as begun when
//! the job is claimed belongs to a run that never ended: whether the copy arrived is not known.

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
    /// Result of a recipient that the job is done with.
    pub(super) fn ended(self, result: AttemptResult) -> RecipientResult {
        let RecipientProgress { ambiguous, lost, .. } = self.progress;
        RecipientResult { recipient: self.recipient, result, ambiguous, lost }
    }
}
