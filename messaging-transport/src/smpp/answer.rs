//! Classes of message centers' answers. Source: SMPP 3.4 section 5.1.3; higher values are defined by each center.

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Response, Scope, SoftCause,
};

/// Values of `command_status` with a meaning for a message.
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

/// First of the values that message centers define themselves.
const OWN: u32 = 0x100;

/// Returns the class of an answer to a part that was not accepted.
pub(super) fn submitted(status: u32) -> Answer {
    // The meaning of a center's own value is unknown. It may concern the recipient or the account, so it ends the
    // message, but does not count among the soft bounces of the address.
    let unknown =
        if status < OWN { OutcomeClass::Retry(Scope::Account) } else { OutcomeClass::Soft(SoftCause::Policy) };
    of(status, unknown)
}

/// Returns the class of an answer to a bind that was refused.
pub(super) fn bound(status: u32) -> Answer {
    let mut answer = of(status, OutcomeClass::Retry(Scope::Account));
    // Classes of a message's faults do not fit a bind.
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

/// Returns the answer for a message whose parts were all accepted.
pub(super) fn accepted() -> Answer {
    Answer::new(OutcomeClass::Accepted(Acceptance::Relayed), Response::of_text("accepted"))
}

/// Returns the class of a receipt's `stat`; `None` while it is not final. Source: SMPP 3.4 appendix B.
pub(super) fn receipt_class(stat: &str) -> Option<OutcomeClass> {
    match stat {
        "DELIVRD" => Some(OutcomeClass::Accepted(Acceptance::Delivered)),
        "EXPIRED" => Some(OutcomeClass::Soft(SoftCause::Unreachable)),
        "REJECTD" => Some(OutcomeClass::Soft(SoftCause::Policy)),
        "UNDELIV" | "DELETED" | "UNKNOWN" => Some(OutcomeClass::Soft(SoftCause::Unknown)),
        _ => None,
    }
}

/// Returns the `stat` for a value of the optional parameter `message_state` (0x0427).
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
