//! What becomes of a message after an attempt: events, state, who is still open, who is suppressed.
//!
//! Contract section 4.2. A value in, a value out; the job carries it out.

use serde_json::{Map, Value, json};

use crate::domain::bounce::{BounceClass, BounceType, classify};
use crate::domain::message::{EventKind, MessageStatus};
use crate::domain::recipients::{Recipient, RecipientKind};
use crate::domain::soft_bounce;
use crate::domain::suppression::SuppressionReason;
use crate::ports::transport::{Acceptance, Outcome, Response};
use crate::time::Timestamp;

/// What the event of a held message says.
const HELD: &str = "not sent: the server cannot store outcomes at the moment";

/// The circumstances of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// What the peer's yes means.
    pub acceptance: Acceptance,
    /// When to try again, if anybody is put off; `None` when the message has expired.
    pub next_attempt_at: Option<Timestamp>,
    /// When to try again those who were not tried because the outcome could not be stored.
    pub held_until: Timestamp,
    /// Whether the peer may have had the message before: an earlier attempt was cut off by a crash, or
    /// this one lost the final reply.
    pub ambiguous: bool,
}

/// What happened to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Result {
    /// The attempt was made.
    Tried(Outcome),
    /// The attempt was made with a simulated recipient who then complains.
    Complained(Response),
    /// The address is on the suppression list.
    Suppressed(SuppressionReason),
}

/// What is to be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgment {
    /// Events in order.
    pub events: Vec<(EventKind, Map<String, Value>)>,
    /// The state of the message, if the attempt had the `to` recipient.
    pub status: Option<MessageStatus>,
    /// Recipients to try again.
    pub open: Vec<Recipient>,
    /// When; set when anybody is open.
    pub next_attempt_at: Option<Timestamp>,
    /// Addresses to suppress.
    pub suppress: Vec<(String, SuppressionReason)>,
    /// Addresses that were delivered to.
    pub reached: Vec<String>,
    /// Addresses that bounced softly in a way that counts (see [`crate::domain::soft_bounce`]).
    pub soft_bounces: Vec<String>,
}

impl Judgment {
    pub(super) fn event(&mut self, kind: EventKind, meta: Value) {
        let Value::Object(mut meta) = meta else { return };
        meta.retain(|_, value| !value.is_null());
        self.events.push((kind, meta));
    }

    /// Leaves out whom it was about and tries nobody again: the recipient was erased meanwhile.
    pub fn forget_recipients(&mut self) {
        for (_, meta) in &mut self.events {
            meta.retain(|name, _| !["recipient", "response", "message"].contains(&name.as_str()));
        }
        self.soft_bounces.clear();
        self.open.clear();
        self.next_attempt_at = None;
    }

    /// The message as a whole could not be sent.
    pub fn failed(reason: &str, message: &str) -> Self {
        let mut judgment = Self { status: Some(MessageStatus::Failed), ..Self::default() };
        judgment.event(EventKind::Failed, json!({"reason": reason, "message": message}));
        judgment
    }
}

/// Judges an attempt by what happened to each recipient.
pub fn judge(attempt: Attempt, results: &[(Recipient, Result)]) -> Judgment {
    let mut judgment = Judgment::default();
    for (recipient, result) in results {
        let status = one(&mut judgment, attempt, recipient, result);
        if recipient.kind == RecipientKind::To {
            judgment.status = Some(status);
        }
    }
    judgment
}

fn one(judgment: &mut Judgment, attempt: Attempt, recipient: &Recipient, result: &Result) -> MessageStatus {
    let address = recipient.address.as_str();
    let is_lost = matches!(result, Result::Tried(Outcome::Ambiguous(_)));
    let ambiguous = (attempt.ambiguous || is_lost).then_some(true);
    let (outcome, complains) = match result {
        Result::Suppressed(reason) => {
            judgment.event(EventKind::Suppressed, json!({"recipient": address, "reason": reason.as_str()}));
            return MessageStatus::Suppressed;
        }
        Result::Complained(response) => (Outcome::Accepted(response.clone()), true),
        Result::Tried(outcome) => (outcome.clone(), false),
    };
    match outcome {
        Outcome::Accepted(response) => {
            judgment.event(EventKind::Sent, json!({"recipient": address, "ambiguous": ambiguous}));
            if attempt.acceptance == Acceptance::Relayed {
                return MessageStatus::Sent;
            }
            judgment.event(
                EventKind::Delivered,
                json!({"recipient": address, "smtp_code": response.code, "response": response.text, "mx": response.host}),
            );
            judgment.reached.push(address.to_owned());
            if !complains {
                return MessageStatus::Delivered;
            }
            judgment.event(EventKind::Complaint, json!({"recipient": address, "feedback_type": "abuse"}));
            judgment.suppress.push((address.to_owned(), SuppressionReason::Complaint));
            MessageStatus::Complained
        }
        Outcome::Suppressed(reason) => {
            judgment.event(EventKind::Suppressed, json!({"recipient": address, "reason": reason.as_str()}));
            MessageStatus::Suppressed
        }
        Outcome::Held => {
            // Always one more attempt: the message shall not bounce for what is the matter here.
            let next = attempt.next_attempt_at.map_or(attempt.held_until, |next| next.min(attempt.held_until));
            judgment.event(
                EventKind::Deferred,
                json!({
                    "recipient": address, "response": HELD, "attempt": attempt.number, "next_attempt_at": next,
                    "ambiguous": ambiguous,
                }),
            );
            judgment.open.push(recipient.clone());
            judgment.next_attempt_at = Some(next);
            MessageStatus::Deferred
        }
        Outcome::Deferred(response) | Outcome::Ambiguous(response) => {
            let recipient = Recipient { was_deferred: true, ..recipient.clone() };
            put_off(judgment, attempt, recipient, &response, ambiguous)
        }
        Outcome::ProviderFailed(response) => put_off(judgment, attempt, recipient.clone(), &response, ambiguous),
        Outcome::Refused(response) => {
            bounce(judgment, address, &response, classify(&response), ambiguous);
            MessageStatus::Bounced
        }
    }
}

/// Tries a recipient again, or gives it up when the message has expired: it bounced, unless nothing but
/// the provider ever stood in the way (contract section 4.2).
fn put_off(
    judgment: &mut Judgment,
    attempt: Attempt,
    recipient: Recipient,
    response: &Response,
    ambiguous: Option<bool>,
) -> MessageStatus {
    let address = recipient.address.as_str();
    let Some(next) = attempt.next_attempt_at else {
        if recipient.was_deferred {
            bounce(judgment, address, response, BounceClass::Unreachable, ambiguous);
            return MessageStatus::Bounced;
        }
        judgment.event(
            EventKind::Failed,
            json!({
                "recipient": address, "reason": "provider_error", "ambiguous": ambiguous,
                "message": format!("the provider failed until the message expired, at last with: {}", response.text),
            }),
        );
        return MessageStatus::Failed;
    };
    judgment.event(
        EventKind::Deferred,
        json!({
            "recipient": address, "smtp_code": response.code, "enhanced_code": response.enhanced,
            "response": response.text, "attempt": attempt.number, "next_attempt_at": next,
            "ambiguous": ambiguous,
        }),
    );
    judgment.open.push(recipient);
    judgment.next_attempt_at = Some(next);
    MessageStatus::Deferred
}

/// Records a final refusal of a recipient and what follows for its address.
pub(super) fn bounce(
    judgment: &mut Judgment,
    address: &str,
    response: &Response,
    class: BounceClass,
    ambiguous: Option<bool>,
) {
    judgment.event(
        EventKind::Bounce,
        json!({
            "recipient": address, "bounce_type": class.bounce_type(), "bounce_class": class,
            "smtp_code": response.code, "enhanced_code": response.enhanced, "response": response.text,
            "ambiguous": ambiguous,
        }),
    );
    if class.bounce_type() == BounceType::Hard {
        judgment.suppress.push((address.to_owned(), SuppressionReason::Bounce));
    } else if soft_bounce::counts(class) {
        judgment.soft_bounces.push(address.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: &str = "ann@example.com";

    fn reply(code: u16, enhanced: &str) -> Response {
        Response { code: Some(code), enhanced: Some(enhanced.to_owned()), text: "text".to_owned(), host: None }
    }

    fn attempt() -> Attempt {
        Attempt {
            number: 2,
            acceptance: Acceptance::Delivered,
            next_attempt_at: Some(Timestamp::from_millis(0)),
            held_until: Timestamp::from_millis(5),
            ambiguous: false,
        }
    }

    /// Status, kinds of events, open recipients, suppressed addresses.
    #[track_caller]
    fn check(attempt: Attempt, results: &[(RecipientKind, &str, Result)], expected: &str) {
        let results: Vec<_> = results
            .iter()
            .map(|(kind, address, result)| (Recipient::new(*kind, (*address).to_owned()), result.clone()))
            .collect();
        let judgment = judge(attempt, &results);
        let status = judgment.status.map_or("-", MessageStatus::as_str);
        let events: Vec<_> = judgment.events.iter().map(|(kind, _)| format!("{kind:?}")).collect();
        let shown =
            format!("{status}; {}; open {}; suppress {:?}", events.join(" "), judgment.open.len(), judgment.suppress);
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_message_follows_its_to_recipient() {
        use RecipientKind::{Cc, To};
        let accepted = Result::Tried(Outcome::Accepted(reply(250, "2.0.0")));
        let deferred = Result::Tried(Outcome::Deferred(reply(450, "4.2.1")));
        let unknown = Result::Tried(Outcome::Refused(reply(550, "5.1.1")));
        let policy = Result::Tried(Outcome::Refused(reply(550, "5.7.1")));
        let relayed = Attempt { acceptance: Acceptance::Relayed, ..attempt() };
        let expired = Attempt { next_attempt_at: None, ..attempt() };

        check(attempt(), &[(To, TO, accepted.clone())], "delivered; Sent Delivered; open 0; suppress []");
        check(relayed, &[(To, TO, accepted.clone())], "sent; Sent; open 0; suppress []");
        check(attempt(), &[(To, TO, deferred.clone())], "deferred; Deferred; open 1; suppress []");
        check(expired, &[(To, TO, deferred.clone())], "bounced; Bounce; open 0; suppress []");
        // What was held says nothing about the recipient, not even at the end of the message's time.
        let held = Result::Tried(Outcome::Held);
        check(expired, &[(To, TO, held.clone())], "deferred; Deferred; open 1; suppress []");
        check(attempt(), &[(To, TO, held)], "deferred; Deferred; open 1; suppress []");
        check(attempt(), &[(To, TO, policy)], "bounced; Bounce; open 0; suppress []");
        check(
            attempt(),
            &[(To, TO, unknown.clone())],
            r#"bounced; Bounce; open 0; suppress [("ann@example.com", Bounce)]"#,
        );
        check(
            attempt(),
            &[(To, TO, accepted.clone()), (Cc, "c@b.co", deferred.clone())],
            "delivered; Sent Delivered Deferred; open 1; suppress []",
        );
        check(attempt(), &[(Cc, "c@b.co", deferred)], "-; Deferred; open 1; suppress []");
        check(
            attempt(),
            &[(To, TO, accepted), (Cc, "c@b.co", Result::Suppressed(SuppressionReason::Manual))],
            "delivered; Sent Delivered Suppressed; open 0; suppress []",
        );
        check(
            attempt(),
            &[(To, TO, Result::Complained(reply(250, "2.0.0")))],
            r#"complained; Sent Delivered Complaint; open 0; suppress [("ann@example.com", Complaint)]"#,
        );
    }

    #[test]
    fn a_provider_that_fails_is_no_bounce_unless_something_else_stood_in_the_way_too() {
        use RecipientKind::{Cc, To};
        let failed = || Result::Tried(Outcome::ProviderFailed(reply(535, "5.7.8")));
        let deferred = Result::Tried(Outcome::Deferred(reply(450, "4.2.1")));
        let expired = Attempt { next_attempt_at: None, ..attempt() };
        check(attempt(), &[(To, TO, failed())], "deferred; Deferred; open 1; suppress []");
        check(expired, &[(To, TO, failed())], "failed; Failed; open 0; suppress []");
        check(expired, &[(Cc, "c@b.co", failed())], "-; Failed; open 0; suppress []");
        for (first, expected) in [(failed(), EventKind::Failed), (deferred, EventKind::Bounce)] {
            let open = judge(attempt(), &[(Recipient::new(To, TO.to_owned()), first)]).open;
            let again = judge(attempt(), &[(open[0].clone(), failed())]).open;
            let end = judge(expired, &[(again[0].clone(), failed())]);
            assert_eq!(end.events[0].0, expected);
            assert_eq!(end.soft_bounces.is_empty(), expected == EventKind::Failed);
        }
    }
}
