//! The provider `http`.

use messaging_core::ports::transport::{Acceptance, AddressFault, ContentFault, Scope};
use messaging_testing::fakes::FakeHttp;
use messaging_transport::HttpProvider;
use serde_json::json;

use super::*;

pub(super) async fn bed() -> Bed {
    let fake = FakeHttp::new(Some("t0ken"));
    let transport = Arc::new(HttpProvider::new(fetch(), system_clock()));
    Bed::new(fake.clone(), transport, |url| fake.settings(url)).await
}

#[tokio::test]
async fn the_request_is_that_of_the_contract() {
    let bed = bed().await;
    let answer = bed.send(12).await;
    assert_eq!(answer.class, Class::Accepted(Acceptance::Relayed));
    assert_eq!(answer.of_provider().unwrap().message_id.as_deref(), Some("00000001"));
    let request = bed.last_request();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/send"));
    assert_eq!(request.header("authorization"), "Bearer t0ken");
    assert_eq!(request.header("content-type"), "application/json");
    let message_id = request.json()["message_id"].clone();
    assert!(message_id.as_str().unwrap().starts_with("msg_"), "{message_id}");
    let expected = json!({"to": "+9990000012", "from": "ACME", "text": "Your code is 123", "message_id": message_id,
        "callback_url": bed.receiver.url(&format!("/callbacks/sms/{TOKEN}"))});
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn a_viber_message_adds_what_it_has() {
    use messaging_core::ports::transport::{Button, ViberContent};
    let bed = bed().await;
    let button = Button { text: "Open".to_owned(), url: "https://a.example/".to_owned() };
    let content =
        ViberContent { text: "Hi".to_owned(), button: Some(button), image: Some("https://a.example/i.png".to_owned()) };
    let mut message = outgoing(&["+9990000012"], Content::Viber(Box::new(content)));
    message.settings = Arc::new(bed.settings.clone());
    assert!(bed.transport.send(&message).await.unwrap().outcomes[0].is_accepted());
    let body = bed.last_request().json();
    assert_eq!(body["button"], json!({"text": "Open", "url": "https://a.example/"}));
    assert_eq!(body["image"], "https://a.example/i.png");
    assert_eq!(body.get("callback_url"), None);
}

#[tokio::test]
async fn every_answer_has_its_class() {
    let bed = bed().await;
    let content = Class::Content(ContentFault::Provider);
    let (throttled, retry) = (Class::Throttled(Scope::Account), Class::Retry(Scope::Account));
    for (digits, expected, wait) in [
        (12, Class::Accepted(Acceptance::Relayed), None),
        (2, Class::Address(AddressFault::Recipient), None),
        (4, retry, None),
        (6, content, None),
        (9, Class::Auth, None),
        (20, throttled, Some(7)),
        (21, throttled, Some(86_400)),
        (22, throttled, None),
        (23, throttled, Some(86_400)),
        (24, throttled, None),
        (30, Class::Accepted(Acceptance::Relayed), None),
        (33, Class::Ambiguous, None),
        (34, Class::Ambiguous, None),
        (35, Class::Ambiguous, None),
        (36, Class::Auth, None),
        (36, Class::Accepted(Acceptance::Relayed), None),
        (37, content, None),
        (38, retry, None),
    ] {
        let answer = bed.send(digits).await;
        assert_eq!(answer.class, expected, "{digits}: {answer:?}");
        assert_eq!(answer.asked_wait(), wait.map(Duration::from_secs), "{digits}");
        assert!(!answer.response.text.contains("t0ken"), "{answer:?}");
    }
    assert!(bed.fake.requests().iter().all(|request| request.path() == "/send"), "no redirect is followed");
}

#[tokio::test]
async fn receipts_are_proved_by_the_address_of_their_message() {
    let bed = bed().await;
    bed.send(7).await;
    let delivered = "this Accepted(Delivered)".to_owned();
    assert_eq!(bed.receipts(2).await, [Ok(delivered.clone()), Ok("this Read".to_owned())]);
    // At the address of the channel nothing proves them.
    let requests = bed.receiver.requests();
    let refused = bed.read(&requests, &channel("http://a.example/callbacks/sms/channel"));
    assert_eq!(refused, [Err(CallbackFault::Unauthorized), Err(CallbackFault::Unauthorized)]);
    bed.send(53).await;
    assert_eq!(bed.receipts(3).await[2], Ok("this Soft(Unknown)".to_owned()));
    bed.send(54).await;
    assert_eq!(bed.receipts(4).await[3], Ok("this Retry(Account)".to_owned()));
    let mut odd = requests[0].clone();
    for body in ["", "nonsense", "[]", r#"{"status":"lost"}"#] {
        odd.body = body.into();
        assert_eq!(bed.read(std::slice::from_ref(&odd), &CallbackProof::ThisMessage), [Ok(String::new())], "{body}");
    }
}

#[tokio::test]
async fn settings_that_miss_something_stop_the_account() {
    let mut bed = bed().await;
    bed.settings.remove("sender");
    let answer = bed.send(1).await;
    assert_eq!(answer.class, Class::Auth);
    assert!(answer.response.text.contains("sender is missing"), "{answer:?}");
    assert_eq!(bed.fake.requests().len(), 0);
}
