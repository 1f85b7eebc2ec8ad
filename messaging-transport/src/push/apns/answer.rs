//! Classes of Apple's answers, by their `reason`.
//!
//! Source: Apple, "Handling notification responses from APNs" and "Establishing a token-based connection to APNs".

use std::time::Duration;

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use super::super::service::coded;
use crate::provider::Reply;

/// Minimum time between two new tokens that Apple accepts.
pub(super) const MIN_LIFETIME: Duration = Duration::from_mins(20);

/// Wait after a failure on Apple's side.
const OUTAGE: Duration = Duration::from_mins(15);

/// Class of each reason. Other reasons of 403 are about our key, all others about the message.
const REASONS: &[(&str, OutcomeClass)] = &[
    ("Unregistered", OutcomeClass::Address(AddressFault::Recipient)),
    ("ExpiredToken", OutcomeClass::Address(AddressFault::Recipient)),
    // The token belongs to the other environment or another app; the wrong one may be our setting.
    ("BadDeviceToken", OutcomeClass::Soft(SoftCause::Unknown)),
    ("DeviceTokenNotForTopic", OutcomeClass::Soft(SoftCause::Unknown)),
    ("PayloadTooLarge", OutcomeClass::Content(ContentFault::Provider)),
    ("TooManyRequests", OutcomeClass::Throttled(Scope::Recipient)),
    ("TooManyProviderTokenUpdates", OutcomeClass::Throttled(Scope::Account)),
    // The setting `topic` is wrong.
    ("BadTopic", OutcomeClass::Auth),
    ("MissingTopic", OutcomeClass::Auth),
    ("TopicDisallowed", OutcomeClass::Auth),
    ("IdleTimeout", OutcomeClass::Retry(Scope::Account)),
];

fn class(reason: &str, status: u16) -> OutcomeClass {
    if let Some((_, class)) = REASONS.iter().find(|(one, _)| *one == reason) {
        return *class;
    }
    match status {
        401 | 403 => OutcomeClass::Auth,
        408 | 500.. => OutcomeClass::Retry(Scope::Account),
        // Without a known reason the answer does not say that the device is gone.
        410 => OutcomeClass::Soft(SoftCause::Policy),
        429 => OutcomeClass::Throttled(Scope::Recipient),
        _ => OutcomeClass::Content(ContentFault::Provider),
    }
}

fn reason(json: Option<&Value>) -> &str {
    json.and_then(|json| json["reason"].as_str()).unwrap_or_default()
}

/// Returns the class of an answer, with the parts of it that are kept.
pub(super) fn judge(reply: &Reply) -> Answer {
    if reply.is_success() {
        let id = reply.headers.get("apns-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
        let provider = ProviderAnswer { message_id: id, ..ProviderAnswer::default() };
        return reply.answer(OutcomeClass::Accepted(Acceptance::Delivered), "accepted").provider(provider);
    }
    let (json, status) = (reply.json(), reply.status.as_u16());
    let reason = reason(json.as_ref());
    let class = class(reason, status);
    let answer = if reason.is_empty() { reply.answer_with_body(class) } else { reply.answer(class, reason) };
    let usual = match (class, status) {
        (OutcomeClass::Throttled(Scope::Account), _) => Some(MIN_LIFETIME),
        (OutcomeClass::Retry(_), 500..) => Some(OUTAGE),
        _ => None,
    };
    let is_waited = matches!(class, OutcomeClass::Throttled(_) | OutcomeClass::Retry(_));
    coded(answer, reason).wait(if is_waited { reply.retry_after.or(usual) } else { None })
}

/// Returns true if our token is refused because of its age.
pub(super) fn expired_token(reply: &Reply) -> bool {
    reply.status.as_u16() == 403 && reason(reply.json().as_ref()) == "ExpiredProviderToken"
}

#[cfg(test)]
mod tests;
