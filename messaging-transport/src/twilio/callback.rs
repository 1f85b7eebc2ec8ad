//! Callbacks of Twilio: receipts of messages, and messages of recipients.

use bytes::Bytes;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::outcome::{Acceptance, Answer, OutcomeClass, ProviderAnswer, Response};
use messaging_core::ports::transport::{
    About, Callback, CallbackEvent, CallbackFault, CallbackProof, CallbackReply, CallbackRequest,
};
use serde_json::{Map, Value};

use super::answer::failed;
use super::signature::is_signed;
use crate::provider::Settings;
use crate::provider::callback::{form, json, posted};

/// Answer to a message of a recipient: no message in return.
const NO_REPLY: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response/>";

/// Reads a call with a valid signature. The callback address of a message alone proves nothing: Twilio signs every
/// call.
pub(super) fn read(settings: &Map<String, Value>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    posted(request)?;
    let auth_token = Settings(settings).required("auth_token").map_err(|_| CallbackFault::Unauthorized)?;
    if !is_signed(auth_token, request) {
        return Err(CallbackFault::Unauthorized);
    }
    let fields = Fields::of(request.body);
    if let Some(receipt) = receipt(&fields) {
        let about = match (request.proof, fields.get("MessageSid").or_else(|| fields.get("SmsSid"))) {
            (CallbackProof::ThisMessage, _) => About::ThisMessage,
            (CallbackProof::Channel(_), Some(sid)) => About::ProviderMessage(sid.to_owned()),
            (CallbackProof::Channel(_), None) => return Ok(Callback::default()),
        };
        return Ok(Callback { events: vec![CallbackEvent::Receipt { about, receipt }], ..Callback::default() });
    }
    let Some((from, text)) = inbound(&fields) else { return Ok(Callback::default()) };
    let id = fields.get("MessageSid").or_else(|| fields.get("SmsSid")).map(ToOwned::to_owned);
    let events = vec![CallbackEvent::Inbound { from, event: InboundEvent::Text(text), id }];
    let body = Bytes::from_static(NO_REPLY.as_bytes());
    Ok(Callback { events, reply: CallbackReply { content_type: "text/xml", body, ..CallbackReply::default() } })
}

/// Fields of a form, or of a JSON object in its place.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(body: &[u8]) -> Self {
        match json(body) {
            Value::Object(members) => Self(
                members
                    .into_iter()
                    .filter_map(|(name, value)| match value {
                        Value::String(text) => Some((name, text)),
                        Value::Number(number) => Some((name, number.to_string())),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => Self(form(body)),
        }
    }

    /// Returns a field that is not empty.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Reads a status callback as a receipt; `None` if the status says nothing new.
fn receipt(fields: &Fields) -> Option<Receipt> {
    let status = fields.get("MessageStatus")?;
    let code = fields.get("ErrorCode").filter(|code| *code != "0");
    let of = |class| {
        let provider = ProviderAnswer {
            message_id: fields.get("MessageSid").map(ToOwned::to_owned),
            code: code.map(ToOwned::to_owned),
            ..ProviderAnswer::default()
        };
        let text = fields.get("ErrorMessage").unwrap_or(status);
        Answer::new(class, Response::of_text(text)).provider(provider)
    };
    match status {
        "sent" => Some(Receipt::Outcome(of(OutcomeClass::Accepted(Acceptance::Relayed)))),
        "delivered" => Some(Receipt::Outcome(of(OutcomeClass::Accepted(Acceptance::Delivered)))),
        "read" => Some(Receipt::Read(of(OutcomeClass::Accepted(Acceptance::Delivered)))),
        "failed" | "undelivered" | "canceled" => Some(Receipt::Outcome(of(failed(status, code)))),
        _ => None,
    }
}

/// Reads a callback as a message of a recipient: the sender's address and the text.
fn inbound(fields: &Fields) -> Option<(String, String)> {
    // A report of another kind has a status and no text.
    if fields.get("MessageStatus").is_some() {
        return None;
    }
    let from = fields.get("From")?;
    Some((from.to_owned(), fields.get("Body").unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::outcome::{AddressFault, Scope, SoftCause};

    use super::*;

    #[test]
    fn every_status_of_a_message_has_its_class() {
        let unknown = OutcomeClass::Soft(SoftCause::Unknown);
        let address = OutcomeClass::Address(AddressFault::Recipient);
        for (form, expected) in [
            ("MessageStatus=queued", None),
            ("MessageStatus=sending", None),
            ("MessageStatus=accepted", None),
            ("MessageStatus=sent", Some(OutcomeClass::Accepted(Acceptance::Relayed))),
            ("MessageStatus=delivered", Some(OutcomeClass::Accepted(Acceptance::Delivered))),
            ("MessageStatus=undelivered&ErrorCode=30003", Some(OutcomeClass::Soft(SoftCause::Unreachable))),
            ("MessageStatus=undelivered&ErrorCode=30004", Some(OutcomeClass::Soft(SoftCause::Policy))),
            ("MessageStatus=undelivered&ErrorCode=30005", Some(unknown)),
            ("MessageStatus=undelivered&ErrorCode=30006", Some(address)),
            ("MessageStatus=undelivered&ErrorCode=30007", Some(OutcomeClass::Soft(SoftCause::Policy))),
            ("MessageStatus=undelivered&ErrorCode=30008", Some(unknown)),
            ("MessageStatus=failed&ErrorCode=21610", Some(OutcomeClass::OptedOut)),
            ("MessageStatus=undelivered", Some(OutcomeClass::Soft(SoftCause::Policy))),
            ("MessageStatus=undelivered&ErrorCode=39999", Some(OutcomeClass::Soft(SoftCause::Policy))),
            ("MessageStatus=failed&ErrorCode=0", Some(OutcomeClass::Retry(Scope::Account))),
            ("MessageStatus=canceled", Some(OutcomeClass::Retry(Scope::Account))),
            ("SmsStatus=received&From=%2B1&Body=hi", None),
        ] {
            let class = receipt(&Fields::of(form.as_bytes())).map(|receipt| match receipt {
                Receipt::Outcome(answer) => answer.class,
                Receipt::Read(_) => panic!("{form} is not read"),
            });
            assert_eq!(class, expected, "{form}");
        }
        assert!(matches!(receipt(&Fields::of(b"MessageStatus=read")), Some(Receipt::Read(_))));
    }

    #[test]
    fn messages_of_recipients_are_read() {
        let read = |form: &str| inbound(&Fields::of(form.as_bytes()));
        assert_eq!(read("From=%2B491&Body=STOP&SmsStatus=received"), Some(("+491".to_owned(), "STOP".to_owned())));
        assert_eq!(read("From=%2B491"), Some(("+491".to_owned(), String::new())), "a picture without a text");
        assert_eq!(read("Body=STOP"), None);
        assert_eq!(read("MessageStatus=queued&From=%2B491&Body=x"), None);
        assert_eq!(read(r#"{"From":"+491","Body":"hi"}"#), Some(("+491".to_owned(), "hi".to_owned())));
    }
}
