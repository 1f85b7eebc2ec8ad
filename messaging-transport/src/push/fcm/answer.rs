//! Classes of Firebase's answers, by the code of `FcmError` or else the status of the error.
//!
//! Sources: the reference of `ErrorCode`, "Manage registrations", the tables of the admin SDKs for Node and Go.

use std::time::Duration;

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use super::super::service::coded;
use crate::provider::Reply;

/// Wait after a rate limit if the answer does not give one.
const REST: Duration = Duration::from_mins(1);

/// Class of each code whose meaning does not depend on the rest of the answer.
const CODES: &[(&str, OutcomeClass)] = &[
    ("UNREGISTERED", OutcomeClass::Address(AddressFault::Recipient)),
    // The token belongs to another project; the wrong one may be the project in the settings.
    ("SENDER_ID_MISMATCH", OutcomeClass::Soft(SoftCause::Policy)),
    ("QUOTA_EXCEEDED", OutcomeClass::Throttled(Scope::Account)),
    ("RESOURCE_EXHAUSTED", OutcomeClass::Throttled(Scope::Account)),
    ("UNAVAILABLE", OutcomeClass::Retry(Scope::Account)),
    ("INTERNAL", OutcomeClass::Retry(Scope::Account)),
    // The project lacks the keys for Apple or the browser.
    ("THIRD_PARTY_AUTH_ERROR", OutcomeClass::Content(ContentFault::Provider)),
    ("APNS_AUTH_ERROR", OutcomeClass::Content(ContentFault::Provider)),
];

/// An error as Google writes it (`google.rpc.Status`).
struct Error {
    message: String,
    /// Code of `FcmError`.
    fcm: Option<String>,
    /// General status.
    status: String,
    /// Invalid fields (`google.rpc.BadRequest`).
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
            // "Not found" without a code of Firebase's own may mean the project.
            404 | 408 | 500.. => OutcomeClass::Retry(Scope::Account),
            _ => OutcomeClass::Content(ContentFault::Provider),
        }
    }

    /// Returns true if the registration token is the invalid argument, and the only one: other faults are the
    /// message's, and a token that is dead stays dead.
    fn is_about_token(&self) -> bool {
        self.fcm.is_some()
            && self.message.to_ascii_lowercase().contains("registration token")
            && self.fields.iter().all(|field| matches!(field.as_str(), "message.token" | "message.fid"))
    }
}

/// Returns the class of an answer, with the parts of it that are kept.
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

/// Returns true if our access token is refused, and not a key of the project.
pub(super) fn refuses_token(reply: &Reply) -> bool {
    reply.status.as_u16() == 401 && judge(reply).class == OutcomeClass::Auth
}

#[cfg(test)]
mod tests;
