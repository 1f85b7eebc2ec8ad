//! Delivery options of a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Longest time that a provider may try, in seconds: 28 days.
const MAX_TTL: u32 = 2_419_200;
/// Maximum number of characters of a key that replaces a message on the device.
const MAX_COLLAPSE_KEY: u64 = 64;

/// Delivery options of a message; a channel ignores options that it does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[setters(default)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MessageOptions {
    /// Off email: how long it is tried, in seconds, at most 24 hours by this server; 0 is one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(max = MAX_TTL))]
    pub ttl: Option<u32>,
    /// Push: replaces, on the device, the message before of the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_COLLAPSE_KEY))]
    pub collapse_key: Option<String>,
    /// Push and Telegram: it makes no sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    /// Telegram and WhatsApp: whether a preview of the first link is shown; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<bool>,
    /// Category of the message: `transactional` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Email: whether opening it is recorded; by default not, and of `marketing` what its sending domain says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_opens: Option<bool>,
    /// Email: whether clicks are recorded; by default what its sending domain says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_clicks: Option<bool>,
}

/// Category of a message, for providers and defaults that depend on it. Neither makes it wait for consent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageCategory")]
pub enum Category {
    /// The message is about something that the recipient did.
    #[default]
    Transactional,
    /// The message is an offer.
    Marketing,
}

/// Adds the faults of options.
pub(super) fn check(options: &MessageOptions, violations: &mut Violations) {
    // The key is sent in headers of providers.
    if options.collapse_key.as_ref().is_some_and(|key| key.chars().any(char::is_control)) {
        violations.add("/options/collapse_key", FieldCode::InvalidFormat, "must not contain control characters");
    }
}
