//! A campaign of which an operator has suspended a part of the queue. Contract section 26.

use messaging_engine::Caller;
use serde_json::{Value, json};

use super::Mailing;

impl Mailing {
    /// Carries out an action on the queue; returns the number of messages affected.
    async fn on_queue(&self, action: &str, body: Value) -> u64 {
        let reply = self.post(&Caller::Operator(None), &format!("/system/queue/{action}"), body).await;
        assert_eq!(reply.summary(), "200", "{action}");
        reply["messages"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn a_suspended_part_of_a_campaign_waits_and_all_else_goes_on() {
    let mailing = Mailing::start(120, 2).await;
    let (id, other) = (mailing.campaign(json!({})).await, mailing.campaign(json!({})).await);
    let part = || json!({"domain": "d0.example", "campaign_id": id});
    assert_eq!(mailing.on_queue("suspend", part()).await, 0);
    for campaign in [id, other] {
        mailing.act(campaign, "schedule", json!({"send_now": true})).await;
    }
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 60, queued 60");
    assert_eq!(mailing.tally(other).await, "delivered 120");
    for message in mailing.messages(id).await.iter().filter(|message| message.to.ends_with("@d0.example")) {
        let report = serde_json::to_value(mailing.report(message.id).await).unwrap();
        let told = json!([report["hold"]["reason"], report["explanation"]["cure"]["body"]]);
        assert_eq!(told, json!(["paused", part()]));
    }

    // The messages that were released already.
    let resumed = mailing.on_queue("resume", json!({"campaign_id": id})).await;
    assert!((1..=60).contains(&resumed), "{resumed}");
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 120");
    assert_eq!(mailing.status(id).await, "sent");
}

#[tokio::test]
async fn what_is_cancelled_by_hand_is_no_longer_waited_for() {
    let mailing = Mailing::start(20, 1).await;
    let id = mailing.campaign(json!({})).await;
    let part = || json!({"campaign_id": id});
    mailing.on_queue("suspend", part()).await;
    mailing.act(id, "schedule", json!({"send_now": true})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "queued 20");
    assert_eq!(mailing.on_queue("cancel", part()).await, 20);
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "cancelled 20");
    assert_eq!(mailing.status(id).await, "sent");
    mailing.on_queue("resume", part()).await;
    mailing.work().await;
    assert_eq!((mailing.attempts(), mailing.store.job_count().await.unwrap()), (0, 0));
}
