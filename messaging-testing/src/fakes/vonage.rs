//! Fake of Vonage's Messages API and its callbacks.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{
    FakeAnswer, FakeApi, FakeCallback, FakeRequest, Refusal, Report, Signature, Submission, fresh, keys, signed,
};

/// Expiry of the tokens that it signs: long after every test.
const END: i64 = 4_000_000_000;

/// One application.
#[derive(Debug, Clone)]
pub struct FakeVonage {
    application_id: String,
    private_key: String,
    public_key: Vec<u8>,
    signature_secret: String,
}

impl FakeVonage {
    /// Creates an application with the private key, an RSA key as PKCS#8 in PEM, that its callers sign with.
    ///
    /// # Panics
    ///
    /// If that is no such key.
    pub fn new(application_id: &str, private_key: &str, signature_secret: &str) -> Self {
        Self {
            application_id: application_id.to_owned(),
            private_key: private_key.to_owned(),
            public_key: keys::rsa_public_key(private_key).expect("an RSA key"),
            signature_secret: signature_secret.to_owned(),
        }
    }

    /// Creates an application whose callers sign with a published example key.
    ///
    /// # Panics
    ///
    /// Never: the key is an RSA key.
    pub fn with_example_key(application_id: &str, signature_secret: &str) -> Self {
        Self::new(application_id, keys::RSA, signature_secret)
    }

    /// Returns the settings of a channel that uses it at this address.
    pub fn settings(&self, url: &str) -> Value {
        json!({"api_base": url, "application_id": self.application_id, "private_key": self.private_key,
            "signature_secret": self.signature_secret, "sender": "ACME"})
    }

    fn is_authorized(&self, request: &FakeRequest) -> bool {
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let claims = || {
            let token = request.header("authorization").strip_prefix("Bearer ")?;
            let (signed, signature) = token.rsplit_once('.')?;
            let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.public_key);
            key.verify(signed.as_bytes(), &decode(signature)?).ok()?;
            serde_json::from_slice::<Value>(&decode(signed.split_once('.')?.1)?).ok()
        };
        claims().is_some_and(|claims| {
            let lifetime = claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(end, issued)| end - issued);
            claims["application_id"] == self.application_id.as_str()
                && claims["jti"].as_str().is_some_and(|id| !id.is_empty())
                && lifetime.is_some_and(|lifetime| (1..=86_400).contains(&lifetime))
        })
    }

    fn call(&self, url: &str, body: &Value, signature: Signature) -> FakeCallback {
        let callback = FakeCallback::json(url, body);
        let secret = match signature {
            Signature::Valid => self.signature_secret.as_str(),
            Signature::Missing => return callback,
            Signature::Forged => "forged",
            Signature::OldSecret => "the secret before",
        };
        let digest = signed::hex(digest(&SHA256, &callback.body).as_ref());
        let part = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let claims = json!({"iss": "Vonage", "iat": 1, "exp": END, "jti": "1", "payload_hash": digest,
            "application_id": self.application_id});
        let signed = format!("{}.{}", part(json!({"alg": "HS256", "typ": "JWT"})), part(claims));
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let proof = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
        callback.header("authorization", format!("Bearer {signed}.{proof}"))
    }
}

fn error(code: &str) -> Value {
    json!({"type": format!("https://developer.vonage.com/api-errors/messages#{code}"), "title": code,
        "detail": format!("error {code}"), "instance": "bf0ca0bf927b3b52e3cb03217e1a1ddf"})
}

fn problem(status: u16, code: &str) -> FakeAnswer {
    FakeAnswer::text(status, "application/problem+json", error(code).to_string())
}

const fn code(refusal: Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::Address => (422, "1040"),
        Refusal::Blocked | Refusal::OptedOut => (422, "1050"),
        Refusal::Content => (422, "1022"),
        Refusal::Soft | Refusal::Policy => (422, "1999"),
        Refusal::Retry => (500, "internal-error"),
        Refusal::Throttled(_) | Refusal::ThrottledRecipient => (429, "1000"),
        Refusal::Auth => (401, "unauthorized"),
    }
}

/// Returns Vonage's id of a message.
fn uuid(submission: &Submission) -> String {
    format!("aaaaaaaa-bbbb-4ccc-8ddd-{:0>12}", submission.id)
}

impl FakeApi for FakeVonage {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if !self.is_authorized(request) {
            return Err(problem(401, "unauthorized"));
        }
        if request.path() != "/v1/messages" {
            return Err(problem(404, "not-found"));
        }
        let body = request.json();
        let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        let (Some(to), Some(_), Some(written)) = (text("to"), text("from"), text("text")) else {
            return Err(problem(422, "1020"));
        };
        let is_known = body["channel"] == "sms" && body["message_type"] == "text";
        let fits = written.chars().count() <= 1000 && text("client_ref").is_none_or(|reference| reference.len() <= 100);
        if !is_known || !fits || to.starts_with('+') {
            return Err(problem(422, "1022"));
        }
        Ok(Submission {
            callback_url: text("webhook_url"),
            reference: text("client_ref"),
            text: written,
            ..Submission::to(to)
        })
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        FakeAnswer::json(202, &json!({"message_uuid": uuid(submission)}))
    }

    fn refused(&self, _: &Submission, refusal: Refusal) -> FakeAnswer {
        let (status, code) = code(refusal);
        problem(status, code)
    }

    fn report(&self, reports: &[(Submission, Report)], signature: Signature) -> Option<FakeCallback> {
        let [(submission, report)] = reports else { return None };
        let mut body = json!({"message_uuid": uuid(submission), "to": submission.recipient, "from": "ACME",
            "timestamp": "2026-01-01T00:00:00Z", "channel": "sms"});
        if let Some(reference) = &submission.reference {
            body["client_ref"] = reference.as_str().into();
        }
        body["status"] = match report {
            Report::Sent => "submitted",
            Report::Delivered => "delivered",
            Report::Read => "read",
            Report::Failed(Refusal::Retry) => "undeliverable",
            Report::Failed(_) => "rejected",
        }
        .into();
        if let Report::Failed(refusal) = report {
            body["error"] = error(code(*refusal).1);
        }
        Some(self.call(submission.callback_url.as_deref()?, &body, signature))
    }

    fn inbound(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<FakeCallback> {
        let uuid = format!("aaaaaaaa-bbbb-4ccc-8ddd-{:012x}", fresh());
        let body = json!({"channel": "sms", "message_uuid": uuid, "to": "15005550006",
            "from": from.trim_start_matches('+'), "text": text, "message_type": "text",
            "timestamp": "2026-01-01T00:00:00Z"});
        Some(self.call(url, &body, signature))
    }
}
