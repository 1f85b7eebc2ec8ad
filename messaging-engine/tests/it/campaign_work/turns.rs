//! Campaigns side by side: none waits for another's messages, and waiting messages report the reason. Contract sections
//! 4.2 and 19.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::ids::CampaignId;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Outgoing, Sent, TransportError};
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Mailing, SECOND};
use crate::support::Product;

/// Carries nothing to some people until it is let go on.
#[derive(Debug)]
struct Jam {
    inner: MemoryTransport,
    /// Number of messages that the transport holds back.
    stuck: watch::Sender<usize>,
    goes_on: watch::Sender<bool>,
}

#[async_trait]
impl Transport for Jam {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        if outgoing.recipients.iter().any(|to| to.starts_with('p')) {
            self.stuck.send_modify(|stuck| *stuck += 1);
            self.goes_on.subscribe().wait_for(|goes_on| *goes_on).await.expect("the sender is ours");
        }
        self.inner.send(outgoing).await
    }
}

impl Mailing {
    /// Another list, of these people.
    async fn list_of(&self, addresses: &[&str]) -> String {
        let list = self.post(&self.caller, &self.at("lists"), json!({"name": addresses[0]})).await;
        let list = list["id"].as_str().unwrap().to_owned();
        self.add(addresses.iter().map(|email| json!({"email": email, "list_ids": [list]}))).await;
        list
    }

    /// The holds of a campaign's messages, as its listing and each message tell them.
    async fn told(&self, id: CampaignId) -> Vec<(Value, Value)> {
        let recipients = self.get(&self.caller, &self.at(&format!("campaigns/{id}/recipients?outcome=waiting"))).await;
        let mut told = Vec::new();
        for line in recipients["data"].as_array().unwrap() {
            let id = line["message_id"].as_str().unwrap();
            let message = self.get(&self.caller, &format!("/messages/{id}")).await.body;
            assert_eq!(message["explanation"]["code"], message["hold"]["reason"]);
            told.push((line["reason"].clone(), message["hold"].clone()));
        }
        told
    }
}

/// A mail server does not answer one campaign; many small ones of the same workspace are still sent to its domain.
#[tokio::test]
async fn a_campaign_does_not_wait_behind_another() {
    let jam = Arc::new(Jam {
        inner: MemoryTransport::default(),
        stuck: watch::Sender::new(0),
        goes_on: watch::Sender::new(false),
    });
    let mailing = Mailing::on(Product::carried_by(Arc::clone(&jam) as Arc<dyn Transport>).await, 100, 1).await;
    let large = mailing.send(json!({})).await;
    let work = tokio::spawn({
        let app = mailing.app.clone();
        async move { app.run_until_idle().await }
    });
    jam.stuck.subscribe().wait_for(|stuck| *stuck == 24).await.unwrap();
    let turn = (json!("domain_pace"), json!({"reason": "domain_pace", "until": null}));
    let told = mailing.told(large).await;
    assert!(told.len() >= 50 && told.iter().all(|one| *one == turn), "{told:?}");
    let list = mailing.list_of(&["a@d0.example", "b@d0.example", "c@d0.example"]).await;
    let mut small = Vec::new();
    for _ in 0..10 {
        small.push(mailing.send(json!({"audience": {"list_ids": [list]}})).await);
    }
    mailing.app.run_until_idle().await.unwrap();
    for id in small {
        assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 3", "sent"));
    }
    jam.goes_on.send_replace(true);
    work.await.unwrap().unwrap();
    assert_eq!((mailing.tally(large).await.as_str(), mailing.status(large).await.as_str()), ("delivered 100", "sent"));
    assert_eq!(mailing.told(large).await, []);
}

/// A message that fails before its attempt has used nothing of the rate limit: another goes in its place at once.
#[tokio::test]
async fn a_message_that_fails_before_its_attempt_gives_its_place_back() {
    let mailing = Mailing::start(30, 1).await;
    let path = mailing.at(&format!("templates/{}", mailing.template));
    let text = "{{ broken | default(1) * 3 }} {{ unsubscribe_url }}";
    let changed =
        json!({"name": "t", "channel": "email", "subject": "s", "from_email": "shop@sandbox.test", "text": text});
    let changed = mailing.patch(&mailing.caller, &path, changed).await;
    assert_eq!(changed.summary(), "200", "{:?}", changed.body);
    // The first ten cannot be rendered.
    mailing.add((0..10).map(|n| json!({"email": format!("p{n}@d0.example"), "attributes": {"broken": "x"}}))).await;
    let id = mailing.send(json!({"settings": {"rate_limit": 100}})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 10, failed 10, queued 10");
    mailing.pass(7 * SECOND).await;
    assert_eq!(mailing.tally(id).await, "delivered 20, failed 10");
}
