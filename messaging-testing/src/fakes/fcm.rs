//! Firebase Cloud Messaging as a fake, with Google's token endpoint.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use http::Method;
use ring::signature::RSA_PKCS1_2048_8192_SHA256;
use serde_json::{Map, Value, json};

use super::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, keys, signed};

const PROJECT: &str = "fake-project";
const EMAIL: &str = "sender@fake-project.iam.gserviceaccount.com";
const KEY_ID: &str = "fake-key";
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Maximum number of access tokens that are valid at a time.
const MAX_TOKENS: usize = 16;

/// Lifetime of an access token as announced, in seconds.
const EXPIRES_IN: u64 = 3599;

const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// Fake Firebase, which checks assertions and access tokens.
#[derive(Debug, Default)]
pub struct FakeFcm {
    tokens: Mutex<Tokens>,
}

#[derive(Debug, Default)]
struct Tokens {
    count: u64,
    valid: VecDeque<String>,
}

impl FakeFcm {
    /// Returns the settings of a workspace that sends through the fake at this address.
    pub fn settings(url: &str) -> Map<String, Value> {
        let service_account = json!({
            "type": "service_account",
            "project_id": PROJECT,
            "client_email": EMAIL,
            "private_key_id": KEY_ID,
            "private_key": keys::RSA,
            "token_uri": format!("{url}/token"),
        });
        Map::from_iter([
            ("api_base".to_owned(), json!(url)),
            ("project_id".to_owned(), json!(PROJECT)),
            ("service_account".to_owned(), service_account),
        ])
    }

    /// Answers with an access token for a signed assertion (RFC 7523).
    fn grant(&self, request: &FakeRequest) -> FakeAnswer {
        let refused = |error: &str, description: &str| {
            FakeAnswer::json(400, &json!({"error": error, "error_description": description}))
        };
        if request.field("grant_type") != GRANT_TYPE {
            return refused("unsupported_grant_type", "Invalid grant_type");
        }
        let key = keys::rsa_public_key(keys::RSA).expect("the key of the fake");
        let assertion = request.field("assertion");
        let Some((header, claims)) = signed::claims(&assertion, "RS256", &RSA_PKCS1_2048_8192_SHA256, &key) else {
            return refused("invalid_grant", "Invalid JWT Signature.");
        };
        let lifetime = claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(exp, iat)| exp - iat);
        let is_ours = header["kid"] == KEY_ID && claims["iss"] == EMAIL && claims["scope"] == SCOPE;
        let is_meant = claims["aud"].as_str().is_some_and(|audience| audience.ends_with("/token"));
        if !is_ours || !is_meant || !lifetime.is_some_and(|lifetime| (1..=3600).contains(&lifetime)) {
            return refused("invalid_grant", "Invalid JWT: check the iss, scope, aud, iat and exp claims.");
        }
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.count += 1;
        let token = format!("ya29.fake-{}", tokens.count);
        tokens.valid.push_back(token.clone());
        if tokens.valid.len() > MAX_TOKENS {
            tokens.valid.pop_front();
        }
        FakeAnswer::json(200, &json!({"access_token": token, "expires_in": EXPIRES_IN, "token_type": "Bearer"}))
    }

    fn is_granted(&self, authorization: &str) -> bool {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        authorization.strip_prefix("Bearer ").is_some_and(|token| tokens.valid.iter().any(|valid| valid == token))
    }
}

/// Returns an error in Google's form.
fn error(code: u16, status: &str, message: &str, details: &Value) -> FakeAnswer {
    let error = json!({"code": code, "message": message, "status": status, "details": details});
    FakeAnswer::json(code, &json!({ "error": error }))
}

fn fcm_error(code: u16, status: &str, message: &str, fcm: &str) -> FakeAnswer {
    error(code, status, message, &json!([{"@type": FCM_ERROR, "errorCode": fcm}]))
}

fn bad_field(field: &str, description: &str) -> FakeAnswer {
    let details = json!([{"@type": BAD_REQUEST, "fieldViolations": [{"field": field, "description": description}]}]);
    error(400, "INVALID_ARGUMENT", &format!("Invalid value at '{field}'"), &details)
}

fn unauthenticated() -> FakeAnswer {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
    error(401, "UNAUTHENTICATED", message, &json!([]))
}

/// Members of a message that the API knows.
const MEMBERS: [&str; 7] = ["token", "fid", "notification", "data", "android", "apns", "webpush"];

impl FakeApi for FakeFcm {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        if request.method != Method::POST {
            return Err(error(404, "NOT_FOUND", "Requested entity was not found.", &json!([])));
        }
        if request.path() == "/token" {
            return Err(self.grant(request));
        }
        if request.path() != format!("/v1/projects/{PROJECT}/messages:send") {
            return Err(error(404, "NOT_FOUND", "Requested entity was not found.", &json!([])));
        }
        if !self.is_granted(request.header("authorization")) {
            return Err(unauthenticated());
        }
        let body = request.json();
        let message = body["message"].as_object().ok_or_else(|| bad_field("message", "Message is not set."))?;
        if let Some(unknown) = message.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(bad_field(&format!("message.{unknown}"), "Unknown name"));
        }
        let values = message.get("data").and_then(Value::as_object).into_iter().flat_map(Map::values);
        if values.into_iter().any(|value| !value.is_string()) {
            return Err(bad_field("message.data", "Values are strings."));
        }
        let target = |name: &str| message.get(name).and_then(Value::as_str);
        match (target("token"), target("fid")) {
            (Some(target), None) | (None, Some(target)) => Ok(Submission::to(target)),
            _ => Err(bad_field("message", "Exactly one of token and fid is to be given.")),
        }
    }

    fn accepted(&self, submission: &Submission) -> FakeAnswer {
        FakeAnswer::json(200, &json!({"name": format!("projects/{PROJECT}/messages/0:{}", submission.id)}))
    }

    fn refused(&self, _submission: &Submission, refusal: Refusal) -> FakeAnswer {
        match refusal {
            Refusal::Address => fcm_error(404, "NOT_FOUND", "Requested entity was not found.", "UNREGISTERED"),
            Refusal::Soft | Refusal::Policy | Refusal::Blocked | Refusal::OptedOut => {
                fcm_error(403, "PERMISSION_DENIED", "SenderId mismatch", "SENDER_ID_MISMATCH")
            }
            Refusal::Content => bad_field("message.android.ttl", "Illegal duration format"),
            Refusal::Retry => fcm_error(503, "UNAVAILABLE", "The service is currently unavailable.", "UNAVAILABLE"),
            Refusal::Throttled(_) | Refusal::ThrottledRecipient => {
                fcm_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded for the project.", "QUOTA_EXCEEDED")
            }
            Refusal::Auth => unauthenticated(),
        }
    }
}
