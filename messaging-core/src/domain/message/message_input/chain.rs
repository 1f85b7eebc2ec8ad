//! Time of a message, and its fallbacks: `send_at` and `fallback` of contract section 4.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::channel::Channel;
use crate::validate::{Setters, Validate};

/// Maximum number of fallbacks of a message.
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
    /// Channel of the message.
    pub channel: Channel,
    /// The recipient; left out the contact's address for the channel, or the recipient of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Template of the message, in place of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Text of the message; an email has the subject of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Time that the message before may take to arrive, in seconds. Without it the wait lasts as long as that message
    /// may still arrive, and one that a relay or provider has taken counts as arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = MIN_AFTER, max = MAX_AFTER))]
    pub after_seconds: Option<u32>,
}
