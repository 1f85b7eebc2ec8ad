//! Consequences of a provider's receipt for its message.
//!
//! Receipts come late, twice, in any order, and before the commit of the attempt that they are about. So each has its
//! effect once and the status only rises: a message that was delivered stays delivered, and a final status stays as it
//! is. A receipt settles an attempt whose answer was lost: the provider has the message.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::channel::Channel;
use crate::domain::delivery::consequence::{Circumstances, Disposition, disposition};
use crate::domain::delivery::outcome::{Acceptance, Answer, OutcomeClass};
use crate::domain::delivery::{Judgment, delivered_meta, peer_meta};
use crate::domain::message::{EventKind, MessageEvent, MessageStatus};

/// Meaning of a provider's receipt: an outcome of the message, or that it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// Outcome of the message as the provider reports it: `accepted` is the provider's `sent` or `delivered`.
    Outcome(Answer),
    /// The recipient has read it, and so it was delivered.
    Read(Answer),
}

/// Kinds of events that judging a receipt reads.
pub const KINDS: &[EventKind] = &[EventKind::Sent, EventKind::Delivered, EventKind::Open];

/// State of the message that a receipt is about.
#[derive(Debug, Clone, Copy)]
pub struct Receipted<'a> {
    /// Its channel.
    pub channel: Channel,
    /// Its state.
    pub status: MessageStatus,
    /// Its recipient.
    pub to: &'a str,
    /// Its events of [`KINDS`].
    pub past: &'a [MessageEvent],
}

impl Receipted<'_> {
    /// Judges a receipt. A receipt without news gives a judgment without events.
    pub fn judge(&self, receipt: &Receipt) -> Judgment {
        let mut judgment = Judgment::default();
        if !self.may_change() {
            return judgment;
        }
        match receipt {
            Receipt::Read(answer) => {
                self.arrived(&mut judgment, answer, Acceptance::Delivered);
                if !self.told(EventKind::Open) {
                    judgment.event(EventKind::Open, json!({"recipient": self.to, "source": "read_receipt"}));
                }
            }
            Receipt::Outcome(answer) => match answer.class {
                OutcomeClass::Accepted(acceptance) => self.arrived(&mut judgment, answer, acceptance),
                // The provider does not know the outcome either.
                OutcomeClass::Ambiguous => {}
                _ => self.failed(&mut judgment, answer),
            },
        }
        judgment
    }

    /// True if a receipt may bring news: nothing was sent before the first attempt, and a final status stays.
    const fn may_change(&self) -> bool {
        use MessageStatus as S;
        matches!(self.status, S::Sending | S::Deferred | S::Sent | S::Delivered)
    }

    fn told(&self, kind: EventKind) -> bool {
        self.past.iter().any(|event| event.kind == kind)
    }

    fn arrived(&self, judgment: &mut Judgment, answer: &Answer, acceptance: Acceptance) {
        if !self.told(EventKind::Sent) {
            judgment.event(EventKind::Sent, json!({"recipient": self.to}));
        }
        let is_delivered = self.status == MessageStatus::Delivered;
        if acceptance == Acceptance::Delivered && !self.told(EventKind::Delivered) {
            judgment.event_with(EventKind::Delivered, delivered_meta(self.channel, self.to, answer));
            judgment.affect(self.to, Disposition::Sent(acceptance).address());
        }
        let reached = Disposition::Sent(acceptance).status();
        if !is_delivered && self.status != reached {
            judgment.status = Some(reached);
        }
    }

    fn failed(&self, judgment: &mut Judgment, answer: &Answer) {
        // A delivered message stays delivered.
        if self.status == MessageStatus::Delivered || self.told(EventKind::Delivered) {
            return;
        }
        // The provider does not try again, whatever the reason.
        let circumstances = Circumstances { is_email: false, is_last: true, was_deferred: false };
        let disposition = match disposition(answer, circumstances) {
            Disposition::Bounced(_) if answer.class.is_retried() => Disposition::Failed("provider_error"),
            disposition => disposition,
        };
        if !self.told(EventKind::Sent) {
            judgment.event(EventKind::Sent, json!({"recipient": self.to}));
        }
        match disposition {
            Disposition::Bounced(class) => judgment.bounced(self.channel, self.to, answer, class, None),
            Disposition::Suppressed(reason) => {
                judgment.event(EventKind::Suppressed, json!({"recipient": self.to, "reason": reason.as_str()}));
            }
            Disposition::Failed(reason) => {
                let mut meta = peer_meta(self.channel, self.to, answer);
                meta.remove("response");
                meta.extend([
                    ("reason".to_owned(), json!(reason)),
                    ("message".to_owned(), json!(answer.response.text)),
                ]);
                judgment.event_with(EventKind::Failed, meta);
            }
            Disposition::Sent(_) | Disposition::Deferred(_) => return,
        }
        judgment.affect(self.to, disposition.address());
        judgment.status = Some(disposition.status());
    }
}

#[cfg(test)]
mod tests;
