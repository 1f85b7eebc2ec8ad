//! Events of a bot: receipts, messages of people, and their subscribing and unsubscribing.

use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::transport::{
    About, Acceptance, Answer, Callback, CallbackEvent, CallbackFault, CallbackProof, CallbackRequest, OutcomeClass,
    Response, SoftCause,
};
use ring::hmac::HMAC_SHA256;
use serde_json::Value;

use super::answer::token;
use crate::provider::{Settings, callback};

/// Header with the signature: the HMAC of the body, in hexadecimal digits.
const SIGNATURE: &str = "x-viber-content-signature";

/// Verifies and reads an event. The test event `webhook`, which is sent while a URL is set, reports nothing.
pub(super) fn read(settings: Settings<'_>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    callback::posted(request)?;
    if !matches!(request.proof, CallbackProof::Channel(_)) {
        return Err(CallbackFault::NotFound);
    }
    let secret = settings.required("auth_token").map_err(|_| CallbackFault::Unauthorized)?;
    let given = callback::header(request.headers, SIGNATURE).ok_or(CallbackFault::Unauthorized)?;
    let expected = callback::hex(callback::hmac(HMAC_SHA256, secret.as_bytes(), request.body).as_ref());
    if !callback::matches(given.as_bytes(), expected.as_bytes()) {
        return Err(CallbackFault::Unauthorized);
    }
    let events = event_of(&callback::json(request.body)).into_iter().collect();
    Ok(Callback { events, ..Callback::default() })
}

fn event_of(event: &Value) -> Option<CallbackEvent> {
    let receipt = |receipt| {
        let about = About::ProviderMessage(token(&event["message_token"])?);
        Some(CallbackEvent::Receipt { about, receipt })
    };
    let from = |id: &Value, inbound| {
        let from = id.as_str().filter(|id| !id.is_empty())?.to_owned();
        // Each event has a token of its own.
        Some(CallbackEvent::Inbound { from, event: inbound, id: token(&event["message_token"]) })
    };
    let delivered = || Answer::new(OutcomeClass::Accepted(Acceptance::Delivered), Response::default());
    match event["event"].as_str()? {
        "delivered" => receipt(Receipt::Outcome(delivered())),
        "seen" => receipt(Receipt::Read(delivered())),
        "failed" => {
            // The message has reached the recipient's app, which could not show it.
            let response = Response::of_text(event["desc"].as_str().unwrap_or_default());
            receipt(Receipt::Outcome(Answer::new(OutcomeClass::Soft(SoftCause::Content), response)))
        }
        "subscribed" => from(&event["user"]["id"], InboundEvent::Subscribed),
        "unsubscribed" => from(&event["user_id"], InboundEvent::Unsubscribed),
        "message" => {
            let text = event["message"]["text"].as_str().unwrap_or_default();
            from(&event["sender"]["id"], InboundEvent::Text(text.to_owned()))
        }
        _ => None,
    }
}
