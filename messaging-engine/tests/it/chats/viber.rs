use messaging_core::domain::channel::Channel;
use messaging_transport::testing::fakes::{FakeApi as _, FakeViberBot, Refusal, Report, Signature, Submission};
use serde_json::json;

use super::Chat;

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
    // The fifth message that was read, and one call that said where to call before.
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
