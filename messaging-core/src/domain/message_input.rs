//! The body of `POST /messages` and the rules it must keep.
//!
//! Contract section 4.1. Counts and lengths that are the same for every channel are `validate`
//! attributes; what depends on the channel or on other members is in [`Input::check`].

mod build;
pub mod chain;

use std::collections::BTreeMap;

use crate::validate::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::address;
use crate::domain::attachment::{self, AttachmentInput, Base64};
use crate::domain::channel::Channel;
use crate::domain::headers::{self, HeaderFault};
use crate::domain::limits::{MAX_DISPLAY_NAME, MAX_SUBJECT};
use crate::domain::sms;
use crate::input::Input;
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations, escape};

use self::chain::FallbackInput;

/// Recipients in `cc` and in `bcc` (contract section 20).
pub const MAX_COPIES: u64 = 50;
/// Tags of a message.
pub const MAX_TAGS: u64 = 20;
/// `html` and `text` of an email, in bytes.
pub const MAX_PART_BYTES: usize = 2 << 20;
/// `metadata`, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 8 << 10;
/// `variables`, in bytes of JSON. The contract is silent; a rendering reads them all.
pub const MAX_VARIABLES_BYTES: usize = 512 << 10;
/// Title and text of a push message together, in bytes: what fits beside the rest into the 4 KiB of a provider.
pub const MAX_PUSH_BYTES: usize = 3500;

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
    /// The subject of an email, the title of a push message; 1 to 998 characters in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Email and Telegram: the HTML form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The text; of an email derived from `html` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
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
    /// When it is sent, at most a year ahead; until then it can be cancelled. A time that is past is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_at: Option<Timestamp>,
    /// What is sent should it not arrive: the next one when the one before has ended bounced, failed or suppressed, had no
    /// address, or was not delivered in time. Each is a message of its own, and several may arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = chain::MAX_FALLBACKS), nested)]
    pub fallback: Option<Vec<FallbackInput>>,
}

/// The longest text of a channel, in characters.
pub const fn max_text(channel: Channel) -> Option<usize> {
    match channel {
        Channel::Email => None,
        Channel::Sms => Some(1600),
        Channel::Push => Some(4000),
        Channel::Telegram | Channel::Whatsapp => Some(4096),
        Channel::Viber => Some(1000),
    }
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
        self.check_channel_fields(violations);
        self.check_recipients(violations);
        self.check_parts(violations);
        chain::check(self.fallback.as_deref().unwrap_or_default(), self.subject.as_ref(), violations);
        if self.channel == Channel::Email {
            self.check_sender(violations);
            self.check_headers(violations);
            self.check_attachments(violations);
        }
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
    /// The second table of section 4.1.
    fn check_channel_fields(&self, violations: &mut Violations) {
        let mut deny = |given: bool, pointer: &str| {
            if given {
                violations.add(pointer, FieldCode::NotAllowed, format_args!("{} has no such field", self.channel));
            }
        };
        if self.channel != Channel::Email {
            deny(self.cc.as_ref().is_some_and(|list| !list.is_empty()), "/cc");
            deny(self.bcc.as_ref().is_some_and(|list| !list.is_empty()), "/bcc");
            deny(self.from_email.is_some(), "/from_email");
            deny(self.from_name.is_some(), "/from_name");
            deny(self.reply_to.is_some(), "/reply_to");
            deny(self.headers.as_ref().is_some_and(|map| !map.is_empty()), "/headers");
            deny(self.attachments.as_ref().is_some_and(|list| !list.is_empty()), "/attachments");
            deny(self.sending_domain_id.is_some(), "/sending_domain_id");
        }
        deny(self.subject.is_some() && !matches!(self.channel, Channel::Email | Channel::Push), "/subject");
        deny(self.html.is_some() && !matches!(self.channel, Channel::Email | Channel::Telegram), "/html");
    }

    fn check_recipients(&self, violations: &mut Violations) {
        match self.to.as_deref() {
            None | Some("") if !is_given(self.contact_id.as_ref()) => {
                violations.add("/to", FieldCode::Required, "to or contact_id is required");
            }
            None | Some("") => {}
            Some(to) => {
                let rule = format_args!("not an address of {}", self.channel);
                address::check_sent(self.channel, to, "/to", rule, violations);
            }
        }
        if self.channel != Channel::Email {
            return;
        }
        for (name, list) in [("cc", &self.cc), ("bcc", &self.bcc)] {
            for (index, copy) in list.iter().flatten().enumerate() {
                let pointer = format!("/{name}/{index}");
                address::check_sent(Channel::Email, copy, pointer, "not an email address", violations);
            }
        }
    }

    /// A template brings its own parts; those sent along are ignored.
    fn check_parts(&self, violations: &mut Violations) {
        if is_given(self.template_id.as_ref()) {
            return;
        }
        self.check_subject(violations);
        let has_text = is_given(self.text.as_ref());
        if self.channel == Channel::Email {
            if !has_text && !is_given(self.html.as_ref()) {
                violations.add("/html", FieldCode::Required, "html or text is required without a template");
            }
        } else if !has_text {
            violations.add("/text", FieldCode::Required, "is required without a template");
        }
        for (pointer, part) in [("/html", &self.html), ("/text", &self.text)] {
            if part.as_ref().is_some_and(|part| part.len() > MAX_PART_BYTES) {
                violations.add(pointer, FieldCode::TooLong, "must be at most 2 MiB");
            }
        }
        self.check_text(violations);
    }

    fn check_subject(&self, violations: &mut Violations) {
        let Some(subject) = self.subject.as_ref().filter(|subject| !subject.is_empty()) else {
            if self.channel == Channel::Email {
                violations.add("/subject", FieldCode::Required, "is required without a template");
            }
            return;
        };
        if subject.chars().count() as u64 > MAX_SUBJECT {
            violations.add("/subject", FieldCode::TooLong, "must have at most 998 characters");
        }
        if subject.chars().any(char::is_control) {
            violations.add("/subject", FieldCode::InvalidFormat, "must be one line without control characters");
        }
    }

    fn check_text(&self, violations: &mut Violations) {
        let (Some(most), Some(text)) = (max_text(self.channel), &self.text) else { return };
        if text.chars().count() > most {
            violations.add("/text", FieldCode::TooLong, format_args!("must have at most {most} characters"));
        } else if self.channel == Channel::Sms && sms::segments(text) > sms::MAX_SEGMENTS {
            let rule = "must fit in 10 segments: 153 characters of the GSM alphabet each, or 67 of any other";
            violations.add("/text", FieldCode::TooLong, rule);
        } else if self.channel == Channel::Push
            && text.len() + self.subject.as_ref().map_or(0, String::len) > MAX_PUSH_BYTES
        {
            violations.add("/text", FieldCode::TooLarge, "must have at most 3500 bytes together with the title");
        }
    }

    fn check_sender(&self, violations: &mut Violations) {
        for (pointer, given) in [("/from_email", &self.from_email), ("/reply_to", &self.reply_to)] {
            if let Some(text) = given.as_ref().filter(|text| !text.is_empty()) {
                address::check_sent(Channel::Email, text, pointer, "not an email address", violations);
            }
        }
        if self.from_name.as_ref().is_some_and(|name| name.chars().any(char::is_control)) {
            violations.add("/from_name", FieldCode::InvalidFormat, "must not contain control characters");
        }
    }

    fn check_headers(&self, violations: &mut Violations) {
        for (name, value) in self.headers.iter().flatten() {
            let at = format!("/headers/{}", escape(name));
            match headers::check(name, value) {
                Ok(()) => {}
                Err(HeaderFault::Name) => {
                    violations.add(at, FieldCode::InvalidFormat, "a name has 1 to 76 letters, digits and hyphens");
                }
                Err(HeaderFault::Denied) => violations.add(at, FieldCode::NotAllowed, "this header cannot be set"),
                Err(HeaderFault::TooLong) => {
                    violations.add(at, FieldCode::TooLong, "must have at most 998 characters");
                }
                Err(HeaderFault::Value) => {
                    violations.add(at, FieldCode::InvalidFormat, "must not contain control characters");
                }
            }
        }
    }

    fn check_attachments(&self, violations: &mut Violations) {
        let mut total = 0;
        for (index, file) in self.attachments.iter().flatten().enumerate() {
            if file.filename.chars().any(char::is_control) {
                violations.add(
                    format!("/attachments/{index}/filename"),
                    FieldCode::InvalidFormat,
                    "must not contain control characters",
                );
            }
            if file.content_type.as_ref().is_some_and(|text| !text.is_empty() && !attachment::is_media_type(text)) {
                violations.add(
                    format!("/attachments/{index}/content_type"),
                    FieldCode::InvalidFormat,
                    "not a media type",
                );
            }
            let at = || format!("/attachments/{index}/content_b64");
            match &file.content_b64 {
                Base64::Malformed => violations.add(at(), FieldCode::InvalidFormat, "not padded base64"),
                Base64::Decoded(bytes) if bytes.is_empty() => {
                    violations.add(at(), FieldCode::Required, "must hold at least 1 byte");
                }
                Base64::Decoded(bytes) => total += bytes.len(),
            }
        }
        if total > attachment::MAX_TOTAL_BYTES {
            violations.add("/attachments", FieldCode::TooLarge, "must be at most 15 MiB decoded in total");
        }
    }
}

#[cfg(test)]
mod tests;
