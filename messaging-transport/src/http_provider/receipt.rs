//! Receipts of the service: `{"id","status","error"?}` (contract section 16).

use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::outcome::{
    Acceptance, Answer, OutcomeClass, ProviderAnswer, Response, Scope, SoftCause,
};
use messaging_core::ports::transport::{About, Callback, CallbackEvent, CallbackFault, CallbackProof, CallbackRequest};
use serde_json::Value;

use crate::provider::callback::{json, posted};

/// Returns the report of a call. Only the callback address of a message proves anything.
pub(super) fn receipt(request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    posted(request)?;
    if *request.proof != CallbackProof::ThisMessage {
        return Err(CallbackFault::Unauthorized);
    }
    let receipt = read(&json(request.body));
    let event = receipt.map(|receipt| CallbackEvent::Receipt { about: About::ThisMessage, receipt });
    Ok(Callback { events: event.into_iter().collect(), ..Callback::default() })
}

fn read(body: &Value) -> Option<Receipt> {
    let status = body.get("status")?.as_str()?;
    let error = body.get("error").and_then(Value::as_str);
    let id = body.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
    let of = |class| {
        let named = ProviderAnswer { message_id: id, ..ProviderAnswer::default() };
        Answer::new(class, Response::of_text(error.unwrap_or(status))).provider(named)
    };
    let delivered = OutcomeClass::Accepted(Acceptance::Delivered);
    match status {
        "delivered" => Some(Receipt::Outcome(of(delivered))),
        "read" => Some(Receipt::Read(of(delivered))),
        // The service could not send it, which says nothing about the address.
        "failed" => Some(Receipt::Outcome(of(OutcomeClass::Retry(Scope::Account)))),
        "undelivered" => Some(Receipt::Outcome(of(OutcomeClass::Soft(SoftCause::Unknown)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_status_has_its_class() {
        for (status, expected) in [
            ("delivered", Some(OutcomeClass::Accepted(Acceptance::Delivered))),
            ("failed", Some(OutcomeClass::Retry(Scope::Account))),
            ("undelivered", Some(OutcomeClass::Soft(SoftCause::Unknown))),
            ("queued", None),
        ] {
            let found = read(&json!({"id": "x", "status": status, "error": "why"}));
            let class = found.map(|receipt| match receipt {
                Receipt::Outcome(answer) => {
                    assert_eq!(answer.response.text, "why");
                    answer.class
                }
                Receipt::Read(_) => panic!("{status} is not read"),
            });
            assert_eq!(class, expected, "{status}");
        }
        assert!(matches!(read(&json!({"status": "read"})), Some(Receipt::Read(_))));
        for unreadable in [json!(null), json!([]), json!({"status": 7}), json!({"id": "x"})] {
            assert_eq!(read(&unreadable), None, "{unreadable}");
        }
    }
}
