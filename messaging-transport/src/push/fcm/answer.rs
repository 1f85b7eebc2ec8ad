//! What the answers of Firebase mean, by the code of `FcmError` and else the status of the error.
//!
//! Sources: the reference of `ErrorCode`, "Manage registrations", the tables of the admin SDKs for Node and Go.

use std::time::Duration;

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use super::super::service::coded;
use crate::provider::Reply;

/// The wait when too much was sent and the answer does not say for how long.
const REST: Duration = Duration::from_mins(1);

/// The class of each code that means the same wherever it stands.
const CODES: &[(&str, OutcomeClass)] = &[
    ("UNREGISTERED", OutcomeClass::Address(AddressFault::Recipient)),
    // Of another project than ours: perhaps it is ours that is the wrong one.
    ("SENDER_ID_MISMATCH", OutcomeClass::Soft(SoftCause::Policy)),
    ("QUOTA_EXCEEDED", OutcomeClass::Throttled(Scope::Account)),
    ("RESOURCE_EXHAUSTED", OutcomeClass::Throttled(Scope::Account)),
    ("UNAVAILABLE", OutcomeClass::Retry(Scope::Account)),
    ("INTERNAL", OutcomeClass::Retry(Scope::Account)),
    // The keys for Apple or the browser that the project lacks.
    ("THIRD_PARTY_AUTH_ERROR", OutcomeClass::Content(ContentFault::Provider)),
    ("APNS_AUTH_ERROR", OutcomeClass::Content(ContentFault::Provider)),
];

/// An error as Google writes it (`google.rpc.Status`).
struct Error {
    message: String,
    /// The code of `FcmError`.
    fcm: Option<String>,
    /// The general status.
    status: String,
    /// The fields that are wrong (`google.rpc.BadRequest`).
    fields: Vec<String>,
}

impl Error {
    fn read(json: &Value) -> Self {
        let error = &json["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = || error["details"].as_array().into_iter().flatten();
        let of_type = |name: &'static str| {
            details().filter(move |one| one["@type"].as_str().is_some_and(|found| found.ends_with(name)))
        };
        let fcm = of_type(".fcm.v1.FcmError").find_map(|one| one["errorCode"].as_str()).map(ToOwned::to_owned);
        let violations = of_type("google.rpc.BadRequest").filter_map(|one| one["fieldViolations"].as_array()).flatten();
        Self {
            message: text(&error["message"]),
            fcm,
            status: text(&error["status"]),
            fields: violations.map(|one| text(&one["field"])).collect(),
        }
    }

    fn code(&self) -> &str {
        self.fcm.as_deref().unwrap_or(&self.status)
    }

    fn class(&self, status: u16) -> OutcomeClass {
        if self.code() == "INVALID_ARGUMENT" {
            return if self.is_about_token() {
                OutcomeClass::Address(AddressFault::Recipient)
            } else {
                OutcomeClass::Content(ContentFault::Provider)
            };
        }
        if let Some((_, class)) = CODES.iter().find(|(code, _)| *code == self.code()) {
            return *class;
        }
        match status {
            401 | 403 => OutcomeClass::Auth,
            429 => OutcomeClass::Throttled(Scope::Account),
            // What is not found without a code of Firebase's own may be the project.
            404 | 408 | 500.. => OutcomeClass::Retry(Scope::Account),
            _ => OutcomeClass::Content(ContentFault::Provider),
        }
    }

    /// Whether a wrong argument is the token, and nothing else is wrong: other faults are the message's, and a dead
    /// token is one for good.
    fn is_about_token(&self) -> bool {
        self.fcm.is_some()
            && self.message.to_ascii_lowercase().contains("registration token")
            && self.fields.iter().all(|field| matches!(field.as_str(), "message.token" | "message.fid"))
    }
}

/// The class of an answer, and what is kept of it.
pub(super) fn judge(reply: &Reply) -> Answer {
    let json = reply.json();
    if reply.is_success() {
        let name = json.as_ref().and_then(|json| json["name"].as_str()).filter(|name| !name.is_empty());
        let Some(name) = name else { return reply.ambiguous_answer() };
        let provider = ProviderAnswer { message_id: Some(name.to_owned()), ..ProviderAnswer::default() };
        return reply.answer(OutcomeClass::Accepted(Acceptance::Delivered), "accepted").provider(provider);
    }
    let error = Error::read(&json.unwrap_or_default());
    let class = error.class(reply.status.as_u16());
    let answer =
        if error.message.is_empty() { reply.answer_with_body(class) } else { reply.answer(class, &error.message) };
    let wait = match class {
        OutcomeClass::Throttled(_) => reply.retry_after.or(Some(REST)),
        OutcomeClass::Retry(_) => reply.retry_after,
        _ => None,
    };
    coded(answer, error.code()).wait(wait)
}

/// Whether it is our access token that is refused, and not a key of the project.
pub(super) fn refuses_token(reply: &Reply) -> bool {
    reply.status.as_u16() == 401 && judge(reply).class == OutcomeClass::Auth
}

#[cfg(test)]
mod tests;
