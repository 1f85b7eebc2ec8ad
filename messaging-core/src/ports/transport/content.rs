//! Content that a transport sends, by channel.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::domain::channel::Channel;
use crate::domain::channel::address::EmailAddress;
use crate::domain::mail::dkim::Signer;
use crate::domain::message::channel_content::ChannelContent;
use crate::time::Timestamp;

pub use crate::domain::message::channel_content::{
    Button, Media, MediaKind, ProviderTemplate, PushContent, PushData, SmsContent, TelegramContent, TelegramText,
    ViberContent, WhatsappContent,
};

/// Content of a message, by channel.
#[derive(Debug, Clone)]
pub enum Content {
    /// An email.
    Email(Box<Email>),
    /// A text message.
    Sms(SmsContent),
    /// A push notification.
    Push(Box<PushContent>),
    /// A message of a Telegram bot.
    Telegram(Box<TelegramContent>),
    /// A WhatsApp message.
    Whatsapp(Box<WhatsappContent>),
    /// A Viber message.
    Viber(Box<ViberContent>),
}

impl Content {
    /// Returns the channel.
    pub const fn channel(&self) -> Channel {
        match self {
            Self::Email(_) => Channel::Email,
            Self::Sms(_) => Channel::Sms,
            Self::Push(_) => Channel::Push,
            Self::Telegram(_) => Channel::Telegram,
            Self::Whatsapp(_) => Channel::Whatsapp,
            Self::Viber(_) => Channel::Viber,
        }
    }

    /// Returns the subject of an email or the title of a push notification.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Email(email) => Some(&email.subject),
            Self::Push(push) => push.title.as_deref(),
            Self::Sms(_) | Self::Telegram(_) | Self::Whatsapp(_) | Self::Viber(_) => None,
        }
    }
}

impl From<ChannelContent> for Content {
    fn from(content: ChannelContent) -> Self {
        match content {
            ChannelContent::Sms(sms) => Self::Sms(sms),
            ChannelContent::Push(push) => Self::Push(push),
            ChannelContent::Telegram(telegram) => Self::Telegram(telegram),
            ChannelContent::Whatsapp(whatsapp) => Self::Whatsapp(whatsapp),
            ChannelContent::Viber(viber) => Self::Viber(viber),
        }
    }
}

/// An email before MIME encoding. Core has checked it: no part holds a CR, LF or control character where it could break
/// a header.
#[derive(Debug, Clone)]
pub struct Email {
    /// The envelope sender (RFC 5321 MAIL FROM).
    pub envelope_from: EnvelopeFrom,
    /// `From`.
    pub from: Mailbox,
    /// `To`.
    pub to: EmailAddress,
    /// `Cc`.
    pub cc: Vec<EmailAddress>,
    /// `Reply-To`.
    pub reply_to: Option<EmailAddress>,
    /// `Subject`.
    pub subject: String,
    /// `Date`: the time at which the message was accepted, so that every attempt sends the same message.
    pub date: Timestamp,
    /// `Message-ID` without angle brackets; stable across attempts.
    pub message_id: String,
    /// Other headers, in order.
    pub headers: Vec<(String, String)>,
    /// The text part. Core derives it from `html` if the sender gave none.
    pub text: Option<String>,
    /// The HTML part.
    pub html: Option<String>,
    /// Attached files, in order.
    pub attachments: Vec<AttachedFile>,
    /// DKIM keys (RFC 6376), each of which adds a signature; empty for a sender without keys.
    pub signers: Vec<Arc<Signer>>,
}

/// A display name and an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The display name, if any.
    pub name: Option<String>,
    /// The address.
    pub address: EmailAddress,
}

/// Envelope sender of an email, to which bounces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvelopeFrom {
    /// One address for all recipients, who may share a transaction.
    Shared(EmailAddress),
    /// One address for each of [`Outgoing::recipients`](super::Outgoing::recipients), in their order, so that a bounce
    /// shows its recipient. Recipients with different senders never share a transaction.
    PerRecipient(Vec<EmailAddress>),
}

impl EnvelopeFrom {
    /// Returns the sender for the recipient at an index; `None` if the index is out of range.
    pub fn of(&self, recipient: usize) -> Option<&EmailAddress> {
        match self {
            Self::Shared(sender) => Some(sender),
            Self::PerRecipient(senders) => senders.get(recipient),
        }
    }
}

impl From<EmailAddress> for EnvelopeFrom {
    fn from(sender: EmailAddress) -> Self {
        Self::Shared(sender)
    }
}

/// A file of an email.
#[derive(Debug, Clone)]
pub struct AttachedFile {
    /// Name that the recipient sees; may be non-ASCII.
    pub filename: String,
    /// Media type, such as `application/pdf`.
    pub content_type: String,
    /// Content of the file.
    pub content: Bytes,
    /// `Content-ID` by which the HTML part refers to the file, if it does; visible ASCII without angle brackets.
    pub content_id: Option<String>,
}

/// Options of a delivery; a provider ignores those that it does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// Time from now during which the provider may try to deliver; `None` for the provider's default.
    pub ttl: Option<Duration>,
    /// Key that makes the message replace the previous one with the same key on the device.
    pub collapse_key: Option<String>,
    /// True if the message arrives without a sound.
    pub silent: bool,
    /// True if the message is marketing, for providers that distinguish it.
    pub is_marketing: bool,
    /// True if an email may only leave over TLS: without TLS the outcome is [`OutcomeClass::TlsRequired`].
    ///
    /// [`OutcomeClass::TlsRequired`]: super::OutcomeClass::TlsRequired
    pub require_tls: bool,
}
