//! Calls of Twilio at the server's own address: only signed parts count.

use messaging_testing::fakes::Signature;

use super::{PUBLIC_URL, Texts};

const NUMBER: &str = "+9990000012";

#[tokio::test]
async fn reports_that_are_forged_unsigned_or_signed_with_an_old_secret_change_nothing() {
    let (texts, fake) = Texts::by_twilio().await;
    let mut calls = 0;
    for (digits, reports, status) in [(44, 3, 401), (45, 3, 401), (46, 3, 401), (48, 3, 413)] {
        let to = format!("+99900000{digits}");
        let id = texts.send(&to).await;
        calls += reports;
        let called = fake.calls_answered(calls).await;
        let answers: Vec<_> = called[calls - reports..].iter().map(|call| call.status.unwrap().as_u16()).collect();
        assert_eq!(answers, vec![status; reports], "{digits}");
        assert_eq!(texts.fate(&id).await, "sent: queued sent", "{digits}");
        assert_eq!(texts.listed(&to).await, "");
    }
    // A receipt about another message counts for the message whose address was called.
    let id = texts.send("+9990000043").await;
    let called = fake.calls_answered(calls + 4).await;
    assert!(called[calls..].iter().all(|call| call.status.unwrap() == 200), "{called:?}");
    assert_eq!(texts.fate(&id).await, "delivered: delivered open queued sent");
}

#[tokio::test]
async fn what_a_recipient_writes_counts_when_twilio_signed_it_for_our_address() {
    let (texts, fake) = Texts::by_twilio().await;
    let id = texts.send(NUMBER).await;
    let url = texts.channel().await["callback_url"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("{PUBLIC_URL}/callbacks/sms/")), "{url}");
    let write = async |url: &str, text: &str, signature| {
        fake.write(url, NUMBER, text, signature).await.unwrap().status.unwrap().as_u16()
    };
    for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
        assert_eq!(write(&url, "STOP", signature).await, 401, "{signature:?}");
    }
    // The signature covers the whole address.
    assert_eq!(write(&format!("{url}A"), "STOP", Signature::Valid).await, 404);
    let mut elsewhere = fake.write(&url, NUMBER, "STOP", Signature::Forged).await.unwrap().callback;
    let signed_for_another =
        fake.write(&format!("{url}?a=b"), NUMBER, "hello", Signature::Valid).await.unwrap().callback;
    elsewhere.headers = signed_for_another.headers;
    assert_eq!(fake.call(elsewhere).await.status.unwrap(), 401);
    assert_eq!((texts.listed(NUMBER).await.as_str(), texts.fate(&id).await.as_str()), ("", "sent: queued sent"));

    assert_eq!(write(&url, " stop ", Signature::Valid).await, 200);
    assert_eq!(texts.listed(NUMBER).await, "unsubscribe recipient");
    assert_eq!(texts.fate(&id).await, "sent: queued sent unsubscribe");
    assert_eq!(texts.meta(&id, "unsubscribe").await["method"], "keyword");
    let next = texts.send(NUMBER).await;
    assert_eq!(texts.meta(&next, "sent").await.is_null(), texts.report(&next).await["status"] == "suppressed");
    assert_eq!(write(&url, "START", Signature::Valid).await, 200);
    assert_eq!(texts.listed(NUMBER).await, "");
}
