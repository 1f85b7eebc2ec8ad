//! Telegram, WhatsApp and Viber bots against fake providers: every case of the fakes, and the calls that they make.

mod callbacks;
mod rates;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::{
    Content, DeliveryOptions, Outcome, OutcomeClass, Outgoing, ReceiptAddress, TelegramContent, TelegramText,
    Transport, ViberContent, WhatsappContent,
};
use messaging_testing::fakes::{FakeProvider, FakeTelegram, FakeViberBot, FakeWhatsapp};
use messaging_transport::{GuardedFetch, Options, defaults};
use serde_json::{Value, json};

use crate::support::outgoing;

/// A channel with its real transport, a fake provider and settings that lead there.
struct Chat {
    channel: Channel,
    transport: Arc<dyn Transport>,
    fake: FakeProvider,
    settings: Value,
}

fn transport(channel: Channel, provider: &str) -> Arc<dyn Transport> {
    let dns = messaging_transport::Dns::new(None);
    let fetch = Arc::new(GuardedFetch::builder(dns).allow_private(true).build());
    let options = Options { fetch, ..Options::new("mail.test") };
    let found = defaults(&options).into_iter().find(|(known, name, _)| (*known, *name) == (channel, provider));
    found.expect("an installed provider").2
}

impl Chat {
    async fn telegram() -> (Self, FakeTelegram) {
        let api = FakeTelegram::new("1:token");
        let fake = FakeProvider::start(api.clone()).await.unwrap();
        let settings = json!({"api_base": fake.url(), "bot_token": "1:token"});
        (Self { channel: Channel::Telegram, transport: transport(Channel::Telegram, "bot_api"), fake, settings }, api)
    }

    async fn whatsapp() -> (Self, FakeWhatsapp) {
        let api = FakeWhatsapp::new("1066", "EAA", "app secret");
        let fake = FakeProvider::start(api.clone()).await.unwrap();
        let settings = json!({
            "api_base": fake.url(), "phone_number_id": "1066", "access_token": "EAA", "app_secret": "app secret",
        });
        (Self { channel: Channel::Whatsapp, transport: transport(Channel::Whatsapp, "cloud_api"), fake, settings }, api)
    }

    async fn viber() -> (Self, FakeViberBot) {
        let api = FakeViberBot::new("viber token");
        let fake = FakeProvider::start(api.clone()).await.unwrap();
        let settings = json!({"api_base": fake.url(), "auth_token": "viber token", "sender": "ACME"});
        (Self { channel: Channel::Viber, transport: transport(Channel::Viber, "bot"), fake, settings }, api)
    }

    fn message(&self, to: &str, text: &str) -> Outgoing {
        let text = text.to_owned();
        let content = match self.channel {
            Channel::Telegram => {
                let text = TelegramText::Html(text);
                Content::Telegram(Box::new(TelegramContent { text, buttons: Vec::new(), media: None, preview: true }))
            }
            Channel::Whatsapp => {
                Content::Whatsapp(Box::new(WhatsappContent::Text { text, button: None, media: None, preview: true }))
            }
            _ => Content::Viber(Box::new(ViberContent { text, button: None, image: None })),
        };
        Outgoing {
            settings: Arc::new(self.settings.as_object().unwrap().clone()),
            receipts: Some(ReceiptAddress { token: "ours".to_owned(), url: "http://a.test/ours".to_owned() }),
            options: DeliveryOptions::default(),
            ..outgoing(&[to], content)
        }
    }

    /// Returns the outcome of a message to a recipient with these last digits.
    async fn outcome(&self, last: u8) -> String {
        let to = format!("+9990000{last:03}");
        let to = if self.channel == Channel::Telegram { to.trim_start_matches('+') } else { &to };
        let sent = self.transport.send(&self.message(to, "Hi")).await.unwrap();
        shown(&sent.outcomes[0])
    }
}

/// The class of an outcome and its wait in seconds.
fn shown(outcome: &Outcome) -> String {
    let answer = outcome.answer().expect("an attempt");
    let class = match answer.class {
        OutcomeClass::Accepted(acceptance) => format!("{acceptance:?}"),
        class => format!("{class:?}"),
    };
    answer.asked_wait().map_or(class.clone(), |wait| format!("{class} {}", wait.as_secs()))
}

/// Cases of the fakes: the last digits, and the outcomes at Telegram, WhatsApp and Viber.
const CASES: &[(u8, [&str; 3])] = &[
    (1, ["Delivered", "Relayed", "Relayed"]),
    (2, ["Address(Recipient)", "Address(Recipient)", "Address(Recipient)"]),
    (3, ["Retry(Account)", "Soft(Policy)", "Soft(Content)"]),
    (4, ["Retry(Account)", "Retry(Account)", "Retry(Account)"]),
    (5, ["Blocked", "Soft(Policy)", "Soft(Policy)"]),
    (6, ["Content(Render)", "Content(Provider)", "Content(Provider)"]),
    (8, ["Blocked", "OptedOut", "Blocked"]),
    (9, ["Auth", "Auth", "Auth"]),
    (10, ["Blocked", "Address(Recipient)", "Blocked"]),
    (11, ["Throttled(Account) 7", "Throttled(Recipient) 4", "Throttled(Recipient)"]),
    (20, ["Throttled(Account) 7", "Throttled(Account) 7", "Throttled(Account) 7"]),
    (21, ["Throttled(Account) 86400", "Throttled(Account) 86400", "Throttled(Account) 86400"]),
    (22, ["Throttled(Account)", "Throttled(Account)", "Throttled(Account)"]),
    (23, ["Throttled(Account) 86400", "Throttled(Account) 86400", "Throttled(Account) 86400"]),
    (24, ["Throttled(Account)", "Throttled(Account)", "Throttled(Account)"]),
    (30, ["Delivered", "Relayed", "Relayed"]),
    (32, ["Ambiguous", "Ambiguous", "Ambiguous"]),
    (33, ["Ambiguous", "Ambiguous", "Ambiguous"]),
    (34, ["Ambiguous", "Ambiguous", "Ambiguous"]),
    (35, ["Ambiguous", "Ambiguous", "Ambiguous"]),
    (37, ["Content(Provider)", "Content(Provider)", "Content(Provider)"]),
    (38, ["Retry(Account)", "Retry(Account)", "Retry(Account)"]),
];

#[tokio::test]
async fn every_case_of_a_provider_has_its_class() {
    let chats = [Chat::telegram().await.0, Chat::whatsapp().await.0, Chat::viber().await.0];
    for (place, chat) in chats.iter().enumerate() {
        chat.fake.slow(Duration::from_millis(50));
        for (last, expected) in CASES {
            assert_eq!(chat.outcome(*last).await, expected[place], "{} {last}", chat.channel);
        }
    }
}

#[tokio::test]
async fn wrong_keys_stop_the_account_and_markup_that_nobody_knows_fails_the_message() {
    for (mut chat, member) in [
        (Chat::telegram().await.0, "bot_token"),
        (Chat::whatsapp().await.0, "access_token"),
        (Chat::viber().await.0, "auth_token"),
    ] {
        chat.settings[member] = json!("another");
        assert_eq!(chat.outcome(1).await, "Auth", "{}", chat.channel);
    }
    let (telegram, _) = Chat::telegram().await;
    let sent = telegram.transport.send(&telegram.message("1", "<table>")).await.unwrap();
    assert_eq!(shown(&sent.outcomes[0]), "Content(Render)");
}

#[tokio::test]
async fn a_provider_that_takes_no_connection_is_tried_later() {
    let (chat, _) = Chat::telegram().await;
    chat.fake.reset_connections(64);
    let sent = chat.outcome(1).await;
    // The request may or may not have been written when the connection broke.
    assert!(["Retry(Account)", "Ambiguous"].contains(&sent.as_str()), "{sent}");
    assert!(chat.fake.requests().is_empty());
    let Chat { transport, settings, channel, fake } = chat;
    let gone = fake.url();
    drop(fake);
    let (another, _) = Chat::telegram().await;
    assert_ne!(another.fake.url(), gone);
    let chat = Chat { transport, settings, channel, fake: another.fake };
    assert_eq!(chat.outcome(2).await, "Retry(Account)");
}
