//! Classes of Twilio's answers and error codes. Source: Twilio, Messages resource and error pages.

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use crate::provider::Reply;

/// Classes of codes in answers and receipts. Uncertain faults of an address are `Soft`.
pub(super) const CODES: &[(u32, OutcomeClass)] = &[
    (20003, OutcomeClass::Auth),
    (20429, OutcomeClass::Throttled(Scope::Account)),
    (21211, OutcomeClass::Address(AddressFault::Recipient)),
    (21408, OutcomeClass::Content(ContentFault::Provider)),
    (21606, OutcomeClass::Content(ContentFault::Provider)),
    (21608, OutcomeClass::Content(ContentFault::Provider)),
    (21610, OutcomeClass::OptedOut),
    (21612, OutcomeClass::Content(ContentFault::Provider)),
    (21614, OutcomeClass::Address(AddressFault::Recipient)),
    (21617, OutcomeClass::Content(ContentFault::Provider)),
    (21635, OutcomeClass::Address(AddressFault::Recipient)),
    (30003, OutcomeClass::Soft(SoftCause::Unreachable)),
    (30004, OutcomeClass::Soft(SoftCause::Policy)),
    // Unknown destination: also reported for numbers that work again later.
    (30005, OutcomeClass::Soft(SoftCause::Unknown)),
    (30006, OutcomeClass::Address(AddressFault::Recipient)),
    (30007, OutcomeClass::Soft(SoftCause::Policy)),
    (30008, OutcomeClass::Soft(SoftCause::Unknown)),
];

/// Returns the class of a code, if it is known.
pub(super) fn class_of(code: &str) -> Option<OutcomeClass> {
    let code: u32 = code.parse().ok()?;
    CODES.iter().find(|(one, _)| *one == code).map(|(_, class)| *class)
}

/// Returns a code as text, from a JSON number, text or `null`.
fn code_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Number(code) => Some(code.to_string()),
        Value::String(code) if !code.is_empty() => Some(code.clone()),
        _ => None,
    }
}

/// Converts a reply of Twilio into an answer: its class, text, code and wait.
pub(super) fn answer(reply: &Reply) -> Answer {
    let body = reply.json().unwrap_or_default();
    if reply.is_success() {
        return accepted(reply, &body);
    }
    let code = code_of(body.get("code"));
    let class = code.as_deref().and_then(class_of).unwrap_or(match reply.status.as_u16() {
        401 | 403 => OutcomeClass::Auth,
        429 => OutcomeClass::Throttled(Scope::Account),
        408 | 500.. => OutcomeClass::Retry(Scope::Account),
        _ => OutcomeClass::Content(ContentFault::Provider),
    });
    let answer = match body.get("message").and_then(Value::as_str) {
        Some(message) => reply.answer(class, message),
        None => reply.answer_with_body(class),
    };
    answer.wait(reply.retry_after).provider(ProviderAnswer { code, ..ProviderAnswer::default() })
}

/// Returns the answer for a message that was created. Twilio sends no receipt for the initial status, so a failure is
/// reported here.
fn accepted(reply: &Reply, body: &Value) -> Answer {
    let Some(sid) = body.get("sid").and_then(Value::as_str).filter(|sid| !sid.is_empty()) else {
        return reply.ambiguous_answer();
    };
    let status = body.get("status").and_then(Value::as_str).unwrap_or_default();
    let code = code_of(body.get("error_code"));
    // 0 if a messaging service has not chosen the sender yet.
    let segments = code_of(body.get("num_segments")).and_then(|count| count.parse().ok()).filter(|&count| count > 0);
    let class = match status {
        "failed" | "undelivered" => failed(status, code.as_deref()),
        _ => OutcomeClass::Accepted(Acceptance::Relayed),
    };
    let said = body.get("error_message").and_then(Value::as_str).unwrap_or(status);
    let provider = ProviderAnswer { message_id: Some(sid.to_owned()), code, segments, ..ProviderAnswer::default() };
    reply.answer(class, said).provider(provider)
}

/// Returns the class of a message that ended with this status, by its code. Without a known code, `undelivered` is a
/// failure of the network and `failed` one of Twilio's own. Many codes are about the sender, its registration or its
/// price, so an unknown one does not count among the soft bounces of the address.
pub(super) fn failed(status: &str, code: Option<&str>) -> OutcomeClass {
    code.and_then(class_of).unwrap_or(match status {
        "undelivered" => OutcomeClass::Soft(SoftCause::Policy),
        _ => OutcomeClass::Retry(Scope::Account),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use messaging_testing::fetched;

    #[test]
    fn codes_tell_more_than_the_status() {
        for (code, class) in CODES {
            for status in [400, 404, 500] {
                let body = json!({"code": code, "message": "no", "more_info": "https://…", "status": status});
                let found = answer(&fetched(status, &[], &body.to_string()).into());
                assert_eq!(found.class, *class, "{code}");
                assert_eq!(found.of_provider().unwrap().code.as_deref(), Some(code.to_string().as_str()));
                assert_eq!(found.response.text, "no");
            }
        }
    }

    #[test]
    fn an_unknown_code_is_judged_by_the_status_and_never_a_bad_address() {
        let content = OutcomeClass::Content(ContentFault::Provider);
        for (status, expected) in [
            (400, content),
            (401, OutcomeClass::Auth),
            (403, OutcomeClass::Auth),
            (404, content),
            (408, OutcomeClass::Retry(Scope::Account)),
            (410, content),
            (429, OutcomeClass::Throttled(Scope::Account)),
            (500, OutcomeClass::Retry(Scope::Account)),
            (503, OutcomeClass::Retry(Scope::Account)),
        ] {
            for body in ["", "<html>", r#"{"code":99999}"#] {
                let found = answer(&fetched(status, &[("retry-after", "3")], body).into());
                assert_eq!((found.class, found.asked_wait()), (expected, Some(Duration::from_secs(3))), "{status}");
            }
        }
    }

    #[test]
    fn what_was_created_has_a_name_and_segments() {
        let of = |body: Value| answer(&fetched(201, &[], &body.to_string()).into());
        let found = of(json!({"sid": "SM1", "status": "queued", "num_segments": "2", "error_code": null}));
        assert_eq!(found.class, OutcomeClass::Accepted(Acceptance::Relayed));
        let provider = found.of_provider().unwrap();
        assert_eq!(
            (provider.message_id.as_deref(), provider.segments, provider.code.as_deref()),
            (Some("SM1"), Some(2), None)
        );
        let found = of(json!({"sid": "SM1", "status": "accepted", "num_segments": "0"}));
        assert_eq!(found.of_provider().unwrap().segments, None, "a messaging service counts later");
        let found = of(json!({"sid": "SM1", "status": "failed", "error_code": 30006, "error_message": "landline"}));
        assert_eq!(found.class, OutcomeClass::Address(AddressFault::Recipient));
        for unreadable in [json!({}), json!({"sid": ""}), json!([])] {
            assert_eq!(of(unreadable).class, OutcomeClass::Ambiguous);
        }
    }
}
