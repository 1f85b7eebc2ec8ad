//! Channels that take each member of a request: the second table of contract section 4.1.

use super::MessageInput;
use crate::domain::channel::Channel;
use crate::violation::{FieldCode, Violations};

/// A member that some channels do not take. A member without a row is taken by all.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) channels: &'static [Channel],
    /// Returns true if a request has the member; an empty one does not count.
    is_given: fn(&MessageInput) -> bool,
}

const fn member(name: &'static str, channels: &'static [Channel], is_given: fn(&MessageInput) -> bool) -> Member {
    Member { name, channels, is_given }
}

const EMAIL: &[Channel] = &[Channel::Email];
const CHATS: &[Channel] = &[Channel::Telegram, Channel::Whatsapp, Channel::Viber];

/// Table of the members that only some channels take.
pub(super) const MEMBERS: &[Member] = &[
    member("cc", EMAIL, |input| holds_any(input.cc.as_ref())),
    member("bcc", EMAIL, |input| holds_any(input.bcc.as_ref())),
    member("from_email", EMAIL, |input| input.from_email.is_some()),
    member("from_name", EMAIL, |input| input.from_name.is_some()),
    member("reply_to", EMAIL, |input| input.reply_to.is_some()),
    member("headers", EMAIL, |input| input.headers.as_ref().is_some_and(|headers| !headers.is_empty())),
    member("attachments", EMAIL, |input| holds_any(input.attachments.as_ref())),
    member("sending_domain_id", EMAIL, |input| input.sending_domain_id.is_some()),
    member("subject", &[Channel::Email, Channel::Push], |input| input.subject.is_some()),
    member("html", &[Channel::Email, Channel::Telegram], |input| input.html.is_some()),
    member("buttons", CHATS, |input| holds_any(input.buttons.as_ref())),
    member("media", &[Channel::Push, Channel::Telegram, Channel::Whatsapp, Channel::Viber], |input| {
        input.media.is_some()
    }),
    member("data", &[Channel::Push], |input| input.data.as_ref().is_some_and(|data| !data.is_empty())),
    member("provider_template", &[Channel::Whatsapp], |input| input.provider_template.is_some()),
];

fn holds_any<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

impl MessageInput {
    /// Adds the members of the message that its channel does not take.
    pub(super) fn check_members(&self, violations: &mut Violations) {
        check(self, violations);
    }
}

/// Adds the members that the channel of a request does not take.
fn check(input: &MessageInput, violations: &mut Violations) {
    for member in MEMBERS.iter().filter(|member| !member.channels.contains(&input.channel)) {
        if (member.is_given)(input) {
            let rule = format_args!("{} has no such field", input.channel);
            violations.add(format!("/{}", member.name), FieldCode::NotAllowed, rule);
        }
    }
}
