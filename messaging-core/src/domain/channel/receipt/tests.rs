use super::*;
use crate::domain::delivery::outcome::{AddressFault, ContentFault, Response, Scope, SoftCause};
use crate::ids::{Id as _, WorkspaceId};
use crate::time::Timestamp;

const TO: &str = "+14155550123";

fn receipt(word: &str) -> Receipt {
    let class = match word {
        "sent" => OutcomeClass::Accepted(Acceptance::Relayed),
        "delivered" | "read" => OutcomeClass::Accepted(Acceptance::Delivered),
        "address" => OutcomeClass::Address(AddressFault::Recipient),
        "blocked" => OutcomeClass::Blocked,
        "opted_out" => OutcomeClass::OptedOut,
        "unreachable" => OutcomeClass::Soft(SoftCause::Unreachable),
        "policy" => OutcomeClass::Soft(SoftCause::Policy),
        "content" => OutcomeClass::Content(ContentFault::Provider),
        "retry" => OutcomeClass::Retry(Scope::Recipient),
        "throttled" => OutcomeClass::Throttled(Scope::Account),
        "auth" => OutcomeClass::Auth,
        "ambiguous" => OutcomeClass::Ambiguous,
        other => panic!("{other}"),
    };
    let answer = Answer::new(class, Response::of_text("words"));
    if word == "read" { Receipt::Read(answer) } else { Receipt::Outcome(answer) }
}

fn event(kind: EventKind) -> MessageEvent {
    MessageEvent {
        id: crate::ids::EventId::from_bytes([1; 16]),
        workspace_id: WorkspaceId::from_bytes([1; 16]),
        message_id: crate::ids::MessageId::from_bytes([1; 16]),
        kind,
        at: Timestamp::from_millis(0),
        meta: serde_json::Map::new(),
    }
}

/// Status, events and what follows for the address after receipts, one after the other.
fn after(status: MessageStatus, told: &[EventKind], words: &str) -> String {
    let mut past: Vec<_> = told.iter().map(|kind| event(*kind)).collect();
    let (mut now, mut effects, mut kinds) = (status, Vec::new(), Vec::new());
    for word in words.split(' ') {
        let judged = Receipted { channel: Channel::Sms, status: now, to: TO, past: &past }.judge(&receipt(word));
        assert!(judged.open.is_empty() && judged.next_attempt_at.is_none());
        now = judged.status.unwrap_or(now);
        for (kind, meta) in judged.events {
            assert_eq!(meta["recipient"], TO);
            kinds.push(format!("{kind:?}"));
            past.push(event(kind));
        }
        effects.extend(judged.reached.iter().map(|_| "reached".to_owned()));
        effects.extend(judged.soft_bounces.iter().map(|_| "streak".to_owned()));
        let listed = |one: &crate::domain::delivery::Suppressed| {
            [Some(one.reason.as_str()), one.detail].into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        effects.extend(judged.suppress.iter().map(listed));
    }
    format!("{}; {}; {}", now.as_str(), kinds.join(" "), effects.join(", "))
}

#[test]
fn the_table_of_receipts() {
    use EventKind::Sent;
    use MessageStatus as S;
    for (status, told, words, expected) in [
        (S::Sent, &[Sent][..], "delivered", "delivered; Delivered; reached"),
        (S::Sent, &[Sent], "read", "delivered; Delivered Open; reached"),
        (S::Sent, &[Sent], "sent", "sent; ; "),
        // In any order, and twice.
        (S::Sent, &[Sent], "read delivered sent read", "delivered; Delivered Open; reached"),
        (S::Sent, &[Sent], "delivered read delivered", "delivered; Delivered Open; reached"),
        // A failure, by its class.
        (S::Sent, &[Sent], "address", "bounced; Bounce; bounce"),
        (S::Sent, &[Sent], "blocked", "bounced; Bounce; bounce blocked"),
        (S::Sent, &[Sent], "opted_out", "suppressed; Suppressed; unsubscribe"),
        (S::Sent, &[Sent], "unreachable", "bounced; Bounce; streak"),
        (S::Sent, &[Sent], "policy", "bounced; Bounce; "),
        (S::Sent, &[Sent], "content", "failed; Failed; "),
        (S::Sent, &[Sent], "retry", "failed; Failed; "),
        (S::Sent, &[Sent], "throttled", "failed; Failed; "),
        (S::Sent, &[Sent], "auth", "failed; Failed; "),
        (S::Sent, &[Sent], "ambiguous", "sent; ; "),
        // What is final stays, and whoever has it has it.
        (S::Sent, &[Sent], "address delivered read", "bounced; Bounce; bounce"),
        (S::Sent, &[Sent], "delivered unreachable address opted_out", "delivered; Delivered; reached"),
        (S::Failed, &[Sent], "delivered", "failed; ; "),
        (S::Cancelled, &[], "delivered", "cancelled; ; "),
        // Before the commit of the attempt, and after one whose answer was lost: the provider has it.
        (S::Sending, &[], "delivered", "delivered; Sent Delivered; reached"),
        (S::Sending, &[], "sent delivered", "delivered; Sent Delivered; reached"),
        (S::Sending, &[], "address", "bounced; Sent Bounce; bounce"),
        (S::Deferred, &[], "sent", "sent; Sent; "),
        (S::Deferred, &[], "read", "delivered; Sent Delivered Open; reached"),
        // Nothing left before the first attempt.
        (S::Queued, &[], "delivered", "queued; ; "),
    ] {
        assert_eq!(after(status, told, words), expected, "{status:?} {words}");
    }
}

#[test]
fn receipts_round_trip_as_jobs_keep_them() {
    for word in ["sent", "read", "unreachable"] {
        let text = serde_json::to_string(&receipt(word)).unwrap();
        assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), receipt(word));
    }
}
