//! Observations: consequences of a commit for the log and the metrics of the process.

use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::channel::address::ascii_domain;
use crate::domain::delivery::bounce::BounceClass;
use crate::domain::message::{EventKind, Message};
use crate::ids::{ImportId, MessageId, WebhookId, WorkspaceId};

/// Maximum length of a code or a host name in an observation, in bytes.
const MAX_WORD: usize = 255;

/// A consequence of a commit that its other writes do not show. No member holds an address, a subject, or any other
/// free text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// An event of a message and one of its recipients.
    Message(MessageObservation),
    /// A webhook was called; true if its receiver accepted the event.
    WebhookCall(bool),
    /// A webhook was disabled because its receiver is gone or has failed for days.
    WebhookDisabled(WorkspaceId, WebhookId),
    /// The rows of an import begin to be read, with their number.
    ImportBegan(WorkspaceId, ImportId, u64),
    /// An import ended.
    ImportEnded(ImportObservation),
}

/// An event of a message and one of its recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageObservation {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Its channel.
    pub channel: Channel,
    /// The kind of event that happened.
    pub kind: EventKind,
    /// Domain of the recipient; `None` on channels other than email, and if the recipient is not known any more.
    pub domain: Option<String>,
    /// Class of a bounce, or the reason why a message failed or was suppressed: a word of the contract.
    pub class: Option<String>,
    /// Code in the answer of the peer: an SMTP code, or a code of the provider.
    pub code: Option<String>,
    /// Number of the attempt; counts from 1. `None` for events outside of attempts.
    pub attempt: Option<u32>,
    /// The host that answered.
    pub mx: Option<String>,
    /// Duration of the attempt in milliseconds; `None` without an attempt, or if no peer was connected.
    pub duration_ms: Option<u64>,
    /// True if another observation of the same commit implies it: "sent" beside "delivered".
    pub is_implied: bool,
}

/// Message and workspace that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSubject<'a> {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Its channel.
    pub channel: Channel,
    /// The recipient of the message; empty when it is not known any more.
    pub to: &'a str,
    /// The attempt that caused the events.
    pub attempt: Option<AttemptSubject<'a>>,
}

/// The attempt that caused events of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptSubject<'a> {
    /// Number of the attempt; counts from 1.
    pub number: u32,
    /// Last host of the dialog.
    pub mx: Option<&'a str>,
    /// Duration in milliseconds; `None` if no peer was connected.
    pub duration_ms: Option<u64>,
}

/// The end of an import: its status and its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportObservation {
    /// Workspace that owns the import.
    pub workspace_id: WorkspaceId,
    /// The import.
    pub import_id: ImportId,
    /// `completed`, `failed` or `expired`.
    pub status: &'static str,
    /// New contacts.
    pub created: u64,
    /// Contacts that existed before.
    pub updated: u64,
    /// Refused rows.
    pub failed: u64,
}

impl<'a> From<&'a Message> for EventSubject<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            workspace_id: message.workspace_id,
            message_id: message.id,
            channel: message.channel,
            to: &message.to,
            attempt: None,
        }
    }
}

impl MessageObservation {
    /// Returns the observation of an event by its kind and its members.
    pub fn new(subject: EventSubject<'_>, kind: EventKind, meta: &Map<String, Value>) -> Self {
        let text = |name: &str| meta.get(name).and_then(Value::as_str);
        let recipient = text("recipient").unwrap_or(subject.to);
        let domain = recipient.rsplit_once('@').filter(|_| subject.channel == Channel::Email);
        let class = match kind {
            EventKind::Bounce => text("bounce_class"),
            EventKind::Failed | EventKind::Suppressed => text("reason"),
            _ => None,
        };
        let smtp_code = meta.get("smtp_code").and_then(Value::as_u64).map(|code| code.to_string());
        let is_of_attempt = matches!(
            kind,
            EventKind::Sent | EventKind::Delivered | EventKind::Deferred | EventKind::Bounce | EventKind::Failed
        );
        let attempt = subject.attempt.filter(|_| is_of_attempt);
        let mx = text("mx").or_else(|| attempt.and_then(|attempt| attempt.mx));
        Self {
            workspace_id: subject.workspace_id,
            message_id: subject.message_id,
            channel: subject.channel,
            kind,
            domain: domain.and_then(|(_, domain)| ascii_domain(domain)).and_then(|domain| word(&domain)),
            class: class.and_then(word),
            code: smtp_code.or_else(|| text("provider_code").and_then(word)),
            attempt: attempt.map(|attempt| attempt.number),
            mx: mx.and_then(word),
            duration_ms: attempt.and_then(|attempt| attempt.duration_ms),
            is_implied: false,
        }
    }

    /// Returns the observations of the events of one commit, in their order.
    pub fn all(subject: EventSubject<'_>, events: &[(EventKind, Map<String, Value>)]) -> Vec<Self> {
        let recipient = |meta: &Map<String, Value>| meta.get("recipient").cloned();
        let is_delivered = |meta: &Map<String, Value>| {
            events.iter().any(|(kind, other)| *kind == EventKind::Delivered && recipient(other) == recipient(meta))
        };
        let one = |(kind, meta): &(EventKind, Map<String, Value>)| {
            let is_implied = *kind == EventKind::Sent && is_delivered(meta);
            Self { is_implied, ..Self::new(subject, *kind, meta) }
        };
        events.iter().map(one).collect()
    }

    /// Returns the class of a bounce; `unknown` for one that this version does not know.
    pub fn bounce_class(&self) -> Option<BounceClass> {
        let class = self.class.as_deref().filter(|_| self.kind == EventKind::Bounce)?;
        Some(BounceClass::parse(class).unwrap_or(BounceClass::Unknown))
    }

    /// Returns the event as the state that the recipient has reached.
    pub const fn status(&self) -> &'static str {
        match self.kind {
            EventKind::Queued => "queued",
            EventKind::Sent => "sent",
            EventKind::Delivered => "delivered",
            EventKind::Deferred => "deferred",
            EventKind::Bounce => "bounced",
            EventKind::Complaint => "complained",
            EventKind::Open => "opened",
            EventKind::Click => "clicked",
            EventKind::Unsubscribe => "unsubscribed",
            EventKind::Failed => "failed",
            EventKind::Suppressed => "suppressed",
            EventKind::Cancelled => "cancelled",
        }
    }
}

/// Returns a text from a peer if it can only be a code or a host name. An address is neither.
fn word(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    (!text.is_empty() && text.len() <= MAX_WORD && text.chars().all(is_plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::Id as _;

    fn subject(attempt: Option<AttemptSubject<'_>>) -> EventSubject<'_> {
        let (workspace_id, message_id) = (WorkspaceId::from_bytes([1; 16]), MessageId::from_bytes([2; 16]));
        EventSubject { workspace_id, message_id, channel: Channel::Email, to: "ann@Example.ORG", attempt }
    }

    fn meta(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_bounce_tells_class_code_host_and_the_domain_alone() {
        let attempt = AttemptSubject { number: 2, mx: Some("mx.example.org"), duration_ms: Some(17) };
        let bounce = meta(json!({
            "recipient": "carl@other.example", "smtp_code": 550, "enhanced_code": "5.1.1",
            "response": "no carl@other.example here", "bounce_class": "invalid_recipient",
        }));
        let told = MessageObservation::new(subject(Some(attempt)), EventKind::Bounce, &bounce);
        assert_eq!(told.domain.as_deref(), Some("other.example"));
        assert_eq!(told.bounce_class(), Some(BounceClass::InvalidRecipient));
        assert_eq!((told.code.as_deref(), told.attempt, told.duration_ms), (Some("550"), Some(2), Some(17)));
        assert_eq!((told.mx.as_deref(), told.status()), (Some("mx.example.org"), "bounced"));
        assert!(!format!("{told:?}").contains("carl"));
    }

    #[test]
    fn words_that_could_be_an_address_or_a_sentence_are_left_out() {
        let failed = meta(json!({"provider_code": "no ann@example.org", "reason": "a sentence", "mx": "ann@example"}));
        let told = MessageObservation::new(subject(None), EventKind::Failed, &failed);
        assert_eq!((told.code, told.class, told.mx), (None, None, None));
        assert_eq!(told.domain.as_deref(), Some("example.org"));
        let erased = EventSubject { to: "", ..subject(None) };
        assert_eq!(MessageObservation::new(erased, EventKind::Cancelled, &Map::new()).domain, None);
    }

    #[test]
    fn sent_is_implied_only_where_the_same_recipient_was_delivered_to() {
        let to = |address: &str| meta(json!({"recipient": address}));
        let events = [
            (EventKind::Sent, to("a@x.example")),
            (EventKind::Delivered, to("a@x.example")),
            (EventKind::Sent, to("b@x.example")),
        ];
        let told = MessageObservation::all(subject(None), &events);
        assert_eq!(told.iter().map(|one| one.is_implied).collect::<Vec<_>>(), [true, false, false]);
    }
}
