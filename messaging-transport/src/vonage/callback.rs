//! Callbacks of Vonage: receipts of messages, and messages of recipients; signed by a token (HS256) in `Authorization`
//! that holds the digest of the body.

use std::time::Duration;

use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::outcome::{Acceptance, Answer, OutcomeClass, ProviderAnswer, Response, Scope};
use messaging_core::ports::transport::{About, Callback, CallbackEvent, CallbackFault, CallbackProof, CallbackRequest};
use serde_json::{Map, Value};

use super::answer::rejected;
use crate::jwt::{hs256_claims, is_current};
use crate::provider::Settings;
use crate::provider::callback::{header, json, matches, posted, sha256_hex};

/// Maximum age of a token without an expiry: calls are repeated for a day.
const MAX_AGE: Duration = Duration::from_hours(25);

/// Maximum number of reports in one call.
const MAX_REPORTS: usize = 1000;

/// Reads a call with a valid signature. The callback address of a message alone proves nothing: Vonage signs every
/// call, once the account has a secret.
pub(super) fn read(settings: &Map<String, Value>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
    posted(request)?;
    let secret = Settings(settings).text("signature_secret").ok().flatten();
    if !secret.is_some_and(|secret| is_signed(secret, request)) {
        return Err(CallbackFault::Unauthorized);
    }
    let body = json(request.body);
    let reports = match &body {
        Value::Array(reports) => reports.as_slice(),
        report => std::slice::from_ref(report),
    };
    let events = reports.iter().take(MAX_REPORTS).filter_map(|report| event_of(report, request.proof)).collect();
    Ok(Callback { events, ..Callback::default() })
}

fn is_signed(secret: &str, request: &CallbackRequest<'_>) -> bool {
    let bearer = header(request.headers, "authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let Some(claims) = bearer.and_then(|token| hs256_claims(token, secret.as_bytes())) else { return false };
    let given = claims.get("payload_hash").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let is_dated = claims.get("exp").is_some_and(|end| !end.is_null())
        || claims.get("iat").and_then(Value::as_i64).is_some_and(|issued| {
            request.now.as_seconds().saturating_sub(issued) < i64::try_from(MAX_AGE.as_secs()).unwrap_or(i64::MAX)
        });
    is_dated && is_current(&claims, request.now) && matches(given.as_bytes(), sha256_hex(request.body).as_bytes())
}

fn event_of(report: &Value, proof: &CallbackProof) -> Option<CallbackEvent> {
    let text = |name: &str| report.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(status) = text("status") {
        let receipt = receipt(status, text("message_uuid"), report)?;
        let about = match proof {
            CallbackProof::ThisMessage => About::ThisMessage,
            CallbackProof::Channel(_) => match (text("client_ref"), text("message_uuid")) {
                (Some(reference), _) => About::Token(reference.to_owned()),
                (None, Some(id)) => About::ProviderMessage(id.to_owned()),
                (None, None) => return None,
            },
        };
        return Some(CallbackEvent::Receipt { about, receipt });
    }
    let from = text("from")?;
    // Vonage writes numbers without `+`.
    let is_number = from.bytes().all(|byte| byte.is_ascii_digit());
    let from = if is_number { format!("+{from}") } else { from.to_owned() };
    let id = text("message_uuid").map(ToOwned::to_owned);
    Some(CallbackEvent::Inbound { from, event: InboundEvent::Text(text("text").unwrap_or_default().to_owned()), id })
}

fn receipt(status: &str, message: Option<&str>, report: &Value) -> Option<Receipt> {
    let of = |class, code: Option<String>, text: &str| {
        let message_id = message.map(ToOwned::to_owned);
        Answer::new(class, Response::of_text(text)).provider(ProviderAnswer {
            message_id,
            code,
            ..ProviderAnswer::default()
        })
    };
    let accepted = |acceptance| of(OutcomeClass::Accepted(acceptance), None, status);
    let error = report.get("error").unwrap_or(&Value::Null);
    let (class, code, said) = rejected(error);
    match status {
        "submitted" => Some(Receipt::Outcome(accepted(Acceptance::Relayed))),
        "delivered" => Some(Receipt::Outcome(accepted(Acceptance::Delivered))),
        "read" => Some(Receipt::Read(accepted(Acceptance::Delivered))),
        "rejected" => Some(Receipt::Outcome(of(class, code, said.unwrap_or(status)))),
        // An outage of the provider, which says nothing about the recipient.
        "undeliverable" => {
            Some(Receipt::Outcome(of(OutcomeClass::Retry(Scope::Account), code, said.unwrap_or(status))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Method};
    use messaging_core::domain::delivery::outcome::{AddressFault, SoftCause};
    use messaging_core::time::Timestamp;
    use ring::hmac::HMAC_SHA256;
    use serde_json::json;

    use super::*;
    use crate::provider::callback::hmac;

    const NOW: i64 = 1_700_000_000;

    fn token(secret: &str, claims: &Value) -> String {
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(json!({"alg": "HS256"}).to_string()), part(claims.to_string()));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac(HMAC_SHA256, secret.as_bytes(), signed.as_bytes())))
    }

    fn called(settings: &Value, bearer: &str, body: &str) -> Result<Callback, CallbackFault> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_str(bearer).unwrap());
        let request = CallbackRequest {
            method: &Method::POST,
            url: "https://a.example/callbacks/sms/x",
            headers: &headers,
            body: &Bytes::from(body.to_owned()),
            proof: &CallbackProof::ThisMessage,
            now: Timestamp::from_millis(NOW * 1000),
        };
        read(settings.as_object().unwrap(), &request)
    }

    #[test]
    fn a_call_is_believed_only_with_a_current_token_of_its_very_body() {
        const BODY: &str = r#"{"message_uuid":"u","status":"delivered"}"#;
        let digest = sha256_hex(BODY.as_bytes());
        let settings = json!({"signature_secret": "s3cret"});
        let with = |secret: &str, claims: Value| format!("Bearer {}", token(secret, &claims));
        let good = with("s3cret", json!({"iat": NOW, "exp": NOW + 60, "payload_hash": digest}));
        assert_eq!(called(&settings, &good, BODY).unwrap().events.len(), 1);
        let undated = with("s3cret", json!({"iat": NOW - 3600, "payload_hash": digest.to_uppercase()}));
        assert_eq!(called(&settings, &undated, BODY).unwrap().events.len(), 1);
        for (bearer, why) in [
            (with("other", json!({"iat": NOW, "payload_hash": digest})), "another secret"),
            (with("s3cret", json!({"iat": NOW})), "no digest"),
            (with("s3cret", json!({"iat": NOW, "payload_hash": sha256_hex(b"x")})), "another body"),
            (with("s3cret", json!({"iat": NOW - 99, "exp": NOW - 1, "payload_hash": digest})), "expired"),
            (with("s3cret", json!({"iat": NOW - 100_000, "payload_hash": digest})), "old"),
            (with("s3cret", json!({"payload_hash": digest})), "no date"),
            ("Basic abc".to_owned(), "another scheme"),
            ("Bearer".to_owned(), "nothing"),
        ] {
            assert_eq!(called(&settings, &bearer, BODY), Err(CallbackFault::Unauthorized), "{why}");
        }
        assert_eq!(called(&settings, &good, &format!("{BODY} ")), Err(CallbackFault::Unauthorized));
        for without in [json!({}), json!({"signature_secret": ""}), json!({"signature_secret": null})] {
            let empty = with("", json!({"iat": NOW, "payload_hash": digest}));
            assert_eq!(called(&without, &empty, BODY), Err(CallbackFault::Unauthorized));
            assert_eq!(called(&without, &good, BODY), Err(CallbackFault::Unauthorized));
        }
    }

    fn class_of(report: &Value) -> Option<OutcomeClass> {
        match event_of(report, &CallbackProof::ThisMessage)? {
            CallbackEvent::Receipt { receipt: Receipt::Outcome(answer), .. } => Some(answer.class),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_status_of_a_message_has_its_class() {
        let error = |code: &str| json!({"type": format!("https://a.example/errors#{code}"), "detail": "why"});
        for (report, expected) in [
            (json!({"status": "submitted"}), Some(OutcomeClass::Accepted(Acceptance::Relayed))),
            (json!({"status": "delivered"}), Some(OutcomeClass::Accepted(Acceptance::Delivered))),
            (json!({"status": "undeliverable", "error": error("1040")}), Some(OutcomeClass::Retry(Scope::Account))),
            (json!({"status": "rejected", "error": error("1050")}), Some(OutcomeClass::Blocked)),
            (
                json!({"status": "rejected", "error": error("1040")}),
                Some(OutcomeClass::Address(AddressFault::Recipient)),
            ),
            (json!({"status": "rejected", "error": error("1999")}), Some(OutcomeClass::Soft(SoftCause::Policy))),
            (json!({"status": "rejected"}), Some(OutcomeClass::Soft(SoftCause::Policy))),
            (json!({"status": "wondering"}), None),
            (json!({"message_uuid": "u"}), None),
            (json!(null), None),
        ] {
            assert_eq!(class_of(&report), expected, "{report}");
        }
        let read = event_of(&json!({"status": "read"}), &CallbackProof::ThisMessage);
        assert!(matches!(read, Some(CallbackEvent::Receipt { receipt: Receipt::Read(_), .. })));
    }

    #[test]
    fn numbers_of_recipients_get_their_plus() {
        for (from, expected) in [("491511", "+491511"), ("+491511", "+491511"), ("ACME", "ACME")] {
            let report = json!({"channel": "sms", "from": from, "text": "STOP"});
            let expected = CallbackEvent::Inbound {
                from: expected.to_owned(),
                event: InboundEvent::Text("STOP".to_owned()),
                id: None,
            };
            assert_eq!(event_of(&report, &CallbackProof::ThisMessage), Some(expected));
        }
    }
}
