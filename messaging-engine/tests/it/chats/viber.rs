use messaging_core::domain::channel::Channel;
use messaging_testing::fakes::{FakeApi as _, FakeViberBot, Refusal, Report, Signature, Submission};
use serde_json::{Value, json};

use super::Chat;
use crate::bed::{self, Call};

const TO: &str = "+9990000112";

#[tokio::test]
async fn a_bot_is_told_of_its_messages_and_of_who_comes_and_goes() {
    let api = FakeViberBot::new("viber token");
    let settings = |base: &str| json!({"api_base": base, "auth_token": "viber token", "sender": "ACME"});
    let chat = Chat::start(Channel::Viber, "bot", api.clone(), settings).await;
    let url = api.webhook().expect("Viber was told the address");
    let probe = api.event(&url, &json!({"event": "webhook", "timestamp": 1}), Signature::Valid);
    assert_eq!(chat.called(&probe).await, 200);

    for (to, story, listed) in [
        ("+9990000102", "bounced: Queued Bounce", "bounce system"),
        ("+9990000110", "bounced: Queued Bounce", "bounce system blocked"),
        ("+9990000106", "failed: Queued Failed", ""),
        ("+9990000111", "deferred: Queued Deferred", ""),
    ] {
        assert_eq!(chat.story_of(to).await.1, story, "{to}");
        assert_eq!(chat.listed_as(to).await, listed, "{to}");
    }
    let (id, story) = chat.story_of(TO).await;
    assert_eq!(story, "sent: Queued Sent");
    // The number of the fifth message that the fake has read; `set_webhook` has none.
    let submission = Submission { id: "00000005".to_owned(), callback_url: Some(url.clone()), ..Submission::to(TO) };
    let report = |report, signature| api.report(&[(submission.clone(), report)], signature).unwrap();
    for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
        assert_eq!(chat.called(&report(Report::Delivered, signature)).await, 401);
    }
    for said in [Report::Read, Report::Delivered, Report::Read, Report::Failed(Refusal::Soft)] {
        assert_eq!(chat.called(&report(said, Signature::Valid)).await, 200);
    }
    assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered Open");

    let event = |event: serde_json::Value, signature| api.event(&url, &event, signature);
    let leaves = || json!({"event": "unsubscribed", "user_id": TO});
    assert_eq!(chat.called(&event(leaves(), Signature::Forged)).await, 401);
    assert_eq!(chat.listed_as(TO).await, "");
    for _ in 0..2 {
        assert_eq!(chat.called(&event(leaves(), Signature::Valid)).await, 200);
    }
    assert_eq!(chat.listed_as(TO).await, "unsubscribe recipient");
    assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered Open Unsubscribe");
    assert_eq!(chat.last_meta(id).await, json!({"method": "provider"}));
    let comes = json!({"event": "subscribed", "user": {"id": TO}});
    assert_eq!(chat.called(&event(comes, Signature::Valid)).await, 200);
    assert_eq!(chat.listed_as(TO).await, "");
    // Who blocked the bot and writes to it again has let it in.
    let writes = api.inbound(&url, "+9990000110", "hello", Signature::Valid).unwrap();
    assert_eq!(chat.called(&writes).await, 200);
    assert_eq!(chat.listed_as("+9990000110").await, "");
}

/// A bot, with a list of three contacts: Ann has an id of Viber, Bob has only a number, and Cid has Ann's id.
async fn bot_with_contacts() -> (Chat, String, [String; 3]) {
    let settings = |base: &str| json!({"api_base": base, "auth_token": "viber token", "sender": "ACME"});
    let chat = Chat::start(Channel::Viber, "bot", FakeViberBot::new("viber token"), settings).await;
    let list = made(&chat, "lists", json!({"name": "all"})).await["id"].as_str().unwrap().to_owned();
    let mut ids = Vec::new();
    for (name, phone, user) in [
        ("ann", "+14155550101", json!("ann-12")),
        ("bob", "+14155550102", Value::Null),
        ("cid", "+14155550103", json!("ann-12")),
    ] {
        let body = json!({"external_id": name, "phone": phone, "attributes": {"viber_id": user}, "list_ids": [list],
            "consent": {"sms": true}});
        ids.push(made(&chat, "contacts", body).await["id"].as_str().unwrap().to_owned());
    }
    (chat, list, ids.try_into().unwrap())
}

async fn made(chat: &Chat, path: &str, body: Value) -> Value {
    let reply = chat.post(&chat.caller, &format!("/workspaces/{}/{path}", chat.workspace), body).await;
    assert!((200..300).contains(&reply.status), "{path}: {:?}", reply.body);
    reply.body
}

/// The recipients of the messages that the bot was asked to send, in their order.
fn receivers(chat: &Chat) -> Vec<String> {
    let sends = chat.fake.requests().into_iter().filter(|request| request.path().ends_with("/send_message"));
    sends.map(|request| request.json()["receiver"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_bot_sends_to_the_viber_id_of_a_contact_and_to_no_number() {
    let (chat, _, [ann, bob, _]) = bot_with_contacts().await;
    chat.send(&json!({"channel": "viber", "contact_id": ann, "text": "t"})).await;
    let refused = chat.post_message(&json!({"channel": "viber", "contact_id": bob, "text": "t"}), None).await;
    assert!(format!("{refused:?}").contains("ContactAddressMissing"), "{refused:?}");
    // A chain goes there as well.
    let chain = json!({"channel": "viber", "to": "nobody-02", "contact_id": ann, "text": "t",
        "fallback": [{"channel": "viber", "text": "t"}]});
    chat.send(&chain).await;
    chat.pass(std::time::Duration::from_mins(1)).await;
    // The first two are sent at the same time.
    let mut receivers = receivers(&chat);
    receivers[..2].sort_unstable();
    assert_eq!(receivers, ["ann-12", "nobody-02", "ann-12"]);
    let path = format!("/workspaces/{}/contacts/{bob}/explain?channel=viber", chat.workspace);
    assert_eq!(chat.get(&chat.caller, &path).await["reasons"][0]["code"], "no_address");

    let listed = json!({"channel": "viber", "address": "ann-12", "reason": "manual"});
    made(&chat, "suppressions", listed).await;
    assert_eq!(chat.contact(&ann).await["suppressed_channels"], json!(["viber"]));
    let id = chat.send(&json!({"channel": "viber", "contact_id": ann, "text": "t"})).await;
    chat.work().await;
    assert_eq!(chat.story(id).await, "suppressed: Queued Suppressed");
}

#[tokio::test]
async fn campaigns_and_automations_of_a_bot_send_to_viber_ids() {
    let (chat, list, [ann, bob, _]) = bot_with_contacts().await;
    let audience = json!({"channel": "viber", "audience": {"list_ids": [list]}});
    let estimate = made(&chat, "campaigns/preview-audience", audience.clone()).await;
    let breakdown = &estimate["breakdown"];
    let counts = ["matched", "no_address", "duplicates"].map(|name| breakdown[name].clone());
    assert_eq!((&estimate["audience_estimate"], counts), (&json!(1), [3, 1, 1].map(Value::from)));

    let template = made(&chat, "templates", json!({"name": "v", "channel": "viber", "text": "Hello"})).await;
    let mut body = audience;
    body["name"] = json!("c");
    body["template_id"] = template["id"].clone();
    let campaign = made(&chat, "campaigns", body).await;
    let id = campaign["id"].as_str().unwrap();
    made(&chat, &format!("campaigns/{id}/schedule"), json!({"send_now": true})).await;
    chat.work().await;
    assert_eq!(receivers(&chat), ["ann-12"]);
    let stats = chat.get(&chat.caller, &format!("/workspaces/{}/campaigns/{id}/stats", chat.workspace)).await;
    assert_eq!([&stats["sent"], &stats["skipped"]["no_address"], &stats["skipped"]["duplicates"]], [1, 1, 1]);

    let send = json!({"id": "s", "kind": "send", "config": {"template_id": template["id"]}});
    let graph = json!({"nodes": [send], "edges": []});
    let body = json!({"name": "a", "trigger": {"kind": "manual", "config": {}}, "graph": graph});
    let automation = made(&chat, "automations", body).await;
    let path = format!("automations/{}", automation["id"].as_str().unwrap());
    made(&chat, &format!("{path}/activate"), json!({})).await;
    for contact in ["ann", "bob"] {
        made(&chat, &format!("{path}/trigger"), json!({"external_id": contact})).await;
    }
    chat.work().await;
    assert_eq!(receivers(&chat), ["ann-12", "ann-12"]);

    // A simulation of the automation uses the same rule, and the audience of another provider uses the phone number.
    let simulated = async |contact: &str| {
        let body = json!({"contact_id": contact, "events": [], "until": "2026-12-01T00:00:00Z"});
        let found = made(&chat, &format!("{path}/simulate"), body).await;
        let steps = found["steps"].as_array().unwrap().iter();
        steps.map(|step| step["outcome"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([simulated(&bob).await, simulated(&ann).await], ["entered skipped completed", "entered sent completed"]);
    let settings = json!({"provider": "sandbox", "config": {}});
    let at = format!("/workspaces/{}/channels/viber", chat.workspace);
    let put = Call::new(&chat.caller, http::Method::PUT, &at).body(&settings);
    assert_eq!(bed::send(&chat.app, put).await.summary(), "200");
    let estimate =
        made(&chat, "campaigns/preview-audience", json!({"channel": "viber", "audience": {"list_ids": [list]}}));
    assert_eq!(estimate.await["audience_estimate"], 3);
}
