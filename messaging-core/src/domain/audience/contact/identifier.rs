//! Identifiers of contacts: external id, email address, phone number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::channel::Channel;
use crate::domain::channel::address;

/// Identifier of a contact, in the order in which a contact is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identifier {
    /// The workspace's own id.
    ExternalId(String),
    /// An email address, lower case.
    Email(String),
    /// A phone number, E.164.
    Phone(String),
}

/// The kinds of [`Identifier`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdentifierKind {
    /// The workspace's own id.
    ExternalId,
    /// An email address.
    Email,
    /// A phone number.
    Phone,
}

impl IdentifierKind {
    /// All kinds, in the order in which a contact is looked up.
    pub const ALL: [Self; 3] = [Self::ExternalId, Self::Email, Self::Phone];
}

impl Identifier {
    /// Kind of the identifier, without its text.
    pub const fn kind(&self) -> IdentifierKind {
        match self {
            Self::ExternalId(_) => IdentifierKind::ExternalId,
            Self::Email(_) => IdentifierKind::Email,
            Self::Phone(_) => IdentifierKind::Phone,
        }
    }

    /// Returns the pointer of its member in a request.
    pub const fn pointer(&self) -> &'static str {
        match self {
            Self::ExternalId(_) => "/external_id",
            Self::Email(_) => "/email",
            Self::Phone(_) => "/phone",
        }
    }

    /// Returns an address of a channel as an identifier; `None` if it is none.
    pub fn of_address(channel: Channel, address: &str) -> Option<Self> {
        match channel {
            Channel::Email => Some(Self::Email(address::normalize(channel, address))),
            Channel::Sms | Channel::Whatsapp | Channel::Viber => Some(Self::Phone(address.to_owned())),
            Channel::Telegram | Channel::Push => None,
        }
    }
}
