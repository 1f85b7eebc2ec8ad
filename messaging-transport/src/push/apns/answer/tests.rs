use std::sync::Arc;

use super::*;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DEAD, DELIVERED, Harness, TestNotification};
use messaging_testing::fakes::FakeApns;
use messaging_testing::{MemoryFetch, fetched};

/// Returns class, wait in minutes and code of an answer.
async fn judged(status: u16, headers: &[(&'static str, &str)], body: &str) -> (OutcomeClass, Option<u64>, String) {
    let fetch = Arc::new(MemoryFetch::default());
    fetch.next_with(Ok(fetched(status, headers, body)));
    let given = TestNotification::new(FakeApns::settings("https://apns.example.com"));
    let answer = Harness::of(fetch).answer(PushProvider::Apns, &given, &FakeApns::device(1)).await;
    let code = answer.of_provider().and_then(|provider| provider.code.clone()).unwrap_or_default();
    (answer.class, answer.asked_wait().map(|wait| wait.as_secs() / 60), code)
}

const AUTH: OutcomeClass = OutcomeClass::Auth;
const SOFT: OutcomeClass = OutcomeClass::Soft(SoftCause::Unknown);
const UNNAMED: OutcomeClass = OutcomeClass::Soft(SoftCause::Policy);
const RETRY: OutcomeClass = OutcomeClass::Retry(Scope::Account);
const TOO_MANY: OutcomeClass = OutcomeClass::Throttled(Scope::Recipient);

#[tokio::test]
async fn every_reason_of_apple_has_its_class() {
    for (status, reason, class, wait) in [
        (410, "Unregistered", DEAD, None),
        (410, "ExpiredToken", DEAD, None),
        (400, "BadDeviceToken", SOFT, None),
        (400, "DeviceTokenNotForTopic", SOFT, None),
        (413, "PayloadTooLarge", CONTENT, None),
        (429, "TooManyRequests", TOO_MANY, None),
        (429, "TooManyProviderTokenUpdates", OutcomeClass::Throttled(Scope::Account), Some(20)),
        (403, "InvalidProviderToken", AUTH, None),
        (403, "MissingProviderToken", AUTH, None),
        (403, "ExpiredProviderToken", AUTH, None),
        (403, "BadCertificate", AUTH, None),
        (403, "Forbidden", AUTH, None),
        (400, "TopicDisallowed", AUTH, None),
        (400, "BadTopic", AUTH, None),
        (400, "MissingTopic", AUTH, None),
        (400, "IdleTimeout", RETRY, None),
        (400, "BadCollapseId", CONTENT, None),
        (400, "BadExpirationDate", CONTENT, None),
        (400, "PayloadEmpty", CONTENT, None),
        (404, "BadPath", CONTENT, None),
        (405, "MethodNotAllowed", CONTENT, None),
        (500, "InternalServerError", RETRY, Some(15)),
        (503, "ServiceUnavailable", RETRY, Some(15)),
        (503, "Shutdown", RETRY, Some(15)),
        (410, "SomethingNew", UNNAMED, None),
    ] {
        let body = format!("{{\"reason\":\"{reason}\"}}");
        assert_eq!(judged(status, &[], &body).await, (class, wait, reason.to_owned()), "{status} {reason}");
    }
}

#[tokio::test]
async fn answers_without_a_reason_have_a_class_too() {
    for (status, headers, body, class, wait) in [
        (200, [].as_slice(), "", DELIVERED, None),
        (200, &[], "what", DELIVERED, None),
        (307, &[], "", CONTENT, None),
        (400, &[], "<html>", CONTENT, None),
        (403, &[], "", AUTH, None),
        (408, &[], "", RETRY, None),
        (410, &[], "<html>", UNNAMED, None),
        (429, &[("retry-after", "120")], "", TOO_MANY, Some(2)),
        (502, &[], "<html>", RETRY, Some(15)),
        (503, &[("retry-after", "120")], "", RETRY, Some(2)),
    ] {
        assert_eq!(judged(status, headers, body).await, (class, wait, String::new()), "{status} {body}");
    }
}
