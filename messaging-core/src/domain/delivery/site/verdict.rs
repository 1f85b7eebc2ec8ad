//! Meaning of a reply for the sender, and the action of the path.

use serde::{Deserialize, Serialize};

use crate::domain::delivery::bounce::Concern;

/// Meaning of a reply that refuses or defers mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Too much, too fast, too many connections.
    Rate,
    /// The source has a bad reputation at the site: complaints, spam.
    Reputation,
    /// The address of the source, or its network, is on a block list.
    BlockedIp,
    /// A domain that the message names is on a block list.
    BlockedDomain,
    /// SPF, DKIM, DMARC, reverse DNS or the greeting are missing or wrong.
    Authentication,
    /// This message is refused for its content.
    Content,
    /// The reply is about one mailbox, or about one sender writing to it.
    User,
}

/// Action of a path after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathAction {
    /// The path continues unchanged.
    None,
    /// Halves the rate.
    SlowDown,
    /// Sends nothing for a while, longer each time.
    Rest,
    /// Sends nothing until a person acts.
    Stop,
}

/// Meaning of a reply and action of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Meaning of the reply.
    pub meaning: Meaning,
    /// Action of the path.
    pub action: PathAction,
}

impl Meaning {
    /// Returns the usual action. A block that the site itself calls temporary ends by itself, so the path only rests. A
    /// block of a domain is the fault of one tenant, so it never stops a source that others share.
    pub const fn action(self, is_permanent: bool) -> PathAction {
        match (self, is_permanent) {
            (Self::Rate, _) => PathAction::SlowDown,
            (Self::BlockedIp, true) => PathAction::Stop,
            (Self::Reputation | Self::BlockedDomain | Self::BlockedIp, _) => PathAction::Rest,
            (Self::Authentication | Self::Content | Self::User, _) => PathAction::None,
        }
    }
}

impl Verdict {
    /// Returns a meaning with its usual action.
    pub const fn new(meaning: Meaning, is_permanent: bool) -> Self {
        Self { meaning, action: meaning.action(is_permanent) }
    }
}

impl From<Concern> for Meaning {
    fn from(concern: Concern) -> Self {
        match concern {
            Concern::Rate => Self::Rate,
            Concern::Content => Self::Content,
            Concern::Mailbox => Self::User,
        }
    }
}
