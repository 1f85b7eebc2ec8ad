//! What becomes of a message after an attempt: events, state, who is still open, who is suppressed.
//!
//! Contract section 4.2. A value in, a value out; the job carries it out.

use serde_json::{Map, Value, json};

use crate::domain::bounce::{BounceClass, BounceType, classify};
use crate::domain::message::{EventKind, MessageStatus};
use crate::domain::outcome::{Acceptance, Outcome, Response};
use crate::domain::recipients::{Recipient, RecipientKind};
use crate::domain::soft_bounce;
use crate::domain::suppression::SuppressionReason;
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
    /// When to try again those who were not tried, because the outcome could not be stored, or because this attempt
    /// was not the one to try them.
    pub held_until: Timestamp,
}

/// What happened to one recipient, and what is known from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientResult {
    /// The recipient.
    pub recipient: Recipient,
    /// What happened now.
    pub result: Result,
    /// Whether the peer may have had the message before: an earlier attempt was cut off by a crash, or lost the
    /// final reply.
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
    /// Too many attempts were cut off while the message was on the wire: another might end the same way.
    GivenUp,
    /// Nothing can be sent, whatever the recipient is: the content cannot be made, or nobody may or can carry it.
    Failed {
        /// The `reason` of the event.
        reason: &'static str,
        /// What is the matter, for people.
        message: String,
    },
}

/// After so many attempts at a recipient that were cut off by the end of the process there is no further one.
pub const MAX_CUT_OFF: u8 = 5;

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
    /// Whether everybody who is open was withheld or held: there was no attempt at them.
    pub is_withheld: bool,
    /// Addresses to suppress.
    pub suppress: Vec<(String, SuppressionReason)>,
    /// Addresses that were delivered to.
    pub reached: Vec<String>,
    /// Addresses that bounced softly in a way that counts (see [`crate::domain::soft_bounce`]).
    pub soft_bounces: Vec<String>,
}

impl Judgment {
    /// Who is still open is tried again at the earliest time that any of them asks for.
    fn try_again_at(&mut self, next: Timestamp) {
        self.next_attempt_at = Some(self.next_attempt_at.map_or(next, |known| known.min(next)));
    }

    pub(super) fn event(&mut self, kind: EventKind, meta: Value) {
        let Value::Object(mut meta) = meta else { return };
        meta.retain(|_, value| !value.is_null());
        self.events.push((kind, meta));
    }

    /// Leaves out whom it was about and tries nobody again: the recipient was erased meanwhile. A message that is
    /// `status` by now and would have been tried again is cancelled, as erasing cancels what waits.
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

/// Judges an attempt by what happened to each recipient.
pub fn judge(attempt: Attempt, results: &[RecipientResult]) -> Judgment {
    let mut judgment = Judgment::default();
    for result in results {
        let status = one(&mut judgment, attempt, result);
        if result.recipient.kind == RecipientKind::To {
            judgment.status = status;
        }
    }
    let withheld = |one: &&RecipientResult| matches!(one.result, Result::Tried(Outcome::Withheld(_)));
    for one in results.iter().filter(withheld) {
        judgment.try_again_at(attempt.held_until);
        judgment.open.push(one.recipient.clone());
    }
    let is_untried = |one: &&RecipientResult| matches!(one.result, Result::Tried(Outcome::Withheld(_) | Outcome::Held));
    let untried = results.iter().filter(is_untried).count();
    judgment.is_withheld = untried > 0 && untried == judgment.open.len();
    judgment
}

/// What follows for one recipient, and the state that it brings its message to.
fn one(judgment: &mut Judgment, attempt: Attempt, tried: &RecipientResult) -> Option<MessageStatus> {
    let RecipientResult { recipient, result, ambiguous } = tried;
    let address = recipient.address.as_str();
    let is_lost = matches!(result, Result::Tried(Outcome::Ambiguous(_)));
    let ambiguous = (*ambiguous || is_lost).then_some(true);
    let (outcome, complains) = match result {
        Result::Suppressed(reason) => {
            // An earlier attempt may have arrived all the same.
            let meta = json!({"recipient": address, "reason": reason.as_str(), "ambiguous": ambiguous});
            judgment.event(EventKind::Suppressed, meta);
            return Some(MessageStatus::Suppressed);
        }
        Result::GivenUp => {
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
        Result::Failed { reason, message } => {
            // What becomes of `to` becomes of the message, and needs no name.
            let copy = (recipient.kind != RecipientKind::To).then_some(address);
            judgment.event(
                EventKind::Failed,
                json!({"recipient": copy, "reason": reason, "message": message, "ambiguous": ambiguous}),
            );
            return Some(MessageStatus::Failed);
        }
        Result::Complained(response) => (Outcome::Accepted(response.clone()), true),
        Result::Tried(outcome) => (outcome.clone(), false),
    };
    Some(match outcome {
        Outcome::Accepted(response) => {
            judgment.event(EventKind::Sent, json!({"recipient": address, "ambiguous": ambiguous}));
            if attempt.acceptance == Acceptance::Relayed {
                return Some(MessageStatus::Sent);
            }
            judgment.event(
                EventKind::Delivered,
                json!({"recipient": address, "smtp_code": response.code, "response": response.text, "mx": response.host}),
            );
            judgment.reached.push(address.to_owned());
            if !complains {
                return Some(MessageStatus::Delivered);
            }
            judgment.event(EventKind::Complaint, json!({"recipient": address, "feedback_type": "abuse"}));
            judgment.suppress.push((address.to_owned(), SuppressionReason::Complaint));
            MessageStatus::Complained
        }
        Outcome::Suppressed(reason) => {
            let meta = json!({"recipient": address, "reason": reason.as_str(), "ambiguous": ambiguous});
            judgment.event(EventKind::Suppressed, meta);
            MessageStatus::Suppressed
        }
        // No attempt: it stays in its state.
        Outcome::Withheld(_) => return None,
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
            judgment.try_again_at(next);
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
    })
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
    judgment.try_again_at(next);
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
        }
    }

    /// Status, kinds of events, open recipients, suppressed addresses.
    #[track_caller]
    fn check(attempt: Attempt, results: &[(RecipientKind, &str, Result)], expected: &str) {
        let results: Vec<_> = results
            .iter()
            .map(|(kind, address, result)| RecipientResult {
                recipient: Recipient::new(*kind, (*address).to_owned()),
                result: result.clone(),
                ambiguous: false,
            })
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
        check(attempt(), &[(To, TO, Result::GivenUp)], "failed; Failed; open 0; suppress []");
        let withheld = Result::Tried(Outcome::Withheld("the disk is full".to_owned()));
        check(attempt(), &[(To, TO, withheld)], "-; ; open 1; suppress []");
    }

    #[test]
    fn what_was_withheld_is_no_attempt_and_what_was_put_off_beside_it_is() {
        let of = |address: &str, outcome| RecipientResult {
            recipient: Recipient::new(RecipientKind::Cc, address.to_owned()),
            result: Result::Tried(outcome),
            ambiguous: false,
        };
        let withheld = || of("c@b.co", Outcome::Withheld(String::new()));
        let soon = Attempt { held_until: Timestamp::from_millis(-1), ..attempt() };
        let judgment = judge(soon, &[withheld()]);
        assert_eq!((judgment.is_withheld, judgment.next_attempt_at), (true, Some(soon.held_until)));
        let judgment = judge(soon, &[withheld(), of("d@b.co", Outcome::Deferred(reply(450, "4.2.1")))]);
        assert_eq!((judgment.is_withheld, judgment.next_attempt_at), (false, Some(soon.held_until)));
        assert_eq!(judgment.open.len(), 2);
    }

    #[test]
    fn who_was_erased_during_an_attempt_is_not_tried_again_and_the_message_ends() {
        for (status, expected) in [
            (MessageStatus::Sending, "cancelled; Deferred Cancelled"),
            (MessageStatus::Cancelled, "deferred; Deferred"),
        ] {
            let result = Result::Tried(Outcome::Deferred(reply(450, "4.2.1")));
            let recipient = Recipient::new(RecipientKind::To, TO.to_owned());
            let mut judgment = judge(attempt(), &[RecipientResult { recipient, result, ambiguous: false }]);
            judgment.forget_recipients(status);
            let events: Vec<_> = judgment.events.iter().map(|(kind, _)| format!("{kind:?}")).collect();
            assert_eq!(format!("{}; {}", judgment.status.unwrap().as_str(), events.join(" ")), expected);
            assert!(
                judgment.open.is_empty() && judgment.events.iter().all(|(_, meta)| !meta.contains_key("recipient"))
            );
        }
    }

    #[test]
    fn an_end_without_a_copy_says_when_an_earlier_attempt_may_have_made_one() {
        for (ambiguous, expected) in [(false, None), (true, Some(&Value::Bool(true)))] {
            let suppressed = || SuppressionReason::Manual;
            for result in [Result::Suppressed(suppressed()), Result::Tried(Outcome::Suppressed(suppressed()))] {
                let recipient = Recipient::new(RecipientKind::To, TO.to_owned());
                let judgment = judge(attempt(), &[RecipientResult { recipient, result, ambiguous }]);
                assert_eq!(judgment.events[0].1.get("ambiguous"), expected);
            }
        }
    }

    #[test]
    fn what_was_held_is_no_attempt_either() {
        let of = |address: &str, outcome| RecipientResult {
            recipient: Recipient::new(RecipientKind::Cc, address.to_owned()),
            result: Result::Tried(outcome),
            ambiguous: false,
        };
        let held = || of("c@b.co", Outcome::Held);
        assert!(judge(attempt(), &[held(), of("d@b.co", Outcome::Withheld(String::new()))]).is_withheld);
        assert!(!judge(attempt(), &[held(), of("d@b.co", Outcome::Deferred(reply(450, "4.2.1")))]).is_withheld);
        assert!(!judge(attempt(), &[of("d@b.co", Outcome::Accepted(reply(250, "2.0.0")))]).is_withheld);
    }

    #[test]
    fn what_cannot_be_sent_names_copies_and_says_whether_one_may_have_arrived() {
        let failed = |kind, address: &str, ambiguous| RecipientResult {
            recipient: Recipient::new(kind, address.to_owned()),
            result: Result::Failed { reason: "render_error", message: "no".to_owned() },
            ambiguous,
        };
        let judgment =
            judge(attempt(), &[failed(RecipientKind::To, TO, true), failed(RecipientKind::Cc, "c@b.co", false)]);
        assert_eq!(judgment.status, Some(MessageStatus::Failed));
        let metas: Vec<_> = judgment.events.into_iter().map(|(_, meta)| Value::Object(meta)).collect();
        let expected = [
            json!({"reason": "render_error", "message": "no", "ambiguous": true}),
            json!({"recipient": "c@b.co", "reason": "render_error", "message": "no"}),
        ];
        assert_eq!(metas, expected);
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
            let of = |recipient, result| [RecipientResult { recipient, result, ambiguous: false }];
            let open = judge(attempt(), &of(Recipient::new(To, TO.to_owned()), first)).open;
            let again = judge(attempt(), &of(open[0].clone(), failed())).open;
            let end = judge(expired, &of(again[0].clone(), failed()));
            assert_eq!(end.events[0].0, expected);
            assert_eq!(end.soft_bounces.is_empty(), expected == EventKind::Failed);
        }
    }
}
