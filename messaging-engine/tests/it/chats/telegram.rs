use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_testing::fakes::{Case, FakeAnswer, FakeApi as _, FakeTelegram, Signature};
use serde_json::{Value, json};

use super::Chat;

const SECOND: Duration = Duration::from_secs(1);

async fn telegram() -> (Chat, FakeTelegram) {
    let api = FakeTelegram::new("1:token");
    let settings = |base: &str| json!({"api_base": base, "bot_token": "1:token"});
    (Chat::start(Channel::Telegram, "bot_api", api.clone(), settings).await, api)
}

impl Chat {
    /// The bodies of the messages that were sent.
    fn sent(&self) -> Vec<Value> {
        let requests = self.fake.requests().into_iter();
        requests.filter(|request| request.path().ends_with("/sendMessage")).map(|request| request.json()).collect()
    }

    /// The texts of those to one chat.
    fn texts_to(&self, to: &str) -> Vec<String> {
        let sent = self.sent().into_iter().filter(|body| body["chat_id"].to_string().trim_matches('"') == to);
        sent.map(|body| body["text"].as_str().unwrap().to_owned()).collect()
    }

    async fn kinds(&self, id: MessageId, kind: &str) -> usize {
        self.story(id).await.matches(kind).count()
    }
}

#[tokio::test]
async fn what_telegram_answers_decides_about_message_and_chat() {
    let (chat, _) = telegram().await;
    for (to, story, listed, meta) in [
        ("1001", "delivered: Queued Sent Delivered", "", json!({"response": "taken"})),
        ("1002", "bounced: Queued Bounce", "bounce system", json!({"bounce_class": "invalid_recipient"})),
        ("1010", "bounced: Queued Bounce", "bounce system blocked", json!({"bounce_class": "blocked"})),
        ("1006", "failed: Queued Failed", "", json!({"reason": "render_error"})),
        ("1004", "deferred: Queued Deferred", "", json!({"provider_code": "500", "attempt": 1})),
        ("1032", "deferred: Queued Deferred", "", json!({"ambiguous": true})),
    ] {
        let (id, found) = chat.story_of(to).await;
        assert_eq!(found, story, "{to}");
        assert_eq!(chat.listed_as(to).await, listed, "{to}");
        let found = chat.last_meta(id).await;
        for (name, value) in meta.as_object().unwrap() {
            assert_eq!(&found[name], value, "{to}: {found}");
        }
    }
    // A recipient that blocked the bot is sent nothing more.
    let id = chat.message("1010").await;
    chat.pass(SECOND * 2).await;
    assert_eq!(chat.story(id).await, "suppressed: Queued Suppressed");
    assert_eq!(chat.shown().await["status"], "active");
}

#[tokio::test]
async fn a_message_that_waits_for_its_chat_says_so() {
    let (chat, _) = telegram().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(chat.message("1001").await);
    }
    chat.work().await;
    let waits: Vec<_> = futures_util::future::join_all(ids.iter().map(|id| chat.report(*id))).await;
    let waits: Vec<_> = waits.into_iter().filter(|report| report.status.as_str() == "queued").collect();
    assert!(!waits.is_empty(), "one a second goes to a chat");
    for report in waits {
        assert_eq!(report.explanation.code, "recipient_throttled", "{:?}", report.explanation);
        assert!(report.explanation.next_attempt_at.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_to_one_chat_leave_in_the_order_in_which_they_were_accepted() {
    let (chat, _) = telegram().await;
    let mut others = Vec::new();
    for number in 0..12 {
        // Messages with a short `ttl` have a separate lane.
        for (to, options) in [("1001", json!({})), ("2001", json!({"ttl": 3600}))] {
            let message = json!({"channel": "telegram", "to": to, "text": number.to_string(), "options": options});
            chat.send(&message).await;
        }
        others.push(chat.message(&format!("30{number:02}01")).await);
    }
    chat.work().await;
    for _ in 0..5 {
        chat.pass(SECOND).await;
    }
    for id in others {
        assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered", "other chats wait for nobody");
    }
    for _ in 0..30 {
        chat.pass(SECOND).await;
    }
    let expected: Vec<_> = (0..12).map(|number| number.to_string()).collect();
    for to in ["1001", "2001"] {
        assert_eq!(chat.texts_to(to), expected, "{to}");
    }
}

#[tokio::test]
async fn a_message_that_is_put_off_for_a_moment_keeps_its_place_in_its_chat() {
    let (chat, _) = telegram().await;
    let says = async |text: &str| chat.send(&json!({"channel": "telegram", "to": "1001", "text": text})).await;
    let fails = || chat.fake.next_answer(FakeAnswer::json(500, &json!({"ok": false, "error_code": 500})));
    fails();
    says("first").await;
    chat.work().await;
    let second = says("second").await;
    chat.pass(SECOND * 2).await;
    assert_eq!(chat.story(second).await, "queued: Queued", "the first is tried again after five seconds");
    for _ in 0..8 {
        chat.pass(SECOND).await;
    }
    assert_eq!(chat.texts_to("1001"), ["first", "first", "second"]);

    // A message that is postponed for minutes delays no other one.
    for _ in 0..4 {
        fails();
    }
    says("third").await;
    chat.work().await;
    for _ in 0..60 {
        chat.pass(SECOND * 2).await;
    }
    says("fourth").await;
    chat.pass(SECOND).await;
    let texts = chat.texts_to("1001");
    assert_eq!(texts[3..], ["third", "third", "third", "third", "fourth"], "{texts:?}");
    // A scheduled message does not hold back others to its chat.
    let later = json!({"channel": "telegram", "to": "4001", "text": "later", "send_at": "2026-02-02T09:00:00Z"});
    chat.send(&later).await;
    chat.work().await;
    let now = chat.message("4001").await;
    chat.work().await;
    assert_eq!(chat.story(now).await, "delivered: Queued Sent Delivered");
}

#[tokio::test]
async fn a_chat_stops_blocks_and_comes_back() {
    let (chat, api) = telegram().await;
    let url = api.webhook().expect("Telegram was told the address");
    assert_eq!(chat.shown().await["callback_url"], json!(url));
    let (id, _) = chat.story_of("4201").await;
    let says = |text: &str, signature| api.inbound(&url, "4201", text, signature).unwrap();
    for signature in [Signature::Forged, Signature::Missing] {
        assert_eq!(chat.called(&says("/stop", signature)).await, 401);
    }
    assert_eq!(chat.listed_as("4201").await, "", "nothing of it is believed");

    let stop = says("/stop", Signature::Valid);
    for _ in 0..3 {
        assert_eq!(chat.called(&stop).await, 200);
    }
    assert_eq!(chat.listed_as("4201").await, "unsubscribe recipient");
    assert_eq!(chat.kinds(id, "Unsubscribe").await, 1, "the same update has one effect");
    assert_eq!(chat.last_meta(id).await, json!({"method": "keyword"}));
    assert_eq!(chat.called(&says("/start", Signature::Valid)).await, 200);
    assert_eq!(chat.listed_as("4201").await, "");

    let member = |before: &str, after: &str| api.membership(&url, 4201, before, after, Signature::Valid);
    for _ in 0..2 {
        assert_eq!(chat.called(&member("member", "kicked")).await, 200);
    }
    assert_eq!(chat.listed_as("4201").await, "bounce system blocked");
    assert_eq!(chat.kinds(id, "Unsubscribe").await, 2);
    assert_eq!(chat.last_meta(id).await, json!({"method": "blocked"}));
    assert_eq!(chat.called(&member("kicked", "member")).await, 200);
    assert_eq!(chat.listed_as("4201").await, "");
    // A suppression because of Telegram's answer is lifted by a message of the recipient.
    chat.story_of("4210").await;
    assert_eq!(chat.listed_as("4210").await, "bounce system blocked");
    assert_eq!(chat.called(&api.inbound(&url, "4210", "hello", Signature::Valid).unwrap()).await, 200);
    assert_eq!(chat.listed_as("4210").await, "");
}

#[tokio::test]
async fn a_group_that_moved_is_followed_and_its_contact_remembers() {
    let (chat, _) = telegram().await;
    let group = json!({"external_id": "group", "attributes": {"telegram_chat_id": -7701}});
    let contact = chat.upsert_contact(&group).await["id"].as_str().unwrap().to_owned();
    let parameters = json!({"migrate_to_chat_id": -1_007_701});
    let description = "Bad Request: group chat was upgraded to a supergroup chat";
    let moved = json!({"ok": false, "error_code": 400, "description": description, "parameters": parameters});
    chat.fake.next_answer(FakeAnswer::json(400, &moved));
    let id = chat.send(&json!({"channel": "telegram", "contact_id": contact, "text": "Hi"})).await;
    chat.work().await;
    assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered");
    assert_eq!(chat.contact(&contact).await["attributes"]["telegram_chat_id"], json!(-1_007_701));
    chat.send(&json!({"channel": "telegram", "contact_id": contact, "text": "Hi"})).await;
    chat.work().await;
    let chats: Vec<_> = chat.sent().iter().map(|body| body["chat_id"].clone()).collect();
    assert_eq!(chats, [json!(-7701), json!(-1_007_701), json!(-1_007_701)]);
}

#[tokio::test]
async fn a_bot_that_is_too_fast_rests_as_a_whole() {
    let (chat, _) = telegram().await;
    let (first, story) = chat.story_of("1020").await;
    assert_eq!(story, "deferred: Queued Deferred");
    let others = [chat.message("2001").await, chat.message("2101").await];
    chat.pass(SECOND * 6).await;
    assert_eq!(chat.sent().len(), 1, "Telegram said seven seconds");
    assert_eq!(chat.shown().await["status"], "throttled");
    for _ in 0..3 {
        chat.fake.next(Case::of("1"));
    }
    chat.pass(SECOND).await;
    chat.pass(SECOND * 60).await;
    for id in others {
        assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered");
    }
    assert_eq!(chat.kinds(first, "Deferred").await, 1);
}

#[tokio::test]
async fn a_token_that_is_refused_stops_the_channel() {
    let (chat, _) = telegram().await;
    let (_, story) = chat.story_of("1009").await;
    assert_eq!(story, "deferred: Queued Deferred");
    let waits = chat.message("2001").await;
    chat.pass(SECOND * 60).await;
    assert_eq!(chat.sent().len(), 1);
    let shown = chat.shown().await;
    assert_eq!((&shown["status"], &shown["error"]), (&json!("failing"), &json!("Unauthorized")));
    assert_eq!(chat.story(waits).await, "queued: Queued");
}

#[tokio::test]
async fn messages_to_one_chat_keep_its_pace_and_hold_up_nobody() {
    let (chat, _) = telegram().await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(chat.message("5001").await);
    }
    let other = chat.message("6001").await;
    chat.work().await;
    assert_eq!(chat.story(other).await, "delivered: Queued Sent Delivered");
    let of_one = || chat.sent().iter().filter(|body| body["chat_id"] == 5001).count();
    assert_eq!(of_one(), 1);
    for more in 2..=4 {
        chat.pass(SECOND).await;
        assert!(of_one() <= more, "one a second");
    }
    chat.pass(SECOND).await;
    for id in ids {
        assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered", "waiting is no attempt");
    }
}

#[tokio::test]
async fn an_update_that_is_repeated_changes_nothing_twice_not_even_after_a_restart() {
    let (chat, api) = telegram().await;
    let url = api.webhook().expect("Telegram was told the address");
    let (id, _) = chat.story_of("4201").await;
    let says = |text: &str| api.inbound(&url, "4201", text, Signature::Valid).unwrap();
    let (stop, start, again) = (says("/stop"), says("/start"), says("/stop"));
    for update in [&stop, &start] {
        assert_eq!(chat.called(update).await, 200);
    }
    assert_eq!(chat.listed_as("4201").await, "");
    // Telegram did not get the answer to the first update, and repeats it, to this process and to one that has just
    // started.
    assert_eq!(chat.called(&stop).await, 200);
    let restarted = chat.another_process();
    assert_eq!(chat.called_at(&restarted, &stop).await, 200);
    assert_eq!(chat.listed_as("4201").await, "", "the last word counts");
    assert_eq!(chat.kinds(id, "Unsubscribe").await, 1);
    // An update with the same text but another number is a new one.
    assert_eq!(chat.called_at(&restarted, &again).await, 200);
    assert_eq!(chat.called(&start).await, 200);
    assert_eq!(chat.listed_as("4201").await, "unsubscribe recipient");
    assert_eq!(chat.kinds(id, "Unsubscribe").await, 2);
}
