use http::Method;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::transport::{
    About, Acceptance, AddressFault, Button, CallbackEvent, CallbackProof, ContentFault, OutcomeClass, Scope,
    SoftCause, ViberContent,
};
use ring::hmac::HMAC_SHA256;

use super::*;
use crate::provider::callback::{hex, hmac};
use crate::provider::test_support::{answer_to, called, called_as, channel_address, object, outgoing};
use messaging_testing::{MemoryFetch, fetched};

const TO: &str = "01234567890A=";
const TOKEN: &str = "445da6az1s345z78-dazcczb2542zv51a-e0vc5fva17480im9";

fn settings() -> Value {
    json!({"auth_token": TOKEN, "sender": "ACME"})
}

fn bot() -> (Arc<MemoryFetch>, ViberBot) {
    let fetch = Arc::new(MemoryFetch::default());
    (fetch.clone(), ViberBot::new(fetch, Arc::new(SystemClock)))
}

fn text(text: &str) -> ViberContent {
    ViberContent { text: text.to_owned(), button: None, image: None }
}

fn message(content: ViberContent) -> Outgoing {
    outgoing(&settings(), TO, Content::Viber(Box::new(content)))
}

async fn body_of(content: ViberContent) -> Value {
    let (fetch, bot) = bot();
    bot.send(&message(content)).await.unwrap();
    let request = fetch.take().remove(0);
    assert_eq!(request.url, "https://chatapi.viber.com/pa/send_message");
    assert_eq!(request.headers["x-viber-auth-token"], TOKEN);
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn a_message_becomes_one_request() {
    let sender = json!({"name": "ACME"});
    let expected = json!({"receiver": TO, "type": "text", "text": "Hi", "sender": sender, "min_api_version": 1});
    assert_eq!(body_of(text("Hi")).await, expected);
    let button = Some(Button { text: "See".to_owned(), url: "https://a.b/".to_owned() });
    let body = body_of(ViberContent { button, image: Some("https://a.b/x.jpg".to_owned()), ..text("Hi") }).await;
    assert_eq!((&body["type"], &body["media"]), (&json!("picture"), &json!("https://a.b/x.jpg")));
    let expected = json!([{"ActionType": "open-url", "ActionBody": "https://a.b/", "Text": "See"}]);
    assert_eq!(body["keyboard"]["Buttons"], expected);
}

#[tokio::test]
async fn what_viber_would_not_take_is_not_sent() {
    let image = || Some("https://a.b/x.jpg".to_owned());
    for (content, fits) in [
        (text(&"x".repeat(7000)), true),
        (text(&"x".repeat(7001)), false),
        (ViberContent { image: image(), ..text(&"x".repeat(768)) }, true),
        (ViberContent { image: image(), ..text(&"x".repeat(769)) }, false),
        (text(&"\u{1f600}".repeat(7000)), true),
        (text(&"\u{1}".repeat(6000)), false),
    ] {
        let (fetch, bot) = bot();
        let sent = bot.send(&message(content)).await;
        assert_eq!(sent.is_ok(), fits);
        assert_eq!(fetch.take().len(), usize::from(fits));
        if let Err(error) = sent {
            assert!(matches!(error, TransportError::Content(_)), "{error}");
        }
    }
    let settings = json!({"auth_token": TOKEN, "sender": "x".repeat(29)});
    let outgoing = outgoing(&settings, TO, Content::Viber(Box::new(text("Hi"))));
    assert!(matches!(bot().1.send(&outgoing).await, Err(TransportError::Misconfigured(_))));
}

#[tokio::test]
async fn the_table_of_statuses() {
    use OutcomeClass as C;
    let content = C::Content(ContentFault::Provider);
    for (statuses, expected) in [
        (&[0][..], C::Accepted(Acceptance::Relayed)),
        (&[5, 11], C::Address(AddressFault::Recipient)),
        (&[6], C::Blocked),
        (&[12], C::Throttled(Scope::Recipient)),
        (&[1, 3, 4, 13, 16, 17, 18, 19, 20, 22], content),
        // What the account lacks, credit and free messages among it, stops the account.
        (&[2, 7, 8, 9, 10, 15, 23, 24], C::Auth),
        (&[14], C::Soft(SoftCause::Content)),
        (&[21], C::Soft(SoftCause::Policy)),
        (&[25, 99, 4711], C::Retry(Scope::Account)),
    ] {
        for status in statuses {
            let (fetch, bot) = bot();
            let body =
                json!({"status": status, "status_message": TOKEN, "message_token": 5_741_311_803_571_721_087_u64});
            fetch.next_with(Ok(fetched(200, &[], &body.to_string())));
            let answer = answer_to(&bot, &message(text("Hi"))).await;
            assert_eq!(answer.class, expected, "{status}");
            assert_eq!(answer.response.text, "***");
            let said = answer.of_provider().unwrap();
            let expected =
                if *status == 0 { (Some("5741311803571721087"), None) } else { (None, Some(status.to_string())) };
            assert_eq!((said.message_id.as_deref(), said.code.clone()), expected);
        }
    }
    for (status, body, expected) in [
        (200, "{\"sta", C::Ambiguous),
        (200, "{}", C::Ambiguous),
        (503, "", C::Retry(Scope::Account)),
        (404, "gone", C::Retry(Scope::Account)),
        (429, "", C::Throttled(Scope::Account)),
    ] {
        let (fetch, bot) = bot();
        fetch.next_with(Ok(fetched(status, &[], body)));
        assert_eq!(answer_to(&bot, &message(text("Hi"))).await.class, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn viber_is_told_where_to_call() {
    let (fetch, bot) = bot();
    fetch.next_with(Ok(fetched(200, &[], r#"{"status":0,"status_message":"ok"}"#)));
    assert_eq!(bot.register(&object(&settings()), &channel_address()).await, Ok(Registration::Registered));
    let request = fetch.take().remove(0);
    assert_eq!(request.url, "https://chatapi.viber.com/pa/set_webhook");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["url"], json!(channel_address().url));
    for (status, body) in [(200, r#"{"status":1,"status_message":"invalidUrl"}"#), (502, "invalidUrl")] {
        fetch.next_with(Ok(fetched(status, &[], body)));
        let why = bot.register(&object(&settings()), &channel_address()).await.unwrap_err();
        assert!(why.contains("invalidUrl"), "{why}");
    }
}

fn signed(body: &[u8], secret: &str) -> String {
    hex(hmac(HMAC_SHA256, secret.as_bytes(), body).as_ref())
}

fn call(body: &[u8], signature: &str) -> Result<Callback, CallbackFault> {
    called(&bot().1, &settings(), &[("x-viber-content-signature", signature)], body)
}

#[test]
fn events_are_receipts_and_what_people_write_and_want() {
    let events = |event: Value| {
        let body = event.to_string();
        let callback = call(body.as_bytes(), &signed(body.as_bytes(), TOKEN)).unwrap();
        assert_eq!(callback.reply.status.as_u16(), 200);
        callback.events
    };
    let token = 4_912_661_846_655_238_145_u64;
    let about = About::ProviderMessage("4912661846655238145".to_owned());
    for (event, expected) in [("delivered", "delivered"), ("seen", "read"), ("failed", "content: no route")] {
        let event = json!({"event": event, "message_token": token, "user_id": TO, "desc": "no route"});
        let events = events(event);
        let [CallbackEvent::Receipt { about: found, receipt }] = &events[..] else { panic!("{events:?}") };
        let shown = match receipt {
            Receipt::Read(_) => "read".to_owned(),
            Receipt::Outcome(answer) => match answer.class {
                OutcomeClass::Accepted(Acceptance::Delivered) => "delivered".to_owned(),
                OutcomeClass::Soft(SoftCause::Content) => format!("content: {}", answer.response.text),
                other => panic!("{other:?}"),
            },
        };
        assert_eq!((found, shown.as_str()), (&about, expected));
    }
    let from = |event| vec![CallbackEvent::Inbound { from: TO.to_owned(), event, id: None }];
    assert_eq!(events(json!({"event": "subscribed", "user": {"id": TO}})), from(InboundEvent::Subscribed));
    assert_eq!(events(json!({"event": "unsubscribed", "user_id": TO})), from(InboundEvent::Unsubscribed));
    let written = json!({"event": "message", "sender": {"id": TO}, "message": {"type": "text", "text": "hello"}});
    assert_eq!(events(written.clone()), from(InboundEvent::Text("hello".to_owned())));
    let named = |token: &str| {
        let mut event = written.clone();
        event["message_token"] = json!(token.parse::<u64>().unwrap());
        match &events(event)[..] {
            [CallbackEvent::Inbound { id, .. }] => id.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(named("4912661846655238145").as_deref(), Some("4912661846655238145"), "what is repeated has one name");
    for nothing in [
        json!({"event": "webhook", "timestamp": 1}),
        json!({"event": "conversation_started", "user": {"id": TO}}),
        json!({"event": "delivered"}),
        json!({"event": "subscribed", "user": {"id": ""}}),
        json!(17),
    ] {
        assert_eq!(events(nothing.clone()), [], "{nothing}");
    }
}

#[test]
fn an_event_without_its_signature_is_not_believed() {
    let body = br#"{"event":"unsubscribed","user_id":"01234567890A="}"#;
    let good = signed(body, TOKEN);
    assert_eq!(call(body, &good).unwrap().events.len(), 1);
    let refused = Err(CallbackFault::Unauthorized);
    assert_eq!(call(br#"{"event":"unsubscribed","user_id":"01234567890B="}"#, &good), refused);
    assert_eq!(call(body, &signed(body, "old token")), refused);
    assert_eq!(call(body, ""), refused);
    assert_eq!(called(&bot().1, &settings(), &[], body), refused);
    assert_eq!(called(&bot().1, &json!({}), &[("x-viber-content-signature", &signed(body, ""))], body), refused);
    let headers = [("x-viber-content-signature", good.as_str())];
    for (method, proof) in
        [(Method::GET, CallbackProof::Channel(channel_address())), (Method::POST, CallbackProof::ThisMessage)]
    {
        let refused = called_as(&bot().1, &settings(), (&method, &proof), &headers, body);
        assert_eq!(refused, Err(CallbackFault::NotFound));
    }
}
