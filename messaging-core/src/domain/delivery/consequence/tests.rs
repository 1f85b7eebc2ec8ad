use super::*;
use crate::domain::delivery::outcome::{AddressFault, Response, SoftCause};

/// Consequences of every class: while attempts are left; at the last one on email for a recipient that had never been
/// the cause of a deferral, and for one that had; at the last one elsewhere. Then address and account.
const TABLE: &[(OutcomeClass, [&str; 4], &str, &str)] = &[
    (
        OutcomeClass::Accepted(Acceptance::Delivered),
        ["delivered", "delivered", "delivered", "delivered"],
        "reached",
        "-",
    ),
    (OutcomeClass::Accepted(Acceptance::Relayed), ["sent", "sent", "sent", "sent"], "-", "-"),
    (OutcomeClass::Address(AddressFault::Recipient), ["bounce invalid_recipient"; 4], "bounce", "-"),
    (OutcomeClass::Address(AddressFault::Domain), ["bounce invalid_domain"; 4], "bounce", "-"),
    (OutcomeClass::Blocked, ["bounce blocked"; 4], "bounce blocked", "-"),
    (OutcomeClass::OptedOut, ["suppressed unsubscribe"; 4], "unsubscribe", "-"),
    (OutcomeClass::Soft(SoftCause::MailboxFull), ["bounce mailbox_full"; 4], "streak", "-"),
    (OutcomeClass::Soft(SoftCause::Unreachable), ["bounce unreachable"; 4], "streak", "-"),
    (OutcomeClass::Soft(SoftCause::Unknown), ["bounce unknown"; 4], "streak", "-"),
    (OutcomeClass::Soft(SoftCause::Policy), ["bounce policy"; 4], "-", "-"),
    (OutcomeClass::Soft(SoftCause::Content), ["bounce content"; 4], "-", "-"),
    (OutcomeClass::Content(ContentFault::Provider), ["failed provider_error"; 4], "-", "-"),
    (OutcomeClass::Content(ContentFault::Render), ["failed render_error"; 4], "-", "-"),
    (
        OutcomeClass::Retry(Scope::Recipient),
        ["deferred 7", "bounce unreachable", "bounce unreachable", "bounce unreachable"],
        "-",
        "-",
    ),
    (OutcomeClass::Retry(Scope::Account), OURS, "-", "-"),
    (OutcomeClass::Retry(Scope::Origin), OURS, "-", "-"),
    (OutcomeClass::Throttled(Scope::Recipient), OURS, "-", "-"),
    (OutcomeClass::Throttled(Scope::Account), OURS, "-", "rest 7"),
    (OutcomeClass::Throttled(Scope::Origin), OURS, "-", "-"),
    (OutcomeClass::Auth, OURS, "-", "stop"),
    (
        OutcomeClass::TlsRequired,
        ["deferred 7", "failed tls_required", "failed tls_required", "failed tls_required"],
        "-",
        "-",
    ),
    (OutcomeClass::Ambiguous, ["deferred 60", "bounce unreachable", "bounce unreachable", "sent"], "-", "-"),
];

const OURS: [&str; 4] = ["deferred 7", "failed provider_error", "bounce unreachable", "failed provider_error"];

fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn shown(disposition: Disposition) -> String {
    match disposition {
        Disposition::Sent(_) => disposition.status().as_str().to_owned(),
        Disposition::Bounced(class) => format!("bounce {}", word(class)),
        Disposition::Suppressed(reason) => format!("suppressed {}", reason.as_str()),
        Disposition::Failed(reason) => format!("failed {reason}"),
        Disposition::Deferred(wait) => format!("deferred {}", wait.as_secs()),
    }
}

fn answer(class: OutcomeClass) -> Answer {
    Answer::new(class, Response::of_text("no")).wait(Duration::from_secs(7))
}

#[test]
fn the_table_of_classes() {
    let circumstances = [(true, false, false), (true, true, false), (true, true, true), (false, true, false)];
    for (class, dispositions, address, lane) in TABLE {
        for ((is_email, is_last, was_deferred), expected) in circumstances.into_iter().zip(dispositions) {
            let found = disposition(&answer(*class), Circumstances { is_email, is_last, was_deferred });
            assert_eq!(shown(found), *expected, "{class:?} email {is_email} last {is_last} {was_deferred}");
        }
        let elsewhere = Circumstances { is_email: false, is_last: false, was_deferred: false };
        let found = disposition(&answer(*class), elsewhere);
        assert_eq!(shown(found), dispositions[0], "{class:?} off email");
        let effect = match found.address() {
            AddressEffect::None => "-".to_owned(),
            AddressEffect::Reached => "reached".to_owned(),
            AddressEffect::SoftBounce => "streak".to_owned(),
            AddressEffect::Suppressed(reason, detail) => {
                [Some(reason.as_str()), detail].into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(effect, *address, "{class:?}");
        let effect = match lane_effect(&answer(*class)) {
            LaneEffect::None => "-".to_owned(),
            LaneEffect::Rest(wait) => format!("rest {}", wait.as_secs()),
            LaneEffect::Stop => "stop".to_owned(),
        };
        assert_eq!(effect, *lane, "{class:?}");
    }
}

#[test]
fn an_account_rests_only_for_as_long_as_it_asks() {
    let throttled = Answer::new(OutcomeClass::Throttled(Scope::Account), Response::default());
    assert_eq!(lane_effect(&throttled), LaneEffect::Rest(Duration::ZERO));
    let circumstances = Circumstances { is_email: false, is_last: false, was_deferred: false };
    assert_eq!(disposition(&throttled, circumstances), Disposition::Deferred(Duration::ZERO));
    let lost = answer(OutcomeClass::Ambiguous).wait(Duration::from_mins(3));
    assert_eq!(disposition(&lost, circumstances), Disposition::Deferred(Duration::from_mins(3)));
}

#[test]
fn the_account_is_judged_by_its_worst_answer() {
    let of = |classes: &[OutcomeClass]| {
        let outcomes: Vec<Outcome> = classes.iter().map(|class| answer(*class).into()).collect();
        account_state(&outcomes)
    };
    let yes = OutcomeClass::Accepted(Acceptance::Relayed);
    let throttled = OutcomeClass::Throttled(Scope::Account);
    assert_eq!(of(&[]), AccountState::Unknown);
    assert_eq!(of(&[yes]), AccountState::Works);
    assert_eq!(of(&[OutcomeClass::Address(AddressFault::Recipient)]), AccountState::Works);
    assert_eq!(of(&[yes, throttled]), AccountState::Rests(Duration::from_secs(7), "no".into()));
    assert_eq!(of(&[OutcomeClass::Auth, throttled, yes]), AccountState::Stopped("no".into()));
    // None of these was said by an account that took us in.
    for class in [
        OutcomeClass::Retry(Scope::Account),
        OutcomeClass::Retry(Scope::Origin),
        OutcomeClass::Ambiguous,
        OutcomeClass::Content(ContentFault::Provider),
    ] {
        assert_eq!(of(&[class]), AccountState::Unknown, "{class:?}");
    }
    assert_eq!(account_state(&[Outcome::Held]), AccountState::Unknown);
}
