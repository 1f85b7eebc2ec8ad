//! Fallbacks of a message: the request of each, checked as the message that it would be.

use super::chain::FallbackInput;
use super::{MessageInput, is_given};
use crate::domain::channel::Channel;
use crate::domain::message::channel_content::ViberService;
use crate::input::Input as _;
use crate::violation::{At, FieldCode, Violations};

impl MessageInput {
    /// Adds the faults of its fallbacks.
    pub(super) fn check_fallbacks(&self, violations: &mut Violations) {
        check(self, violations);
    }

    /// Adds the faults of its fallbacks on Viber.
    pub(super) fn check_viber_fallbacks(&self, service: ViberService, violations: &mut Violations) {
        check_viber(self, service, violations);
    }

    /// Returns true if another message is sent should this one not arrive.
    pub fn has_fallback(&self) -> bool {
        self.fallback.as_ref().is_some_and(|rest| !rest.is_empty())
    }

    /// Returns the request of a fallback: the members of the step, and of this message its contact, variables, metadata
    /// and tags, and the subject of an email. `to` is left out if the step has none; the sender of the fallback
    /// decides.
    pub fn fallback_message(&self, step: &FallbackInput) -> Self {
        let text = step.text.clone().filter(|_| !is_given(step.template_id.as_ref()));
        Self {
            contact_id: self.contact_id.clone(),
            template_id: step.template_id.clone(),
            variables: self.variables.clone(),
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            subject: self.subject.clone().filter(|_| step.channel == Channel::Email && text.is_some()),
            text,
            ..Self::new(step.channel, step.to.clone().unwrap_or_default())
        }
    }
}

/// Adds the faults of a request's fallbacks: each is checked as the message that it would be.
fn check(input: &MessageInput, violations: &mut Violations) {
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

/// Adds the faults of fallbacks that go to Viber.
fn check_viber(input: &MessageInput, service: ViberService, violations: &mut Violations) {
    for (index, step) in input.fallback.iter().flatten().enumerate() {
        let mut found = Violations::new();
        step_alone(input, step).check_viber(service, &mut found);
        take(&found, index, step, violations);
    }
}

/// Returns the message of a step, with any recipient if it names none, without the members that were checked with the
/// request.
fn step_alone(input: &MessageInput, step: &FallbackInput) -> MessageInput {
    let bare = MessageInput { subject: input.subject.clone(), ..MessageInput::new(step.channel, "") };
    let message = bare.fallback_message(step);
    MessageInput { contact_id: Some("the contact, or who has the address".to_owned()), ..message }
}

/// Adds the faults of a step's message, under the members of the step.
fn take(found: &Violations, index: usize, step: &FallbackInput, violations: &mut Violations) {
    for violation in found.as_slice() {
        let At::Pointer(pointer) = &violation.at else { continue };
        let name = match pointer.as_str() {
            "/to" if step.to.is_some() => "/to",
            // Other faults of the subject are reported for the first message.
            "/subject" if violation.code == FieldCode::Required => "/template_id",
            "/to" | "/subject" => continue,
            _ => "/text",
        };
        let rule: &dyn std::fmt::Display = match name {
            "/template_id" => &"an email needs a subject: give one to the message, or use a template",
            _ => &violation.message,
        };
        violations.add(format!("/fallback/{index}{name}"), violation.code, rule);
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
        let step = FallbackInput::new(Channel::Viber).template_id("tpl_x").to("+14155550124");
        let by_template = input.fallback_message(&step);
        assert_eq!(by_template.to.as_deref(), Some("+14155550124"));
        assert_eq!(by_template.template_id.as_deref(), Some("tpl_x"));
        assert_eq!((by_template.text, by_template.subject), (None, None));
        assert_eq!(by_template.tags, input.tags);
        assert_eq!(by_template.metadata, input.metadata);
        assert_eq!(by_template.variables.unwrap()["name"], json!("Ann"));
        let titled = MessageInput::push("t").subject("Order").text("t");
        let email = titled.fallback_message(&FallbackInput::new(Channel::Email).text("It is here."));
        assert_eq!((email.subject.as_deref(), email.text.as_deref()), (Some("Order"), Some("It is here.")));
    }
}
