//! Outcome of an attempt for one recipient: a class, and the answer of the peer.
//!
//! The transport, which knows its provider, sets the class: never a status code here. The consequences of a class are
//! in [`consequence`](super::consequence).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::delivery::bounce::{BounceClass, classify};

pub use crate::domain::delivery::response::Response;

/// Longest wait that a peer is granted.
pub const MAX_WAIT: Duration = Duration::from_hours(24);

/// Maximum number of characters of a provider's id for a message.
pub const MAX_PROVIDER_MESSAGE_ID: usize = 255;

/// Meaning of an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// The recipient has it: `sent` and `delivered` together.
    Delivered,
    /// A relay or provider has it: `sent`, and a later report may tell more.
    Relayed,
}

/// Meaning of an answer. Every answer, direct or by callback, has one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// The peer took responsibility.
    Accepted(Acceptance),
    /// The address is bad for good.
    Address(AddressFault),
    /// The recipient refuses us.
    Blocked,
    /// The recipient is on the provider's list of those who want nothing.
    OptedOut,
    /// A final failure that is not the address's fault: the recipient is absent, something filtered the message, or it
    /// expired at the provider.
    Soft(SoftCause),
    /// The peer will never accept this message, whoever receives it.
    Content(ContentFault),
    /// A temporary failure: trying again may work.
    Retry(Scope),
    /// A temporary failure because of too much mail.
    Throttled(Scope),
    /// The provider refuses our key or our account, or our settings cannot work: a person has to fix that.
    Auth,
    /// The message may only go over TLS, or over verified TLS, and the peer has none: it never goes in clear.
    TlsRequired,
    /// The message was written, and the answer was lost: the peer may have it.
    Ambiguous,
}

/// Bad part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressFault {
    /// The mailbox does not exist.
    Recipient,
    /// The domain does not exist or takes no mail.
    Domain,
}

/// Reason why a recipient did not get a message, although the address may be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SoftCause {
    /// The mailbox is full.
    MailboxFull,
    /// A policy of the recipient's server, or of a filter before it.
    Policy,
    /// The text or the size of the message, judged by this recipient's server.
    Content,
    /// The recipient cannot be reached.
    Unreachable,
    /// The answer gives no reason.
    Unknown,
}

/// Fault of a message's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentFault {
    /// The provider does not take such a message.
    Provider,
    /// The markup of the message, or the values for its template, are wrong.
    Render,
}

/// Scope of an answer beyond this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Only this recipient.
    Recipient,
    /// All messages that are sent over this account.
    Account,
    /// The host that the recipient chose and that was called: neither the recipient nor the account.
    Origin,
}

/// Outcome of an attempt for one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The peer answered, or it is known why it did not.
    Answered(Answer),
    /// Nothing was sent: [`LastLook`](crate::ports::transport::LastLook) found the recipient suppressed.
    Suppressed(SuppressionReason),
    /// Nothing was sent: [`LastLook::is_held`](crate::ports::transport::LastLook::is_held). Says nothing about the
    /// recipient.
    Held,
    /// Nothing was sent: [`LastLook`](crate::ports::transport::LastLook) forbade this attempt, for the reason in the
    /// text. It does not count as an attempt, and the job looks again soon.
    Withheld(String),
}

/// Answer of an attempt for one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Class of the answer, from which everything else follows.
    pub class: OutcomeClass,
    /// Reply of the peer: its codes, its text and the host.
    pub response: Response,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<Box<ProviderAnswer>>,
}

/// Further members of a provider's answer, off email.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAnswer {
    /// Name of the provider, if one transport speaks to several; `None` for the one that the channel is set to.
    pub provider: Option<String>,
    /// The provider's id of the message, by which its receipts may name it: at most [`MAX_PROVIDER_MESSAGE_ID`]
    /// characters.
    pub message_id: Option<String>,
    /// The provider's code, such as `30003`.
    pub code: Option<String>,
    /// Number of segments of a text message.
    pub segments: Option<u16>,
    /// New address of the recipient: the message was sent there, and later ones will be.
    pub moved_to: Option<String>,
}

impl Answer {
    /// Returns an answer of a class.
    pub const fn new(class: OutcomeClass, response: Response) -> Self {
        Self { class, response, wait: None, provider: None }
    }

    /// Sets the wait that the peer asks for; a longer one than [`MAX_WAIT`] is cut off.
    pub fn wait(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.wait = wait.into().map(|wait| wait.min(MAX_WAIT));
        self
    }

    /// Sets the further members of the provider's answer. An id of the message that is empty, too long or has control
    /// characters is dropped.
    pub fn provider(mut self, mut provider: ProviderAnswer) -> Self {
        let fits = |id: &String| {
            (1..=MAX_PROVIDER_MESSAGE_ID).contains(&id.chars().count()) && !id.chars().any(char::is_control)
        };
        provider.message_id = provider.message_id.filter(fits);
        self.provider = Some(Box::new(provider));
        self
    }

    /// Returns the wait that the peer asks for.
    pub const fn asked_wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Returns true if there was an answer that is not in the provider's format: the message may have been accepted.
    pub fn is_unreadable(&self) -> bool {
        self.class == OutcomeClass::Ambiguous && self.response.code.is_some()
    }

    /// Returns the further members of the provider's answer, off email, such as its id of the message.
    pub fn of_provider(&self) -> Option<&ProviderAnswer> {
        self.provider.as_deref()
    }
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answered(answer)
    }
}

impl Outcome {
    /// Returns the outcome for an answer of a class.
    pub const fn of(class: OutcomeClass, response: Response) -> Self {
        Self::Answered(Answer::new(class, response))
    }

    /// Returns the outcome for an accepted message.
    pub const fn accepted(acceptance: Acceptance, response: Response) -> Self {
        Self::of(OutcomeClass::Accepted(acceptance), response)
    }

    /// Returns the outcome for a permanent refusal by a mail server, with its class by [`classify`].
    pub fn refused(response: Response) -> Self {
        Self::of(classify(&response).into(), response)
    }

    /// Returns the outcome for a temporary refusal by the recipient's server.
    pub const fn deferred(response: Response) -> Self {
        Self::of(OutcomeClass::Retry(Scope::Recipient), response)
    }

    /// Returns the outcome when the provider cannot be reached or fails, which says nothing about the recipient.
    pub const fn provider_failed(response: Response) -> Self {
        Self::of(OutcomeClass::Retry(Scope::Account), response)
    }

    /// Returns the outcome when the answer was lost after the message had been written.
    pub const fn ambiguous(response: Response) -> Self {
        Self::of(OutcomeClass::Ambiguous, response)
    }

    /// Returns the answer, if an attempt was made.
    pub const fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    /// Returns the class of the answer, if an attempt was made.
    pub const fn class(&self) -> Option<OutcomeClass> {
        match self {
            Self::Answered(answer) => Some(answer.class),
            _ => None,
        }
    }

    /// Returns true if the peer accepted the message and so took responsibility for it.
    pub const fn is_accepted(&self) -> bool {
        matches!(self.class(), Some(OutcomeClass::Accepted(_)))
    }
}

impl OutcomeClass {
    /// Returns true for classes after which another attempt may succeed.
    pub const fn is_retried(self) -> bool {
        matches!(self, Self::Retry(_) | Self::Throttled(_) | Self::Auth | Self::TlsRequired | Self::Ambiguous)
    }
}

impl From<BounceClass> for OutcomeClass {
    fn from(class: BounceClass) -> Self {
        match class {
            BounceClass::InvalidRecipient => Self::Address(AddressFault::Recipient),
            BounceClass::InvalidDomain => Self::Address(AddressFault::Domain),
            BounceClass::Blocked => Self::Blocked,
            BounceClass::MailboxFull => Self::Soft(SoftCause::MailboxFull),
            BounceClass::Policy => Self::Soft(SoftCause::Policy),
            BounceClass::Content => Self::Soft(SoftCause::Content),
            BounceClass::Unreachable => Self::Soft(SoftCause::Unreachable),
            BounceClass::Unknown => Self::Soft(SoftCause::Unknown),
        }
    }
}

impl From<AddressFault> for BounceClass {
    fn from(fault: AddressFault) -> Self {
        match fault {
            AddressFault::Recipient => Self::InvalidRecipient,
            AddressFault::Domain => Self::InvalidDomain,
        }
    }
}

impl From<SoftCause> for BounceClass {
    fn from(cause: SoftCause) -> Self {
        match cause {
            SoftCause::MailboxFull => Self::MailboxFull,
            SoftCause::Policy => Self::Policy,
            SoftCause::Content => Self::Content,
            SoftCause::Unreachable => Self::Unreachable,
            SoftCause::Unknown => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_names_are_bounded() {
        let answer = Answer::new(OutcomeClass::Throttled(Scope::Account), Response::default());
        assert_eq!(answer.clone().wait(Duration::from_hours(999)).asked_wait(), Some(MAX_WAIT));
        assert_eq!(answer.clone().wait(None).asked_wait(), None);
        for (length, is_kept) in [(0, false), (1, true), (255, true), (256, false)] {
            let given = ProviderAnswer { message_id: Some("x".repeat(length)), ..ProviderAnswer::default() };
            let answer = answer.clone().provider(given);
            assert_eq!(answer.of_provider().unwrap().message_id.is_some(), is_kept, "{length}");
        }
    }

    #[test]
    fn outcomes_round_trip() {
        let reply = Response { code: Some(550), enhanced: Some("5.1.1".into()), ..Response::default() };
        let full = Answer::new(OutcomeClass::Soft(SoftCause::Policy), reply)
            .wait(Duration::from_secs(7))
            .provider(ProviderAnswer { segments: Some(2), ..ProviderAnswer::default() });
        for outcome in [
            full.into(),
            Outcome::accepted(Acceptance::Relayed, Response::default()),
            Outcome::Suppressed(SuppressionReason::Manual),
            Outcome::Held,
            Outcome::Withheld("later".to_owned()),
        ] {
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome, "{text}");
        }
    }
}
