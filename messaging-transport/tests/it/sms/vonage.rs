//! The provider `vonage`.

use messaging_core::ports::transport::{Acceptance, AddressFault, ContentFault, Scope};
use messaging_testing::fakes::{FakeVonage, Signature};
use messaging_transport::Vonage;
use serde_json::json;

use super::*;

const KEY: &str = include_str!("../../../src/jwt/keys/rfc7515_a2.pem");

async fn bed() -> Bed {
    let fake = FakeVonage::new("0f8e2d2c-application", KEY, "s1gnature");
    let transport = Arc::new(Vonage::new(fetch(), system_clock()));
    Bed::new(fake.clone(), transport, |url| fake.settings(url)).await
}

#[tokio::test]
async fn the_request_is_authenticated_by_the_key_of_the_application() {
    let bed = bed().await;
    let answer = bed.send(12).await;
    assert_eq!(answer.class, Class::Accepted(Acceptance::Relayed), "{answer:?}");
    let id = answer.of_provider().unwrap().message_id.as_deref();
    assert_eq!(id, Some("aaaaaaaa-bbbb-4ccc-8ddd-000000000001"));
    let request = bed.last_request();
    let expected = json!({"channel": "sms", "message_type": "text", "to": "9990000012", "from": "ACME",
        "text": "Your code is 123", "client_ref": TOKEN,
        "webhook_url": bed.receiver.url(&format!("/callbacks/sms/{TOKEN}"))});
    assert_eq!((request.target.as_str(), request.json()), ("/v1/messages", expected));
    // The token is made once.
    bed.send_with(12, "x", |message| message.options.ttl = Some(Duration::from_mins(1))).await;
    let again = bed.last_request();
    assert_eq!(again.header("authorization"), request.header("authorization"));
    assert_eq!(again.json()["ttl"], 60);
    bed.send_with(12, "x", |message| message.options.ttl = Some(Duration::from_secs(19))).await;
    assert_eq!(bed.last_request().json().get("ttl"), None, "Vonage takes no shorter one");
}

#[tokio::test]
async fn a_token_that_was_refused_is_not_used_again() {
    let bed = bed().await;
    assert_eq!(bed.send(36).await.class, Class::Auth);
    assert_eq!(bed.send(36).await.class, Class::Accepted(Acceptance::Relayed));
    let requests = bed.fake.requests();
    assert_ne!(requests[0].header("authorization"), requests[1].header("authorization"));
}

#[tokio::test]
async fn every_answer_has_its_class() {
    let bed = bed().await;
    let content = Class::Content(ContentFault::Provider);
    let (throttled, retry) = (Class::Throttled(Scope::Account), Class::Retry(Scope::Account));
    for (digits, expected, wait, code) in [
        (12, Class::Accepted(Acceptance::Relayed), None, None),
        (2, Class::Address(AddressFault::Recipient), None, Some("1040")),
        (3, content, None, Some("1999")),
        (4, retry, None, Some("internal-error")),
        (6, content, None, Some("1022")),
        (9, Class::Auth, None, Some("unauthorized")),
        (10, Class::Blocked, None, Some("1050")),
        (20, throttled, Some(7), Some("1000")),
        (22, throttled, None, Some("1000")),
        (33, Class::Ambiguous, None, None),
        (34, Class::Ambiguous, None, None),
        (35, Class::Ambiguous, None, None),
        (37, content, None, None),
        (38, retry, None, None),
    ] {
        bed.check_answer(digits, (expected, wait, code)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_sent_does_not_leave() {
    let mut bed = bed().await;
    let long = bed.send_with(1, &"a".repeat(3201), |_| {}).await;
    assert_eq!(long.class, Class::Content(ContentFault::Provider));
    bed.settings["private_key"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".into();
    let answer = bed.send(1).await;
    assert_eq!(answer.class, Class::Auth);
    assert!(answer.response.text.contains("must be an RSA key"), "{answer:?}");
    assert_eq!(bed.fake.requests().len(), 0);
}

#[tokio::test]
async fn receipts_count_when_they_are_signed() {
    let bed = bed().await;
    bed.send(7).await;
    let expected = ["this Accepted(Relayed)", "this Accepted(Delivered)", "this Read"];
    assert_eq!(bed.receipts(3).await, expected.map(|one| Ok(one.to_owned())));
    let requests = bed.receiver.requests();
    let of_channel = bed.read(&requests[1..2], &channel("http://a.example/"));
    assert_eq!(of_channel, [Ok("token Accepted(Delivered)".to_owned())]);
    let mut count = 3;
    for digits in [44, 45, 46] {
        bed.send(digits).await;
        count += 3;
        let read = bed.receipts(count).await;
        assert_eq!(read[count - 3..], [const { Err(CallbackFault::Unauthorized) }; 3], "{digits}");
    }
    for (digits, expected) in
        [(52, "this Address(Recipient)"), (53, "this Soft(Policy)"), (54, "this Retry(Account)"), (60, "this Blocked")]
    {
        bed.send(digits).await;
        count += 1;
        assert_eq!(bed.receipts(count).await[count - 1], Ok(expected.to_owned()), "{digits}");
    }
}

#[tokio::test]
async fn what_recipients_write_is_read_when_it_is_signed() {
    let mut bed = bed().await;
    assert_eq!(bed.written("Stop", Signature::Valid).await, Ok("+4915112345678 wrote Stop".to_owned()));
    for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
        assert_eq!(bed.written("Stop", signature).await, Err(CallbackFault::Unauthorized), "{signature:?}");
    }
    bed.settings.remove("signature_secret");
    assert_eq!(bed.written("Stop", Signature::Valid).await, Err(CallbackFault::Unauthorized));
}
