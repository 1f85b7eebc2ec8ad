//! What a message of a channel other than email may hold besides its text.
//!
//! Contract section 4.1: `buttons`, `media`, `data`, `provider_template` and `options`. They are the members of the
//! request, and what transports are given.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::validate::Validate;

/// Values of a push message by name.
pub type PushData = BTreeMap<String, String>;

/// A button that opens a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// What is written on it, 1 to 30 characters.
    #[validate(length(min = 1, max = 30))]
    pub text: String,
    /// Where it leads, http or https.
    pub url: String,
}

/// A picture, video or document that the provider fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Where the provider fetches it, https.
    pub url: String,
    /// What it is.
    pub kind: MediaKind,
}

/// What a medium is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A video.
    Video,
    /// A document.
    Document,
}

/// A template that WhatsApp keeps and has approved: the only way to write first, or later than 24 hours after the
/// recipient's last message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ProviderTemplate {
    /// Its name there.
    #[validate(length(min = 1, max = 512))]
    pub name: String,
    /// Its language there, such as `en_US`.
    #[validate(length(min = 1, max = 32))]
    pub language: String,
    /// The value of its header, where it has a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The values of its body, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<String>,
    /// The values of its buttons' addresses, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<String>,
}
