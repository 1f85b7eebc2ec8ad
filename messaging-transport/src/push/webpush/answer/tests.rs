use std::sync::Arc;

use super::*;
use crate::push::PushProvider;
use crate::push::tests::{CONTENT, DEAD, DELIVERED, Harness, TestNotification};
use messaging_testing::fakes::FakeWebpush;
use messaging_testing::{MemoryFetch, fetched};

const BROWSER: &str = "https://push.example.com";
const MICROSOFT: &str = "https://db5p.notify.windows.com";

/// Returns class and wait in seconds of an answer of a host.
async fn judged(host: &str, status: u16, headers: &[(&'static str, &str)]) -> (OutcomeClass, Option<u64>) {
    let fetch = Arc::new(MemoryFetch::default());
    fetch.next_with(Ok(fetched(status, headers, "a body")));
    let given = TestNotification::new(FakeWebpush::settings());
    let address = FakeWebpush::subscription(host, 1);
    let answer = Harness::of(fetch).answer(PushProvider::Webpush, &given, &address).await;
    (answer.class, answer.asked_wait().map(|wait| wait.as_secs()))
}

const RETRY: OutcomeClass = OutcomeClass::Retry(Scope::Origin);
const THROTTLED: OutcomeClass = OutcomeClass::Throttled(Scope::Origin);

#[tokio::test]
async fn every_status_of_a_push_service_has_its_class() {
    for (host, status, headers, expected) in [
        (BROWSER, 200, [].as_slice(), (DELIVERED, None)),
        (BROWSER, 201, &[("location", "/message/1")], (DELIVERED, None)),
        (BROWSER, 202, &[], (DELIVERED, None)),
        (BROWSER, 404, &[], (DEAD, None)),
        (BROWSER, 410, &[], (DEAD, None)),
        (BROWSER, 400, &[], (CONTENT, None)),
        (BROWSER, 413, &[], (CONTENT, None)),
        (BROWSER, 406, &[], (CONTENT, None)),
        (MICROSOFT, 406, &[], (THROTTLED, None)),
        (BROWSER, 429, &[("retry-after", "7")], (THROTTLED, Some(7))),
        (BROWSER, 429, &[], (THROTTLED, None)),
        (BROWSER, 401, &[], (RETRY, None)),
        (BROWSER, 403, &[], (RETRY, None)),
        (BROWSER, 408, &[], (RETRY, None)),
        (BROWSER, 500, &[], (RETRY, None)),
        (BROWSER, 503, &[("retry-after", "9999999")], (RETRY, Some(86_400))),
        (BROWSER, 301, &[], (CONTENT, None)),
    ] {
        assert_eq!(judged(host, status, headers).await, expected, "{host} {status}");
    }
}

#[tokio::test]
async fn the_place_of_a_message_at_the_push_service_is_kept() {
    let fetch = Arc::new(MemoryFetch::default());
    fetch.next_with(Ok(fetched(201, &[("location", "https://push.example.com/message/1")], "")));
    let given = TestNotification::new(FakeWebpush::settings());
    let address = FakeWebpush::subscription(BROWSER, 1);
    let answer = Harness::of(fetch).answer(PushProvider::Webpush, &given, &address).await;
    let said = answer.of_provider().unwrap();
    assert_eq!(said.message_id.as_deref(), Some("https://push.example.com/message/1"));
    assert_eq!(said.provider.as_deref(), Some("webpush"));
}
