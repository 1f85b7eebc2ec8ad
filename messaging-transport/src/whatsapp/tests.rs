use http::Method;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::clock::{ManualClock, SystemClock};
use messaging_core::ports::transport::{
    About, Acceptance, AddressFault, Button, CallbackEvent, CallbackProof, ContentFault, Media, MediaKind,
    OutcomeClass, ProviderTemplate, Scope, SoftCause,
};
use messaging_core::time::Timestamp;
use ring::hmac::HMAC_SHA256;
use serde_json::json;

use super::*;
use crate::provider::callback::{hex, hmac};
use crate::provider::test_support::{answer_to, called, called_as, channel_address, outgoing};
use messaging_testing::{MemoryFetch, fetched};

const TO: &str = "+14155550123";

fn settings() -> Value {
    json!({"phone_number_id": "1066", "access_token": "EAAtoken", "app_secret": "app secret"})
}

fn cloud() -> (Arc<MemoryFetch>, WhatsappCloud) {
    let fetch = Arc::new(MemoryFetch::default());
    (fetch.clone(), WhatsappCloud::new(fetch, Arc::new(SystemClock)))
}

fn text() -> WhatsappContent {
    WhatsappContent::Text { text: "Hi".to_owned(), button: None, media: None, preview: false }
}

fn message(content: WhatsappContent) -> Outgoing {
    outgoing(&settings(), TO, Content::Whatsapp(Box::new(content)))
}

fn refusal(code: u64) -> Value {
    json!({"error": {"message": format!("(#{code}) no"), "code": code, "error_data": {"details": "EAAtoken why"}}})
}

async fn answered(status: u16, body: &Value) -> Answer {
    let (fetch, cloud) = cloud();
    fetch.next_with(Ok(fetched(status, &[], &body.to_string())));
    answer_to(&cloud, &message(text())).await
}

async fn body_of(content: WhatsappContent) -> Value {
    let (fetch, cloud) = cloud();
    cloud.send(&message(content)).await.unwrap();
    let request = fetch.take().remove(0);
    assert_eq!((request.method, request.redirects), (Method::POST, 0));
    assert_eq!(request.url, "https://graph.facebook.com/v26.0/1066/messages");
    assert_eq!(request.headers["authorization"], "Bearer EAAtoken");
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn a_message_becomes_one_request_with_the_token_of_its_receipts() {
    let own = |mut body: Value| {
        body["messaging_product"] = json!("whatsapp");
        body["recipient_type"] = json!("individual");
        body["to"] = json!("14155550123");
        body["biz_opaque_callback_data"] = json!("receipt-token");
        body
    };
    let expected = own(json!({"type": "text", "text": {"body": "Hi", "preview_url": false}}));
    assert_eq!(body_of(text()).await, expected);

    let media = |kind| Some(Media { url: "https://a.b/x".to_owned(), kind });
    let with = |button, media| WhatsappContent::Text { text: "Hi".to_owned(), button, media, preview: true };
    for (kind, name) in [(MediaKind::Image, "image"), (MediaKind::Video, "video"), (MediaKind::Document, "document")] {
        let expected = own(json!({"type": name, name: {"link": "https://a.b/x", "caption": "Hi"}}));
        assert_eq!(body_of(with(None, media(kind))).await, expected);
    }
    let button = || Some(Button { text: "See".to_owned(), url: "https://a.b/see".to_owned() });
    let mut interactive = json!({
        "type": "cta_url", "body": {"text": "Hi"},
        "action": {"name": "cta_url", "parameters": {"display_text": "See", "url": "https://a.b/see"}},
    });
    let expected = own(json!({"type": "interactive", "interactive": interactive}));
    assert_eq!(body_of(with(button(), None)).await, expected);
    interactive["header"] = json!({"type": "image", "image": {"link": "https://a.b/x"}});
    let expected = own(json!({"type": "interactive", "interactive": interactive}));
    assert_eq!(body_of(with(button(), media(MediaKind::Image))).await, expected);

    let mut template = ProviderTemplate {
        name: "order".to_owned(),
        language: "en_US".to_owned(),
        header: None,
        body: Vec::new(),
        buttons: Vec::new(),
    };
    let bare = json!({"name": "order", "language": {"code": "en_US"}});
    let expected = own(json!({"type": "template", "template": bare}));
    assert_eq!(body_of(WhatsappContent::Template(template.clone())).await, expected);
    template.body = vec!["Ann".to_owned(), "17".to_owned()];
    template.buttons = vec!["x1".to_owned(), "x2".to_owned()];
    let text = |value: &str| json!({"type": "text", "text": value});
    let image = json!({"type": "image", "image": {"link": "https://a.b/c.PNG?d=1"}});
    for (header, shown) in [("Order", text("Order")), ("https://a.b/c.PNG?d=1", image), ("x.pdf", text("x.pdf"))] {
        template.header = Some(header.to_owned());
        let components = json!([
            {"type": "header", "parameters": [shown]},
            {"type": "body", "parameters": [text("Ann"), text("17")]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [text("x1")]},
            {"type": "button", "sub_type": "url", "index": "1", "parameters": [text("x2")]},
        ]);
        let body = body_of(WhatsappContent::Template(template.clone())).await;
        assert_eq!(body["template"]["components"], components);
    }
}

/// Every row of the provider's table.
const TABLE: &[(&[u64], OutcomeClass)] = &[
    (&[131_026], OutcomeClass::Address(AddressFault::Recipient)),
    (&[131_050], OutcomeClass::OptedOut),
    (&[130_472, 131_049], OutcomeClass::Soft(SoftCause::Policy)),
    (
        &[
            100, 130_497, 131_008, 131_009, 131_021, 131_030, 131_037, 131_047, 131_051, 131_052, 131_053, 131_062,
            131_063, 135_000,
        ],
        OutcomeClass::Content(ContentFault::Provider),
    ),
    (&[132_000, 132_001, 132_012, 132_015, 132_016, 132_018], OutcomeClass::Content(ContentFault::Render)),
    (&[4, 80_007, 130_429, 131_048, 131_057], OutcomeClass::Throttled(Scope::Account)),
    (&[131_056], OutcomeClass::Throttled(Scope::Recipient)),
    (&[0, 3, 10, 190, 200, 250, 299, 368, 131_005, 131_031, 131_042, 131_045, 131_064], OutcomeClass::Auth),
    (&[1, 2, 131_000, 131_016], OutcomeClass::Retry(Scope::Account)),
    // Codes that Meta does not document do not count among the soft bounces of the address.
    (&[5, 131_099, 132_019, 999_999], OutcomeClass::Retry(Scope::Account)),
];

#[tokio::test]
async fn the_code_alone_decides_and_receipts_have_the_same_table() {
    for (codes, class) in TABLE {
        for code in *codes {
            for status in [400, 200, 500] {
                let answer = answered(status, &refusal(*code)).await;
                assert_eq!(answer.class, *class, "{code} with {status}");
                assert_eq!(answer.of_provider().unwrap().code, Some(code.to_string()));
                assert!(!answer.response.text.contains("EAAtoken"), "{}", answer.response.text);
            }
            let receipt = json!({"status": "failed", "id": "wamid.1", "errors": [{"code": code, "title": "no"}]});
            let events = events_of(&json!({"statuses": [receipt]}));
            let [CallbackEvent::Receipt { receipt: Receipt::Outcome(answer), .. }] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!(answer.class, *class, "{code}");
        }
    }
}

#[tokio::test]
async fn answers_that_are_not_in_metas_words_are_nobodys_fault() {
    let taken = json!({"contacts": [{"wa_id": "1"}], "messages": [{"id": "wamid.HB", "message_status": "accepted"}]});
    let answer = answered(200, &taken).await;
    assert_eq!(answer.class, OutcomeClass::Accepted(Acceptance::Relayed));
    assert_eq!(answer.of_provider().unwrap().message_id.as_deref(), Some("wamid.HB"));
    for (status, body, expected) in [
        (200, json!({"messages": []}), OutcomeClass::Ambiguous),
        (200, json!([1]), OutcomeClass::Ambiguous),
        (404, json!("not found"), OutcomeClass::Retry(Scope::Account)),
        (403, json!({"error": {"message": "no code"}}), OutcomeClass::Retry(Scope::Account)),
        (503, json!(null), OutcomeClass::Retry(Scope::Account)),
        (429, json!(null), OutcomeClass::Throttled(Scope::Account)),
    ] {
        assert_eq!(answered(status, &body).await.class, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn waits_come_from_the_answer_or_are_the_usual_ones() {
    for (code, expected) in [(131_048, Some(3600)), (131_057, Some(60)), (130_429, None), (131_056, Some(4))] {
        let wait = answered(429, &refusal(code)).await.asked_wait();
        assert_eq!(wait, expected.map(Duration::from_secs), "{code}");
    }
    let (fetch, cloud) = cloud();
    fetch.next_with(Ok(fetched(400, &[("retry-after", "9")], &refusal(131_048).to_string())));
    assert_eq!(answer_to(&cloud, &message(text())).await.asked_wait(), Some(Duration::from_secs(9)));
    assert!(answered(400, &refusal(131_047)).await.response.text.contains("use a template"));
}

#[tokio::test]
async fn a_recipient_that_gets_too_much_is_left_alone_longer_each_time() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
    let fetch = Arc::new(MemoryFetch::default());
    let cloud = WhatsappCloud::new(fetch.clone(), clock.clone());
    let mut waits = Vec::new();
    for _ in 0..4 {
        fetch.next_with(Ok(fetched(400, &[], &refusal(131_056).to_string())));
        let wait = answer_to(&cloud, &message(text())).await.asked_wait().unwrap();
        clock.advance(wait);
        waits.push(wait.as_secs());
    }
    assert_eq!(waits, [4, 16, 64, 256]);
}

/// The body of a webhook with this value.
fn webhook(value: &Value) -> Value {
    let mut value = value.clone();
    value["metadata"] = json!({"phone_number_id": "1066"});
    json!({"object": "whatsapp_business_account", "entry": [{"changes": [{"field": "messages", "value": value}]}]})
}

fn signed(body: &[u8], secret: &str) -> String {
    format!("sha256={}", hex(hmac(HMAC_SHA256, secret.as_bytes(), body).as_ref()))
}

fn call(body: &[u8], signature: &str) -> Result<Callback, CallbackFault> {
    called(&cloud().1, &settings(), &[("x-hub-signature-256", signature)], body)
}

fn events_of(value: &Value) -> Vec<CallbackEvent> {
    let body = webhook(value).to_string();
    call(body.as_bytes(), &signed(body.as_bytes(), "app secret")).unwrap().events
}

#[test]
fn receipts_come_in_batches_and_name_their_message_by_token_or_id() {
    let status = |status: &str| json!({"id": "wamid.1", "status": status, "biz_opaque_callback_data": "receipt-token"});
    let by_id = json!({"id": "wamid.2", "status": "read", "recipient_user_id": "US.13491208655302741918"});
    let events = events_of(&json!({"statuses": [
        status("read"), status("delivered"), status("sent"), status("deleted"), by_id, {"status": "read"}, 17,
    ]}));
    let shown: Vec<_> = events
        .iter()
        .map(|one| match one {
            CallbackEvent::Receipt { about, receipt: Receipt::Read(_) } => format!("{about:?} read"),
            CallbackEvent::Receipt { about, receipt: Receipt::Outcome(answer) } => {
                format!("{about:?} {:?}", answer.class)
            }
            CallbackEvent::Inbound { .. } => panic!("a receipt"),
        })
        .collect();
    let expected = [
        "Token(\"receipt-token\") read",
        "Token(\"receipt-token\") Accepted(Delivered)",
        "Token(\"receipt-token\") Accepted(Relayed)",
        "ProviderMessage(\"wamid.2\") read",
    ];
    assert_eq!(shown, expected);
    let failed = json!({"statuses": [{"id": "wamid.3", "status": "failed", "errors": []}]});
    let events = events_of(&failed);
    let [CallbackEvent::Receipt { about: About::ProviderMessage(_), receipt: Receipt::Outcome(answer) }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(answer.class, OutcomeClass::Retry(Scope::Account));
}

#[test]
fn what_people_write_and_want_is_told_with_their_number() {
    let inbound = |value: Value| -> Vec<_> {
        let shown = |one| match one {
            CallbackEvent::Inbound { from, event, .. } => (from, event),
            CallbackEvent::Receipt { .. } => panic!("not a receipt"),
        };
        events_of(&value).into_iter().map(shown).collect()
    };
    let text = |text: &str| (TO.to_owned(), InboundEvent::Text(text.to_owned()));
    let from = "14155550123";
    let written = inbound(json!({"messages": [
        {"from": from, "type": "text", "text": {"body": " Stop "}},
        {"from": from, "type": "button", "button": {"text": "STOP", "payload": "x"}},
        {"from": from, "type": "interactive", "interactive": {"button_reply": {"id": "1", "title": "Yes"}}},
        {"from": from, "type": "image", "image": {"id": "1"}},
        {"from_user_id": "US.1349", "type": "text", "text": {"body": "STOP"}},
        {"from": "14155<b>", "type": "text", "text": {"body": "STOP"}},
    ]}));
    assert_eq!(written, [text(" Stop "), text("STOP"), text("Yes"), text("")]);
    let preference = |category: &str, value: &str| json!({"wa_id": from, "category": category, "value": value});
    let wanted = inbound(json!({"user_preferences": [
        preference("marketing_messages", "stop"), preference("marketing_messages", "resume"),
        preference("marketing_messages", "perhaps"), preference("other", "stop"),
    ]}));
    let expected = [InboundEvent::Unsubscribed, InboundEvent::Subscribed].map(|event| (TO.to_owned(), event));
    assert_eq!(wanted, expected);
    // The app has other numbers besides ours.
    let other =
        json!({"metadata": {"phone_number_id": "2077"}, "messages": [{"from": from, "text": {"body": "STOP"}}]});
    let body = json!({"entry": [{"changes": [{"value": other}]}]}).to_string();
    assert_eq!(call(body.as_bytes(), &signed(body.as_bytes(), "app secret")).unwrap(), Callback::default());
}

#[test]
fn a_call_without_its_signature_is_not_believed() {
    // RFC 4231 section 4.3, test case 2.
    let body = b"what do ya want for nothing?";
    let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let with = |secret: &str, signature: &str, body: &[u8]| {
        let settings = json!({"phone_number_id": "1066", "access_token": "t", "app_secret": secret});
        called(&cloud().1, &settings, &[("x-hub-signature-256", signature)], body)
    };
    assert_eq!(with("Jefe", expected, body), Ok(Callback::default()), "what cannot be read is answered");
    let refused = Err(CallbackFault::Unauthorized);
    assert_eq!(with("Jefe", expected, b"what do ya want for nothing!"), refused);
    assert_eq!(with("old secret", expected, body), refused);
    assert_eq!(with("", &signed(body, ""), body), refused, "without a secret nothing is believed");
    assert_eq!(with("Jefe", &expected.to_uppercase(), body), refused);
    assert_eq!(with("Jefe", &expected[7..], body), refused);
    assert_eq!(with("Jefe", &expected[..20], body), refused);
    assert_eq!(called(&cloud().1, &settings(), &[], body), refused);
    let headers = [("x-hub-signature-256", signed(body, "app secret"))];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (method, proof) in [
        (Method::GET, CallbackProof::Channel(channel_address())),
        (Method::GET, CallbackProof::ThisMessage),
        (Method::POST, CallbackProof::ThisMessage),
    ] {
        let refused = called_as(&cloud().1, &settings(), (&method, &proof), &headers, body);
        assert_eq!(refused, Err(CallbackFault::NotFound));
    }
}

#[tokio::test]
async fn the_id_of_a_number_cannot_change_what_is_called() {
    for id in ["1/../2", "1?x", "1#", "", "1 2"] {
        let settings = json!({"phone_number_id": id, "access_token": "t"});
        let outgoing = outgoing(&settings, TO, Content::Whatsapp(Box::new(text())));
        let (fetch, cloud) = cloud();
        assert!(matches!(cloud.send(&outgoing).await, Err(TransportError::Misconfigured(_))), "{id}");
        assert!(fetch.take().is_empty());
    }
}
