//! Messages of the channels other than email: contract sections 4.1, 4.2 and 6.3.

mod bulk;
mod devices;
mod expiry;
mod lost_answers;

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::{
    Button, Content, DeliveryOptions, Media, MediaKind, Outgoing, ProviderTemplate, PushContent, SmsContent,
    TelegramContent, TelegramText, ViberContent, WhatsappContent,
};
use messaging_engine::Error;
use serde_json::{Value, json};

use crate::support::Product;

const SECOND: Duration = Duration::from_secs(1);
const PHONE: &str = "+14155550123";

/// An address of a channel.
fn address(channel: Channel) -> &'static str {
    match channel {
        Channel::Email => "ann@example.com",
        Channel::Sms | Channel::Whatsapp | Channel::Viber => PHONE,
        Channel::Push => "token",
        Channel::Telegram => "4711",
    }
}

/// A message of a channel, with more members.
fn message(channel: Channel, more: Value) -> Value {
    let mut body = json!({"channel": channel, "to": address(channel), "text": "Hello"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The pointers and codes of a validation error; the code of any other.
fn refused(error: Error) -> String {
    let Error::Validation(violations) = error else { return error.code().to_owned() };
    let shown = serde_json::to_value(violations.as_slice()).unwrap();
    let lines = shown.as_array().unwrap().iter();
    lines.map(|one| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())).collect()
}

impl Product {
    /// Sends a message and returns what the transport got.
    async fn carried(&self, body: &Value) -> Outgoing {
        self.send(body).await;
        self.work().await;
        self.transport.take().pop().expect("it was sent")
    }

    async fn created(&self, what: &str, body: Value) -> String {
        let path = format!("/workspaces/{}/{what}", self.workspace);
        let reply = self.post(&self.caller, &path, body).await;
        assert_eq!(reply.summary(), "201", "{}", reply.body);
        reply["id"].as_str().unwrap().to_owned()
    }

    async fn content_of(&self, id: MessageId) -> Value {
        let reply = self.get(&self.caller, &format!("/messages/{id}/content")).await;
        assert_eq!(reply.summary(), "200", "{}", reply.body);
        reply.body
    }
}

#[tokio::test]
async fn every_channel_carries_what_its_members_say() {
    let product = Product::start().await.on_every_channel().await;
    let button = json!({"text": "Open", "url": "https://a.example/x"});
    let media = json!({"kind": "image", "url": "https://a.example/b.png"});
    let with_all = json!({"buttons": [button], "media": media});
    let (button, media) = (
        Button { text: "Open".to_owned(), url: "https://a.example/x".to_owned() },
        Media { kind: MediaKind::Image, url: "https://a.example/b.png".to_owned() },
    );
    let text = || "Hello".to_owned();
    let template = json!({"name": "order", "language": "en", "body": ["17"]});
    let template_content = ProviderTemplate {
        name: "order".to_owned(),
        language: "en".to_owned(),
        header: None,
        body: vec!["17".to_owned()],
        buttons: Vec::new(),
    };
    let push = json!({"subject": "Order", "media": {"kind": "image", "url": media.url}, "data": {"order": "17"}});
    let cases = [
        (message(Channel::Sms, json!({})), Content::Sms(SmsContent { text: text() })),
        (
            message(Channel::Push, push),
            Content::Push(Box::new(PushContent {
                title: Some("Order".to_owned()),
                text: text(),
                image: Some(media.url.clone()),
                data: [("order".to_owned(), "17".to_owned())].into(),
            })),
        ),
        (
            message(Channel::Telegram, with_all.clone()),
            Content::Telegram(Box::new(TelegramContent {
                text: TelegramText::Plain(text()),
                buttons: vec![button.clone()],
                media: Some(media.clone()),
                preview: true,
            })),
        ),
        (
            message(Channel::Telegram, json!({"html": "<b>Hi</b>", "options": {"preview": false}})),
            Content::Telegram(Box::new(TelegramContent {
                text: TelegramText::Html("<b>Hi</b>".to_owned()),
                buttons: Vec::new(),
                media: None,
                preview: false,
            })),
        ),
        (
            message(Channel::Whatsapp, with_all.clone()),
            Content::Whatsapp(Box::new(WhatsappContent::Text {
                text: text(),
                button: Some(button.clone()),
                media: Some(media.clone()),
                preview: true,
            })),
        ),
        (
            message(Channel::Whatsapp, json!({"provider_template": template})),
            Content::Whatsapp(Box::new(WhatsappContent::Template(template_content))),
        ),
        (
            message(Channel::Viber, with_all),
            Content::Viber(Box::new(ViberContent {
                text: text(),
                button: Some(button),
                image: Some(media.url.clone()),
            })),
        ),
    ];
    for (body, expected) in cases {
        let left = product.carried(&body).await;
        assert_eq!(format!("{:?}", left.content), format!("{expected:?}"));
        assert_eq!(left.options, DeliveryOptions::default());
    }
}

#[tokio::test]
async fn options_go_along_and_the_time_to_live_counts_from_the_acceptance() {
    let product = Product::start().await.on_every_channel().await;
    let options = json!({"ttl": 600, "collapse_key": "order", "silent": true, "category": "marketing"});
    let id = product.send(&message(Channel::Push, json!({"options": options}))).await;
    product.clock.advance(100 * SECOND);
    product.work().await;
    let left = product.transport.take().pop().unwrap();
    let expected = DeliveryOptions {
        ttl: Some(500 * SECOND),
        collapse_key: Some("order".to_owned()),
        silent: true,
        is_marketing: true,
        require_tls: false,
    };
    assert_eq!(left.options, expected);
    assert_eq!(product.content_of(id).await["request"]["options"], options);
}

#[tokio::test]
async fn limits_hold_after_rendering_as_they_do_before() {
    let product = Product::start().await.on_every_channel().await;
    let media = json!({"kind": "image", "url": "https://a.example/b.png"});
    for (channel, part, more, most) in [
        (Channel::Sms, "text", json!({}), 1530),
        (Channel::Push, "text", json!({"data": {"k": "v".repeat(99)}}), 3400),
        (Channel::Telegram, "html", json!({}), 4096),
        (Channel::Telegram, "html", json!({"media": media}), 1024),
        (Channel::Whatsapp, "text", json!({}), 4096),
        (Channel::Whatsapp, "text", json!({"media": media}), 1024),
        (Channel::Viber, "text", json!({}), 1000),
    ] {
        let template = json!({"name": "t", "channel": channel, part: "{{ word }}"});
        let template = product.created("templates", template).await;
        for (length, expected) in [(most, "delivered"), (most + 1, "failed")] {
            let mut body = message(channel, more.clone());
            body["template_id"] = json!(template);
            body["variables"] = json!({"word": "w".repeat(length)});
            let id = product.send(&body).await;
            product.work().await;
            let report = product.report(id).await;
            assert_eq!(report.status.as_str(), expected, "{channel} {length} {:?}", report.events);
            if expected == "failed" {
                let meta = product.last_meta(id).await;
                assert_eq!(meta["reason"], "render_error", "{channel}");
                let said = meta["message"].as_str().unwrap();
                assert!(said.starts_with(&format!("the {part} came out too long")), "{said}");
            }
        }
    }
}

#[tokio::test]
async fn viber_numbers_and_limits_are_those_of_a_business_unless_a_bot_sends() {
    let product = Product::start().await.on_every_channel().await;
    let post = async |body: Value| product.post_message(&body, None).await.map_err(refused).map(|_| ());
    assert_eq!(post(message(Channel::Viber, json!({"text": "t".repeat(1000)}))).await, Ok(()));
    let long = message(Channel::Viber, json!({"text": "t".repeat(1001)}));
    assert_eq!(post(long).await, Err("/text too_long".to_owned()));
    let user = message(Channel::Viber, json!({"to": "01234567890A="}));
    assert_eq!(post(user).await, Err("/to invalid_format".to_owned()));
    let path = format!("/workspaces/{}/suppressions", product.workspace);
    let listed = json!({"channel": "viber", "address": "01234567890A=", "reason": "manual"});
    assert_eq!(product.post(&product.caller, &path, listed).await.status, 422);
}

#[tokio::test]
async fn a_text_message_says_how_many_segments_it_takes() {
    let product = Product::start().await.on_every_channel().await;
    let (long, other) = ("a".repeat(161), "\u{436}".repeat(71));
    for (text, segments, encoding) in [("Hello", 1, "gsm7"), (&long, 2, "gsm7"), (&other, 2, "ucs2")] {
        let (answer, _) = product.post_message(&message(Channel::Sms, json!({"text": text})), None).await.unwrap();
        assert_eq!(answer["segments"], segments);
        let id = answer["message_id"].as_str().unwrap();
        let shown = product.get(&product.caller, &format!("/messages/{id}")).await;
        assert_eq!((&shown["segments"], &shown["encoding"]), (&json!(segments), &json!(encoding)));
        let listed = product.get(&product.caller, "/messages?limit=1").await;
        assert_eq!(listed["data"][0]["segments"], segments);
        assert_eq!(listed["data"][0]["encoding"], encoding);
    }
    let template = json!({"name": "t", "channel": "sms", "text": "{{ word }}{{ contact.phone }}"});
    let template = product.created("templates", template).await;
    let path = format!("/workspaces/{}/templates/{template}/preview", product.workspace);
    let preview = product.post(&product.caller, &path, json!({"variables": {"word": long}})).await;
    assert_eq!((preview.summary().as_str(), &preview["segments"]), ("200", &json!(2)));
    let by_template = json!({"text": null, "template_id": template, "variables": {"word": long}});
    let (answer, _) = product.post_message(&message(Channel::Sms, by_template), None).await.unwrap();
    assert_eq!(answer["segments"], 2);
    let (answer, _) = product.post_message(&message(Channel::Push, json!({})), None).await.unwrap();
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["message_id", "status"]);
    let shown = product.get(&product.caller, &format!("/messages/{}", answer["message_id"].as_str().unwrap())).await;
    assert_eq!((&shown["segments"], &shown["encoding"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn the_content_of_a_message_is_what_its_channel_sends() {
    let product = Product::start().await.on_every_channel().await;
    let template = json!({"name": "order", "language": "en"});
    for (body, subject, html, text) in [
        (message(Channel::Sms, json!({})), None, None, Some("Hello")),
        (message(Channel::Push, json!({"subject": "Order"})), Some("Order"), None, Some("Hello")),
        (message(Channel::Telegram, json!({"html": "<b>Hi</b>"})), None, Some("<b>Hi</b>"), None),
        (message(Channel::Whatsapp, json!({"provider_template": template})), None, None, None),
        (message(Channel::Viber, json!({})), None, None, Some("Hello")),
    ] {
        let id = product.send(&body).await;
        let shown = product.content_of(id).await;
        assert_eq!(shown["request"], body);
        let parts = json!([shown["subject"], shown["html"], shown["text"], shown["headers"], shown["template"]]);
        assert_eq!(parts, json!([subject, html, text, [], null]), "{}", body["channel"]);
        let length = [subject, html, text].iter().flatten().map(|part| part.len()).sum::<usize>();
        assert_eq!(shown["size"], length);
    }
}

#[tokio::test]
async fn openings_of_transactional_email_are_recorded_only_on_request() {
    let product = Product::start().await;
    let domains = product.get(&product.caller, &format!("/workspaces/{}/sending-domains", product.workspace)).await;
    let domain = domains["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/workspaces/{}/sending-domains/{domain}", product.workspace);
    let html = r#"<p>Hello <a href="https://shop.example/">shop</a></p>"#;
    let has = |left: &Outgoing, part: &str| {
        let Content::Email(email) = &left.content else { panic!("an email") };
        email.html.as_ref().is_some_and(|html| html.contains(part))
    };
    for (open, click, options, pixel, redirected) in [
        (true, true, json!({}), false, true),
        (true, true, json!({"category": "marketing"}), true, true),
        (true, true, json!({"category": "marketing", "track_opens": false, "track_clicks": false}), false, false),
        (true, true, json!({"track_opens": true}), true, true),
        (false, false, json!({"category": "marketing"}), false, false),
        (false, false, json!({"track_opens": true, "track_clicks": true}), true, true),
    ] {
        let changed =
            product.patch(&product.caller, &path, json!({"open_tracking": open, "click_tracking": click})).await;
        assert_eq!(changed.summary(), "200", "{}", changed.body);
        let body =
            json!({"channel": "email", "to": "ann@example.com", "subject": "s", "html": html, "options": options});
        let left = product.carried(&body).await;
        assert_eq!((has(&left, "/t/o/"), has(&left, "/t/c/")), (pixel, redirected), "{open} {click} {options}");
        let Content::Email(email) = &left.content else { panic!("an email") };
        assert!(!email.headers.iter().any(|(name, _)| name == "List-Unsubscribe"), "a request is transactional");
    }
}
