//! Rules for messages of the channels other than email: buttons, media, data, and the lengths of all of it.

use super::{MessageInput, is_given};
use crate::domain::channel::Channel;
use crate::domain::limits::MAX_URL;
use crate::domain::message::channel_content::{
    Button, ChannelContent, MediaKind, Parts, PushData, TooLong, ViberService,
};
use crate::domain::security::web_url::is_absolute;
use crate::violation::{FieldCode, Violations, escape};

/// Prefixes of names that Firebase reserves, besides `from`.
const KEPT_PREFIXES: [&str; 2] = ["google", "gcm"];

impl MessageInput {
    /// Adds the faults that it has as a message of a channel other than email.
    pub(super) fn check_off_email(&self, violations: &mut Violations) {
        check(self, violations);
    }

    /// Returns the content that a channel other than email sends of the request itself, without the parts of a
    /// template; `None` for email.
    pub fn channel_content(&self) -> Option<ChannelContent> {
        let mut parts = self.parts();
        if is_given(self.template_id.as_ref()) {
            (parts.subject, parts.html, parts.text) = (None, None, None);
        }
        ChannelContent::of(self.channel, parts)
    }

    /// Returns the parts of the request, as given.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
            subject: self.subject.as_deref(),
            html: self.html.as_deref(),
            text: self.text.as_deref(),
            buttons: self.buttons.as_deref().unwrap_or_default(),
            media: self.media.as_ref(),
            data: self.data.as_ref(),
            provider_template: self.provider_template.as_deref(),
            without_preview: self.options.as_ref().is_some_and(|options| options.preview == Some(false)),
        }
    }

    /// Adds the faults of a message to Viber, or of one that falls back to it, by the limits and addresses of the
    /// service that sends it, which only the settings of the channel tell.
    pub fn check_viber(&self, service: ViberService, violations: &mut Violations) {
        if self.channel == Channel::Viber {
            let to = self.to.as_deref().unwrap_or_default();
            if !to.is_empty() && !service.sends_to(to) {
                violations.add("/to", FieldCode::InvalidFormat, "not an address of viber");
            }
            self.check_length(service, violations);
        }
        self.check_viber_fallbacks(service, violations);
    }

    fn check_length(&self, service: ViberService, violations: &mut Violations) {
        let too_long = self.channel_content().and_then(|content| content.too_long(service));
        if let Some(TooLong { member, code, rule }) = too_long {
            violations.add(format!("/{member}"), code, rule);
        }
    }
}

/// Adds the faults of a message of a channel other than email.
fn check(input: &MessageInput, violations: &mut Violations) {
    check_text(input, violations);
    check_buttons(input, violations);
    check_media(input, violations);
    if let Some(data) = input.data.as_ref().filter(|_| input.channel == Channel::Push) {
        check_data(data, violations);
    }
    // The service that sends on Viber is not known here: see `check_viber`.
    if input.channel != Channel::Viber {
        input.check_length(ViberService::Business, violations);
    }
}

/// Checks that there is a text. A template of ours or of WhatsApp has one.
fn check_text(input: &MessageInput, violations: &mut Violations) {
    let has_own = is_given(input.text.as_ref())
        || match input.channel {
            Channel::Telegram => is_given(input.html.as_ref()),
            Channel::Whatsapp => input.provider_template.is_some(),
            _ => false,
        };
    if !has_own && !is_given(input.template_id.as_ref()) {
        violations.add("/text", FieldCode::Required, "is required without a template");
    }
}

fn check_buttons(input: &MessageInput, violations: &mut Violations) {
    let buttons = input.buttons.as_deref().unwrap_or_default();
    match input.channel {
        Channel::Whatsapp | Channel::Viber if buttons.len() > 1 => {
            violations.add("/buttons", FieldCode::TooManyItems, format_args!("{} takes one button", input.channel));
        }
        Channel::Telegram | Channel::Whatsapp | Channel::Viber => {}
        Channel::Email | Channel::Sms | Channel::Push => return,
    }
    for (index, Button { url, .. }) in buttons.iter().enumerate() {
        check_url(url, &["http", "https"], || format!("/buttons/{index}/url"), violations);
    }
}

fn check_media(input: &MessageInput, violations: &mut Violations) {
    let Some(media) = &input.media else { return };
    match input.channel {
        Channel::Email | Channel::Sms => return,
        Channel::Push | Channel::Viber if media.kind != MediaKind::Image => {
            violations.add("/media/kind", FieldCode::NotAllowed, format_args!("{} takes an image", input.channel));
        }
        _ => {}
    }
    check_url(&media.url, &["https"], || "/media/url".to_owned(), violations);
}

/// Checks a web address that a provider or a device opens; its host is not checked, because this server does not call
/// it.
fn check_url(url: &str, schemes: &[&str], at: impl Fn() -> String, violations: &mut Violations) {
    if !is_absolute(url, schemes) {
        let rule = format_args!("must be an absolute URL that begins with {}://", schemes.join(":// or "));
        violations.add(at(), FieldCode::InvalidFormat, rule);
    } else if url.chars().count() as u64 > MAX_URL {
        violations.add(at(), FieldCode::TooLong, format_args!("must have at most {MAX_URL} characters"));
    }
}

fn check_data(data: &PushData, violations: &mut Violations) {
    for key in data.keys() {
        let at = || format!("/data/{}", escape(key));
        let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !(1..=64).contains(&key.len()) || !is_name(key) {
            let rule = "a name has 1 to 64 letters, digits, underscores, dots and hyphens";
            violations.add(at(), FieldCode::InvalidFormat, rule);
        } else if key == "from" || KEPT_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
            violations.add(at(), FieldCode::NotAllowed, "this name belongs to the provider");
        }
    }
}
