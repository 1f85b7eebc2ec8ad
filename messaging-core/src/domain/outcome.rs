//! What a peer said about a recipient.

use serde::{Deserialize, Serialize};

use crate::domain::suppression::SuppressionReason;

/// What it means that the peer said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The recipient has it: `sent` and `delivered` together.
    Delivered,
    /// A relay or provider has it: `sent`, and a later report may tell more.
    Relayed,
}

/// What the peer said about one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The peer took responsibility.
    Accepted(Response),
    /// Not now; trying again may work.
    Deferred(Response),
    /// Never; core classifies the reply.
    Refused(Response),
    /// The provider, or our settings or account there, stopped the attempt: a refused login, an exhausted
    /// quota, a relay that cannot be reached. Says nothing about the recipient. Tried again like
    /// [`Outcome::Deferred`], but never a bounce, and it counts for no address.
    ProviderFailed(Response),
    /// The content was sent completely but the final reply was lost: the peer may have it. Tried again
    /// like [`Outcome::Deferred`].
    Ambiguous(Response),
    /// Nothing was sent: [`LastLook`](crate::ports::transport::LastLook) found the recipient suppressed.
    Suppressed(SuppressionReason),
    /// Nothing was sent: [`LastLook::is_held`](crate::ports::transport::LastLook::is_held). Says nothing about the recipient.
    Held,
    /// Nothing was sent: [`LastLook`](crate::ports::transport::LastLook) said not by this attempt, and why. It was none, and the job looks again soon.
    Withheld(String),
}

/// The peer's reply, for events and classification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The SMTP reply code, or the HTTP status of a provider.
    pub code: Option<u16>,
    /// The enhanced status code (RFC 3463), `5.1.1`.
    pub enhanced: Option<String>,
    /// The text of the reply, at most 512 characters, without control characters.
    pub text: String,
    /// The host that replied.
    pub host: Option<String>,
}
