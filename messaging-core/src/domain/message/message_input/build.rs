//! Building a message in a program: the required parts, and one setter for each of the others.

use bytes::Bytes;
use serde_json::Value;

use super::chain::FallbackInput;
use super::{MessageInput, MessageOptions};
use crate::domain::channel::Channel;
use crate::domain::message::attachment::{AttachmentInput, Base64};
use crate::domain::message::channel_content::{Button, Media, MediaKind, ProviderTemplate};
use crate::ids::ContactId;
use crate::time::Timestamp;

/// Builds a message. Members that do not belong together are refused when it is accepted.
impl MessageInput {
    /// Returns a message of a channel to a recipient, or without one yet if `to` is empty.
    pub fn new(channel: Channel, to: impl Into<String>) -> Self {
        let to = Some(to.into()).filter(|to| !to.is_empty());
        Self {
            channel,
            to,
            contact_id: None,
            cc: None,
            bcc: None,
            from_email: None,
            from_name: None,
            reply_to: None,
            sending_domain_id: None,
            template_id: None,
            variables: None,
            subject: None,
            html: None,
            text: None,
            buttons: None,
            media: None,
            data: None,
            provider_template: None,
            options: None,
            send_at: None,
            fallback: None,
            headers: None,
            attachments: None,
            metadata: None,
            tags: None,
        }
    }

    /// Returns an email to an address.
    pub fn email(to: impl Into<String>) -> Self {
        Self::new(Channel::Email, to)
    }

    /// Returns an SMS to a phone number in E.164.
    pub fn sms(to: impl Into<String>) -> Self {
        Self::new(Channel::Sms, to)
    }

    /// Returns a push notification to a token of a device, or to a browser's subscription.
    pub fn push(to: impl Into<String>) -> Self {
        Self::new(Channel::Push, to)
    }

    /// Returns a message of a Telegram bot to a chat.
    pub fn telegram(to: impl Into<String>) -> Self {
        Self::new(Channel::Telegram, to)
    }

    /// Returns a WhatsApp message to a phone number in E.164.
    pub fn whatsapp(to: impl Into<String>) -> Self {
        Self::new(Channel::Whatsapp, to)
    }

    /// Returns a Viber message to a phone number in E.164, or to a user of a bot by the id that Viber gives.
    pub fn viber(to: impl Into<String>) -> Self {
        Self::new(Channel::Viber, to)
    }

    /// Returns a message to a contact, by the address it has for the channel.
    pub fn to_contact(channel: Channel, contact: ContactId) -> Self {
        Self { contact_id: Some(contact.to_string()), ..Self::new(channel, "") }
    }

    /// Sets the sender of an email; belongs to a verified domain of the workspace.
    pub fn from_email(mut self, from_email: impl Into<String>) -> Self {
        self.from_email = Some(from_email.into());
        self
    }

    /// Sets the display name of an email's sender.
    pub fn from_name(mut self, from_name: impl Into<String>) -> Self {
        self.from_name = Some(from_name.into());
        self
    }

    /// Sets the address to which recipients of an email reply.
    pub fn reply_to(mut self, reply_to: impl Into<String>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// Sets the domain whose `noreply@` is the sender of an email that names none.
    pub fn sending_domain_id(mut self, sending_domain_id: impl Into<String>) -> Self {
        self.sending_domain_id = Some(sending_domain_id.into());
        self
    }

    /// Sets the template that gives subject, HTML and text.
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.template_id = Some(template_id.into());
        self
    }

    /// Sets the subject of an email, or the title of a push message.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets the HTML form.
    pub fn html(mut self, html: impl Into<String>) -> Self {
        self.html = Some(html.into());
        self
    }

    /// Sets the text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a button of a Telegram message, or the one of WhatsApp or Viber.
    pub fn button(mut self, text: impl Into<String>, url: impl Into<String>) -> Self {
        self.buttons.get_or_insert_default().push(Button { text: text.into(), url: url.into() });
        self
    }

    /// Sets the file that a chat shows with the text; on push and Viber a picture.
    pub fn media(mut self, kind: MediaKind, url: impl Into<String>) -> Self {
        self.media = Some(Media { url: url.into(), kind });
        self
    }

    /// Adds a value of a push notification for the app.
    pub fn data(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.data.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Sets a template that WhatsApp keeps, in place of the text.
    pub fn provider_template(mut self, template: ProviderTemplate) -> Self {
        self.provider_template = Some(Box::new(template));
        self
    }

    /// Sets the delivery options.
    pub fn options(mut self, options: MessageOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets the time at which the message is sent.
    pub const fn send_at(mut self, at: Timestamp) -> Self {
        self.send_at = Some(at);
        self
    }

    /// Adds a message that is sent if those before did not arrive.
    pub fn fallback(mut self, step: FallbackInput) -> Self {
        self.fallback.get_or_insert_default().push(step);
        self
    }

    /// Adds a recipient of an email, visible to all others (`cc`).
    pub fn cc(mut self, address: impl Into<String>) -> Self {
        self.cc.get_or_insert_default().push(address.into());
        self
    }

    /// Adds a recipient of an email, hidden from all others (`bcc`).
    pub fn bcc(mut self, address: impl Into<String>) -> Self {
        self.bcc.get_or_insert_default().push(address.into());
        self
    }

    /// Adds a value for the template.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Adds a header of an email.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Adds a file of an email. Its type is found by its name or its first bytes.
    pub fn attachment(self, filename: impl Into<String>, content: impl Into<Bytes>) -> Self {
        self.attachment_of(AttachmentInput::new(filename, Base64::Decoded(content.into())))
    }

    /// Adds a file of an email, built by the caller.
    pub fn attachment_of(mut self, file: AttachmentInput) -> Self {
        self.attachments.get_or_insert_default().push(file);
        self
    }

    /// Adds a member of your own data.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Adds one of your own tags.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.get_or_insert_default().push(tag.into());
        self
    }
}
