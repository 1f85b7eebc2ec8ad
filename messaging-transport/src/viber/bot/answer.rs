//! Classes of the Bot API's answers. The HTTP status is always 200.
//!
//! Source: Viber REST Bot API, "Error codes".

use messaging_core::ports::transport::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope, SoftCause,
};
use serde_json::Value;

use crate::provider::Reply;

const ADDRESS: OutcomeClass = OutcomeClass::Address(AddressFault::Recipient);
const CONTENT: OutcomeClass = OutcomeClass::Content(ContentFault::Provider);

/// Statuses of answers.
const STATUSES: &[(u64, OutcomeClass)] = &[
    (0, OutcomeClass::Accepted(Acceptance::Relayed)),
    (1, CONTENT),                                    // invalidUrl
    (2, OutcomeClass::Auth),                         // invalidAuthToken
    (3, CONTENT),                                    // badData
    (4, CONTENT),                                    // missingData
    (5, ADDRESS),                                    // receiverNotRegistered
    (6, OutcomeClass::Blocked),                      // receiverNotSubscribed
    (7, OutcomeClass::Auth),                         // publicAccountBlocked
    (8, OutcomeClass::Auth),                         // publicAccountNotFound
    (9, OutcomeClass::Auth),                         // publicAccountSuspended
    (10, OutcomeClass::Auth),                        // webhookNotSet
    (11, ADDRESS),                                   // receiverNoSuitableDevice
    (12, OutcomeClass::Throttled(Scope::Recipient)), // tooManyRequests
    (13, CONTENT),                                   // apiVersionNotSupported
    (14, OutcomeClass::Soft(SoftCause::Content)),    // incompatibleWithVersion: the recipient's app is too old for it
    (15, OutcomeClass::Auth),                        // publicAccountNotAuthorized
    (16, CONTENT),                                   // inchatReplyMessageNotAllowed
    (17, CONTENT),                                   // publicAccountIsNotInline
    (18, CONTENT),                                   // noPublicChat
    (19, CONTENT),                                   // cannotSendBroadcast
    (20, CONTENT),                                   // broadcastNotAllowed
    (21, OutcomeClass::Soft(SoftCause::Policy)),     // unsupportedCountry: the bot may not write to this recipient's
    (22, CONTENT),                                   // paymentUnsupported
    (23, OutcomeClass::Auth),                        // freeMessagesExceeded: of the account, until somebody pays
    (24, OutcomeClass::Auth),                        // noBalance
];

/// Class of all other statuses, which are a "general error".
const GENERAL: OutcomeClass = OutcomeClass::Retry(Scope::Account);

/// Returns true if a method succeeded.
pub(super) fn is_ok(reply: &Reply) -> bool {
    reply.is_success() && reply.json().is_some_and(|body| body["status"] == 0)
}

/// Judges the answer to a message.
pub(super) fn judge(reply: &Reply) -> Answer {
    let body = reply.json().unwrap_or_default();
    let Some(status) = body["status"].as_u64() else { return reply.answer_by_status() };
    let class = class_of(status);
    let text = body["status_message"].as_str().unwrap_or_default();
    let is_accepted = matches!(class, OutcomeClass::Accepted(_));
    let provider = ProviderAnswer {
        message_id: token(&body["message_token"]).filter(|_| is_accepted),
        code: (!is_accepted).then(|| status.to_string()),
        ..ProviderAnswer::default()
    };
    reply.answer(class, text).wait(reply.retry_after).provider(provider)
}

/// Returns the class of a status. An unknown one does not count against the address.
fn class_of(status: u64) -> OutcomeClass {
    STATUSES.iter().find(|(known, _)| *known == status).map_or(GENERAL, |(_, class)| *class)
}

/// Returns Viber's token of a message: a number of 64 bits.
pub(super) fn token(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}
