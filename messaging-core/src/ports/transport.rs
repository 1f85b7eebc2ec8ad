//! The port through which messages leave.
//!
//! Core decides what is sent and what an outcome means; a transport carries. A transport is chosen by
//! channel and provider name (contract section 16), receives the workspace's provider settings with
//! every call, and keeps whatever connections it likes between calls.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::domain::address::EmailAddress;
use crate::domain::attempt::Dialog;
use crate::domain::channel::Channel;
use crate::domain::dkim::Signer;
use crate::domain::suppression::SuppressionReason;
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Carries messages of one channel through one provider.
///
/// An implementer owes: an outcome for every recipient of the envelope, or one error for all of them;
/// bounded time (nothing waits for ever); no retry of its own; and never a report of success before
/// the peer has taken responsibility.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Attempts to deliver one message to its recipients.
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError>;

    /// Judges settings before they are stored, as far as their text alone tells: whether they name a
    /// host that may not be connected to. Settings of the wrong form are not its business.
    fn check(&self, _settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        Ok(())
    }

    /// What a recipient's `sent` means here.
    fn acceptance(&self) -> Acceptance;

    /// Whether nothing leaves the process. Core then saves itself the note that an attempt has begun,
    /// which after a crash tells that somebody outside may have the message.
    fn is_local(&self) -> bool {
        false
    }
}

/// A setting that is well formed and not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the setting {member} {message}")]
pub struct SettingsFault {
    /// The name of the setting.
    pub member: &'static str,
    /// What is wrong, as a fragment: `must not be a private address`.
    pub message: &'static str,
}

/// What it means that the peer said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The recipient has it: `sent` and `delivered` together.
    Delivered,
    /// A relay or provider has it: `sent`, and a later report may tell more.
    Relayed,
}

/// One message to carry.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Whose message.
    pub workspace_id: WorkspaceId,
    /// Which message.
    pub message_id: MessageId,
    /// The workspace's settings of the provider (contract section 16), secrets in clear.
    pub settings: Arc<Map<String, Value>>,
    /// Who receives this attempt: on a retry only those still open.
    pub recipients: Vec<String>,
    /// What they receive.
    pub content: Content,
    /// Tells who must not be sent to after all.
    pub last_look: LastLook,
}

/// The suppression list, asked once more when everything else is ready.
///
/// Between the check of core and the moment a connection is open may lie minutes. A transport that
/// had to wait asks right before it names the recipients to the peer.
#[derive(Debug, Clone, Default)]
pub struct LastLook(Option<Arc<dyn Suppressed>>);

/// Who must not be sent to now.
#[async_trait]
pub trait Suppressed: Debug + Send + Sync {
    /// For each recipient why it must not be sent to, or `None` where it may.
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>>;

    /// Whether nothing may be sent at the moment, to anybody, because its outcome could not be stored.
    fn is_held(&self) -> bool {
        false
    }
}

impl LastLook {
    /// Asks `list`.
    pub fn at(list: Arc<dyn Suppressed>) -> Self {
        Self(Some(list))
    }

    /// For each recipient why it must not be sent to, or `None` where it may.
    pub async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        match &self.0 {
            Some(list) => list.suppressed(recipients).await,
            None => vec![None; recipients.len()],
        }
    }

    /// Whether nothing may be sent at the moment: everybody's outcome is [`Outcome::Held`] then. Costs an
    /// atomic load; a transport asks right before it begins a transaction.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.is_held())
    }
}

/// The content by kind of channel.
#[derive(Debug, Clone)]
pub enum Content {
    /// An email.
    Email(Box<Email>),
    /// Everything else: a text, on some channels with a title or HTML.
    Text(TextMessage),
}

/// An email before it is MIME: checked by core, so no part holds a CR, LF or control character where
/// a header could break.
#[derive(Debug, Clone)]
pub struct Email {
    /// The envelope sender (RFC 5321 MAIL FROM).
    pub envelope_from: EmailAddress,
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

/// A file of an email.
#[derive(Debug, Clone)]
pub struct AttachedFile {
    /// As the recipient sees it; may be non-ASCII.
    pub filename: String,
    /// A media type such as `application/pdf`.
    pub content_type: String,
    /// The bytes.
    pub content: Bytes,
}

/// A message of a channel other than email.
#[derive(Debug, Clone)]
pub struct TextMessage {
    /// The channel.
    pub channel: Channel,
    /// The title of a push message.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// Telegram's HTML form.
    pub html: Option<String>,
}

/// What became of an attempt that reached the peer.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// One per recipient of the envelope, in its order.
    pub outcomes: Vec<Outcome>,
    /// The bytes that would have gone on the wire, when the provider captures instead of sending.
    pub captured: Option<Bytes>,
    /// What was said on the wire, one for each peer that was talked to; for providers that keep it.
    pub dialogs: Vec<Dialog>,
}

/// What the peer said about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The peer took responsibility.
    Accepted(Response),
    /// Not now; trying again may work.
    Deferred(Response),
    /// Never; core classifies the reply.
    Refused(Response),
    /// The provider, or our settings or account there, stopped the attempt: a refused login, an exhausted
    /// quota, a relay that cannot be reached. Says nothing about the recipient. Tried again like
    /// [`Outcome::Deferred`], but never a bounce, and it counts for no address.
    ProviderFailed(Response),
    /// The content was sent completely but the final reply was lost: the peer may have it. Tried again
    /// like [`Outcome::Deferred`].
    Ambiguous(Response),
    /// Nothing was sent: [`LastLook`] found the recipient suppressed.
    Suppressed(SuppressionReason),
    /// Nothing was sent: [`LastLook::is_held`]. Says nothing about the recipient.
    Held,
}

/// The peer's reply, for events and classification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The SMTP reply code, or the HTTP status of a provider.
    pub code: Option<u16>,
    /// The enhanced status code (RFC 3463), `5.1.1`.
    pub enhanced: Option<String>,
    /// The text of the reply, at most 512 characters, without control characters.
    pub text: String,
    /// The host that replied.
    pub host: Option<String>,
}

/// The attempt failed for all recipients alike.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The provider's settings cannot work: a host that does not parse, a refused login.
    #[error("the provider's settings do not work: {0}")]
    Misconfigured(String),
    /// The peer cannot be reached or broke off before it could have taken the message.
    #[error("the peer could not be reached: {0}")]
    Unreachable(String),
    /// The content was sent completely but the final reply was lost: the peer may have it.
    #[error("the final reply was lost: {0}")]
    Ambiguous(String),
    /// The message cannot be turned into what the wire needs.
    #[error("the message cannot be built: {0}")]
    Content(String),
}

impl TransportError {
    /// Whether trying again may work.
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Ambiguous(_) | Self::Misconfigured(_))
    }
}
