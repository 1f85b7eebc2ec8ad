//! Fake push service of a browser (RFC 8030).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use ring::signature::ECDSA_P256_SHA256_FIXED;
use serde_json::{Map, Value, json};

use super::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, keys, signed};

/// Published keys of a browser (RFC 8291 appendix A).
const P256DH: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// Octets of the header of an encrypted message: salt, record size, length of the key, key.
const HEADER: usize = 16 + 4 + 1 + 65;

/// Fake push service. It checks the sender, and that the message is encrypted; it cannot read the message.
#[derive(Debug, Clone, Copy, Default)]
pub struct FakeWebpush;

impl FakeWebpush {
    /// Returns the settings that an operator enters to send to browsers. They name no server: each subscription has its
    /// own, and the key pair is made when the settings are stored.
    pub fn entered() -> Map<String, Value> {
        Map::from_iter([("subject".to_owned(), json!("mailto:push@example.com"))])
    }

    /// Returns the settings of a workspace that sends to browsers, with a published key pair.
    pub fn settings() -> Map<String, Value> {
        let mut settings = Self::entered();
        settings.insert("private_key".to_owned(), json!(keys::P256));
        settings.insert("public_key".to_owned(), json!(keys::P256_PUBLIC));
        settings
    }

    /// Returns a subscription at the fake at this address; the number chooses the outcome of messages to it.
    pub fn subscription(url: &str, number: u8) -> String {
        let endpoint = format!("{url}/push/{number:02}");
        json!({"endpoint": endpoint, "expirationTime": null, "keys": {"p256dh": P256DH, "auth": AUTH}}).to_string()
    }
}

fn answer(status: u16) -> FakeAnswer {
    FakeAnswer::text(status, "text/plain", "")
}

/// Returns true if `Authorization` identifies a sender (RFC 8292 section 3) and is meant for this host.
fn is_authorized(request: &FakeRequest) -> bool {
    let parameters = || {
        let (token, key) = request.header("authorization").strip_prefix("vapid t=")?.split_once(", k=")?;
        let key = URL_SAFE_NO_PAD.decode(key).ok()?;
        signed::claims(token, "ES256", &ECDSA_P256_SHA256_FIXED, &key)
    };
    let Some((_, claims)) = parameters() else { return false };
    let audience = format!("http://{}", request.header("host"));
    let subject = claims["sub"].as_str().unwrap_or_default();
    claims["aud"] == audience.as_str()
        && claims["exp"].is_i64()
        && (subject.starts_with("mailto:") || subject.starts_with("https:"))
}

/// Returns true if `Topic` is absent or has at most 32 characters of base64url (RFC 8030 section 5.4).
fn is_topic(topic: &str) -> bool {
    topic.len() <= 32 && topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

impl FakeApi for FakeWebpush {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        let name = request.path().strip_prefix("/push/").ok_or_else(|| answer(404))?;
        if request.method != Method::POST {
            return Err(answer(405));
        }
        if !is_authorized(request) {
            return Err(answer(403));
        }
        let is_encrypted = request.header("content-encoding") == "aes128gcm" && request.body.len() > HEADER;
        if !is_encrypted || request.header("ttl").parse::<u32>().is_err() || !is_topic(request.header("topic")) {
            return Err(answer(400));
        }
        if request.body.len() > 4096 { Err(answer(413)) } else { Ok(Submission::to(name)) }
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        answer(201).header("location", format!("/message/{}", submission.id))
    }

    fn refused(&self, _submission: &Submission, refusal: Refusal) -> FakeAnswer {
        answer(match refusal {
            Refusal::Address => 410,
            Refusal::Soft | Refusal::Policy | Refusal::Blocked | Refusal::OptedOut => 403,
            Refusal::Content => 413,
            Refusal::Retry => 503,
            Refusal::Throttled(_) | Refusal::ThrottledRecipient => 429,
            Refusal::Auth => 401,
        })
    }
}
