//! What the answers of message centers mean. Source: SMPP 3.4 section 5.1.3; what lies beyond is the center's own.

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Response, Scope, SoftCause,
};

/// The values of `command_status` that mean something for a message.
pub(super) const STATUSES: &[(u32, OutcomeClass, &str)] = &[
    (0x01, OutcomeClass::Content(ContentFault::Provider), "the message has a length that is not allowed"),
    (0x04, OutcomeClass::Retry(Scope::Account), "the session is not bound for sending"),
    (0x05, OutcomeClass::Retry(Scope::Account), "the account is bound already"),
    (0x08, OutcomeClass::Retry(Scope::Account), "a failure of the message center"),
    (0x0A, OutcomeClass::Content(ContentFault::Provider), "the sender is not allowed"),
    (0x0B, OutcomeClass::Address(AddressFault::Recipient), "the number is not valid"),
    (0x0D, OutcomeClass::Auth, "the bind was refused"),
    (0x0E, OutcomeClass::Auth, "the password is wrong"),
    (0x0F, OutcomeClass::Auth, "the system_id is not known"),
    (0x14, OutcomeClass::Retry(Scope::Account), "the queue of the message center is full"),
    (0x48, OutcomeClass::Content(ContentFault::Provider), "the sender is of a type that is not allowed"),
    (0x49, OutcomeClass::Content(ContentFault::Provider), "the sender is of a numbering plan that is not allowed"),
    (0x53, OutcomeClass::Auth, "the system_type is not allowed"),
    (0x58, OutcomeClass::Throttled(Scope::Account), "more messages than are allowed at a time"),
    (0x62, OutcomeClass::Content(ContentFault::Provider), "the validity period is not allowed"),
];

/// The first of the values that message centers give a meaning of their own.
const OWN: u32 = 0x100;

/// The class of an answer to a part that was not taken.
pub(super) fn submitted(status: u32) -> Answer {
    // What a center means by a value of its own is not known: it may be about the recipient, or about the account, so it
    // ends the message and fills no streak.
    let unknown =
        if status < OWN { OutcomeClass::Retry(Scope::Account) } else { OutcomeClass::Soft(SoftCause::Policy) };
    of(status, unknown)
}

/// The class of an answer to a bind that was refused.
pub(super) fn bound(status: u32) -> Answer {
    let mut answer = of(status, OutcomeClass::Retry(Scope::Account));
    // A fault of a message is none of a bind.
    if !matches!(answer.class, OutcomeClass::Auth | OutcomeClass::Throttled(_)) {
        answer.class = OutcomeClass::Retry(Scope::Account);
    }
    answer
}

fn of(status: u32, unknown: OutcomeClass) -> Answer {
    let known = STATUSES.iter().find(|(one, ..)| *one == status);
    let (class, text) = known.map_or((unknown, "refused"), |(_, class, text)| (*class, *text));
    let code = format!("0x{status:08X}");
    Answer::new(class, Response::of_text(&format!("{text} ({code})")))
        .provider(ProviderAnswer { code: Some(code), ..ProviderAnswer::default() })
}

/// A message whose parts were all taken.
pub(super) fn accepted() -> Answer {
    Answer::new(OutcomeClass::Accepted(Acceptance::Relayed), Response::of_text("accepted"))
}

/// What `stat` of a receipt means; `None` while nothing is final. Source: SMPP 3.4 appendix B.
pub(super) fn receipt_class(stat: &str) -> Option<OutcomeClass> {
    match stat {
        "DELIVRD" => Some(OutcomeClass::Accepted(Acceptance::Delivered)),
        "EXPIRED" => Some(OutcomeClass::Soft(SoftCause::Unreachable)),
        "REJECTD" => Some(OutcomeClass::Soft(SoftCause::Policy)),
        "UNDELIV" | "DELETED" | "UNKNOWN" => Some(OutcomeClass::Soft(SoftCause::Unknown)),
        _ => None,
    }
}

/// `stat` by the value of the optional parameter `message_state` (0x0427).
pub(super) const fn stat_of(message_state: u8) -> &'static str {
    match message_state {
        2 => "DELIVRD",
        3 => "EXPIRED",
        4 => "DELETED",
        5 => "UNDELIV",
        7 => "UNKNOWN",
        8 => "REJECTD",
        _ => "ENROUTE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_class() {
        for (status, class, _) in STATUSES {
            assert_eq!(submitted(*status).class, *class, "{status:#x}");
        }
        assert_eq!(submitted(0x45).class, OutcomeClass::Retry(Scope::Account));
        assert_eq!(submitted(0x400).class, OutcomeClass::Soft(SoftCause::Policy));
        assert_eq!(submitted(0x0B).of_provider().unwrap().code.as_deref(), Some("0x0000000B"));
        for (status, expected) in [
            (0x0D, OutcomeClass::Auth),
            (0x0E, OutcomeClass::Auth),
            (0x0F, OutcomeClass::Auth),
            (0x05, OutcomeClass::Retry(Scope::Account)),
            (0x58, OutcomeClass::Throttled(Scope::Account)),
            (0x0B, OutcomeClass::Retry(Scope::Account)),
            (0x400, OutcomeClass::Retry(Scope::Account)),
        ] {
            assert_eq!(bound(status).class, expected, "{status:#x}");
        }
    }
}
