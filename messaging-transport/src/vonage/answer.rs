//! Classes of Vonage's answers and errors: problem documents (RFC 9457) whose `type` ends with the code behind `#`.
//! Source: Vonage, Messages API errors.

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use crate::provider::Reply;

/// Classes of codes in answers and receipts. The codes that all of Vonage's APIs share are words.
pub(super) const CODES: &[(&str, OutcomeClass)] = &[
    ("1000", OutcomeClass::Throttled(Scope::Account)),
    ("1010", OutcomeClass::Content(ContentFault::Provider)),
    ("1020", OutcomeClass::Content(ContentFault::Provider)),
    ("1022", OutcomeClass::Content(ContentFault::Provider)),
    ("1040", OutcomeClass::Address(AddressFault::Recipient)),
    ("1050", OutcomeClass::Blocked),
    ("1060", OutcomeClass::Auth),
    ("1070", OutcomeClass::Auth),
    ("1080", OutcomeClass::Auth),
    ("1090", OutcomeClass::Content(ContentFault::Provider)),
    ("1120", OutcomeClass::Content(ContentFault::Provider)),
    ("unauthorized", OutcomeClass::Auth),
    ("low-balance", OutcomeClass::Auth),
    ("throttled", OutcomeClass::Throttled(Scope::Account)),
];

/// Returns the class of a code, if it is known.
fn class_of(code: &str) -> Option<OutcomeClass> {
    CODES.iter().find(|(one, _)| *one == code).map(|(_, class)| *class)
}

/// Returns the code of a problem document: the end of `type` after `#`, or in older documents `code`, or a `title` of
/// digits.
pub(super) fn code_of(problem: &Value) -> Option<String> {
    let behind = |text: &str| text.rsplit_once('#').map(|(_, code)| code.trim().to_owned());
    let of_type = problem.get("type").and_then(Value::as_str).and_then(behind);
    let of_code = || match problem.get("code")? {
        Value::Number(code) => Some(code.to_string()),
        Value::String(code) => Some(code.clone()),
        _ => None,
    };
    let of_title = || {
        let title = problem.get("title")?.as_str()?;
        title.bytes().all(|byte| byte.is_ascii_digit()).then(|| title.to_owned())
    };
    of_type.or_else(of_code).or_else(of_title).filter(|code| !code.is_empty())
}

/// Returns the text of a problem document: its `detail`, or else its `title`.
fn text_of(problem: &Value) -> Option<&str> {
    let text = |name: &str| problem.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("detail").or_else(|| text("title"))
}

/// Classifies a reply by its code, else by its status. A success without a `message_uuid` is ambiguous.
pub(super) fn answer(reply: &Reply) -> Answer {
    let body = reply.json().unwrap_or_default();
    if reply.is_success() {
        let Some(id) = body.get("message_uuid").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
            return reply.ambiguous_answer();
        };
        return reply
            .answer(OutcomeClass::Accepted(Acceptance::Relayed), "accepted")
            .provider(ProviderAnswer { message_id: Some(id.to_owned()), ..ProviderAnswer::default() });
    }
    let code = code_of(&body);
    let class = code.as_deref().and_then(class_of).unwrap_or(match reply.status.as_u16() {
        401..=403 => OutcomeClass::Auth,
        429 => OutcomeClass::Throttled(Scope::Account),
        408 | 500.. => OutcomeClass::Retry(Scope::Account),
        _ => OutcomeClass::Content(ContentFault::Provider),
    });
    let answer = match text_of(&body) {
        Some(text) => reply.answer(class, text),
        None => reply.answer_with_body(class),
    };
    answer.wait(reply.retry_after).provider(ProviderAnswer { code, ..ProviderAnswer::default() })
}

/// Returns the class, the code and the text of a message that was rejected. An unknown code has the class of a refusal
/// for policy, which does not count among the soft bounces of the address.
pub(super) fn rejected(error: &Value) -> (OutcomeClass, Option<String>, Option<&str>) {
    let code = code_of(error);
    let class = code.as_deref().and_then(class_of).unwrap_or(OutcomeClass::Soft(SoftCause::Policy));
    (class, code, text_of(error))
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
            for status in [400, 422, 500] {
                let problem = json!({"type": format!("https://developer.example/errors#{code}"), "title": "T",
                    "detail": "why", "instance": "i"});
                let found = answer(&fetched(status, &[], &problem.to_string()).into());
                assert_eq!(found.class, *class, "{code}");
                assert_eq!(found.of_provider().unwrap().code.as_deref(), Some(*code));
                assert_eq!(found.response.text, "why");
            }
        }
        assert_eq!(code_of(&json!({"title": "1040"})).as_deref(), Some("1040"));
        assert_eq!(code_of(&json!({"code": 1040})).as_deref(), Some("1040"));
        assert_eq!(code_of(&json!({"type": "https://developer.example/errors", "title": "Unauthorized"})), None);
    }

    #[test]
    fn an_unknown_code_is_judged_by_the_status_and_never_a_bad_address() {
        let content = OutcomeClass::Content(ContentFault::Provider);
        for (status, expected) in [
            (400, content),
            (401, OutcomeClass::Auth),
            (402, OutcomeClass::Auth),
            (403, OutcomeClass::Auth),
            (404, content),
            (408, OutcomeClass::Retry(Scope::Account)),
            (422, content),
            (429, OutcomeClass::Throttled(Scope::Account)),
            (500, OutcomeClass::Retry(Scope::Account)),
        ] {
            for body in ["", "<html>", r#"{"type":"https://a.example/#9999"}"#] {
                let found = answer(&fetched(status, &[("retry-after", "3")], body).into());
                assert_eq!((found.class, found.asked_wait()), (expected, Some(Duration::from_secs(3))), "{status}");
            }
        }
    }

    #[test]
    fn a_yes_names_the_message_or_is_ambiguous() {
        let of = |body: &str| answer(&fetched(202, &[], body).into());
        let found = of(r#"{"message_uuid":"aaaaaaaa-bbbb-cccc-dddd-0123456789ab"}"#);
        assert_eq!(found.class, OutcomeClass::Accepted(Acceptance::Relayed));
        let id = found.of_provider().unwrap().message_id.as_deref();
        assert_eq!(id, Some("aaaaaaaa-bbbb-cccc-dddd-0123456789ab"));
        for body in ["{}", "", r#"{"message_uuid":7}"#, r#"{"message_uuid":"aa"#] {
            assert_eq!(of(body).class, OutcomeClass::Ambiguous, "{body}");
        }
    }
}
