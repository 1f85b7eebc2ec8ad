use http::Method;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::ports::clock::{ManualClock, SystemClock};
use messaging_core::ports::fetch::FetchError;
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::transport::{
    Acceptance, AddressFault, Button, CallbackEvent, CallbackProof, ContentFault, Media, MediaKind, OutcomeClass,
    Scope, TelegramText,
};

use super::*;
use crate::provider::test_support::{answer_to, called, called_as, channel_address, object, outgoing};
use messaging_testing::{MemoryFetch, fetched};

const TOKEN: &str = "123456:ABC-def_9";

fn bot() -> (Arc<MemoryFetch>, TelegramBot) {
    bot_with(Arc::new(SystemClock))
}

fn bot_with(clock: Arc<dyn Clock>) -> (Arc<MemoryFetch>, TelegramBot) {
    let fetch = Arc::new(MemoryFetch::default());
    (fetch.clone(), TelegramBot::new(fetch, clock))
}

fn route(chat: &str) -> Route {
    Route {
        terms: PathTerms::default(),
        workspace_id: messaging_core::ids::Id::from_bytes([1; 16]),
        class: messaging_core::domain::delivery::lane::JobClass::Transactional,
        settings: Arc::new(object(&settings())),
        domain: None,
        recipient: Some(chat.to_owned()),
    }
}

fn settings() -> Value {
    json!({"bot_token": TOKEN})
}

fn plain(text: &str) -> TelegramContent {
    TelegramContent { text: TelegramText::Plain(text.to_owned()), buttons: Vec::new(), media: None, preview: true }
}

fn message(to: &str, content: TelegramContent) -> Outgoing {
    outgoing(&settings(), to, Content::Telegram(Box::new(content)))
}

fn refusal(code: u16, description: &str) -> String {
    json!({"ok": false, "error_code": code, "description": description}).to_string()
}

/// Returns the answer for a message to which Telegram answers with this status and body.
async fn answered(status: u16, body: &str) -> Answer {
    let (fetch, bot) = bot();
    fetch.next_with(Ok(fetched(status, &[], body)));
    answer_to(&bot, &message("42", plain("Hi"))).await
}

async fn request_of(to: &str, content: TelegramContent, silent: bool) -> (String, Value) {
    let (fetch, bot) = bot();
    let mut outgoing = message(to, content);
    outgoing.options.silent = silent;
    bot.send(&outgoing).await.unwrap();
    let request = fetch.take().remove(0);
    assert_eq!((request.method, request.redirects), (Method::POST, 0));
    (request.url, serde_json::from_slice(&request.body).unwrap())
}

#[tokio::test]
async fn a_message_becomes_one_call_with_what_telegram_names() {
    let at = |method: &str| format!("https://api.telegram.org/bot{TOKEN}/{method}");
    let (url, body) = request_of("42", plain("Hi <b>"), false).await;
    assert_eq!((url, body), (at("sendMessage"), json!({"chat_id": 42, "text": "Hi <b>"})));

    let content = TelegramContent {
        text: TelegramText::Html("<b>Hi</b>".to_owned()),
        buttons: ["One", "Two"].map(|text| Button { text: text.to_owned(), url: format!("https://a.b/{text}") }).into(),
        media: None,
        preview: false,
    };
    let (_, body) = request_of("@news_channel", content.clone(), true).await;
    let keyboard = json!([[{"text": "One", "url": "https://a.b/One"}], [{"text": "Two", "url": "https://a.b/Two"}]]);
    let expected = json!({
        "chat_id": "@news_channel", "text": "<b>Hi</b>", "parse_mode": "HTML", "disable_notification": true,
        "link_preview_options": {"is_disabled": true}, "reply_markup": {"inline_keyboard": keyboard},
    });
    assert_eq!(body, expected);

    for (kind, method, name) in [
        (MediaKind::Image, "sendPhoto", "photo"),
        (MediaKind::Video, "sendVideo", "video"),
        (MediaKind::Document, "sendDocument", "document"),
    ] {
        let media = Some(Media { url: "https://a.b/x".to_owned(), kind });
        let (url, body) = request_of("-100123", TelegramContent { media, ..content.clone() }, false).await;
        assert_eq!(url, at(method));
        assert_eq!((&body[name], &body["caption"]), (&json!("https://a.b/x"), &json!("<b>Hi</b>")));
        assert_eq!((&body["chat_id"], &body["text"]), (&json!(-100_123), &Value::Null));
    }
}

#[tokio::test]
async fn the_table_of_answers() {
    use OutcomeClass as C;
    for (status, body, expected) in [
        (200, r#"{"ok":true,"result":{"message_id":17}}"#.to_owned(), C::Accepted(Acceptance::Delivered)),
        (403, refusal(403, "Forbidden: user is deactivated"), C::Address(AddressFault::Recipient)),
        (400, refusal(400, "Bad Request: chat not found"), C::Address(AddressFault::Recipient)),
        (403, refusal(403, "Forbidden: bot was blocked by the user"), C::Blocked),
        (403, refusal(403, "Forbidden: bot was kicked from the supergroup chat"), C::Blocked),
        (403, refusal(403, "Forbidden: bot is not a member of the channel chat"), C::Blocked),
        (403, refusal(403, "Forbidden: bot can't initiate conversation with a user"), C::Blocked),
        (401, refusal(401, "Unauthorized"), C::Auth),
        (404, refusal(404, "Not Found"), C::Auth),
        (429, refusal(429, "Too Many Requests: retry after 5"), C::Throttled(Scope::Account)),
        (400, refusal(400, "Bad Request: can't parse entities: Unsupported"), C::Content(ContentFault::Render)),
        (400, refusal(400, "Bad Request: wrong HTTP URL specified"), C::Content(ContentFault::Provider)),
        (400, refusal(400, "Bad Request: message is too long"), C::Content(ContentFault::Provider)),
        (500, refusal(500, "Internal Server Error"), C::Retry(Scope::Account)),
        (502, refusal(502, "Bad Gateway"), C::Retry(Scope::Account)),
        (408, refusal(408, "Request Timeout"), C::Retry(Scope::Account)),
        (420, refusal(420, "Something new"), C::Retry(Scope::Account)),
        (502, "<html>bad gateway</html>".to_owned(), C::Retry(Scope::Account)),
        (429, "slow down".to_owned(), C::Throttled(Scope::Account)),
        (200, r#"{"ok":tr"#.to_owned(), C::Ambiguous),
        (200, "[]".to_owned(), C::Ambiguous),
    ] {
        assert_eq!(answered(status, &body).await.class, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn an_answer_has_its_name_its_code_and_its_wait() {
    let taken = answered(200, r#"{"ok":true,"result":{"message_id":17,"chat":{"id":42}}}"#).await;
    assert_eq!(taken.of_provider().unwrap().message_id.as_deref(), Some("17"));
    let body = json!({"ok": false, "error_code": 429, "description": "slow", "parameters": {"retry_after": 35}});
    let throttled = answered(429, &body.to_string()).await;
    assert_eq!(throttled.asked_wait(), Some(Duration::from_secs(35)));
    assert_eq!(throttled.of_provider().unwrap().code.as_deref(), Some("429"));
    let body = json!({"ok": false, "error_code": 429, "description": "slow", "parameters": {"retry_after": u64::MAX}});
    assert_eq!(answered(429, &body.to_string()).await.asked_wait(), Some(Duration::from_hours(24)));
    let (fetch, bot) = bot();
    fetch.next_with(Ok(fetched(429, &[("retry-after", "7")], &refusal(429, "slow"))));
    assert_eq!(answer_to(&bot, &message("42", plain("Hi"))).await.asked_wait(), Some(Duration::from_secs(7)));
}

fn moved(to: i64) -> String {
    let parameters = json!({"migrate_to_chat_id": to});
    let description = "Bad Request: group chat was upgraded to a supergroup chat";
    json!({"ok": false, "error_code": 400, "description": description, "parameters": parameters}).to_string()
}

#[tokio::test]
async fn a_group_that_moved_is_followed_once() {
    let (fetch, bot) = bot();
    fetch.next_with(Ok(fetched(400, &[], &moved(-1001))));
    fetch.next_with(Ok(fetched(200, &[], r#"{"ok":true,"result":{"message_id":1}}"#)));
    let answer = answer_to(&bot, &message("-5", plain("Hi"))).await;
    assert_eq!(answer.class, OutcomeClass::Accepted(Acceptance::Delivered));
    let said = answer.of_provider().unwrap();
    assert_eq!((said.moved_to.as_deref(), said.message_id.as_deref()), (Some("-1001"), Some("1")));
    let chats: Vec<Value> =
        fetch.take().iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap()["chat_id"].clone()).collect();
    assert_eq!(chats, [json!(-5), json!(-1001)]);

    for _ in 0..2 {
        fetch.next_with(Ok(fetched(400, &[], &moved(-1002))));
    }
    let answer = answer_to(&bot, &message("-6", plain("Hi"))).await;
    assert_eq!(answer.class, OutcomeClass::Retry(Scope::Recipient));
    assert_eq!(fetch.take().len(), 2);
}

#[tokio::test]
async fn no_answer_and_no_setting_shows_the_token() {
    let (fetch, bot) = bot();
    let echo = format!("Not Found: /bot{TOKEN}/sendMessage");
    let outcomes = [
        Ok(fetched(404, &[], &refusal(404, &echo))),
        Ok(fetched(500, &[], &echo)),
        Ok(fetched(307, &[("location", "https://b.example")], &echo)),
        Ok(fetched(200, &[], &echo)),
        Err(FetchError::Lost),
        Err(FetchError::Blocked),
    ];
    for (chat, outcome) in outcomes.into_iter().enumerate() {
        fetch.next_with(outcome);
        // Each chat is a different one, so no rate limit applies.
        let answer = answer_to(&bot, &message(&chat.to_string(), plain("Hi"))).await;
        let requests = fetch.take();
        assert_eq!(requests.len(), 1);
        assert!(!format!("{requests:?}").contains(TOKEN), "{requests:?}");
        assert!(!format!("{answer:?}").contains(TOKEN), "{answer:?}");
    }
    for token in ["1:a/../x", "1:a?b", "1:a#", "1:a b", "1:ä"] {
        let settings = json!({"bot_token": token});
        let outgoing = outgoing(&settings, "1", Content::Telegram(Box::new(plain("Hi"))));
        let error = bot.send(&outgoing).await.unwrap_err();
        assert!(matches!(&error, TransportError::Misconfigured(text) if !text.contains(token)), "{error}");
    }
}

#[tokio::test]
async fn telegram_is_told_an_address_that_it_calls_and_no_other() {
    let (fetch, bot) = bot();
    let register = async |url: &str| {
        let address = CallbackAddress { url: url.to_owned(), ..channel_address() };
        bot.register(&object(&settings()), &address).await
    };
    for url in [
        "http://a.example/callbacks/telegram/t",
        "http://a.example:443/t",
        "https://a.example:8080/t",
        "https://a.example:8444/t",
        "no address",
    ] {
        let why = register(url).await.unwrap_err();
        assert!(why.contains("443, 80, 88 or 8443"), "{why}");
    }
    assert_eq!(fetch.take().len(), 0, "nothing is tried");
    for url in ["https://a.example/t", "https://a.example:8443/t", "https://a.example:88/t", "https://a.example:80/t"] {
        fetch.next_with(Ok(fetched(200, &[], r#"{"ok":true,"result":true}"#)));
        assert_eq!(register(url).await, Ok(Registration::Registered));
        let request = fetch.take().remove(0);
        assert_eq!(request.url, format!("https://api.telegram.org/bot{TOKEN}/setWebhook"));
        let expected = json!({"url": url, "secret_token": "secret", "allowed_updates": ["message", "my_chat_member"]});
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), expected);
    }
    fetch.next_with(Ok(fetched(400, &[], &refusal(400, "Bad Request: bad webhook: failed to resolve host"))));
    assert_eq!(register("https://a.example/t").await.unwrap_err(), "Bad Request: bad webhook: failed to resolve host");
}

#[tokio::test]
async fn a_bot_api_server_of_ones_own_is_told_any_address() {
    let (fetch, bot) = bot();
    let settings = json!({"api_base": "http://bots.example:8081", "bot_token": TOKEN});
    let register = async |url: &str| {
        let address = CallbackAddress { url: url.to_owned(), ..channel_address() };
        bot.register(&object(&settings), &address).await
    };
    fetch.next_with(Ok(fetched(200, &[], r#"{"ok":true,"result":true}"#)));
    assert_eq!(register("http://10.0.0.1:8080/t").await, Ok(Registration::Registered));
    assert_eq!(fetch.take().remove(0).url, format!("http://bots.example:8081/bot{TOKEN}/setWebhook"));
    fetch.next_with(Ok(fetched(400, &[], &refusal(400, "Bad Request: bad webhook: HTTPS url must be provided"))));
    let why = register("http://10.0.0.1:8080/t").await.unwrap_err();
    assert_eq!(why, "Bad Request: bad webhook: HTTPS url must be provided");
}

fn events_of(update: &Value) -> Vec<(String, InboundEvent)> {
    let (_, bot) = bot();
    let headers = [("x-telegram-bot-api-secret-token", "secret")];
    let callback = called(&bot, &settings(), &headers, update.to_string().as_bytes()).unwrap();
    assert_eq!((callback.reply.status.as_u16(), callback.reply.body.len()), (200, 0));
    callback
        .events
        .into_iter()
        .map(|event| match event {
            CallbackEvent::Inbound { from, event, .. } => (from, event),
            CallbackEvent::Receipt { .. } => panic!("Telegram has no receipts"),
        })
        .collect()
}

#[test]
fn updates_say_who_wrote_and_who_blocked_the_bot() {
    let chat = json!({"id": -42, "type": "group"});
    let from = json!({"id": 7, "is_bot": false});
    let text = |text: &str| vec![("-42".to_owned(), InboundEvent::Text(text.to_owned()))];
    for word in ["/stop", "/start abc", "hello"] {
        let update = json!({"update_id": 1, "message": {"chat": chat, "from": from, "text": word}});
        assert_eq!(events_of(&update), text(word));
    }
    assert_eq!(events_of(&json!({"message": {"chat": chat, "from": from, "photo": []}})), text(""));
    let member = |before: &str, after: &str| {
        let update = json!({
            "update_id": 2,
            "my_chat_member": {
                "chat": chat, "old_chat_member": {"status": before}, "new_chat_member": {"status": after},
            },
        });
        events_of(&update).into_iter().map(|(_, event)| event).collect::<Vec<_>>()
    };
    assert_eq!(member("member", "kicked"), [InboundEvent::Blocked]);
    assert_eq!(member("kicked", "member"), [InboundEvent::Subscribed]);
    assert_eq!(member("left", "administrator"), [InboundEvent::Subscribed]);
    // The bot has other rights now, but nobody who had blocked it has let it in again.
    assert_eq!(member("administrator", "member"), []);
    for nothing in [
        json!({"message": {"chat": chat, "from": {"id": 8, "is_bot": true}, "text": "/stop"}}),
        json!({"message": {"chat": {"id": "42"}, "from": from, "text": "/stop"}}),
        json!({"message": {"text": "/stop"}}),
        json!({"edited_message": {"chat": chat, "from": from, "text": "/stop"}}),
        json!([]),
        json!(null),
    ] {
        assert_eq!(events_of(&nothing), [], "{nothing}");
    }
}

#[test]
fn an_update_without_the_secret_is_not_believed() {
    let (_, bot) = bot();
    let update = br#"{"message":{"chat":{"id":1},"from":{"id":1},"text":"/stop"}}"#;
    let header = "x-telegram-bot-api-secret-token";
    for headers in
        [vec![], vec![(header, "")], vec![(header, "secre")], vec![(header, "secrets")], vec![(header, "old")]]
    {
        assert_eq!(called(&bot, &settings(), &headers, update), Err(CallbackFault::Unauthorized), "{headers:?}");
    }
    let headers = [(header, "secret")];
    let as_message = (&Method::POST, &CallbackProof::ThisMessage);
    assert_eq!(called_as(&bot, &settings(), as_message, &headers, update), Err(CallbackFault::NotFound));
    let read = (&Method::GET, &CallbackProof::Channel(channel_address()));
    assert_eq!(called_as(&bot, &settings(), read, &headers, update), Err(CallbackFault::NotFound));
    // A body that cannot be parsed is answered all the same.
    assert_eq!(called(&bot, &settings(), &headers, b"{\"mess").unwrap(), Callback::default());
}

#[tokio::test]
async fn a_chat_is_not_written_to_twice_in_a_second_and_that_is_no_call() {
    let clock = Arc::new(ManualClock::new(messaging_core::time::Timestamp::from_millis(0)));
    let (fetch, bot) = bot_with(clock.clone());
    let reservation = bot.reserve(&route("-42")).await;
    bot.send(&Outgoing { reservation, ..message("-42", plain("Hi")) }).await.unwrap();
    assert_eq!(bot.reserve(&route("-42")).await.wait(), Some(Duration::from_secs(3)), "a group waits longer");
    clock.advance(Duration::from_secs(1));
    assert_eq!(bot.reserve(&route("43")).await.wait(), None);
    assert_eq!(bot.reserve(&route("43")).await.wait(), Some(Duration::from_secs(1)));
    // A message without a reservation is put off as well.
    let answer = answer_to(&bot, &message("-42", plain("Hi"))).await;
    assert_eq!(answer.class, OutcomeClass::Throttled(Scope::Recipient));
    assert!(answer.asked_wait().is_some());
    assert_eq!(fetch.take().len(), 1);
}

#[tokio::test]
async fn a_turn_that_was_not_used_at_once_is_no_turn_any_more() {
    let clock = Arc::new(ManualClock::new(messaging_core::time::Timestamp::from_millis(0)));
    let (fetch, bot) = bot_with(clock.clone());
    let held_up = bot.reserve(&route("42")).await;
    clock.advance(Duration::from_secs(5));
    bot.send(&message("42", plain("Hi"))).await.unwrap();
    let late = Outgoing { reservation: held_up, ..message("42", plain("Hi")) };
    assert_eq!(answer_to(&bot, &late).await.class, OutcomeClass::Throttled(Scope::Recipient));
    assert_eq!(fetch.take().len(), 1, "both would have left in one moment");
}
