//! Content of messages of the channels other than email.
//!
//! Contract section 4.1: `buttons`, `media`, `data` and `provider_template` are the members of the request. A
//! [`ChannelContent`] is made of them and of the text, for the transport of the channel; its length is checked when a
//! request is accepted and again after a template was rendered.

mod limits;
mod typed;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::limits::MAX_URL;
use crate::validate::Validate;

pub use limits::{MAX_PUSH_BYTES, MAX_SMS, TooLong, ViberService};
pub use typed::{
    ChannelContent, Parts, PushContent, SmsContent, TelegramContent, TelegramText, ViberContent, WhatsappContent,
};

/// Maximum number of buttons of a message.
pub const MAX_BUTTONS: u64 = 10;
/// Maximum number of values of a push message.
pub const MAX_DATA: u64 = 32;
/// Maximum number of values of a provider's template, and of its buttons. The contract is silent; no provider takes as
/// many.
pub const MAX_TEMPLATE_VALUES: u64 = 100;

/// Values of a push message by name.
pub type PushData = BTreeMap<String, String>;

/// A button that opens a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// Label of the button, 1 to 30 characters.
    #[validate(length(min = 1, max = 30))]
    pub text: String,
    /// Address that the button opens, http or https, at most 2048 characters.
    #[validate(length(min = 1, max = MAX_URL))]
    pub url: String,
}

/// A picture, video or document that the provider fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Address from which the provider fetches the file, https, at most 2048 characters.
    #[validate(length(min = 1, max = MAX_URL))]
    pub url: String,
    /// Kind of the file: picture, video or document.
    pub kind: MediaKind,
}

/// Kind of a media file: picture, video or document.
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
    /// Name of the template at WhatsApp.
    #[validate(length(min = 1, max = 512))]
    pub name: String,
    /// Language of the template at WhatsApp, such as `en_US`.
    #[validate(length(min = 1, max = 32))]
    pub language: String,
    /// Value for its header, if that has a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Values for its body, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[validate(length(max = MAX_TEMPLATE_VALUES))]
    pub body: Vec<String>,
    /// Values for the addresses of its buttons, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[validate(length(max = MAX_TEMPLATE_VALUES))]
    pub buttons: Vec<String>,
}
