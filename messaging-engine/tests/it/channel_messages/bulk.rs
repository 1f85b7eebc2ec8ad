//! Campaigns and automations on every channel: contract sections 6.3, 12.3 and 13.3.

use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::{Content, TelegramText, WhatsappContent};
use serde_json::{Value, json};

use crate::bed::Reply;
use crate::support::Product;

/// The channels other than email.
const CHANNELS: [Channel; 5] = [Channel::Sms, Channel::Push, Channel::Telegram, Channel::Whatsapp, Channel::Viber];

/// A template of a channel with this text.
fn template(channel: Channel, text: &str) -> Value {
    match channel {
        Channel::Push => json!({"name": "t", "channel": channel, "subject": "For {{ name }}", "text": text}),
        Channel::Telegram => json!({"name": "t", "channel": channel, "html": text}),
        _ => json!({"name": "t", "channel": channel, "text": text}),
    }
}

/// Title and text of a sent message.
fn said(content: &Content) -> (Option<String>, String) {
    match content {
        Content::Sms(sms) => (None, sms.text.clone()),
        Content::Push(push) => (push.title.clone(), push.text.clone()),
        Content::Telegram(telegram) => match &telegram.text {
            TelegramText::Plain(text) => (None, format!("plain {text}")),
            TelegramText::Html(html) => (None, html.clone()),
        },
        Content::Whatsapp(whatsapp) => match whatsapp.as_ref() {
            WhatsappContent::Text { text, .. } => (None, text.clone()),
            other @ WhatsappContent::Template(_) => panic!("{other:?}"),
        },
        Content::Viber(viber) => (None, viber.text.clone()),
        Content::Email(_) => panic!("no email"),
    }
}

fn expected(channel: Channel) -> (Option<String>, String) {
    match channel {
        Channel::Push => (Some("For Ann".to_owned()), "Hello Ann".to_owned()),
        _ => (None, "Hello Ann".to_owned()),
    }
}

/// Contacts on a list: one with every address, one without consent, one whose text is too long, one without address.
struct People {
    product: Product,
    list: String,
}

impl People {
    async fn start() -> Self {
        let product = Product::start().await.on_every_channel().await;
        let list = product.created("lists", json!({"name": "all"})).await;
        let people = Self { product, list };
        people.add("ann", 1, json!({"sms": true}), "Ann").await;
        people.add("bob", 2, json!({"sms": false}), "Bob").await;
        people.add("long", 3, json!({"sms": true}), &"w".repeat(5000)).await;
        let nobody = json!({"external_id": "nobody", "list_ids": [people.list], "consent": {"sms": true}});
        assert_eq!(people.post("contacts", nobody).await.status, 201);
        people
    }

    async fn add(&self, name: &str, number: u32, consent: Value, shown: &str) {
        let attributes = json!({"name": shown, "telegram_chat_id": number, "push_token": format!("token-{number}")});
        let contact = json!({"external_id": name, "phone": format!("+1415555000{number}"), "consent": consent,
            "attributes": attributes, "list_ids": [self.list]});
        let reply = self.post("contacts", contact).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    fn at(&self, path: &str) -> String {
        format!("/workspaces/{}/{path}", self.product.workspace)
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        self.product.post(&self.product.caller, &self.at(path), body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.product.get(&self.product.caller, &self.at(path)).await.body
    }
}

/// Text messages and chats by number need consent; push and Telegram do not.
fn needs_consent(channel: Channel) -> bool {
    matches!(channel, Channel::Sms | Channel::Whatsapp | Channel::Viber)
}

#[tokio::test]
async fn a_campaign_goes_out_on_every_channel() {
    let people = People::start().await;
    let product = &people.product;
    for channel in CHANNELS {
        let template = product.created("templates", template(channel, "Hello {{ name }}")).await;
        let campaign = json!({"name": "c", "channel": channel, "template_id": template,
            "audience": {"list_ids": [people.list]}});
        let campaign = product.created("campaigns", campaign).await;
        let scheduled = people.post(&format!("campaigns/{campaign}/schedule"), json!({"send_now": true})).await;
        assert_eq!(scheduled.status, 202, "{}", scheduled.body);
        product.work().await;
        let left = product.transport.take();
        let to_ann = left.iter().find(|one| one.recipients[0].ends_with('1')).expect("Ann gets it");
        assert_eq!(said(&to_ann.content), expected(channel), "{channel}");
        assert!(to_ann.options.is_marketing, "{channel}");
        assert_eq!(left.len(), if needs_consent(channel) { 1 } else { 2 }, "{channel}: {left:?}");
        let stats = people.get(&format!("campaigns/{campaign}/stats")).await;
        let skipped = &stats["skipped"];
        assert_eq!(skipped["no_address"], 1, "{channel}");
        assert_eq!(skipped["no_consent"], u8::from(needs_consent(channel)), "{channel}");
        // A contact whose message would be longer than the channel allows gets nothing.
        assert_eq!(stats["failed"], 1, "{channel}: {stats}");
        let failed = people.get(&format!("campaigns/{campaign}/recipients?outcome=failed")).await;
        let id = failed["data"][0]["message_id"].as_str().unwrap().parse().unwrap();
        assert_eq!(product.last_meta(id).await["reason"], "render_error", "{channel}");
        assert_eq!(people.get(&format!("campaigns/{campaign}")).await["status"], "sent");
    }
}

#[tokio::test]
async fn an_automation_sends_on_every_channel() {
    let people = People::start().await;
    let product = &people.product;
    for channel in CHANNELS {
        let template = product.created("templates", template(channel, "Hello {{ name }}")).await;
        let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": template}}], "edges": []});
        let automation =
            json!({"name": "a", "trigger": {"kind": "event", "config": {"name": "never"}}, "graph": graph});
        let automation = product.created("automations", automation).await;
        let reply = people.post(&format!("automations/{automation}/activate"), json!({})).await;
        assert_eq!(reply.status, 202, "{channel}: {}", reply.body);
        let mut told = Vec::new();
        for name in ["ann", "bob", "long", "nobody"] {
            let reply = people.post(&format!("automations/{automation}/trigger"), json!({"external_id": name})).await;
            assert_eq!(reply.status, 202, "{channel}: {}", reply.body);
            let run = reply["id"].as_str().unwrap();
            product.work().await;
            let steps = people.get(&format!("automations/{automation}/runs/{run}")).await["history"].clone();
            let steps = steps.as_array().unwrap();
            let step = steps.iter().find(|step| step["node_id"] == "s").unwrap();
            told.push(format!(
                "{name} {} {}",
                step["outcome"].as_str().unwrap(),
                step["reason"].as_str().unwrap_or("")
            ));
        }
        let left = product.transport.take();
        let to_ann = left.iter().find(|one| one.recipients[0].ends_with('1')).expect("Ann gets it");
        assert_eq!(said(&to_ann.content), expected(channel), "{channel}");
        let bob = if needs_consent(channel) { "bob skipped no_consent" } else { "bob sent " };
        assert_eq!(told[..2], ["ann sent ".to_owned(), bob.to_owned()], "{channel}");
        assert!(told[2].starts_with("long failed"), "{channel}: {told:?}");
        assert_eq!(told[3], "nobody skipped no_address", "{channel}");
        assert_eq!(left.len(), if needs_consent(channel) { 1 } else { 2 }, "{channel}");
    }
}
