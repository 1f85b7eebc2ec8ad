//! What a transport carries, by channel.

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

/// The content, by channel.
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
    /// The channel.
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

    /// The subject of an email, the title of a push notification.
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

/// An email before it is MIME: checked by core, so no part holds a CR, LF or control character where
/// a header could break.
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
    /// `Date`: when the message was accepted, so that every attempt is the same message.
    pub date: Timestamp,
    /// `Message-ID` without angle brackets; stable across attempts.
    pub message_id: String,
    /// Further headers, in order.
    pub headers: Vec<(String, String)>,
    /// The text part. Core derives it from `html` when the sender gave none.
    pub text: Option<String>,
    /// The HTML part.
    pub html: Option<String>,
    /// Files, in order.
    pub attachments: Vec<AttachedFile>,
    /// DKIM keys that sign it (RFC 6376), each adding a signature; none for a sender without keys.
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

/// Whom an email comes from on the envelope, where bounces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvelopeFrom {
    /// The same for all recipients, who may share a transaction.
    Shared(EmailAddress),
    /// One for each recipient of [`Outgoing::recipients`](super::Outgoing::recipients), in their order: what comes back tells who it is about.
    /// Recipients with different senders never share a transaction.
    PerRecipient(Vec<EmailAddress>),
}

impl EnvelopeFrom {
    /// The sender for the recipient at this position; `None` when there is none.
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
    /// As the recipient sees it; may be non-ASCII.
    pub filename: String,
    /// A media type such as `application/pdf`.
    pub content_type: String,
    /// The bytes.
    pub content: Bytes,
    /// The name by which the HTML shows it, if it is part of that; visible ASCII without angle brackets.
    pub content_id: Option<String>,
}

/// How a message is to be delivered; what a provider does not know is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// How long from now the provider may try; `None` for the provider's own.
    pub ttl: Option<Duration>,
    /// Replaces, on the device, the message before of the same key.
    pub collapse_key: Option<String>,
    /// True if the message arrives without a sound.
    pub silent: bool,
    /// Whether it is marketing, where a provider asks.
    pub is_marketing: bool,
    /// Whether an email may leave over TLS alone: where there is none, the outcome is [`OutcomeClass::TlsRequired`].
    ///
    /// [`OutcomeClass::TlsRequired`]: super::OutcomeClass::TlsRequired
    pub require_tls: bool,
}
