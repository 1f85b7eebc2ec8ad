//! Fake Apple Push Notification service.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Version};
use messaging_core::ports::clock::{Clock, SystemClock};
use messaging_core::time::Timestamp;
use ring::signature::ECDSA_P256_SHA256_FIXED;
use serde_json::{Map, Value, json};

use super::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, keys, signed};

const TEAM: &str = "FAKETEAM01";
const KEY_ID: &str = "FAKEKEY001";
const TOPIC: &str = "com.example.fake";

/// Maximum age of a token that is accepted.
const MAX_AGE: Duration = Duration::from_hours(1);

/// Fake of Apple's service. It speaks only HTTP/2 and checks provider tokens.
#[derive(Debug)]
pub struct FakeApns {
    clock: Arc<dyn Clock>,
}

impl Default for FakeApns {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl FakeApns {
    /// Creates a fake that judges the age of tokens by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    /// Returns the settings of a workspace that sends through the fake at this address.
    pub fn settings(url: &str) -> Map<String, Value> {
        let given = [
            ("api_base", url),
            ("team_id", TEAM),
            ("key_id", KEY_ID),
            ("private_key", keys::P256),
            ("topic", TOPIC),
            ("environment", "development"),
        ];
        given.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }

    /// Returns a device token; its last two digits choose the outcome of messages to it.
    pub fn device(number: u8) -> String {
        format!("{}{number:02}", "fa".repeat(31))
    }

    fn check_token(&self, authorization: &str) -> Result<(), FakeAnswer> {
        let token = authorization.strip_prefix("bearer ").ok_or_else(|| reason(403, "MissingProviderToken"))?;
        let key = URL_SAFE_NO_PAD.decode(keys::P256_PUBLIC).expect("the key of the fake");
        let claims = signed::claims(token, "ES256", &ECDSA_P256_SHA256_FIXED, &key);
        let (header, claims) = claims.ok_or_else(|| reason(403, "InvalidProviderToken"))?;
        if header["kid"] != KEY_ID || claims["iss"] != TEAM {
            return Err(reason(403, "InvalidProviderToken"));
        }
        let made_at = claims["iat"].as_i64().ok_or_else(|| reason(403, "InvalidProviderToken"))?;
        if self.clock.now().since(Timestamp::from_millis(made_at * 1000)) > MAX_AGE {
            return Err(reason(403, "ExpiredProviderToken"));
        }
        Ok(())
    }
}

fn reason(status: u16, reason: &str) -> FakeAnswer {
    FakeAnswer::json(status, &json!({ "reason": reason }))
}

impl FakeApi for FakeApns {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if request.version != Version::HTTP_2 {
            return Err(FakeAnswer::text(505, "text/plain", "HTTP/2 is required"));
        }
        if request.method != Method::POST {
            return Err(reason(405, "MethodNotAllowed"));
        }
        let device = request.path().strip_prefix("/3/device/").ok_or_else(|| reason(404, "BadPath"))?;
        self.check_token(request.header("authorization"))?;
        if request.header("apns-topic") != TOPIC {
            return Err(reason(400, "TopicDisallowed"));
        }
        if request.header("apns-push-type") != "alert" {
            return Err(reason(400, "InvalidPushType"));
        }
        if !matches!(request.header("apns-priority"), "1" | "5" | "10") {
            return Err(reason(400, "BadPriority"));
        }
        if request.header("apns-collapse-id").len() > 64 {
            return Err(reason(400, "BadCollapseId"));
        }
        if device.len() < 64 || !device.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(reason(400, "BadDeviceToken"));
        }
        if request.body.len() > 4096 {
            return Err(reason(413, "PayloadTooLarge"));
        }
        if request.json()["aps"].is_object() { Ok(Submission::to(device)) } else { Err(reason(400, "PayloadEmpty")) }
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        FakeAnswer::text(200, "text/plain", "").header("apns-id", format!("FAKE-{}", submission.id))
    }

    fn refused(&self, _submission: &Submission, refusal: Refusal) -> FakeAnswer {
        match refusal {
            Refusal::Address => {
                FakeAnswer::json(410, &json!({"reason": "Unregistered", "timestamp": 1_700_000_000_000_u64}))
            }
            Refusal::Soft => reason(400, "BadDeviceToken"),
            Refusal::Policy | Refusal::Blocked | Refusal::OptedOut => reason(400, "DeviceTokenNotForTopic"),
            Refusal::Content => reason(413, "PayloadTooLarge"),
            Refusal::Retry => reason(503, "ServiceUnavailable"),
            Refusal::Throttled(_) => reason(429, "TooManyProviderTokenUpdates"),
            Refusal::ThrottledRecipient => reason(429, "TooManyRequests"),
            Refusal::Auth => reason(403, "InvalidProviderToken"),
        }
    }
}
