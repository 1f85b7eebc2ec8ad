//! Webhooks of the WhatsApp Cloud API: receipts, inbound messages and marketing preferences. One request carries
//! several.

use http::Method;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::transport::{
    About, Acceptance, Answer, Callback, CallbackAddress, CallbackEvent, CallbackFault, CallbackProof, CallbackReply,
    CallbackRequest, OutcomeClass, Response,
};
use ring::hmac::HMAC_SHA256;
use serde_json::Value;
use url::form_urlencoded;

use super::answer;
use crate::provider::{Settings, callback};

/// Header with the signature: `sha256=` and the hexadecimal HMAC-SHA256 of the body under the app secret.
const SIGNATURE: &str = "x-hub-signature-256";

/// Longest challenge that is answered, in characters; Meta sends short numbers.
const MAX_CHALLENGE: usize = 256;

/// Verifies and reads a request. A receipt names its message by the data that we sent along or by the provider's id,
/// never by a phone number: people with a username do not show theirs.
pub(super) fn read(settings: Settings<'_>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    let CallbackProof::Channel(address) = request.proof else { return Err(CallbackFault::NotFound) };
    if request.method == Method::GET {
        return challenge(request, address).ok_or(CallbackFault::NotFound);
    }
    callback::posted(request)?;
    let secret = settings.required("app_secret").map_err(|_| CallbackFault::Unauthorized)?;
    let given = callback::header(request.headers, SIGNATURE).and_then(|given| given.strip_prefix("sha256="));
    let expected = callback::hex(callback::hmac(HMAC_SHA256, secret.as_bytes(), request.body).as_ref());
    if !given.is_some_and(|given| callback::matches(given.as_bytes(), expected.as_bytes())) {
        return Err(CallbackFault::Unauthorized);
    }
    let body = callback::json(request.body);
    let own = settings.text("phone_number_id").ok().flatten().unwrap_or_default();
    let mut events = Vec::new();
    let changes = items(&body["entry"]).iter().flat_map(|entry| items(&entry["changes"]));
    for value in changes.map(|change| &change["value"]) {
        // Meta calls one address for all phone numbers of an app; the others are not of this channel.
        if value["metadata"]["phone_number_id"].as_str().is_some_and(|about| about != own) {
            continue;
        }
        events.extend(items(&value["statuses"]).iter().filter_map(receipt));
        let written = items(&value["messages"]).iter().filter_map(written);
        let wanted = items(&value["user_preferences"]).iter().filter_map(preference);
        events.extend(written.chain(wanted).map(|(from, event, id)| CallbackEvent::Inbound { from, event, id }));
    }
    Ok(Callback { events, ..Callback::default() })
}

/// The answer to the verification request that Meta sends when somebody enters the callback address in the app's
/// settings. The token of the address has to be entered there as the verify token (contract section 18).
fn challenge(request: &CallbackRequest<'_>, address: &CallbackAddress) -> Option<Callback> {
    let query = request.url.split_once('?').map_or("", |(_, query)| query);
    let value = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find_map(|(name, value)| (name == wanted).then(|| value.into_owned()))
    };
    let is_ours =
        value("hub.verify_token").is_some_and(|token| callback::matches(token.as_bytes(), address.token.as_bytes()));
    if !is_ours || value("hub.mode").as_deref() != Some("subscribe") {
        return None;
    }
    let challenge = value("hub.challenge").filter(|asked| (1..=MAX_CHALLENGE).contains(&asked.chars().count()))?;
    let reply = CallbackReply { body: challenge.into(), ..CallbackReply::default() };
    Some(Callback { reply, ..Callback::default() })
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn receipt(status: &Value) -> Option<CallbackEvent> {
    let accepted = |acceptance| Answer::new(OutcomeClass::Accepted(acceptance), Response::default());
    let receipt = match status["status"].as_str()? {
        "sent" => Receipt::Outcome(accepted(Acceptance::Relayed)),
        "delivered" => Receipt::Outcome(accepted(Acceptance::Delivered)),
        "read" => Receipt::Read(accepted(Acceptance::Delivered)),
        "failed" => Receipt::Outcome(answer::of_receipt(&status["errors"][0])),
        _ => return None,
    };
    let given = status["biz_opaque_callback_data"].as_str().filter(|given| !given.is_empty());
    let about = match given {
        Some(token) => About::Token(token.to_owned()),
        None => About::ProviderMessage(status["id"].as_str()?.to_owned()),
    };
    Some(CallbackEvent::Receipt { about, receipt })
}

/// A phone number in E.164; `None` for a sender who does not show theirs.
fn number(of: &Value) -> Option<String> {
    let digits = of.as_str()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("+{digits}"))
}

/// The text that somebody wrote, or the text of the button that they pressed, with the sender and the id of the
/// message.
fn written(message: &Value) -> Option<(String, InboundEvent, Option<String>)> {
    let said = [&message["text"]["body"], &message["button"]["text"], &message["interactive"]["button_reply"]["title"]];
    let text = said.into_iter().find_map(Value::as_str).unwrap_or_default();
    let id = message["id"].as_str().map(ToOwned::to_owned);
    Some((number(&message["from"])?, InboundEvent::Text(text.to_owned()), id))
}

/// An opt-out from marketing messages or the opt-in again. Its id is made of the sender, the value and the time.
fn preference(preference: &Value) -> Option<(String, InboundEvent, Option<String>)> {
    if preference["category"] != "marketing_messages" {
        return None;
    }
    let event = match preference["value"].as_str()? {
        "stop" => InboundEvent::Unsubscribed,
        "resume" => InboundEvent::Subscribed,
        _ => return None,
    };
    let from = number(&preference["wa_id"])?;
    let (value, at) = (preference["value"].as_str()?, &preference["timestamp"]);
    let at = at.as_str().map(ToOwned::to_owned).or_else(|| at.as_i64().map(|at| at.to_string()));
    let id = at.map(|at| format!("preference {from} {value} {at}"));
    Some((from, event, id))
}
