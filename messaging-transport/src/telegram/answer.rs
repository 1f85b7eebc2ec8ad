//! Classes of the Bot API's answers.
//!
//! Source: tdlib/telegram-bot-api, whose `error_code` is also the status: `{"ok": true, "result": {…}}`, or
//! `{"ok": false, "error_code", "description", "parameters"}`.

use std::time::Duration;

use messaging_core::domain::delivery::outcome::MAX_WAIT;
use messaging_core::ports::transport::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope,
};
use serde_json::Value;

use crate::provider::Reply;

/// Classes of refusals by code and a part of the description in lower case; the first match counts. An empty part
/// matches all.
const REFUSALS: &[(u64, &str, OutcomeClass)] = &[
    (403, "user is deactivated", OutcomeClass::Address(AddressFault::Recipient)),
    // "bot was blocked by the user", "bot was kicked from the … chat", "bot is not a member of the … chat".
    (403, "", OutcomeClass::Blocked),
    (400, "chat not found", OutcomeClass::Address(AddressFault::Recipient)),
    (400, "can't parse entities", OutcomeClass::Content(ContentFault::Render)),
    (400, "", OutcomeClass::Content(ContentFault::Provider)),
    (401, "", OutcomeClass::Auth),
    // The token is malformed.
    (404, "", OutcomeClass::Auth),
    (408, "", OutcomeClass::Retry(Scope::Account)),
    (413, "", OutcomeClass::Content(ContentFault::Provider)),
    (429, "", OutcomeClass::Throttled(Scope::Account)),
];

/// Result of judging the answer to a message.
#[derive(Debug)]
pub(super) enum Judged {
    Answered(Answer),
    /// Nothing was sent: the chat has moved to this id.
    Moved(String),
}

impl Judged {
    /// Returns the answer: a chat that moves again while the move is followed is tried again later.
    pub(super) fn answer(self) -> Answer {
        match self {
            Self::Answered(answer) => answer,
            Self::Moved(_) => {
                let class = OutcomeClass::Retry(Scope::Recipient);
                Answer::new(class, messaging_core::ports::transport::Response::of_text("the chat moved again"))
            }
        }
    }
}

/// Returns true if a method succeeded.
pub(super) fn is_ok(reply: &Reply) -> bool {
    reply.is_success() && reply.json().is_some_and(|body| body["ok"] == true)
}

/// Judges the answer to a message.
pub(super) fn judge(reply: &Reply) -> Judged {
    let Some(body) = reply.json().filter(Value::is_object) else { return Judged::Answered(reply.answer_by_status()) };
    if body["ok"] == true {
        let accepted = reply.answer(OutcomeClass::Accepted(Acceptance::Delivered), "taken");
        let message_id = body["result"]["message_id"].as_i64().map(|id| id.to_string());
        return Judged::Answered(accepted.provider(ProviderAnswer { message_id, ..ProviderAnswer::default() }));
    }
    let parameters = &body["parameters"];
    if let Some(chat) = parameters["migrate_to_chat_id"].as_i64() {
        return Judged::Moved(chat.to_string());
    }
    let Some(code) = body["error_code"].as_u64() else { return Judged::Answered(reply.answer_by_status()) };
    let description = body["description"].as_str().unwrap_or_default();
    let wait = parameters["retry_after"].as_u64().map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT));
    let answer = reply.answer(class_of(code, description), description);
    let provider = ProviderAnswer { code: Some(code.to_string()), ..ProviderAnswer::default() };
    Judged::Answered(answer.wait(wait.or(reply.retry_after)).provider(provider))
}

/// Returns the class of a refusal.
fn class_of(code: u64, description: &str) -> OutcomeClass {
    let description = description.to_lowercase();
    let fits = |(known, part, _): &&(u64, &str, OutcomeClass)| *known == code && description.contains(part);
    REFUSALS.iter().find(fits).map_or(
        // The meaning of other codes is not documented, so they do not count against the address.
        OutcomeClass::Retry(Scope::Account),
        |(_, _, class)| *class,
    )
}
