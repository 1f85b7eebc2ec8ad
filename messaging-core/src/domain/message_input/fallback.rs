//! What is sent instead when a message did not arrive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MessageInput, is_given};
use crate::domain::channel::Channel;
use crate::domain::channel_content::ViberService;
use crate::input::Input as _;
use crate::validate::Validate;
use crate::violation::{At, FieldCode, Violations};

/// Messages that one falls back to, in turn.
pub const MAX_FALLBACKS: u64 = 3;
/// The shortest time to wait for a delivery, in seconds.
const MIN_AFTER: u32 = 30;
/// The longest time to wait for a delivery, in seconds: a day.
const MAX_AFTER: u32 = 86_400;
/// Characters of the subject that an email without one takes from its text.
const MAX_DERIVED_SUBJECT: usize = 78;

/// A message of another channel, or to another address, that is sent when the one before did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FallbackStep {
    /// The channel.
    pub channel: Channel,
    /// The recipient; by default the address of the contact for the channel, else that of the message where it is one of
    /// the channel too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The template that gives its content; this or `text` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The text. An email has the subject of the message, else the first line of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Seconds after which it is sent though the one before has not failed, unless that is delivered by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = MIN_AFTER, max = MAX_AFTER))]
    pub after_seconds: Option<u32>,
}

impl FallbackStep {
    /// A text on a channel.
    pub fn text(channel: Channel, text: impl Into<String>) -> Self {
        Self { channel, to: None, template_id: None, text: Some(text.into()), after_seconds: None }
    }

    /// A template of a channel.
    pub fn template(channel: Channel, template_id: impl Into<String>) -> Self {
        Self { channel, to: None, template_id: Some(template_id.into()), text: None, after_seconds: None }
    }

    /// To this address.
    pub fn to(mut self, to: impl Into<String>) -> Self {
        self.to = Some(to.into());
        self
    }

    /// Also when the one before is not delivered after so many seconds.
    pub const fn after_seconds(mut self, seconds: u32) -> Self {
        self.after_seconds = Some(seconds);
        self
    }
}

impl MessageInput {
    /// The request of a message that this one falls back to: what the step says, and of this message its contact,
    /// variables, metadata and tags. Its `to` is left out where the step names none; whoever sends it decides.
    pub fn fallback_message(&self, step: &FallbackStep) -> Self {
        let text = step.text.clone().filter(|_| !is_given(step.template_id.as_ref()));
        let subject = match (step.channel, &text) {
            (Channel::Email, Some(text)) => {
                let own = self.subject.as_ref().filter(|subject| !subject.trim().is_empty());
                Some(own.cloned().unwrap_or_else(|| first_line(text)))
            }
            _ => None,
        };
        Self {
            contact_id: self.contact_id.clone(),
            template_id: step.template_id.clone(),
            variables: self.variables.clone(),
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            text,
            subject,
            ..Self::new(step.channel, step.to.clone().unwrap_or_default())
        }
    }
}

/// The first line of a text that says something, short enough for a subject.
fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_DERIVED_SUBJECT).collect()
}

/// Adds what is wrong with the fallbacks of a request: each is checked as the message that it would be.
pub(super) fn check(input: &MessageInput, violations: &mut Violations) {
    for (index, step) in input.fallback.iter().flatten().enumerate() {
        let at = |name: &str| format!("/fallback/{index}{name}");
        match (is_given(step.template_id.as_ref()), is_given(step.text.as_ref())) {
            (false, false) => {
                violations.add(at("/text"), FieldCode::Required, "text or template_id is required");
                continue;
            }
            (true, true) => violations.add(at("/text"), FieldCode::Conflict, "only one of text and template_id"),
            _ => {}
        }
        let mut found = Violations::new();
        step_alone(input, step).check(&mut found);
        take(&found, index, step, violations);
    }
}

/// Adds what is wrong with those fallbacks that go to Viber.
pub(super) fn check_viber(input: &MessageInput, service: ViberService, violations: &mut Violations) {
    for (index, step) in input.fallback.iter().flatten().enumerate() {
        let mut found = Violations::new();
        step_alone(input, step).check_viber(service, &mut found);
        take(&found, index, step, violations);
    }
}

/// The message of a step, to anybody where it names nobody, without what was checked with the request.
fn step_alone(input: &MessageInput, step: &FallbackStep) -> MessageInput {
    let bare = MessageInput { subject: input.subject.clone(), ..MessageInput::new(step.channel, "") };
    let message = bare.fallback_message(step);
    MessageInput { contact_id: Some("the contact, or who has the address".to_owned()), ..message }
}

/// Takes over what was found about the message of a step, under the members of the step.
fn take(found: &Violations, index: usize, step: &FallbackStep, violations: &mut Violations) {
    for violation in found.as_slice() {
        let At::Pointer(pointer) = &violation.at else { continue };
        let name = match pointer.as_str() {
            "/to" if step.to.is_some() => "/to",
            // The subject is the message's own, unless its text has none.
            "/subject" if violation.code != FieldCode::Required => continue,
            "/to" => continue,
            _ => "/text",
        };
        violations.add(format!("/fallback/{index}{name}"), violation.code, &violation.message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fallback_takes_over_what_is_the_senders_own() {
        let input = MessageInput::sms("+14155550123")
            .text("Your order is on its way.")
            .tag("order")
            .metadata("order_id", 17)
            .variable("name", "Ann");
        let by_template = input.fallback_message(&FallbackStep::template(Channel::Viber, "tpl_x").to("+14155550124"));
        assert_eq!(by_template.to.as_deref(), Some("+14155550124"));
        assert_eq!(by_template.template_id.as_deref(), Some("tpl_x"));
        assert_eq!(by_template.text, None);
        assert_eq!(by_template.tags, input.tags);
        assert_eq!(by_template.metadata, input.metadata);
        assert_eq!(by_template.variables.unwrap()["name"], json!("Ann"));
        let email =
            input.fallback_message(&FallbackStep::text(Channel::Email, "\n  It is\there. \nMore.").to("a@b.co"));
        assert_eq!(email.subject.as_deref(), Some("It is here."));
        let titled = MessageInput::new(Channel::Push, "t").subject("Order").text("t");
        let email = titled.fallback_message(&FallbackStep::text(Channel::Email, "It is here."));
        assert_eq!(email.subject.as_deref(), Some("Order"));
    }
}
