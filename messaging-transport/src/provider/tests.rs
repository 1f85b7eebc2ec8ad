use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::delivery::outcome::{ContentFault, OutcomeClass, Scope};
use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::fetch::FetchError;
use messaging_core::ports::transport::TransportError;
use serde_json::json;

use super::*;
use messaging_testing::{MemoryFetch, fetched};

fn api() -> (Arc<MemoryFetch>, ProviderClient) {
    let fetch = Arc::new(MemoryFetch::default());
    (fetch.clone(), ProviderClient::new(fetch, Arc::new(SystemClock)))
}

fn call() -> Call {
    Call::json("https://api.example.com/send", &json!({"a": 1}))
}

#[tokio::test]
async fn a_call_without_an_answer_has_a_class_by_what_may_have_arrived() {
    let (fetch, api) = api();
    for (error, account, recipient) in [
        (FetchError::Blocked, OutcomeClass::Auth, OutcomeClass::Content(ContentFault::Provider)),
        (FetchError::Dns, OutcomeClass::Retry(Scope::Account), OutcomeClass::Retry(Scope::Origin)),
        (FetchError::Connection, OutcomeClass::Retry(Scope::Account), OutcomeClass::Retry(Scope::Origin)),
        (FetchError::Tls, OutcomeClass::Retry(Scope::Account), OutcomeClass::Retry(Scope::Origin)),
        (FetchError::Timeout, OutcomeClass::Retry(Scope::Account), OutcomeClass::Retry(Scope::Origin)),
        (FetchError::Lost, OutcomeClass::Ambiguous, OutcomeClass::Ambiguous),
        (FetchError::NoAnswer, OutcomeClass::Ambiguous, OutcomeClass::Ambiguous),
        (FetchError::Redirects, OutcomeClass::Ambiguous, OutcomeClass::Ambiguous),
    ] {
        for (target, expected) in [(Target::Account, account), (Target::Recipient, recipient)] {
            fetch.next_with(Err(error));
            let answer = api.call(call().target(target)).await.err().unwrap();
            assert_eq!(answer.class, expected, "{error:?} {target:?}");
            assert_eq!(answer.response.host.as_deref(), Some("api.example.com"));
        }
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_are_a_fault_of_the_content() {
    let (fetch, api) = api();
    for status in [301, 302, 303, 307, 308] {
        fetch.next_with(Ok(fetched(status, &[("location", "https://other.example.com/")], "")));
        let answer = api.call(call()).await.err().unwrap();
        assert_eq!(answer.class, OutcomeClass::Content(ContentFault::Provider), "{status}");
    }
    assert!(fetch.take().iter().all(|request| request.redirects == 0));
}

#[tokio::test]
async fn what_an_answer_repeats_of_a_secret_is_not_kept() {
    let (fetch, api) = api();
    let body = format!("key tops3cret\r\n is wrong {}", "x".repeat(1000));
    fetch.next_with(Ok(fetched(400, &[], &body)));
    let reply = api.call(call().bearer("tops3cret")).await.ok().unwrap();
    let answer = reply.answer_with_body(OutcomeClass::Auth);
    assert!(answer.response.text.starts_with("HTTP 400 key *** is wrong"), "{}", answer.response.text);
    assert_eq!(answer.response.text.chars().count(), 512);
    assert!(fetch.take()[0].headers["authorization"].is_sensitive());
}

#[tokio::test]
async fn a_body_that_is_cut_off_or_no_json_is_not_read() {
    let (fetch, api) = api();
    let mut long = fetched(200, &[], "{}");
    long.truncated = true;
    for (answer, is_read) in [(fetched(200, &[], "{}"), true), (long, false), (fetched(200, &[], "{\"a\":"), false)] {
        fetch.next_with(Ok(answer));
        let reply = api.call(call()).await.ok().unwrap();
        assert_eq!(reply.json().is_some(), is_read);
        assert_eq!(reply.ambiguous_answer().class, OutcomeClass::Ambiguous);
    }
}

#[tokio::test]
async fn a_yes_that_cannot_be_read_is_told_from_one_that_was_lost_and_shows_how_it_begins() {
    let (fetch, api) = api();
    fetch.next_with(Ok(fetched(200, &[], "<html>\r\n Welcome, tops3cret")));
    let reply = api.call(call().bearer("tops3cret")).await.ok().unwrap();
    let answer = reply.ambiguous_answer();
    assert!(answer.is_unreadable());
    assert_eq!(answer.response.text, "HTTP 200: the answer cannot be read: <html> Welcome, ***");
    assert!(!reply.answer(OutcomeClass::Ambiguous, "lost").is_unreadable());
}

#[tokio::test]
async fn waits_are_bounded_by_a_day() {
    let (fetch, api) = api();
    for (header, expected) in [("7", Some(7)), ("99999999", Some(86_400)), ("soon", None)] {
        fetch.next_with(Ok(fetched(429, &[("retry-after", header)], "")));
        let reply = api.call(call()).await.ok().unwrap();
        assert_eq!(reply.retry_after, expected.map(Duration::from_secs), "{header}");
    }
}

#[test]
fn settings_are_read_and_a_fault_names_the_setting_alone() {
    let given = json!({"sender": "ACME", "token": "", "api_base": "https://a.example/v1//", "port": 7});
    let settings = Settings(given.as_object().unwrap());
    assert_eq!(settings.required("sender").unwrap(), "ACME");
    assert_eq!(settings.text("token").unwrap(), None);
    assert_eq!(settings.api_base("https://own.example").unwrap(), "https://a.example/v1");
    assert_eq!(Settings(&serde_json::Map::new()).api_base("https://own.example").unwrap(), "https://own.example");
    for (name, expected) in [("token", "token is missing"), ("port", "port is not a string")] {
        let error = settings.required(name).unwrap_err();
        assert!(matches!(&error, TransportError::Misconfigured(text) if text == expected), "{error}");
    }
}

#[test]
fn a_private_api_base_is_refused_before_it_is_stored() {
    let fetch = MemoryFetch::default();
    let check = |url: &str| check_url(&fetch, json!({"api_base": url}).as_object().unwrap(), "api_base");
    for url in ["http://api.example.com", "https://127.0.0.1", "https://localhost/x"] {
        assert_eq!(check(url).unwrap_err().member, "api_base", "{url}");
    }
    for url in ["https://api.example.com/v1", "", "no url"] {
        assert_eq!(check(url), Ok(()), "{url}");
    }
}
