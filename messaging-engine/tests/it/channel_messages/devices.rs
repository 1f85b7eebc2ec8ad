//! Simulated numbers of the sandbox, their outcomes, and its messages as the API shows them: contract sections 4.3 and
//! 22.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_transport::Sandbox;
use serde_json::{Value, json};

use super::{SECOND, message};
use crate::support::Product;

impl Product {
    async fn captured(&self, id: MessageId) -> Value {
        let path = format!("/workspaces/{}/sandbox/messages/{id}", self.workspace);
        self.get(&self.caller, &path).await.body
    }
}

#[tokio::test]
async fn the_last_digits_of_a_recipient_choose_what_becomes_of_it() {
    let product = Product::carried_by(Arc::new(Sandbox::default())).await.on_every_channel().await;
    for (channel, prefix) in [
        (Channel::Sms, "+"),
        (Channel::Whatsapp, "+"),
        (Channel::Viber, "+"),
        (Channel::Telegram, "-100"),
        (Channel::Push, "token-"),
    ] {
        for (digit, expected) in [
            (1, "delivered: Queued Sent Delivered"),
            (2, "bounced: Queued Bounce"),
            (3, "bounced: Queued Bounce"),
            (4, "deferred: Queued Deferred"),
            (5, "bounced: Queued Bounce"),
            (6, "failed: Queued Failed"),
            (7, "delivered: Queued Sent Delivered Open"),
        ] {
            let to = format!("{prefix}999000000{digit}");
            let id = product.send(&message(channel, json!({"to": to}))).await;
            product.work().await;
            // A read receipt comes a moment later.
            product.pass(SECOND).await;
            assert_eq!(product.story(id).await, expected, "{channel} {digit}");
            let meta = product.last_meta(id).await;
            match digit {
                2 => assert_eq!(
                    (&meta["bounce_type"], &meta["bounce_class"]),
                    (&json!("hard"), &json!("invalid_recipient"))
                ),
                3 => assert_eq!((&meta["bounce_type"], &meta["bounce_class"]), (&json!("soft"), &json!("unreachable"))),
                5 => assert_eq!((&meta["bounce_type"], &meta["bounce_class"]), (&json!("soft"), &json!("policy"))),
                6 => assert_eq!(meta["reason"], "provider_error"),
                7 => assert_eq!(meta["source"], "read_receipt"),
                _ => {}
            }
            // A bad address is suppressed.
            let again = product.send(&message(channel, json!({"to": to}))).await;
            product.work().await;
            let is_suppressed = product.report(again).await.status.as_str() == "suppressed";
            assert_eq!(is_suppressed, digit == 2, "{channel} {digit}");
        }
    }
}

#[tokio::test]
async fn the_inbox_shows_what_each_channel_would_have_sent() {
    let product = Product::carried_by(Arc::new(Sandbox::default())).await.on_every_channel().await;
    let button = json!({"text": "Open", "url": "https://a.example/x"});
    let media = json!({"url": "https://a.example/b.png", "kind": "image"});
    let both = json!({"buttons": [button], "media": media});
    let template = json!({"name": "order", "language": "en"});
    for (channel, more, expected) in [
        (Channel::Sms, json!({}), json!({"text": "Hello"})),
        (
            Channel::Push,
            json!({"subject": "Order", "data": {"order": "17"}}),
            json!({"title": "Order", "text": "Hello", "image": null, "data": {"order": "17"}}),
        ),
        (Channel::Telegram, both.clone(), json!({"text": "Hello", "html": null, "buttons": [button], "media": media})),
        (Channel::Whatsapp, both.clone(), json!({"text": "Hello", "button": button, "media": media})),
        (Channel::Whatsapp, json!({"provider_template": template}), json!({"provider_template": template})),
        (Channel::Viber, both, json!({"text": "Hello", "button": button, "image": media["url"]})),
    ] {
        let body = message(channel, more);
        let id = product.send(&body).await;
        product.work().await;
        let mut expected = expected;
        expected["channel"] = json!(channel);
        expected["to"] = body["to"].clone();
        assert_eq!(product.captured(id).await, expected);
    }
}
