//! How far a delivery job has come with each of its recipients.
//!
//! It is kept with the job, which names recipients by keys and never by address. What stands there as begun when
//! the job is claimed belongs to a run that never ended: whether the copy arrived is not known.

use serde::{Deserialize, Serialize};

use crate::domain::delivery::{RecipientResult, Result as Fate};
use crate::domain::recipients::{Recipient, RecipientKey};
use crate::ports::transport::Outcome;

/// What is known of one recipient whom the job still serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecipientProgress {
    pub(super) recipient: RecipientKey,
    /// Transactions that a process left open when it ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) cut_off: u8,
    /// Whether an earlier attempt may have arrived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) ambiguous: bool,
    /// See [`Recipient::was_deferred`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) was_deferred: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) transaction: Transaction,
}

/// The transaction of a recipient in this attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transaction {
    /// None so far.
    #[default]
    Waiting,
    /// Its content may have left.
    Begun,
    /// It ended while others of the attempt went on.
    Ended {
        /// What became of the recipient.
        outcome: Outcome,
        /// Whether acceptance meant that a relay has the message.
        relayed: bool,
    },
}

/// A recipient whom the job still serves.
#[derive(Debug, Clone)]
pub(super) struct Addressee {
    pub(super) recipient: Recipient,
    pub(super) progress: RecipientProgress,
}

impl Addressee {
    /// What became of it.
    pub(super) fn ended(self, result: Fate) -> RecipientResult {
        RecipientResult { recipient: self.recipient, result, ambiguous: self.progress.ambiguous }
    }
}

impl RecipientProgress {
    /// Nothing was tried yet.
    pub(super) fn new(recipient: &Recipient) -> Self {
        Self {
            recipient: RecipientKey::of(&recipient.address),
            cut_off: 0,
            ambiguous: false,
            was_deferred: recipient.was_deferred,
            transaction: Transaction::Waiting,
        }
    }

    /// An attempt was cut off after its content may have left.
    pub(super) fn note_cut_off(&mut self) {
        self.cut_off = self.cut_off.saturating_add(1);
        self.ambiguous = true;
        self.transaction = Transaction::Waiting;
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
