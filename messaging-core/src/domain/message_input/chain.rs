//! When a message goes out, and what follows should it not arrive: `send_at` and `fallback` of contract section 4.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::max_text;
use crate::domain::address;
use crate::domain::channel::Channel;
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Messages that may follow a first one.
pub const MAX_FALLBACKS: u64 = 3;

/// The shortest time to wait for a message to arrive, in seconds.
pub const MIN_AFTER: u32 = 30;

/// The longest time to wait for a message to arrive, in seconds.
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

/// Checks the chain of a request.
pub(super) fn check(fallbacks: &[FallbackInput], subject: Option<&String>, violations: &mut Violations) {
    for (index, next) in fallbacks.iter().enumerate() {
        let at = |member: &str| format!("/fallback/{index}/{member}");
        if let Some(to) = next.to.as_deref().filter(|to| !to.is_empty()) {
            let rule = format_args!("not an address of {}", next.channel);
            address::check_sent(next.channel, to, at("to"), rule, violations);
        }
        let is_given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        match (is_given(&next.template_id), is_given(&next.text)) {
            (true, true) => violations.add(at("text"), FieldCode::Conflict, "the template says what it says"),
            (false, false) => violations.add(at("text"), FieldCode::Required, "text or template_id is required"),
            (true, false) => {}
            (false, true) => {
                if next.channel == Channel::Email && subject.is_none_or(String::is_empty) {
                    let rule = "an email needs a subject: give one to the message, or use a template";
                    violations.add(at("template_id"), FieldCode::Required, rule);
                }
                let most = max_text(next.channel);
                let length = next.text.as_deref().unwrap_or_default().chars().count();
                if let Some(most) = most.filter(|most| length > *most) {
                    let rule = format_args!("must have at most {most} characters");
                    violations.add(at("text"), FieldCode::TooLong, rule);
                }
            }
        }
    }
}
