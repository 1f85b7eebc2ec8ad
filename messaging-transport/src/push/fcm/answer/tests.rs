use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DEAD, DELIVERED, Harness, TestNotification};
use messaging_testing::fakes::FakeFcm;
use messaging_testing::{MemoryFetch, fetched};

/// Returns class, wait in seconds and code of an answer to a message.
async fn judged(status: u16, headers: &[(&'static str, &str)], body: &str) -> (OutcomeClass, Option<u64>, String) {
    let fetch = Arc::new(MemoryFetch::default());
    let token = r#"{"access_token":"ya29.a","expires_in":3600}"#;
    fetch.always("https://fcm.example.com/token", Ok(fetched(200, &[], token)));
    let send = "https://fcm.example.com/v1/projects/fake-project/messages:send";
    fetch.always(send, Ok(fetched(status, headers, body)));
    let given = TestNotification::new(FakeFcm::settings("https://fcm.example.com"));
    let answer = Harness::of(fetch).answer(PushProvider::Fcm, &given, "token-01").await;
    let code = answer.of_provider().and_then(|provider| provider.code.clone()).unwrap_or_default();
    (answer.class, answer.asked_wait().map(|wait| wait.as_secs()), code)
}

fn error(status: u16, name: &str, message: &str, details: &Value) -> (u16, String) {
    let error = json!({"code": status, "status": name, "message": message, "details": details});
    (status, json!({ "error": error }).to_string())
}

fn fcm(code: &str) -> Value {
    json!([{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}])
}

const AUTH: OutcomeClass = OutcomeClass::Auth;
const MISMATCH: OutcomeClass = OutcomeClass::Soft(SoftCause::Policy);
const THROTTLED: OutcomeClass = OutcomeClass::Throttled(Scope::Account);
const RETRY: OutcomeClass = OutcomeClass::Retry(Scope::Account);

#[tokio::test]
async fn every_error_of_firebase_has_its_class() {
    let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}]);
    let fields = |field: &str| {
        let violation = json!([{"field": field, "description": "Invalid value"}]);
        json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violation})
    };
    let invalid = "The registration token is not a valid FCM registration token";
    let mut both = fcm("INVALID_ARGUMENT");
    both.as_array_mut().unwrap().push(fields("message.token"));
    let mut other = fcm("INVALID_ARGUMENT");
    other.as_array_mut().unwrap().push(fields("message.android.ttl"));
    for ((status, body), class, code) in [
        (error(404, "NOT_FOUND", "Requested entity was not found.", &fcm("UNREGISTERED")), DEAD, "UNREGISTERED"),
        (error(400, "INVALID_ARGUMENT", invalid, &fcm("INVALID_ARGUMENT")), DEAD, "INVALID_ARGUMENT"),
        (error(400, "INVALID_ARGUMENT", invalid, &both), DEAD, "INVALID_ARGUMENT"),
        (error(400, "INVALID_ARGUMENT", invalid, &other), CONTENT, "INVALID_ARGUMENT"),
        (error(400, "INVALID_ARGUMENT", invalid, &json!([])), CONTENT, "INVALID_ARGUMENT"),
        (error(400, "INVALID_ARGUMENT", "Too large", &fcm("INVALID_ARGUMENT")), CONTENT, "INVALID_ARGUMENT"),
        (error(400, "INVALID_ARGUMENT", "Bad", &json!([fields("message.data")])), CONTENT, "INVALID_ARGUMENT"),
        (
            error(403, "PERMISSION_DENIED", "SenderId mismatch", &fcm("SENDER_ID_MISMATCH")),
            MISMATCH,
            "SENDER_ID_MISMATCH",
        ),
        (
            error(401, "UNAUTHENTICATED", "Auth error from APNS", &fcm("THIRD_PARTY_AUTH_ERROR")),
            CONTENT,
            "THIRD_PARTY_AUTH_ERROR",
        ),
        (error(401, "UNAUTHENTICATED", "Auth error from APNS", &fcm("APNS_AUTH_ERROR")), CONTENT, "APNS_AUTH_ERROR"),
        (error(401, "UNAUTHENTICATED", "Invalid credentials", &json!([])), AUTH, "UNAUTHENTICATED"),
        (error(403, "PERMISSION_DENIED", "Permission denied", &json!([])), AUTH, "PERMISSION_DENIED"),
        (error(404, "NOT_FOUND", "No such project", &json!([])), RETRY, "NOT_FOUND"),
        (error(418, "NEW", "New", &json!([])), CONTENT, "NEW"),
        (error(599, "NEW", "New", &json!([])), RETRY, "NEW"),
    ] {
        assert_eq!(judged(status, &[], &body).await, (class, None, code.to_owned()), "{body}");
    }
    let quota = error(429, "RESOURCE_EXHAUSTED", "Quota exceeded", &fcm("QUOTA_EXCEEDED")).1;
    let rate = error(429, "RESOURCE_EXHAUSTED", "Quota exceeded", &info).1;
    let down = error(503, "UNAVAILABLE", "Down", &fcm("UNAVAILABLE")).1;
    let internal = error(500, "INTERNAL", "Broken", &fcm("INTERNAL")).1;
    for (status, headers, body, expected) in [
        (429, [("retry-after", "7")].as_slice(), &quota, (THROTTLED, Some(7), "QUOTA_EXCEEDED")),
        (429, &[], &quota, (THROTTLED, Some(60), "QUOTA_EXCEEDED")),
        (429, &[("retry-after", "soon")], &quota, (THROTTLED, Some(60), "QUOTA_EXCEEDED")),
        (429, &[("retry-after", "9999999")], &quota, (THROTTLED, Some(86_400), "QUOTA_EXCEEDED")),
        (429, &[], &rate, (THROTTLED, Some(60), "RESOURCE_EXHAUSTED")),
        (503, &[("retry-after", "30")], &down, (RETRY, Some(30), "UNAVAILABLE")),
        (503, &[], &down, (RETRY, None, "UNAVAILABLE")),
        (500, &[], &internal, (RETRY, None, "INTERNAL")),
    ] {
        let (class, wait, code) = expected;
        assert_eq!(judged(status, headers, body).await, (class, wait, code.to_owned()), "{body}");
    }
}

#[tokio::test]
async fn answers_that_are_not_firebase_s_own_have_a_class_too() {
    for (status, body, expected) in [
        (200, r#"{"name":"projects/p/messages/1"}"#, DELIVERED),
        (200, "{}", OutcomeClass::Ambiguous),
        (200, r#"{"name":"proj"#, OutcomeClass::Ambiguous),
        (204, "", OutcomeClass::Ambiguous),
        (302, "", CONTENT),
        (400, "<html>", CONTENT),
        (401, "<html>", AUTH),
        (403, "", AUTH),
        (404, "<html>", RETRY),
        (408, "", RETRY),
        (429, "<html>", THROTTLED),
        (502, "<html>", RETRY),
    ] {
        assert_eq!(judged(status, &[], body).await.0, expected, "{status} {body}");
    }
}
