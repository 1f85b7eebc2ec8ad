//! Contacts who have addresses in common: contract section 12.5, "Freeze".

use std::time::Duration;

use messaging_core::changes::Write;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::CampaignId;
use messaging_testing::fakes::{Case, FakeProvider, Order};
use serde_json::{Value, json};

use super::{HOUR, MINUTE, Mailing};
use crate::bed::{self, Call};
use crate::push::Phones;

/// A campaign's push messages to phones.
struct PushMailing {
    mailing: Mailing,
    fcm: FakeProvider,
    template: Value,
}

impl PushMailing {
    /// Contacts with these tokens, each named on its own.
    async fn to(contacts: &[&[&str]]) -> Self {
        let Phones { product, fcm, .. } = Phones::start().await;
        let mailing = Mailing::on(product, 0, 1).await;
        for (number, tokens) in contacts.iter().enumerate() {
            mailing.add([json!({"external_id": number.to_string(), "attributes": {"push_token": tokens}})]).await;
        }
        let template = json!({"name": "p", "channel": "push", "subject": "s", "text": "t"});
        let template = mailing.post(&mailing.caller, &mailing.at("templates"), template).await;
        Self { mailing, fcm, template: template["id"].clone() }
    }

    async fn send(&self, settings: Value) -> CampaignId {
        let body = json!({"channel": "push", "template_id": self.template, "settings": settings});
        let id = self.mailing.send(body).await;
        self.mailing.work().await;
        id
    }

    /// The tokens that Firebase was asked to deliver to, in their order.
    fn targets(&self) -> Vec<String> {
        let requests = self.fcm.requests();
        let sends = requests.iter().filter(|request| request.path() != "/token");
        let mut targets: Vec<_> =
            sends.map(|one| one.json()["message"]["token"].as_str().unwrap().to_owned()).collect();
        targets.sort();
        targets
    }

    /// Status and events of the message to a token.
    async fn story(&self, id: CampaignId, to: &str) -> String {
        let messages = self.mailing.messages(id).await;
        let message = messages.iter().find(|message| message.to == to).expect("a message");
        self.mailing.story(message.id).await
    }

    async fn stats(&self, id: CampaignId) -> Value {
        self.mailing.get(&self.mailing.caller, &self.mailing.at(&format!("campaigns/{id}/stats"))).await.body
    }

    async fn suppress(&self, token: &str, reason: SuppressionReason) {
        let Write::PutSuppression(listing, expect) = self.mailing.suppression(token, reason) else { unreachable!() };
        let listing = Suppression { channel: Channel::Push, ..listing };
        self.mailing.commit([Write::PutSuppression(listing, expect)].into_iter().collect()).await;
    }

    async fn is_suppressed(&self, token: &str) -> bool {
        let asked = [token.to_owned()];
        !self.mailing.store.suppressed(self.mailing.workspace, Channel::Push, &asked).await.unwrap().is_empty()
    }
}

#[tokio::test]
async fn a_campaign_sends_to_every_device_of_a_contact_and_to_none_of_anothers() {
    let push = PushMailing::to(&[&["a-02", "a-01", "a-11"], &["b-01"], &["b-01", "c-01"], &["c-01", "b-01"]]).await;
    let id = push.send(json!({})).await;
    assert_eq!(push.mailing.tally(id).await, "delivered 3");
    assert_eq!(push.targets(), ["a-01", "a-02", "a-11", "b-01", "c-01"]);
    assert_eq!(push.story(id, "a-02").await, "delivered: Queued Bounce Sent Delivered");
    // A message counts once, whatever its devices answered; only the dead device is suppressed.
    let stats = push.stats(id).await;
    let shown = ["recipients", "sent", "delivered", "bounces"].map(|name| stats[name].clone());
    assert_eq!((shown, &stats["skipped"]["duplicates"]), ([3, 3, 3, 0].map(Value::from), &json!(1)));
    assert_eq!([push.is_suppressed("a-02").await, push.is_suppressed("a-01").await], [true, false]);
}

#[tokio::test]
async fn devices_that_were_put_off_are_tried_again_after_the_campaign_was_sent() {
    let push = PushMailing::to(&[&["x-01"], &["a-02", "x-01", "a-04"]]).await;
    let id = push.send(json!({})).await;
    assert_eq!(push.mailing.status(id).await, "sent");
    assert_eq!(push.story(id, "a-02").await, "deferred: Queued Bounce Deferred");
    push.fcm.next(Case::Accepted(&[], Order::InOrder));
    push.mailing.pass(MINUTE).await;
    assert_eq!(push.story(id, "a-02").await, "delivered: Queued Bounce Deferred Sent Delivered");
    assert_eq!(push.targets(), ["a-02", "a-04", "a-04", "x-01"], "the token of another is not sent to");
    // Skipped devices are forgotten once no attempt is left.
    let contact =
        push.mailing.messages(id).await.into_iter().find_map(|one| one.contact_id.filter(|_| one.to == "a-02"));
    let left_in = async || {
        let (workspace, asked) = (push.mailing.workspace, vec!["x-01".to_owned(), "a-04".to_owned()]);
        push.mailing.store.addresses_left_in(workspace, id, Channel::Push, contact.unwrap(), asked).await.unwrap().len()
    };
    push.mailing.pass(100 * HOUR).await;
    messaging_engine::work::sweep::sweep(&push.mailing.app).await.unwrap();
    assert_eq!(left_in().await, 1);
    push.mailing.clock.advance(100 * HOUR);
    messaging_engine::work::sweep::sweep(&push.mailing.app).await.unwrap();
    assert_eq!(left_in().await, 2);
}

#[tokio::test]
async fn a_message_of_a_campaign_goes_to_the_devices_that_are_not_suppressed_by_then() {
    let push = PushMailing::to(&[&["a-01", "a-12"], &["b-01", "b-12"], &["c-01"]]).await;
    let quiet = json!({"quiet_hours": {"start": "09:00", "end": "10:00"}});
    let id = push.send(quiet).await;
    assert_eq!(push.mailing.tally(id).await, "queued 3");
    for (token, reason) in [
        ("a-01", SuppressionReason::Unsubscribe),
        ("b-01", SuppressionReason::Manual),
        ("b-12", SuppressionReason::Unsubscribe),
    ] {
        push.suppress(token, reason).await;
    }
    push.mailing.pass(Duration::from_hours(1)).await;
    assert_eq!(push.mailing.tally(id).await, "delivered 2, suppressed 1");
    assert_eq!(push.targets(), ["a-12", "c-01"]);
    assert_eq!(push.story(id, "b-01").await, "suppressed: Queued Suppressed");
    assert_eq!(push.stats(id).await["skipped"]["suppressed"], 1);
}

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
    // A contact without a token left is a duplicate; `four` is Dan's, though he gets it at `three`.
    assert_eq!(mailing.tally(id).await, "delivered 4");
    let to: Vec<_> = mailing.messages(id).await.into_iter().map(|message| message.to).collect();
    assert_eq!(to, ["five", "one", "three", "two"]);
    let stats = mailing.get(&mailing.caller, &mailing.at(&format!("campaigns/{id}/stats"))).await;
    assert_eq!(stats["skipped"]["duplicates"], 1);
}
