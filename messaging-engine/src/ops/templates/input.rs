//! Input of the operations that create or change a template.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::limits::{MAX_DISPLAY_NAME, MAX_NAME, MAX_SUBJECT};
use messaging_core::domain::template::{Design, MAX_DECLARED, MAX_PREHEADER, gate, mjml};
use messaging_core::input::Input;
use messaging_core::patch::Patch;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A template to create, or changes of one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TemplateInput {
    /// 1 to 200 characters; several templates may have one name.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// Channel of the template; cannot be changed.
    // Optional only so that a body without it is checked after the template of the path is looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub channel: Option<Channel>,
    /// Email and push: the subject or title, at most 998 characters in one line.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_SUBJECT))]
    pub subject: Patch<String>,
    /// Email only: preview text that mail programs show after the subject.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_PREHEADER))]
    pub preheader: Patch<String>,
    /// Email only: the sender's display name.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_DISPLAY_NAME))]
    pub from_name: Patch<String>,
    /// Email only: the sender.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub from_email: Patch<String>,
    /// Email only: address that replies go to.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub reply_to: Patch<String>,
    /// Email and Telegram: the HTML, at most 2 MiB.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub html: Patch<String>,
    /// Email only: MJML, at most 512 KiB; it is compiled to HTML, which takes the place of `html`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub mjml: Patch<String>,
    /// The text, at most 2 MiB; for an email derived from the HTML when left out.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub text: Patch<String>,
    /// Names of variables that messages give, such as `order.id`. Those that the template uses are found anyway.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_DECLARED))]
    pub variables: Patch<Vec<String>>,
    /// True if style sheets are moved into the elements for sending, because many mail programs ignore them elsewhere;
    /// true when left out.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub inline_css: Patch<bool>,
}

/// Returns true for a path such as `order.id`: names of ASCII letters, digits, underscores and hyphens, each beginning
/// with a letter or underscore, with dots between; at most 128 bytes.
fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    text.len() <= 128 && text.split('.').all(is_name)
}

impl Input for TemplateInput {
    fn check(&self, violations: &mut Violations) {
        let is_given = |member: &Patch<String>| member.as_value().is_some_and(|text| !text.is_empty());
        let Some(channel) = self.channel else {
            violations.add("/channel", FieldCode::Required, "is required");
            return;
        };
        let mut deny = |given: bool, pointer: &str| {
            if given {
                violations.add(pointer, FieldCode::NotAllowed, format_args!("{channel} has no such field"));
            }
        };
        if channel != Channel::Email {
            deny(is_given(&self.preheader), "/preheader");
            deny(is_given(&self.from_name), "/from_name");
            deny(self.from_email.as_value().is_some(), "/from_email");
            deny(self.reply_to.as_value().is_some(), "/reply_to");
            deny(is_given(&self.mjml), "/mjml");
        }
        deny(is_given(&self.subject) && !matches!(channel, Channel::Email | Channel::Push), "/subject");
        deny(is_given(&self.html) && !matches!(channel, Channel::Email | Channel::Telegram), "/html");
        for (pointer, member) in
            [("/subject", &self.subject), ("/preheader", &self.preheader), ("/from_name", &self.from_name)]
        {
            if member.as_value().is_some_and(|text| text.chars().any(char::is_control)) {
                violations.add(pointer, FieldCode::InvalidFormat, "must be one line without control characters");
            }
        }
        for (pointer, member) in [("/from_email", &self.from_email), ("/reply_to", &self.reply_to)] {
            if let Some(text) = member.as_value().filter(|_| channel == Channel::Email) {
                address::check_sent(Channel::Email, text, pointer, "not an email address", violations);
            }
        }
        for (pointer, member, most, rule) in [
            ("/html", &self.html, gate::MAX_SOURCE, "must be at most 2 MiB"),
            ("/text", &self.text, gate::MAX_SOURCE, "must be at most 2 MiB"),
            ("/mjml", &self.mjml, mjml::MAX_MJML, "must be at most 512 KiB"),
        ] {
            if member.as_value().is_some_and(|text| text.len() > most) {
                violations.add(pointer, FieldCode::TooLong, rule);
            }
        }
        for (index, name) in self.variables.as_value().into_iter().flatten().enumerate() {
            if !is_path(name) {
                let rule = "a name has letters, digits and underscores, and dots between its parts";
                violations.add(format!("/variables/{index}"), FieldCode::InvalidFormat, rule);
            }
        }
    }
}

impl TemplateInput {
    /// Applies the input to the design of a template.
    pub(super) fn apply(self, design: &mut Design) {
        design.name = self.name;
        let replace = |patch: Patch<String>, member: &mut Option<String>| {
            patch.apply(member);
            // Section 1.1: an empty member is shown as null.
            *member = member.take().filter(|text| !text.is_empty());
        };
        replace(self.subject, &mut design.subject);
        replace(self.preheader, &mut design.preheader);
        replace(self.from_name, &mut design.from_name);
        replace(self.from_email, &mut design.from_email);
        replace(self.reply_to, &mut design.reply_to);
        replace(self.text, &mut design.text);
        replace(self.mjml, &mut design.mjml);
        // MJML wins over HTML that is sent beside it, or later.
        if design.mjml.is_none() {
            replace(self.html, &mut design.html);
        }
        match self.variables {
            Patch::Absent => {}
            Patch::Null => design.declared.clear(),
            Patch::Set(names) => {
                design.declared.clear();
                for name in names {
                    if !design.declared.contains(&name) {
                        design.declared.push(name);
                    }
                }
            }
        }
        match self.inline_css {
            Patch::Absent => {}
            Patch::Null => design.inline_css = true,
            Patch::Set(inline_css) => design.inline_css = inline_css,
        }
    }
}
