//! Fake of Meta's WhatsApp Cloud API.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    FakeAnswer, FakeApi, FakeCallback, FakeProvider, FakeRequest, Refusal, Report, Signature, Submission, fresh, signed,
};

/// A phone number at a fake WhatsApp. Clones are the same number.
#[derive(Debug, Clone)]
pub struct FakeWhatsapp {
    phone_number_id: Arc<str>,
    access_token: Arc<str>,
    app_secret: Arc<str>,
    webhook: Arc<Mutex<Option<String>>>,
}

impl FakeWhatsapp {
    /// Creates the number with this id, of an account with this token and an app with this secret.
    pub fn new(phone_number_id: &str, access_token: &str, app_secret: &str) -> Self {
        let (phone_number_id, access_token) = (phone_number_id.into(), access_token.into());
        Self { phone_number_id, access_token, app_secret: app_secret.into(), webhook: Arc::default() }
    }

    /// Enters the URL for webhooks, as users do for their app; Meta first sends a challenge there, and keeps the URL
    /// only if the challenge comes back. Returns true if it did.
    pub async fn enter_webhook(&self, peer: &FakeProvider, url: &str, verify_token: &str) -> bool {
        let challenge = fresh().to_string();
        let called = peer.call(self.challenge(url, verify_token, &challenge)).await;
        let is_right = called.status == Some(StatusCode::OK) && called.body == challenge;
        if is_right {
            *self.lock() = Some(url.to_owned());
        }
        is_right
    }

    /// Returns the verification request that Meta sends to a URL that is entered with a verify token.
    pub fn challenge(&self, url: &str, verify_token: &str, challenge: &str) -> FakeCallback {
        let url = format!("{url}?hub.mode=subscribe&hub.verify_token={verify_token}&hub.challenge={challenge}");
        FakeCallback { method: Method::GET, ..FakeCallback::json(url, &Value::Null) }
    }

    /// Returns the call about a person who wants no more marketing (`stop`), or wants it again (`resume`).
    pub fn preference(&self, url: &str, from: &str, value: &str, signature: Signature) -> FakeCallback {
        let preference = json!({
            "wa_id": from.trim_start_matches('+'), "category": "marketing_messages", "value": value,
            "timestamp": fresh(),
        });
        self.webhook_call(url, "user_preferences", json!({"user_preferences": [preference]}), signature)
    }

    fn webhook_call(&self, url: &str, field: &str, mut value: Value, signature: Signature) -> FakeCallback {
        value["messaging_product"] = json!("whatsapp");
        value["metadata"] = json!({"display_phone_number": "15550783881", "phone_number_id": &*self.phone_number_id});
        let changes = json!([{"field": field, "value": value}]);
        let body =
            json!({"object": "whatsapp_business_account", "entry": [{"id": "102290129340398", "changes": changes}]});
        let callback = FakeCallback::json(url, &body);
        match signature {
            Signature::Valid => self.signed(callback),
            Signature::Forged => signed_with("forged", callback),
            Signature::OldSecret => signed_with("the secret before", callback),
            Signature::Missing => callback,
        }
    }

    /// Adds the valid signature to any call.
    pub fn signed(&self, callback: FakeCallback) -> FakeCallback {
        signed_with(&self.app_secret, callback)
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.webhook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed_with(secret: &str, callback: FakeCallback) -> FakeCallback {
    let signed = signed::hmac_sha256(secret, &callback.body);
    callback.header("x-hub-signature-256", format!("sha256={signed}"))
}

fn no(status: u16, code: u64, text: &str) -> FakeAnswer {
    let message = format!("(#{code}) {text}");
    let error = json!({"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ"});
    FakeAnswer::json(status, &json!({"error": error}))
}

/// Returns the error of a class: code and text.
const fn error_of(refusal: Refusal) -> (u64, &'static str) {
    match refusal {
        Refusal::Address | Refusal::Blocked => (131_026, "Message undeliverable"),
        Refusal::OptedOut => (131_050, "User has stopped marketing messages"),
        Refusal::Soft | Refusal::Policy => (131_049, "Not delivered to maintain healthy ecosystem engagement"),
        Refusal::Content => (131_047, "Re-engagement message"),
        Refusal::Retry => (131_000, "Something went wrong"),
        Refusal::Throttled(_) => (130_429, "Rate limit hit"),
        Refusal::ThrottledRecipient => (131_056, "Business Account, Consumer Account pair rate limit hit"),
        Refusal::Auth => (190, "Access token has expired"),
    }
}

impl FakeApi for FakeWhatsapp {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if !request.path().ends_with(&format!("/{}/messages", self.phone_number_id)) {
            return Err(no(404, 100, "Unsupported post request"));
        }
        if request.header("authorization") != format!("Bearer {}", self.access_token) {
            return Err(no(401, 190, "Invalid OAuth access token"));
        }
        let body = request.json();
        if body["messaging_product"] != "whatsapp" || body["to"].as_str().is_none_or(str::is_empty) {
            return Err(no(400, 100, "Invalid parameter"));
        }
        let kind = body["type"].as_str().unwrap_or("text");
        if !body[kind].is_object() {
            return Err(no(400, 131_008, "Required parameter is missing"));
        }
        Ok(Submission {
            callback_url: self.lock().clone(),
            reference: body["biz_opaque_callback_data"].as_str().map(ToOwned::to_owned),
            text: body["text"]["body"].as_str().unwrap_or_default().to_owned(),
            ..Submission::to(body["to"].as_str().unwrap_or_default())
        })
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        let contacts = json!([{"input": submission.recipient, "wa_id": submission.recipient}]);
        let messages = json!([{"id": format!("wamid.{}", submission.id), "message_status": "accepted"}]);
        FakeAnswer::json(200, &json!({"messaging_product": "whatsapp", "contacts": contacts, "messages": messages}))
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        let (code, text) = error_of(refusal);
        let status = match refusal {
            Refusal::Throttled(_) | Refusal::ThrottledRecipient => 429,
            Refusal::Retry => 500,
            Refusal::Auth => 401,
            _ => 400,
        };
        no(status, code, text)
    }

    fn report(&self, reports: &[(Submission, Report)], signature: Signature) -> Option<FakeCallback> {
        let url = reports.first()?.0.callback_url.clone()?;
        let status = |(submission, report): &(Submission, Report)| {
            let mut status = json!({
                "id": format!("wamid.{}", submission.id), "recipient_id": submission.recipient,
                "timestamp": "1769850900",
            });
            if let Some(reference) = &submission.reference {
                status["biz_opaque_callback_data"] = json!(reference);
            }
            status["status"] = json!(match report {
                Report::Sent => "sent",
                Report::Delivered => "delivered",
                Report::Read => "read",
                Report::Failed(_) => "failed",
            });
            if let Report::Failed(refusal) = report {
                let (code, text) = error_of(*refusal);
                status["errors"] = json!([{"code": code, "title": text, "error_data": {"details": text}}]);
            }
            status
        };
        let statuses: Vec<_> = reports.iter().map(status).collect();
        Some(self.webhook_call(&url, "messages", json!({"statuses": statuses}), signature))
    }

    fn inbound(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<FakeCallback> {
        let from = from.trim_start_matches('+');
        let message =
            json!({"from": from, "id": format!("wamid.in{}", fresh()), "type": "text", "text": {"body": text}});
        Some(self.webhook_call(url, "messages", json!({"messages": [message]}), signature))
    }
}
