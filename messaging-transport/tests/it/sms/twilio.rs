//! The provider `twilio`.

use messaging_core::ports::transport::{Acceptance, AddressFault, ContentFault, Scope, SoftCause};
use messaging_testing::fakes::{FakeTwilio, Signature};
use messaging_transport::Twilio;

use super::*;

async fn bed() -> Bed {
    let fake = FakeTwilio::new("AC00000000000000000000000000000000", "auth-t0ken");
    let transport = Arc::new(Twilio::new(fetch(), system_clock()));
    Bed::new(fake.clone(), transport, |url| fake.settings(url)).await
}

#[tokio::test]
async fn the_request_is_a_form_of_the_account() {
    let mut bed = bed().await;
    let answer = bed.send(12).await;
    assert_eq!(answer.class, Class::Accepted(Acceptance::Relayed), "{answer:?}");
    let provider = answer.of_provider().unwrap();
    assert_eq!(provider.message_id.as_deref(), Some("SM00000000000000000000000000000001"));
    assert_eq!(provider.segments, Some(1));
    let request = bed.last_request();
    assert_eq!(request.target, "/2010-04-01/Accounts/AC00000000000000000000000000000000/Messages.json");
    for (name, expected) in [
        ("To", "+9990000012"),
        ("From", "+15005550006"),
        ("MessagingServiceSid", ""),
        ("Body", "Your code is 123"),
        ("StatusCallback", &bed.receiver.url(&format!("/callbacks/sms/{TOKEN}"))),
        ("ValidityPeriod", ""),
    ] {
        assert_eq!(request.field(name), expected, "{name}");
    }
    bed.settings["sender"] = "MG0123456789".into();
    bed.send_with(12, "é & = +", |message| message.options.ttl = Some(Duration::from_mins(10))).await;
    let request = bed.last_request();
    assert_eq!(
        (request.field("From"), request.field("MessagingServiceSid")),
        (String::new(), "MG0123456789".to_owned())
    );
    assert_eq!((request.field("Body"), request.field("ValidityPeriod")), ("é & = +".to_owned(), "600".to_owned()));
}

#[tokio::test]
async fn every_answer_has_its_class() {
    let bed = bed().await;
    let content = Class::Content(ContentFault::Provider);
    let (throttled, retry) = (Class::Throttled(Scope::Account), Class::Retry(Scope::Account));
    for (digits, expected, wait, code) in [
        (12, Class::Accepted(Acceptance::Relayed), None, None),
        (2, Class::Address(AddressFault::Recipient), None, Some("21211")),
        (3, Class::Soft(SoftCause::Unreachable), None, Some("30003")),
        (4, retry, None, Some("20500")),
        (5, Class::Soft(SoftCause::Policy), None, Some("30007")),
        (6, content, None, Some("21612")),
        (8, Class::OptedOut, None, Some("21610")),
        (9, Class::Auth, None, Some("20003")),
        (20, throttled, Some(7), Some("20429")),
        (21, throttled, Some(86_400), Some("20429")),
        (22, throttled, None, Some("20429")),
        (23, throttled, Some(86_400), Some("20429")),
        (33, Class::Ambiguous, None, None),
        (34, Class::Ambiguous, None, None),
        (35, Class::Ambiguous, None, None),
        (37, content, None, None),
        (38, retry, None, None),
    ] {
        let answer = bed.check_answer(digits, (expected, wait, code)).await;
        assert!(!answer.response.text.contains("auth-t0ken"), "{answer:?}");
    }
}

#[tokio::test]
async fn receipts_count_when_they_are_signed() {
    let bed = bed().await;
    bed.send(7).await;
    let expected = ["this Accepted(Relayed)", "this Accepted(Delivered)", "this Read"];
    assert_eq!(bed.receipts(3).await, expected.map(|one| Ok(one.to_owned())));
    let mut count = 3;
    for digits in [44, 45, 46] {
        bed.send(digits).await;
        count += 3;
        let read = bed.receipts(count).await;
        assert_eq!(read[count - 3..], [const { Err(CallbackFault::Unauthorized) }; 3], "{digits}");
    }
    for (digits, expected) in [
        (52, "this Address(Recipient)"),
        (53, "this Soft(Unreachable)"),
        (54, "this Retry(Account)"),
        (55, "this Soft(Policy)"),
        (58, "this OptedOut"),
    ] {
        bed.send(digits).await;
        count += 1;
        assert_eq!(bed.receipts(count).await[count - 1], Ok(expected.to_owned()), "{digits}");
    }
}

#[tokio::test]
async fn at_the_address_of_the_channel_a_receipt_names_its_message() {
    let bed = bed().await;
    bed.send(1).await;
    let requests = bed.receiver.received(1).await;
    let read = bed.read(&requests[..1], &channel("http://a.example/"));
    assert_eq!(read, [Ok("named Accepted(Relayed)".to_owned())]);
}

#[tokio::test]
async fn what_recipients_write_is_read_when_it_is_signed() {
    let bed = bed().await;
    assert_eq!(bed.written("Stop", Signature::Valid).await, Ok("+4915112345678 wrote Stop".to_owned()));
    for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
        assert_eq!(bed.written("Stop", signature).await, Err(CallbackFault::Unauthorized), "{signature:?}");
    }
}

#[tokio::test]
async fn an_account_that_would_change_the_path_is_refused() {
    let mut bed = bed().await;
    bed.settings["account_sid"] = "AC/../../other".into();
    assert_eq!(bed.send(1).await.class, Class::Auth);
    assert_eq!(bed.fake.requests().len(), 0);
}
