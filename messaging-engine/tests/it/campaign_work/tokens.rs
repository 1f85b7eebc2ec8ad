//! Contacts who have addresses in common: contract section 12.5, "Freeze".

use messaging_core::ids::CampaignId;
use serde_json::json;

use super::Mailing;
use crate::bed::{self, Call};

#[tokio::test]
async fn a_contact_whose_first_token_another_has_gets_it_at_the_next_one() {
    let mailing = Mailing::start(0, 1).await;
    let settings = json!({"provider": "sandbox", "config": {}});
    let path = mailing.at("channels/push");
    let put = Call::new(&mailing.caller, http::Method::PUT, &path).body(&settings);
    assert_eq!(bed::send(&mailing.app, put).await.summary(), "200");
    for (name, tokens) in [
        ("ann", &["one"][..]),
        ("bob", &["one", "two"]),
        ("cid", &["two", "one"]),
        ("dan", &["two", "three", "four"]),
        ("eve", &["four", "one", "five"]),
    ] {
        mailing.add([json!({"external_id": name, "attributes": {"push_token": tokens}})]).await;
    }
    let template = json!({"name": "p", "channel": "push", "subject": "s", "text": "t"});
    let template = mailing.post(&mailing.caller, &mailing.at("templates"), template).await;
    assert_eq!(template.summary(), "201");
    let id: CampaignId = mailing.send(json!({"channel": "push", "template_id": template["id"]})).await;
    mailing.work().await;
    // Whoever has none left is a duplicate; `four` is Dan's, though he gets it at `three`.
    assert_eq!(mailing.tally(id).await, "delivered 4");
    let to: Vec<_> = mailing.messages(id).await.into_iter().map(|message| message.to).collect();
    assert_eq!(to, ["five", "one", "three", "two"]);
    let stats = mailing.get(&mailing.caller, &mailing.at(&format!("campaigns/{id}/stats"))).await;
    assert_eq!(stats["skipped"]["duplicates"], 1);
}
