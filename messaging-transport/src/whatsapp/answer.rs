//! Classifies answers and receipts of the WhatsApp Cloud API.
//!
//! Source: Meta, "Error codes". Only the code of an error is used, because its HTTP status and title change.

use std::ops::RangeInclusive;
use std::time::Duration;

use messaging_core::ports::transport::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Response, Scope, SoftCause,
};
use serde_json::Value;

use crate::provider::Reply;

const POLICY: OutcomeClass = OutcomeClass::Soft(SoftCause::Policy);
const CONTENT: OutcomeClass = OutcomeClass::Content(ContentFault::Provider);
const RENDER: OutcomeClass = OutcomeClass::Content(ContentFault::Render);
const ACCOUNT_LIMIT: OutcomeClass = OutcomeClass::Throttled(Scope::Account);
const FAILURE: OutcomeClass = OutcomeClass::Retry(Scope::Account);

/// Code: too many messages from this number to this recipient.
const PAIR_LIMIT: u64 = 131_056;
/// Code: the recipient has written nothing for 24 hours, so only templates may be sent.
const WINDOW_IS_OVER: u64 = 131_047;

/// Classes of error codes.
const CODES: &[(RangeInclusive<u64>, OutcomeClass)] = &[
    (0..=0, OutcomeClass::Auth),
    (1..=2, FAILURE),
    (3..=3, OutcomeClass::Auth),
    (4..=4, ACCOUNT_LIMIT),
    (10..=10, OutcomeClass::Auth),
    (100..=100, CONTENT),
    (190..=190, OutcomeClass::Auth),
    (200..=299, OutcomeClass::Auth),
    (368..=368, OutcomeClass::Auth),
    (80_007..=80_007, ACCOUNT_LIMIT),
    (130_429..=130_429, ACCOUNT_LIMIT),
    (130_472..=130_472, POLICY),
    (130_497..=130_497, CONTENT),
    (131_000..=131_000, FAILURE),
    (131_005..=131_005, OutcomeClass::Auth),
    (131_008..=131_009, CONTENT),
    (131_016..=131_016, FAILURE),
    (131_021..=131_021, CONTENT),
    (131_026..=131_026, OutcomeClass::Address(AddressFault::Recipient)),
    (131_030..=131_030, CONTENT),
    (131_031..=131_031, OutcomeClass::Auth),
    (131_037..=131_037, CONTENT),
    (131_042..=131_042, OutcomeClass::Auth),
    (131_045..=131_045, OutcomeClass::Auth),
    (WINDOW_IS_OVER..=WINDOW_IS_OVER, CONTENT),
    (131_048..=131_048, ACCOUNT_LIMIT),
    (131_049..=131_049, POLICY),
    (131_050..=131_050, OutcomeClass::OptedOut),
    (131_051..=131_051, CONTENT),
    // Media that cannot be fetched or stored.
    (131_052..=131_053, CONTENT),
    (PAIR_LIMIT..=PAIR_LIMIT, OutcomeClass::Throttled(Scope::Recipient)),
    (131_057..=131_057, ACCOUNT_LIMIT),
    (131_062..=131_063, CONTENT),
    (131_064..=131_064, OutcomeClass::Auth),
    // Templates: their name, language and values.
    (132_000..=132_018, RENDER),
    // Generic error of the user's request; Meta does not say which parameter is wrong.
    (135_000..=135_000, CONTENT),
];

/// Waiting times by code, for answers without `Retry-After`.
const WAITS: &[(u64, Duration)] = &[(131_048, Duration::from_hours(1)), (131_057, Duration::from_mins(1))];

/// Classifies the answer to a message. `pair_wait` returns the waiting time after [`PAIR_LIMIT`].
pub(super) fn judge(reply: &Reply, pair_wait: impl FnOnce() -> Duration) -> Answer {
    let Some(body) = reply.json().filter(Value::is_object) else { return reply.answer_by_status() };
    if let Some(code) = body["error"]["code"].as_u64() {
        let (class, text) = (class_of(code), text_of(code, &body["error"]));
        let usual = || WAITS.iter().find(|(known, _)| *known == code).map(|(_, wait)| *wait);
        let wait = reply.retry_after.or_else(|| if code == PAIR_LIMIT { Some(pair_wait()) } else { usual() });
        return reply.answer(class, &text).wait(wait).provider(coded(code));
    }
    match body["messages"][0]["id"].as_str().filter(|_| reply.is_success()) {
        Some(id) => {
            let provider = ProviderAnswer { message_id: Some(id.to_owned()), ..ProviderAnswer::default() };
            let status = body["messages"][0]["message_status"].as_str().unwrap_or("accepted");
            reply.answer(OutcomeClass::Accepted(Acceptance::Relayed), status).provider(provider)
        }
        None => reply.answer_by_status(),
    }
}

/// Classifies an error in a receipt, which reports that a message failed after it was accepted.
pub(super) fn of_receipt(error: &Value) -> Answer {
    if let Some(code) = error["code"].as_u64() {
        return Answer::new(class_of(code), Response::of_text(&text_of(code, error))).provider(coded(code));
    }
    let text = error["title"].as_str().unwrap_or("failed, and nobody said why");
    Answer::new(FAILURE, Response::of_text(text))
}

/// Returns the class of a code. An unknown code is a temporary failure of the account, so that it never suppresses the
/// address.
fn class_of(code: u64) -> OutcomeClass {
    CODES.iter().find(|(codes, _)| codes.contains(&code)).map_or(FAILURE, |(_, class)| *class)
}

/// Returns the part of an answer that shows the provider's error code.
fn coded(code: u64) -> ProviderAnswer {
    ProviderAnswer { code: Some(code.to_string()), ..ProviderAnswer::default() }
}

/// Returns the text of an error: its details, or else its message or title. For [`WINDOW_IS_OVER`] it also says what to
/// do.
fn text_of(code: u64, error: &Value) -> String {
    let said = [&error["error_data"]["details"], &error["message"], &error["title"]];
    let said = said.into_iter().find_map(Value::as_str).unwrap_or_default();
    if code == WINDOW_IS_OVER {
        return format!(
            "the recipient has written nothing for 24 hours, and WhatsApp takes templates only then: use a template \
             ({said})"
        );
    }
    said.to_owned()
}
