//! Judgment of a delivery attempt: events, status of the message, open recipients, addresses to suppress.
//!
//! Contract section 4.2. `judge` is a pure function; the job stores its result.

pub mod attempt;
pub mod bounce;
pub mod consequence;
pub mod fair_turns;
pub mod ip_pool;
pub mod lane;
pub mod outcome;
pub mod path;
pub mod queue;
pub mod recipient_time;
pub mod response;
pub mod retry;
pub mod retry_after;
pub mod site;
pub mod source;
pub mod source_choice;
pub mod warm_up;

use serde_json::{Map, Value, json};

use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::channel::Channel;
use crate::domain::delivery::bounce::BounceClass;
use crate::domain::delivery::consequence::{
    AddressEffect, Circumstances, Disposition, TLS_REQUIRED, counts_for_recipient, disposition,
};
use crate::domain::delivery::outcome::{Acceptance, Answer, Outcome, OutcomeClass, Response};
use crate::domain::message::recipients::{Recipient, RecipientKind};
use crate::domain::message::{EventKind, Message, MessageStatus};
use crate::time::Timestamp;

/// Text of the event of a message that was held.
const HELD: &str = "not sent: the server cannot store outcomes at the moment";

/// Circumstances of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Number of the attempt, counted from 1.
    pub number: u32,
    /// The channel.
    pub channel: Channel,
    /// When it ended.
    pub now: Timestamp,
    /// Time of the next attempt for recipients that are put off; `None` when the message has expired.
    pub next_attempt_at: Option<Timestamp>,
    /// When the message expires. A wait that a peer asks for ends then at the latest.
    pub expires_at: Timestamp,
    /// Time of the next attempt for recipients that this one did not try, because the outcome could not be stored or
    /// the recipient belongs to another attempt.
    pub held_until: Timestamp,
}

/// Result of an attempt for one recipient, with the facts of earlier attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientResult {
    /// The recipient.
    pub recipient: Recipient,
    /// Result of this attempt for the recipient.
    pub result: AttemptResult,
    /// True if the peer may have the message from an earlier attempt, which a crash cut off or which lost the final
    /// reply.
    pub ambiguous: bool,
    /// Number of earlier copies, off email, whose answers were lost or could not be read.
    pub lost: u8,
}

/// Result of an attempt for one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptResult {
    /// The attempt was made.
    Tried(Outcome),
    /// The attempt was made with a simulated recipient who then complains.
    Complained(Response),
    /// The address is on the suppression list.
    Suppressed(SuppressionReason),
    /// Too many attempts were cut off by the end of the process while the message was on the wire: another might end
    /// the same way.
    GivenUp,
    /// Nothing can be sent, whoever the recipient is: the content cannot be made, or no provider may or can carry it.
    Failed {
        /// The `reason` of the event.
        reason: &'static str,
        /// Description of the fault, for people.
        message: String,
    },
}

/// Maximum number of attempts for a recipient that the end of the process cut off; there is no further one.
pub const MAX_CUT_OFF: u8 = 5;

/// Maximum number of copies of a message off email whose answers were lost or could not be read; there is no further
/// one, and the message ends with its arrival unknown.
pub const MAX_LOST: u8 = 3;

/// Consequences of an attempt that have to be stored: events, status, and changes of addresses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgment {
    /// Events in order.
    pub events: Vec<(EventKind, Map<String, Value>)>,
    /// New status of the message, if the attempt included the `to` recipient.
    pub status: Option<MessageStatus>,
    /// Recipients to try again.
    pub open: Vec<Recipient>,
    /// Time of the next attempt; set when a recipient is open.
    pub next_attempt_at: Option<Timestamp>,
    /// True if all open recipients were withheld or held: no attempt was made for them.
    pub is_withheld: bool,
    /// Addresses to suppress.
    pub suppress: Vec<Suppressed>,
    /// Addresses that the message was delivered to.
    pub reached: Vec<String>,
    /// Addresses that bounced softly in a way that counts (see [`crate::domain::audience::soft_bounce`]).
    pub soft_bounces: Vec<String>,
}

/// An address to suppress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppressed {
    /// The address, as it was spelled.
    pub address: String,
    /// Reason stored with the suppression.
    pub reason: SuppressionReason,
    /// Details of the reason.
    pub detail: Option<&'static str>,
}

impl Judgment {
    /// Sets the time of the next attempt to the earliest that an open recipient asks for.
    fn try_again_at(&mut self, next: Timestamp) {
        self.next_attempt_at = Some(self.next_attempt_at.map_or(next, |known| known.min(next)));
    }

    pub(super) fn event(&mut self, kind: EventKind, meta: Value) {
        let Value::Object(meta) = meta else { return };
        self.event_with(kind, meta);
    }

    /// Adds an event with those of its members that are known.
    pub(super) fn event_with(&mut self, kind: EventKind, mut meta: Map<String, Value>) {
        meta.retain(|_, value| !value.is_null());
        self.events.push((kind, meta));
    }

    /// Records a final refusal of a recipient; [`Judgment::affect`] records the consequence for the address.
    pub(super) fn bounced(
        &mut self,
        channel: Channel,
        address: &str,
        answer: &Answer,
        class: BounceClass,
        ambiguous: Option<bool>,
    ) {
        let mut meta = peer_meta(channel, address, answer);
        meta.extend([
            ("bounce_type".to_owned(), json!(class.bounce_type())),
            ("bounce_class".to_owned(), json!(class)),
            ("ambiguous".to_owned(), json!(ambiguous)),
        ]);
        self.event_with(EventKind::Bounce, meta);
    }

    /// Records the effect on an address.
    pub(super) fn affect(&mut self, address: &str, effect: AddressEffect) {
        match effect {
            AddressEffect::None => {}
            AddressEffect::Reached => self.reached.push(address.to_owned()),
            AddressEffect::SoftBounce => self.soft_bounces.push(address.to_owned()),
            AddressEffect::Suppressed(reason, detail) => self.list(address, reason, detail),
        }
    }

    /// Records that an address is to be suppressed.
    pub(super) fn list(&mut self, address: &str, reason: SuppressionReason, detail: Option<&'static str>) {
        self.suppress.push(Suppressed { address: address.to_owned(), reason, detail });
    }

    /// Removes the recipients and further attempts, because the contact was erased meanwhile. A message with status
    /// `status` that would have been tried again is cancelled, as erasure cancels waiting messages.
    pub fn forget_recipients(&mut self, status: MessageStatus) {
        let was_open = self.open.iter().any(|one| one.kind == RecipientKind::To);
        if was_open && !status.is_settled() {
            self.status = Some(MessageStatus::Cancelled);
            self.event(EventKind::Cancelled, json!({}));
        }
        for (_, meta) in &mut self.events {
            meta.retain(|name, _| !["recipient", "response", "message"].contains(&name.as_str()));
        }
        self.soft_bounces.clear();
        self.open.clear();
        self.next_attempt_at = None;
    }
}

impl Judgment {
    /// Removes the events `told` that receipts of the provider have recorded already, for a message without copies,
    /// because they arrived before the end of the attempt. If they settled the message, no recipient is tried again.
    pub fn forget_told(&mut self, message: &Message, told: &[EventKind]) {
        self.events.retain(|(kind, _)| !told.contains(kind));
        if message.status.is_settled() {
            self.events.retain(|(kind, _)| matches!(kind, EventKind::Sent | EventKind::Delivered));
            self.open.clear();
            self.next_attempt_at = None;
            self.suppress.clear();
            self.soft_bounces.clear();
        }
    }
}

/// Judges an attempt by its results for the recipients.
pub fn judge(attempt: Attempt, results: &[RecipientResult]) -> Judgment {
    let mut judgment = Judgment::default();
    for result in results {
        let status = one(&mut judgment, attempt, result);
        if result.recipient.kind == RecipientKind::To {
            judgment.status = status;
        }
    }
    let withheld = |one: &&RecipientResult| matches!(one.result, AttemptResult::Tried(Outcome::Withheld(_)));
    for one in results.iter().filter(withheld) {
        judgment.try_again_at(attempt.held_until);
        judgment.open.push(one.recipient.clone());
    }
    let is_untried =
        |one: &&RecipientResult| matches!(one.result, AttemptResult::Tried(Outcome::Withheld(_) | Outcome::Held));
    let untried = results.iter().filter(is_untried).count();
    judgment.is_withheld = untried > 0 && untried == judgment.open.len();
    judgment
}

/// Records the consequences for one recipient, and returns the status that they give its message.
fn one(judgment: &mut Judgment, attempt: Attempt, tried: &RecipientResult) -> Option<MessageStatus> {
    let RecipientResult { recipient, result, ambiguous, lost } = tried;
    let address = recipient.address.as_str();
    let is_lost = matches!(result, AttemptResult::Tried(outcome) if outcome.class() == Some(OutcomeClass::Ambiguous));
    let ambiguous = (*ambiguous || is_lost).then_some(true);
    let (answer, complains) = match result {
        AttemptResult::Suppressed(reason) => return Some(suppressed(judgment, address, *reason, ambiguous)),
        AttemptResult::GivenUp => {
            let why = format!(
                "the server stopped {MAX_CUT_OFF} times while the message was on its way to this recipient, and \
                 whether a copy arrived is not known: it is not sent again"
            );
            judgment.event(
                EventKind::Failed,
                json!({"recipient": address, "reason": "provider_error", "message": why, "ambiguous": ambiguous}),
            );
            return Some(MessageStatus::Failed);
        }
        AttemptResult::Failed { reason, message } => {
            // The result for `to` is that of the message, and needs no name.
            let copy = (recipient.kind != RecipientKind::To).then_some(address);
            judgment.event(
                EventKind::Failed,
                json!({"recipient": copy, "reason": reason, "message": message, "ambiguous": ambiguous}),
            );
            return Some(MessageStatus::Failed);
        }
        AttemptResult::Complained(response) => {
            (Answer::new(OutcomeClass::Accepted(Acceptance::Delivered), response.clone()), true)
        }
        AttemptResult::Tried(Outcome::Answered(answer)) => (answer.clone(), false),
        AttemptResult::Tried(Outcome::Suppressed(reason)) => {
            return Some(suppressed(judgment, address, *reason, ambiguous));
        }
        // No attempt was made: the message keeps its status.
        AttemptResult::Tried(Outcome::Withheld(_)) => return None,
        AttemptResult::Tried(Outcome::Held) => {
            // Always one more attempt: the message must not bounce for a fault of this server.
            let next = attempt.next_attempt_at.map_or(attempt.held_until, |next| next.min(attempt.held_until));
            judgment.event(
                EventKind::Deferred,
                json!({
                    "recipient": address, "response": HELD, "attempt": attempt.number, "next_attempt_at": next,
                    "ambiguous": ambiguous,
                }),
            );
            judgment.open.push(recipient.clone());
            judgment.try_again_at(next);
            return Some(MessageStatus::Deferred);
        }
    };
    let attempt = if is_lost && attempt.channel != Channel::Email && lost.saturating_add(1) >= MAX_LOST {
        Attempt { next_attempt_at: None, ..attempt }
    } else {
        attempt
    };
    let status = answered(judgment, attempt, recipient, &answer, ambiguous);
    if !complains {
        return Some(status);
    }
    judgment.event(EventKind::Complaint, json!({"recipient": address, "feedback_type": "abuse"}));
    judgment.list(address, SuppressionReason::Complaint, None);
    Some(MessageStatus::Complained)
}

/// Records the consequences of an answer for a recipient, and returns the status that it gives the message.
fn answered(
    judgment: &mut Judgment,
    attempt: Attempt,
    recipient: &Recipient,
    answer: &Answer,
    ambiguous: Option<bool>,
) -> MessageStatus {
    let address = recipient.address.as_str();
    let is_email = attempt.channel == Channel::Email;
    let was_deferred = recipient.was_deferred;
    let circumstances = Circumstances { is_email, is_last: attempt.next_attempt_at.is_none(), was_deferred };
    let disposition = match disposition(answer, circumstances) {
        // An earlier attempt may have arrived, and a receipt may still come.
        Disposition::Failed(_) | Disposition::Bounced(_)
            if ambiguous.is_some() && answer.class.is_retried() && !is_email =>
        {
            Disposition::Sent(Acceptance::Relayed)
        }
        disposition => disposition,
    };
    match disposition {
        Disposition::Sent(acceptance) => {
            judgment.event(EventKind::Sent, json!({"recipient": address, "ambiguous": ambiguous}));
            if acceptance == Acceptance::Delivered {
                judgment.event_with(EventKind::Delivered, delivered_meta(attempt.channel, address, answer));
            }
        }
        Disposition::Bounced(class) => judgment.bounced(attempt.channel, address, answer, class, ambiguous),
        Disposition::Suppressed(reason) => {
            suppressed(judgment, address, reason, ambiguous);
        }
        Disposition::Failed(reason) => {
            let text = &answer.response.text;
            let message = if answer.class == OutcomeClass::TlsRequired {
                format!("the message expired before it could go over the TLS that it needs: {text}")
            } else if answer.class.is_retried() {
                format!("the provider failed until the message expired, at last with: {text}")
            } else {
                text.clone()
            };
            // If no recipient can be sent the message, `to` needs no name.
            let named = answer.class.is_retried() || recipient.kind != RecipientKind::To;
            judgment.event(
                EventKind::Failed,
                json!({
                    "recipient": named.then_some(address), "reason": reason, "ambiguous": ambiguous, "message": message,
                    "provider_code": provider_code(answer).filter(|_| !is_email),
                }),
            );
        }
        Disposition::Deferred(wait) => {
            let asked = (attempt.now + wait).min(attempt.expires_at);
            let next = attempt.next_attempt_at.unwrap_or(asked).max(asked);
            let mut meta = peer_meta(attempt.channel, address, answer);
            let code = (answer.class == OutcomeClass::TlsRequired).then_some(TLS_REQUIRED);
            meta.extend([
                ("code".to_owned(), json!(code)),
                ("attempt".to_owned(), json!(attempt.number)),
                ("next_attempt_at".to_owned(), json!(next)),
                ("ambiguous".to_owned(), json!(ambiguous)),
            ]);
            judgment.event_with(EventKind::Deferred, meta);
            let was_deferred = was_deferred || counts_for_recipient(answer.class, is_email);
            judgment.open.push(Recipient { was_deferred, ..recipient.clone() });
            judgment.try_again_at(next);
        }
    }
    judgment.affect(address, disposition.address());
    disposition.status()
}

/// Records that nothing is sent to a recipient, and returns the status that it gives the message.
fn suppressed(
    judgment: &mut Judgment,
    address: &str,
    reason: SuppressionReason,
    ambiguous: Option<bool>,
) -> MessageStatus {
    // An earlier attempt may have arrived all the same.
    let meta = json!({"recipient": address, "reason": reason.as_str(), "ambiguous": ambiguous});
    judgment.event(EventKind::Suppressed, meta);
    MessageStatus::Suppressed
}

/// Returns the members of an event that name the recipient and the peer's answer: in SMTP's terms on email, in the
/// provider's elsewhere.
pub(super) fn peer_meta(channel: Channel, address: &str, answer: &Answer) -> Map<String, Value> {
    let response = &answer.response;
    let meta = if channel == Channel::Email {
        json!({
            "recipient": address, "smtp_code": response.code, "enhanced_code": response.enhanced,
            "response": response.text,
        })
    } else {
        json!({"recipient": address, "provider_code": provider_code(answer), "response": response.text})
    };
    let Value::Object(meta) = meta else { return Map::new() };
    meta
}

/// Returns the provider's own code for its answer.
fn provider_code(answer: &Answer) -> Option<&str> {
    answer.of_provider().and_then(|provider| provider.code.as_deref())
}

/// Returns the same members for a delivery, which on email names the host and no enhanced code.
pub(super) fn delivered_meta(channel: Channel, address: &str, answer: &Answer) -> Map<String, Value> {
    let mut meta = peer_meta(channel, address, answer);
    if channel == Channel::Email {
        meta.remove("enhanced_code");
        meta.insert("mx".to_owned(), json!(answer.response.host));
    }
    meta
}

#[cfg(test)]
mod tests;
