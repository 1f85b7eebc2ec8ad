//! The six channels and their providers.
//!
//! Contract section 16.

pub mod address;
pub mod inbound_message;
pub mod provider;
pub mod provider_link;
pub mod receipt;
pub mod settings;
pub mod sms;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Email.
    Email,
    /// Text messages.
    Sms,
    /// Push notifications.
    Push,
    /// Telegram.
    Telegram,
    /// WhatsApp.
    Whatsapp,
    /// Viber.
    Viber,
}

impl Channel {
    /// All six, in the order of the contract.
    pub const ALL: [Self; 6] = [Self::Email, Self::Sms, Self::Push, Self::Telegram, Self::Whatsapp, Self::Viber];

    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Push => "push",
            Self::Telegram => "telegram",
            Self::Whatsapp => "whatsapp",
            Self::Viber => "viber",
        }
    }

    /// The channel of a text form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == text)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
