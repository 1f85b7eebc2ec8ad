//! Consequences of a class of outcome: for event, status, address and account.
//!
//! The only table of them, for every channel, for answers and for receipts.

use std::time::Duration;

use crate::domain::audience::soft_bounce;
use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::delivery::bounce::{BounceClass, BounceType};
use crate::domain::delivery::outcome::{Acceptance, Answer, ContentFault, Outcome, OutcomeClass, Scope};
use crate::domain::message::MessageStatus;

/// Code of a deferral, and reason of a failure, because a peer lacks the TLS that a message may not go without
/// (contract section 14.4).
pub const TLS_REQUIRED: &str = "tls_required";

/// Interval at which one message tries an account that refuses us.
pub const PROBE_EVERY: Duration = Duration::from_mins(5);

/// Minimum time until a message that was written and not answered is tried again: a receipt may settle it before.
pub const AMBIGUOUS_WAIT: Duration = Duration::from_mins(1);

/// Detail of a suppression because the recipient refuses us.
pub const BLOCKED: &str = "blocked";

/// Consequence for a recipient and its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// `sent`, and `delivered` where the acceptance says so.
    Sent(Acceptance),
    /// `bounce`.
    Bounced(BounceClass),
    /// `suppressed`.
    Suppressed(SuppressionReason),
    /// `failed`, with the reason of the event.
    Failed(&'static str),
    /// `deferred`, for at least this time.
    Deferred(Duration),
}

impl Disposition {
    /// Returns the status that the message gets.
    pub const fn status(self) -> MessageStatus {
        match self {
            Self::Sent(Acceptance::Delivered) => MessageStatus::Delivered,
            Self::Sent(Acceptance::Relayed) => MessageStatus::Sent,
            Self::Bounced(_) => MessageStatus::Bounced,
            Self::Suppressed(_) => MessageStatus::Suppressed,
            Self::Failed(_) => MessageStatus::Failed,
            Self::Deferred(_) => MessageStatus::Deferred,
        }
    }

    /// Returns the consequence for the recipient's address: none, a suppression, or a streak of soft bounces that grows
    /// or ends.
    pub fn address(self) -> AddressEffect {
        match self {
            Self::Sent(Acceptance::Delivered) => AddressEffect::Reached,
            Self::Bounced(BounceClass::Blocked) => AddressEffect::Suppressed(SuppressionReason::Bounce, Some(BLOCKED)),
            Self::Bounced(class) if class.bounce_type() == BounceType::Hard => {
                AddressEffect::Suppressed(SuppressionReason::Bounce, None)
            }
            Self::Bounced(class) if soft_bounce::counts(class) => AddressEffect::SoftBounce,
            Self::Suppressed(reason) => AddressEffect::Suppressed(reason, None),
            Self::Sent(Acceptance::Relayed) | Self::Bounced(_) | Self::Failed(_) | Self::Deferred(_) => {
                AddressEffect::None
            }
        }
    }
}

/// Effect of an answer on the address of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressEffect {
    /// The address is not affected.
    None,
    /// A streak of soft bounces ends.
    Reached,
    /// A streak of soft bounces grows.
    SoftBounce,
    /// The address is suppressed, with a detail.
    Suppressed(SuppressionReason, Option<&'static str>),
}

/// Effect of an answer on all other messages of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneEffect {
    /// The account is not affected.
    None,
    /// The account pauses for this time, and gets messages more slowly afterwards. Without a time it does not pause:
    /// the message waits by its schedule (contract section 16).
    Rest(Duration),
    /// The account stops, except for a probe every [`PROBE_EVERY`], until the settings change.
    Stop,
}

/// The circumstances of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    /// True if the channel is email, where a message that is put off until it expires bounces.
    pub is_email: bool,
    /// True if there is no further attempt.
    pub is_last: bool,
    /// True if an earlier attempt failed because of the recipient's own server.
    pub was_deferred: bool,
}

/// Decides what becomes of a message for one recipient, from the answer and its circumstances.
pub fn disposition(answer: &Answer, circumstances: Circumstances) -> Disposition {
    let Circumstances { is_email, is_last, was_deferred } = circumstances;
    match answer.class {
        OutcomeClass::Accepted(acceptance) => Disposition::Sent(acceptance),
        OutcomeClass::Address(fault) => Disposition::Bounced(fault.into()),
        OutcomeClass::Blocked => Disposition::Bounced(BounceClass::Blocked),
        OutcomeClass::OptedOut => Disposition::Suppressed(SuppressionReason::Unsubscribe),
        OutcomeClass::Soft(cause) => Disposition::Bounced(cause.into()),
        OutcomeClass::Content(ContentFault::Provider) => Disposition::Failed("provider_error"),
        OutcomeClass::Content(ContentFault::Render) => Disposition::Failed("render_error"),
        // The recipient may have it, so it does not fail: a receipt may still come.
        OutcomeClass::Ambiguous if is_last && !is_email => Disposition::Sent(Acceptance::Relayed),
        OutcomeClass::TlsRequired if is_last => Disposition::Failed(TLS_REQUIRED),
        OutcomeClass::TlsRequired => Disposition::Deferred(answer.asked_wait().unwrap_or_default()),
        class
        @ (OutcomeClass::Retry(_) | OutcomeClass::Throttled(_) | OutcomeClass::Auth | OutcomeClass::Ambiguous) => {
            let wait = answer.asked_wait().unwrap_or_default();
            let is_about_recipient = was_deferred || counts_for_recipient(class, is_email);
            match (is_last, is_about_recipient, class) {
                (false, _, OutcomeClass::Ambiguous) => Disposition::Deferred(wait.max(AMBIGUOUS_WAIT)),
                (false, ..) => Disposition::Deferred(wait),
                (true, true, _) => Disposition::Bounced(BounceClass::Unreachable),
                (true, false, _) => Disposition::Failed("provider_error"),
            }
        }
    }
}

/// Returns true if an answer that puts a message off is about the recipient: then the message bounces when it expires.
/// Faults of ours or of the provider do not count towards a streak of soft bounces. A mail server that breaks off after
/// the content is the recipient's own.
pub const fn counts_for_recipient(class: OutcomeClass, is_email: bool) -> bool {
    match class {
        OutcomeClass::Retry(Scope::Recipient) => true,
        OutcomeClass::Ambiguous => is_email,
        _ => false,
    }
}

/// Returns the consequence of an answer for the account that messages are sent over: none, a rest or a stop.
pub fn lane_effect(answer: &Answer) -> LaneEffect {
    match answer.class {
        OutcomeClass::Throttled(Scope::Account) => LaneEffect::Rest(answer.asked_wait().unwrap_or_default()),
        OutcomeClass::Auth => LaneEffect::Stop,
        _ => LaneEffect::None,
    }
}

/// State of an account, as the answers of an attempt show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// No answer shows whether the account works.
    Unknown,
    /// The account works: it let us in.
    Works,
    /// The account was sent too much. With the pause that it asks for, zero if it names none, and the text of its
    /// answer.
    Rests(Duration, String),
    /// The account refuses us; with the text of its answer.
    Stopped(String),
}

/// Returns the state of the account that the answers of an attempt show.
pub fn account_state<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> AccountState {
    let mut worst: Option<(LaneEffect, &Answer)> = None;
    let mut works = false;
    for answer in outcomes.into_iter().filter_map(Outcome::answer) {
        let effect = lane_effect(answer);
        if effect > worst.map_or(LaneEffect::None, |(worst, _)| worst) {
            worst = Some((effect, answer));
        }
        works |= match answer.class {
            OutcomeClass::Retry(scope) | OutcomeClass::Throttled(scope) => scope == Scope::Recipient,
            OutcomeClass::Auth | OutcomeClass::TlsRequired | OutcomeClass::Ambiguous | OutcomeClass::Content(_) => {
                false
            }
            _ => true,
        };
    }
    match worst {
        Some((LaneEffect::Stop, answer)) => AccountState::Stopped(answer.response.text.clone()),
        Some((LaneEffect::Rest(wait), answer)) => AccountState::Rests(wait, answer.response.text.clone()),
        _ if works => AccountState::Works,
        _ => AccountState::Unknown,
    }
}

#[cfg(test)]
mod tests;
