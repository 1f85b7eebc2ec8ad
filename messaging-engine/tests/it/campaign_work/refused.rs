//! A recipient whose message the store refuses for good is passed by, and keeps none of the others waiting.

use messaging_core::changes::{JobWrite, Write};
use messaging_engine::{App, Caller};
use serde_json::{Value, json};

use super::Mailing;
use crate::mortal::MortalStore;

const POISON: &str = "poison@poison.example";

impl Mailing {
    /// Sends a campaign to forty contacts and the one, on a store that refuses some writes.
    async fn send_refusing(refused: fn(&Write) -> bool) -> (Self, App, String) {
        let mailing = Self::start(40, 3).await;
        mailing.add([json!({"email": POISON})]).await;
        let app = mailing.another_process_on(MortalStore::refusing(mailing.store.clone(), refused));
        let id = mailing.send(json!({})).await;
        app.run_until_idle().await.unwrap();
        assert_eq!(mailing.status(id).await, "sent");
        let tally = mailing.tally(id).await;
        (mailing, app, tally)
    }

    /// Kind and subject of the one item that was put aside.
    async fn put_aside(&self) -> [Value; 2] {
        let found = self.get(&Caller::Operator(None), "/system").await["quarantined"].clone();
        assert_eq!(found["count"], 1, "{found}");
        assert!(found["newest"][0]["reason"].as_str().unwrap().contains("too large"), "{found}");
        ["kind", "subject"].map(|name| found["newest"][0][name].clone())
    }
}

#[tokio::test]
async fn a_recipient_whose_message_is_refused_is_passed_by() {
    let is_poison = |write: &Write| match write {
        Write::InsertWaiting(_, _, waiting) => waiting.iter().any(|new| new.message.to == POISON),
        _ => false,
    };
    let (mailing, _, tally) = Mailing::send_refusing(is_poison).await;
    assert_eq!(tally, "cancelled 1, delivered 40");
    let found = mailing.get(&mailing.caller, &mailing.at(&format!("contacts?email={POISON}"))).await;
    assert_eq!(mailing.put_aside().await, [json!("campaign_recipient"), found["data"][0]["id"].clone()]);
}

#[tokio::test]
async fn a_message_whose_delivery_is_refused_is_withdrawn() {
    let is_poison = |write: &Write| match write {
        Write::Job(JobWrite::Enqueue(job)) => job.lane.to_string().contains("poison"),
        _ => false,
    };
    let (mailing, app, tally) = Mailing::send_refusing(is_poison).await;
    assert_eq!(tally, "cancelled 1, delivered 40");
    assert_eq!(mailing.put_aside().await[0], "campaign_message");
    assert!(app.metrics_page(0).await.contains("messaging_quarantined_total 1"));
}
