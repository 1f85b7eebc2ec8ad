//! When a message goes out, and what follows should it not arrive: `send_at` and `fallback` of contract section 4.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::channel::Channel;
use crate::validate::{Setters, Validate};

/// Messages that may follow a first one.
pub const MAX_FALLBACKS: u64 = 3;
/// The shortest time to wait for a message to arrive, in seconds.
pub const MIN_AFTER: u32 = 30;
/// The longest time to wait for a message to arrive, in seconds: a day.
pub const MAX_AFTER: u32 = 86_400;

/// A message that is sent should the one before not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FallbackInput {
    /// Its channel.
    pub channel: Channel,
    /// The recipient; left out the contact's address for the channel, or the recipient of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The template that gives what it says; or `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// What it says; of an email the subject is that of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How long the message before may take to arrive, in seconds. Left out it is waited for as long as it may still
    /// arrive, and one that a relay or provider has taken has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = MIN_AFTER, max = MAX_AFTER))]
    pub after_seconds: Option<u32>,
}
