//! What became of one recipient of an attempt: a class, and what the peer said.
//!
//! The class comes from the transport, which knows its provider: never from a status code here. What follows from a
//! class is in [`consequence`](super::consequence).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::delivery::bounce::{BounceClass, classify};

pub use crate::domain::delivery::response::Response;

/// The longest wait that a peer is granted.
pub const MAX_WAIT: Duration = Duration::from_hours(24);

/// The most characters kept of a provider's name for a message.
pub const MAX_PROVIDER_MESSAGE_ID: usize = 255;

/// What it means that the peer said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// The recipient has it: `sent` and `delivered` together.
    Delivered,
    /// A relay or provider has it: `sent`, and a later report may tell more.
    Relayed,
}

/// What an answer means. Every answer, direct or by callback, has one of these.
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
    /// Not this time, and not again: the recipient is absent, something filtered it, or it expired at the provider.
    Soft(SoftCause),
    /// This message never, whoever receives it.
    Content(ContentFault),
    /// Not now; trying again may work.
    Retry(Scope),
    /// Not now, because it is too much.
    Throttled(Scope),
    /// The provider refuses our key or our account, or our settings cannot work: somebody has to mend that.
    Auth,
    /// The message may go over TLS alone, or over verified TLS, and the peer has none: it never goes in clear.
    TlsRequired,
    /// The message was written, and the answer was lost: the peer may have it.
    Ambiguous,
}

/// What of an address is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressFault {
    /// Nobody has it.
    Recipient,
    /// Its domain does not exist or takes no mail.
    Domain,
}

/// Why a recipient did not get a message, although the address may be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SoftCause {
    /// The mailbox is full.
    MailboxFull,
    /// A policy of whoever receives it, or of a filter before.
    Policy,
    /// What it says or how large it is, judged by this recipient's server.
    Content,
    /// The recipient cannot be reached.
    Unreachable,
    /// The answer does not say.
    Unknown,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentFault {
    /// The provider does not take such a message.
    Provider,
    /// Its markup or the values of its template.
    Render,
}

/// Whom an answer concerns besides this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This recipient.
    Recipient,
    /// Everything that goes over this account.
    Account,
    /// The host of the recipient's choice that was called: neither the recipient nor the account.
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
    /// Nothing was sent: [`LastLook`](crate::ports::transport::LastLook) said not by this attempt, and why. It was
    /// none, and the job looks again soon.
    Withheld(String),
}

/// The answer of an attempt about one recipient.
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

/// What providers say besides, off email.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAnswer {
    /// Which provider it was, where one transport speaks to several; else the one that the channel is set to.
    pub provider: Option<String>,
    /// The provider's name for the message, by which its receipts may name it: at most [`MAX_PROVIDER_MESSAGE_ID`]
    /// characters.
    pub message_id: Option<String>,
    /// The provider's code, such as `30003`.
    pub code: Option<String>,
    /// How many segments of a text message were counted.
    pub segments: Option<u16>,
    /// The recipient's new address: the message was sent there, and so are the next ones.
    pub moved_to: Option<String>,
}

impl Answer {
    /// An answer of a class.
    pub const fn new(class: OutcomeClass, response: Response) -> Self {
        Self { class, response, wait: None, provider: None }
    }

    /// How long the peer asks to be left alone; longer than [`MAX_WAIT`] is cut off.
    pub fn wait(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.wait = wait.into().map(|wait| wait.min(MAX_WAIT));
        self
    }

    /// What the provider said besides. A name for the message that is too long is no name.
    pub fn provider(mut self, mut provider: ProviderAnswer) -> Self {
        let fits = |id: &String| {
            (1..=MAX_PROVIDER_MESSAGE_ID).contains(&id.chars().count()) && !id.chars().any(char::is_control)
        };
        provider.message_id = provider.message_id.filter(fits);
        self.provider = Some(Box::new(provider));
        self
    }

    /// How long the peer asks to be left alone.
    pub const fn asked_wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Whether there was an answer, in words that are not the provider's: the message may have been taken.
    pub fn is_unreadable(&self) -> bool {
        self.class == OutcomeClass::Ambiguous && self.response.code.is_some()
    }

    /// Further details that the provider gave, off email, such as its name for the message.
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
    /// An answer of a class.
    pub const fn of(class: OutcomeClass, response: Response) -> Self {
        Self::Answered(Answer::new(class, response))
    }

    /// The peer took responsibility.
    pub const fn accepted(acceptance: Acceptance, response: Response) -> Self {
        Self::of(OutcomeClass::Accepted(acceptance), response)
    }

    /// A mail server refused for good: what it means is read from the reply ([`classify`]).
    pub fn refused(response: Response) -> Self {
        Self::of(classify(&response).into(), response)
    }

    /// The recipient's server refused for now.
    pub const fn deferred(response: Response) -> Self {
        Self::of(OutcomeClass::Retry(Scope::Recipient), response)
    }

    /// The provider cannot be reached or fails, which says nothing about the recipient.
    pub const fn provider_failed(response: Response) -> Self {
        Self::of(OutcomeClass::Retry(Scope::Account), response)
    }

    /// The answer was lost after the message had been written.
    pub const fn ambiguous(response: Response) -> Self {
        Self::of(OutcomeClass::Ambiguous, response)
    }

    /// The answer, if an attempt was made.
    pub const fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    /// The class of the answer, if an attempt was made.
    pub const fn class(&self) -> Option<OutcomeClass> {
        match self {
            Self::Answered(answer) => Some(answer.class),
            _ => None,
        }
    }

    /// True if the peer accepted the message and so took responsibility for it.
    pub const fn is_accepted(&self) -> bool {
        matches!(self.class(), Some(OutcomeClass::Accepted(_)))
    }
}

impl OutcomeClass {
    /// True for classes after which another attempt may succeed.
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
