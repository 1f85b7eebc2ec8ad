//! The body of `POST /messages` and the rules it must keep.
//!
//! Contract section 4.1. Counts and lengths that are the same for every channel are `validate` attributes; the channels
//! of each member are one table (`members`); other rules of channels are checked in `email` and `off_email`. The
//! acceptance of a message checks what cannot be known from the request alone: the objects that it names, and by
//! [`MessageInput::check_viber`] the limits of the service that sends on Viber.

mod build;
pub mod chain;
mod email;
mod fallbacks;
mod members;
mod off_email;
mod options;

use std::collections::BTreeMap;

use crate::validate::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::limits::{MAX_DISPLAY_NAME, MAX_SUBJECT};
use crate::domain::mail::headers;
use crate::domain::message::attachment::{self, AttachmentInput};
use crate::domain::message::channel_content::{Button, MAX_BUTTONS, MAX_DATA, Media, ProviderTemplate, PushData};
use crate::input::Input;
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

use self::chain::FallbackInput;
pub use options::{Category, MessageOptions};

/// Maximum number of recipients in `cc`, and in `bcc` (contract section 20).
pub const MAX_COPIES: u64 = 50;
/// Maximum number of tags of a message.
pub const MAX_TAGS: u64 = 20;
/// Maximum size of `html`, and of `text`, in bytes.
pub const MAX_PART_BYTES: usize = 2 << 20;
/// Maximum size of `metadata`, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 8 << 10;
/// Maximum size of `variables`, in bytes of JSON. The contract is silent; a rendering reads them all.
pub const MAX_VARIABLES_BYTES: usize = 512 << 10;

/// A message to send.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MessageInput {
    /// The channel.
    pub channel: Channel,
    /// The recipient: an address without display name, a phone number in E.164, a chat id or a push
    /// token, by channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// A contact: its address when `to` is left out, and its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// Email only: further recipients that everybody sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_COPIES))]
    pub cc: Option<Vec<String>>,
    /// Email only: further recipients that nobody sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_COPIES))]
    pub bcc: Option<Vec<String>>,
    /// Email only: the sender; belongs to a verified domain of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_email: Option<String>,
    /// Email only: the sender's display name, at most 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_DISPLAY_NAME))]
    pub from_name: Option<String>,
    /// Email only: where replies go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Email only: the domain whose `noreply@` is the sender when `from_email` is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending_domain_id: Option<String>,
    /// The template that gives subject, html and text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Values for the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Map<String, Value>>,
    /// Email and push: the subject or the title; 1 to 998 characters in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Email and Telegram: the HTML form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The text; of an email derived from `html` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Telegram, WhatsApp (one) and Viber (one): buttons below the text that open pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_BUTTONS), nested)]
    pub buttons: Option<Vec<Button>>,
    /// Push (image), Telegram, WhatsApp and Viber (image): what is shown with the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    pub media: Option<Media>,
    /// Push only: values for the app. A name has 1 to 64 letters, digits, underscores, dots and hyphens, is not `from`
    /// and does not begin with `google` or `gcm`. With title and text at most 3500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_DATA))]
    #[schemars(extend("maxProperties" = MAX_DATA))]
    pub data: Option<PushData>,
    /// WhatsApp only: an approved template in the place of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    pub provider_template: Option<Box<ProviderTemplate>>,
    /// Delivery options; a channel ignores those that it does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    pub options: Option<MessageOptions>,
    /// Time at which it is sent, at most a year ahead; until then it can be cancelled. A past time means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_at: Option<Timestamp>,
    /// Messages to send if it does not arrive, one after another: the next when the one before bounced, failed, was
    /// suppressed, had no address, or was not delivered in time. Each is a message of its own, and several may arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = chain::MAX_FALLBACKS), nested)]
    pub fallback: Option<Vec<FallbackInput>>,
    /// Email only: further headers by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = headers::MAX_HEADERS))]
    #[schemars(extend("maxProperties" = headers::MAX_HEADERS))]
    pub headers: Option<BTreeMap<String, String>>,
    /// Email only: files, at most 15 MiB decoded in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = attachment::MAX_ATTACHMENTS), nested)]
    pub attachments: Option<Vec<AttachmentInput>>,
    /// Your own data, at most 8 KiB of JSON; comes back with the message and its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Your own tags, 1 to 64 characters each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_TAGS))]
    pub tags: Option<Vec<String>>,
}

fn is_given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

/// Checks the values for a template.
pub fn check_variables(variables: Option<&Map<String, Value>>, violations: &mut Violations) {
    if let Some(variables) = variables
        && serde_json::to_vec(variables).is_ok_and(|json| json.len() > MAX_VARIABLES_BYTES)
    {
        violations.add("/variables", FieldCode::TooLarge, "must be at most 512 KiB of JSON");
    }
}

impl Input for MessageInput {
    fn check(&self, violations: &mut Violations) {
        check_variables(self.variables.as_ref(), violations);
        self.check_members(violations);
        self.check_recipient(violations);
        self.check_subject(violations);
        self.check_parts(violations);
        match self.channel {
            Channel::Email => self.check_email(violations),
            Channel::Sms | Channel::Push | Channel::Telegram | Channel::Whatsapp | Channel::Viber => {
                self.check_off_email(violations);
            }
        }
        if let Some(options) = &self.options {
            options::check(options, violations);
        }
        self.check_fallbacks(violations);
        if let Some(metadata) = &self.metadata
            && serde_json::to_vec(metadata).is_ok_and(|json| json.len() > MAX_METADATA_BYTES)
        {
            violations.add("/metadata", FieldCode::TooLarge, "must be at most 8 KiB of JSON");
        }
        for (index, tag) in self.tags.iter().flatten().enumerate() {
            match tag.chars().count() {
                0 => violations.add(format!("/tags/{index}"), FieldCode::TooShort, "must have at least 1 character"),
                1..=64 => {}
                _ => violations.add(format!("/tags/{index}"), FieldCode::TooLong, "must have at most 64 characters"),
            }
        }
    }
}

impl MessageInput {
    /// Returns true if the message may go to a channel, itself or by a fallback.
    pub fn may_go_to(&self, channel: Channel) -> bool {
        self.channel == channel || self.fallback.iter().flatten().any(|step| step.channel == channel)
    }

    fn check_recipient(&self, violations: &mut Violations) {
        match self.to.as_deref() {
            None | Some("") if !is_given(self.contact_id.as_ref()) => {
                violations.add("/to", FieldCode::Required, "to or contact_id is required");
            }
            None | Some("") => {}
            Some(to) => {
                let rule = format_args!("not an address of {}: {}", self.channel, address::form(self.channel));
                address::check_sent(self.channel, to, "/to", rule, violations);
            }
        }
    }

    /// Returns true if subject, HTML and text are those of the request: a template has its own, and those sent along
    /// are ignored.
    fn has_own_parts(&self) -> bool {
        !is_given(self.template_id.as_ref())
    }

    fn check_subject(&self, violations: &mut Violations) {
        let Some(subject) = self.subject.as_ref().filter(|subject| self.has_own_parts() && !subject.is_empty()) else {
            return;
        };
        if subject.chars().count() as u64 > MAX_SUBJECT {
            violations.add("/subject", FieldCode::TooLong, "must have at most 998 characters");
        }
        if subject.chars().any(char::is_control) {
            violations.add("/subject", FieldCode::InvalidFormat, "must be one line without control characters");
        }
    }

    fn check_parts(&self, violations: &mut Violations) {
        for (pointer, part) in [("/html", &self.html), ("/text", &self.text)] {
            if self.has_own_parts() && part.as_ref().is_some_and(|part| part.len() > MAX_PART_BYTES) {
                violations.add(pointer, FieldCode::TooLong, "must be at most 2 MiB");
            }
        }
    }
}

#[cfg(test)]
mod tests;
