//! Classes of refusals (contract section 10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Type of a bounce: the address is bad, or only this attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BounceType {
    /// The address does not work; it is suppressed.
    Hard,
    /// The address may work another time.
    Soft,
}

/// Class of a bounce: the reason for which the message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum BounceClass {
    InvalidRecipient,
    InvalidDomain,
    MailboxFull,
    Policy,
    Content,
    Unreachable,
    Unknown,
    Blocked,
}

impl BounceClass {
    /// Every class.
    pub const ALL: [Self; 8] = [
        Self::InvalidRecipient,
        Self::InvalidDomain,
        Self::MailboxFull,
        Self::Policy,
        Self::Content,
        Self::Unreachable,
        Self::Unknown,
        Self::Blocked,
    ];

    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRecipient => "invalid_recipient",
            Self::InvalidDomain => "invalid_domain",
            Self::MailboxFull => "mailbox_full",
            Self::Policy => "policy",
            Self::Content => "content",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the class with a text form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Returns the type: a bad address, a bad domain and a recipient who refuses us are hard.
    pub const fn bounce_type(self) -> BounceType {
        match self {
            Self::InvalidRecipient | Self::InvalidDomain | Self::Blocked => BounceType::Hard,
            _ => BounceType::Soft,
        }
    }

    pub(super) fn is_soft(self) -> bool {
        self.bounce_type() == BounceType::Soft
    }
}
