//! Statuses of messages, the permitted changes between them, and the kinds of events.
//!
//! Contract section 4.2.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a message, which follows the `to` recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// The message is accepted.
    Queued,
    /// An attempt is running.
    Sending,
    /// The message was handed to a relay or provider.
    Sent,
    /// The recipient's server or the provider confirmed the delivery.
    Delivered,
    /// The message was refused temporarily and will be tried again.
    Deferred,
    /// Final: refused.
    Bounced,
    /// Final: the recipient complained.
    Complained,
    /// Final: could not be sent.
    Failed,
    /// Final: the address is suppressed.
    Suppressed,
    /// Final: withdrawn before it was sent.
    Cancelled,
}

impl MessageStatus {
    /// Every status, in the order of the stored numbers.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Deferred,
        Self::Bounced,
        Self::Complained,
        Self::Failed,
        Self::Suppressed,
        Self::Cancelled,
    ];

    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Deferred => "deferred",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
            Self::Failed => "failed",
            Self::Suppressed => "suppressed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status with a text form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns true if a message may change from this status to `next` (the table of contract section 4.2).
    ///
    /// A report that arrives out of order asks for a change that is not in the table and is recorded as an event only:
    /// the status never moves backwards.
    pub const fn may_become(self, next: Self) -> bool {
        use MessageStatus as S;
        match self {
            S::Queued => matches!(next, S::Sending | S::Suppressed | S::Cancelled | S::Failed),
            S::Sending => matches!(next, S::Sent | S::Delivered | S::Deferred | S::Bounced | S::Failed),
            S::Deferred => matches!(next, S::Sending | S::Bounced | S::Suppressed | S::Cancelled | S::Failed),
            S::Sent => matches!(next, S::Delivered | S::Bounced | S::Failed | S::Complained),
            S::Delivered => matches!(next, S::Bounced | S::Complained),
            S::Bounced | S::Complained | S::Failed | S::Suppressed | S::Cancelled => false,
        }
    }

    /// Returns true if nothing more is attempted for a message with this status.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending | Self::Deferred)
    }
}

/// Kinds of events of messages (contract section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum EventKind {
    Queued,
    Sent,
    Delivered,
    Deferred,
    Bounce,
    Complaint,
    Open,
    Click,
    Unsubscribe,
    Failed,
    Suppressed,
    Cancelled,
}

impl EventKind {
    /// Every kind, in the order of the stored numbers.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Deferred,
        Self::Bounce,
        Self::Complaint,
        Self::Open,
        Self::Click,
        Self::Unsubscribe,
        Self::Failed,
        Self::Suppressed,
        Self::Cancelled,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_against_every_move() {
        let grid: String = MessageStatus::ALL
            .iter()
            .map(|from| {
                let moves: Vec<_> =
                    MessageStatus::ALL.iter().filter(|to| from.may_become(**to)).map(|to| to.as_str()).collect();
                format!("{}: {}\n", from.as_str(), moves.join(" "))
            })
            .collect();
        insta::assert_snapshot!(grid, @r"
        queued: sending failed suppressed cancelled
        sending: sent delivered deferred bounced failed
        sent: delivered bounced complained failed
        delivered: bounced complained
        deferred: sending bounced failed suppressed cancelled
        bounced: 
        complained: 
        failed: 
        suppressed: 
        cancelled:
        ");
    }
}
