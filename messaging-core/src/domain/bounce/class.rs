//! The classes of refusals (contract section 10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the address is bad or only this attempt was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BounceType {
    /// The address does not work; it is suppressed.
    Hard,
    /// The address may work another time.
    Soft,
}

/// Why a message was refused.
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
    /// Hard are a bad address, a bad domain, and a recipient who refuses us.
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
