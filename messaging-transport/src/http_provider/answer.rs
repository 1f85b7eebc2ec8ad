//! Classes of the service's answers (contract section 16).

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope,
};
use serde_json::Value;

use crate::provider::Reply;

/// Returns the class of an answer.
pub(super) fn answer(reply: &Reply) -> Answer {
    if !reply.is_success() {
        return reply.answer_with_body(class(reply.status.as_u16())).wait(reply.retry_after);
    }
    // Without an id of the message the answer does not prove that the service understood it.
    let id = reply.json().and_then(|body| match body.get("id")? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    });
    let Some(id) = id else { return reply.ambiguous_answer() };
    reply
        .answer(OutcomeClass::Accepted(Acceptance::Relayed), &format!("accepted as {id}"))
        .provider(ProviderAnswer { message_id: Some(id), ..ProviderAnswer::default() })
}

/// Returns the class of a status: such services have no codes of their own.
const fn class(status: u16) -> OutcomeClass {
    match status {
        401 | 403 => OutcomeClass::Auth,
        404 | 410 => OutcomeClass::Address(AddressFault::Recipient),
        429 => OutcomeClass::Throttled(Scope::Account),
        408 | 500.. => OutcomeClass::Retry(Scope::Account),
        _ => OutcomeClass::Content(ContentFault::Provider),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use messaging_testing::fetched;

    #[test]
    fn every_status_has_its_class() {
        for (status, expected) in [
            (400, OutcomeClass::Content(ContentFault::Provider)),
            (401, OutcomeClass::Auth),
            (402, OutcomeClass::Content(ContentFault::Provider)),
            (403, OutcomeClass::Auth),
            (404, OutcomeClass::Address(AddressFault::Recipient)),
            (408, OutcomeClass::Retry(Scope::Account)),
            (410, OutcomeClass::Address(AddressFault::Recipient)),
            (413, OutcomeClass::Content(ContentFault::Provider)),
            (422, OutcomeClass::Content(ContentFault::Provider)),
            (429, OutcomeClass::Throttled(Scope::Account)),
            (500, OutcomeClass::Retry(Scope::Account)),
            (503, OutcomeClass::Retry(Scope::Account)),
            (599, OutcomeClass::Retry(Scope::Account)),
        ] {
            let found = answer(&fetched(status, &[("retry-after", "9")], "no").into());
            assert_eq!((found.class, found.asked_wait()), (expected, Some(Duration::from_secs(9))), "{status}");
            assert_eq!(found.response.text, format!("HTTP {status} no"));
        }
    }

    #[test]
    fn a_yes_names_the_message_or_is_ambiguous() {
        let accepted = OutcomeClass::Accepted(Acceptance::Relayed);
        for (body, expected, id) in [
            (r#"{"id":"abc"}"#, accepted, Some("abc")),
            (r#"{"id":17,"more":true}"#, accepted, Some("17")),
            (r#"{"id":""}"#, OutcomeClass::Ambiguous, None),
            ("{}", OutcomeClass::Ambiguous, None),
            ("", OutcomeClass::Ambiguous, None),
            ("[]", OutcomeClass::Ambiguous, None),
            (r#"{"id":"ab"#, OutcomeClass::Ambiguous, None),
        ] {
            let found = answer(&fetched(202, &[], body).into());
            let named = found.of_provider().and_then(|provider| provider.message_id.clone());
            assert_eq!((found.class, named.as_deref()), (expected, id), "{body}");
        }
    }
}
