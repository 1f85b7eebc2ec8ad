//! Campaigns of a database that came from a copy. Contract section 22.

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::CampaignId;
use messaging_engine::Caller;
use messaging_engine::admin::{self, Queued};
use serde_json::json;

use super::{HOUR, MINUTE, Mailing, SECOND};

impl Mailing {
    /// Makes a copy of the installation, as a server finds it that starts on it.
    async fn restore(&self) {
        self.clock.advance(SECOND);
        let fence = Fence::held(self.app.now());
        self.commit(Changes::from_iter([Write::PutFence(Some(fence), None)])).await;
        self.app.look_at_fence().await.unwrap();
        self.app.prepare_to_work().await.unwrap();
    }

    async fn hours_pass(&self, hours: u32) {
        for _ in 0..hours {
            self.pass(HOUR).await;
        }
    }

    /// `paused restored`
    async fn state(&self, id: CampaignId) -> String {
        let view = self.view(id).await;
        format!("{} {}", view["status"].as_str().unwrap(), view["pause_reason"].as_str().unwrap_or("-"))
    }

    /// One that is being sent and has been to some, and one that is scheduled.
    async fn under_way(&self) -> [CampaignId; 2] {
        let sending = self.send(json!({"settings": {"rate_limit": 60}})).await;
        let scheduled = self.campaign(json!({})).await;
        self.act(scheduled, "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
        self.work().await;
        let begun = self.attempts();
        assert!((1..60).contains(&begun), "{begun}");
        [sending, scheduled]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_taken_while_a_campaign_is_sent_sends_nothing_until_told() {
    let mailing = Mailing::start(60, 3).await;
    let [sending, scheduled] = mailing.under_way().await;
    let begun = mailing.attempts();
    mailing.restore().await;
    for id in [sending, scheduled] {
        assert_eq!(mailing.state(id).await, "paused restored");
    }
    // A campaign that is scheduled from now on waits as well.
    let new = mailing.send(json!({})).await;
    mailing.hours_pass(5).await;
    assert_eq!(mailing.attempts(), begun);
    assert_eq!(mailing.state(new).await, "scheduled -");

    admin::resume(&mailing.app, Queued::Send).await.unwrap();
    mailing.pass(MINUTE).await;
    // A paused campaign continues when a person schedules it, and no contact gets it twice.
    assert_eq!((mailing.state(sending).await, mailing.state(new).await), ("paused restored".into(), "sent -".into()));
    for id in [sending, scheduled] {
        mailing.act(id, "schedule", json!({"send_now": true})).await;
    }
    // Its rate limit lets six begin in six seconds.
    for _ in 0..20 {
        mailing.pass(SECOND * 6).await;
    }
    for id in [sending, scheduled, new] {
        assert_eq!((mailing.tally(id).await.as_str(), mailing.state(id).await.as_str()), ("delivered 60", "sent -"));
    }
    assert_eq!(mailing.attempts(), 180);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_cancel_no_campaign_from_before_is_ever_sent() {
    let mailing = Mailing::start(60, 3).await;
    let [sending, scheduled] = mailing.under_way().await;
    let begun = mailing.attempts();
    mailing.restore().await;
    admin::resume(&mailing.app, Queued::Cancel).await.unwrap();
    mailing.work().await;
    assert!(mailing.app.fence().is_none());
    mailing.hours_pass(5).await;
    for id in [sending, scheduled] {
        assert_eq!(mailing.state(id).await, "cancelled -");
    }
    let operator = Caller::Operator(Some(mailing.workspace));
    let audit = mailing.get(&operator, &mailing.at("audit?actor=system")).await;
    let told: Vec<_> = audit["data"].as_array().unwrap().iter().map(|entry| entry["operation"].clone()).collect();
    assert_eq!(told, ["cancelCampaign", "cancelCampaign", "pauseCampaign", "pauseCampaign"]);
    assert_eq!(mailing.tally(sending).await, format!("cancelled {}, delivered {begun}", 60 - begun));
    assert_eq!(mailing.attempts(), begun);
    let new = mailing.send(json!({})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(new).await, "delivered 60");
}

/// Asked why a contact has not got a campaign, the server names the fence: before the audience is known, while a
/// message waits, and without a campaign.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_a_contact_asks_the_fence() {
    let mailing = Mailing::start(60, 3).await;
    let [sending, scheduled] = mailing.under_way().await;
    let waits = mailing.messages(sending).await.into_iter().find(|one| one.status == MessageStatus::Queued).unwrap();
    let contact = waits.contact_id.unwrap();
    let told = async |of: Option<CampaignId>| {
        let query = of.map_or("channel=email".to_owned(), |id| format!("campaign_id={id}"));
        let path = mailing.at(&format!("contacts/{contact}/explain?{query}"));
        let reply = mailing.get(&mailing.caller, &path).await;
        assert_eq!(reply.summary(), "200");
        let tells = |reasons: &serde_json::Value| {
            let held = |reason: &&serde_json::Value| reason["code"] == "held" && reason["since"].is_string();
            reasons
                .as_array()
                .unwrap()
                .iter()
                .filter(held)
                .any(|reason| reason["text"].to_string().contains("came from a copy"))
        };
        assert_eq!(reply["would_send"] == true, reply["reasons"] == json!([]));
        (tells(&reply["reasons"]), tells(&reply["transactional"]["reasons"]))
    };
    assert_eq!(told(Some(sending)).await, (false, false));
    mailing.restore().await;
    let new = mailing.send(json!({})).await;
    for of in [Some(sending), Some(scheduled), Some(new), None] {
        assert_eq!(told(of).await, (true, true), "{of:?}");
    }
    admin::resume(&mailing.app, Queued::Send).await.unwrap();
    for of in [Some(scheduled), Some(new), None] {
        assert_eq!(told(of).await, (false, false), "{of:?}");
    }
}
