//! Campaigns from the start to the last message. Contract sections 12.2, 12.3, 12.5 and 19.

mod ab_test;
mod ends;
mod refused;
mod restored;
mod suspended;
mod time;
mod tokens;
mod turns;

use std::ops::Deref;
use std::time::Duration;

use messaging_core::domain::analytics::tally::{self, Counts, Row};
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::message::Message;
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::{CampaignMessageFilter, PageRequest};
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::support::Product;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// A workspace with a list, a template, and contacts on the list.
pub(crate) struct Mailing {
    product: Product,
    list: String,
    template: String,
}

impl Deref for Mailing {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Mailing {
    /// A list of `count` contacts who gave consent: `p0@d0.example` and so on, at `domains` domains.
    async fn start(count: usize, domains: usize) -> Self {
        Self::on(Product::start().await, count, domains).await
    }

    async fn on(product: Product, count: usize, domains: usize) -> Self {
        let at = |path: &str| format!("/workspaces/{}/{path}", product.workspace);
        let list = product.post(&product.caller, &at("lists"), json!({"name": "all"})).await;
        assert_eq!(list.summary(), "201");
        let template = json!({"name": "t", "channel": "email", "subject": "s", "from_email": "shop@sandbox.test",
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        let template = product.post(&product.caller, &at("templates"), template).await;
        assert_eq!(template.summary(), "201");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (list, template) = (text(&list["id"]), text(&template["id"]));
        let mailing = Self { product, list, template };
        let one = |number: usize| json!({"email": format!("p{number}@d{}.example", number % domains)});
        mailing.add((0..count).map(one)).await;
        mailing
    }

    fn at(&self, path: &str) -> String {
        format!("/workspaces/{}/{path}", self.workspace)
    }

    /// Adds contacts to the list, who gave consent unless they say otherwise.
    async fn add(&self, contacts: impl IntoIterator<Item = Value>) {
        let contacts: Vec<_> = contacts
            .into_iter()
            .map(|mut contact| {
                let members = contact.as_object_mut().unwrap();
                members.entry("consent").or_insert(json!({"marketing_email": true}));
                members.entry("list_ids").or_insert(json!([self.list]));
                contact
            })
            .collect();
        for part in contacts.chunks(1000) {
            let reply = self.post(&self.caller, &self.at("contacts/bulk"), json!({"contacts": part})).await;
            assert_eq!(reply.summary(), "200", "{:?}", reply.body);
        }
    }

    /// A campaign to the list, with more members.
    async fn campaign(&self, members: Value) -> CampaignId {
        let mut body = json!({"name": "c", "channel": "email", "template_id": self.template,
            "audience": {"list_ids": [self.list]}});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let reply = self.post(&self.caller, &self.at("campaigns"), body).await;
        assert_eq!(reply.summary(), "201", "{:?}", reply.body);
        reply["id"].as_str().unwrap().parse().unwrap()
    }

    async fn act(&self, id: CampaignId, action: &str, body: Value) {
        let reply = self.post(&self.caller, &self.at(&format!("campaigns/{id}/{action}")), body).await;
        assert_eq!(reply.summary(), "202", "{:?}", reply.body);
    }

    /// A campaign that is sent now, to all recipients that can be sent to.
    async fn send(&self, members: Value) -> CampaignId {
        let id = self.campaign(members).await;
        self.act(id, "schedule", json!({"send_now": true})).await;
        id
    }

    async fn view(&self, id: CampaignId) -> Value {
        self.get(&self.caller, &self.at(&format!("campaigns/{id}"))).await.body
    }

    /// Status of a campaign, such as `sent`.
    async fn status(&self, id: CampaignId) -> String {
        self.view(id).await["status"].as_str().unwrap().to_owned()
    }

    async fn counts(&self, id: CampaignId) -> Vec<Counts> {
        self.store.campaign_counts(self.workspace, id).await.unwrap()
    }

    /// All messages of a campaign, by address.
    async fn messages(&self, id: CampaignId) -> Vec<Message> {
        let (mut found, mut page) = (Vec::new(), PageRequest { after: None, limit: 500 });
        loop {
            let wanted = CampaignMessageFilter::All;
            let slice = self.store.campaign_messages(self.workspace, id, wanted, page).await.unwrap();
            found.extend(slice.items);
            match slice.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        found.sort_by(|one, other| one.to.cmp(&other.to));
        found
    }

    /// Number of messages in each state: `delivered 3, queued 1`. Checks the invariants: nobody has two messages, the
    /// counters match the rows, and every contact of the audience is counted somewhere.
    async fn tally(&self, id: CampaignId) -> String {
        let messages = self.messages(id).await;
        let mut recipients: Vec<_> = messages.iter().map(|message| &message.to).filter(|to| !to.is_empty()).collect();
        let all = recipients.len();
        recipients.dedup();
        assert_eq!(recipients.len(), all, "somebody has two messages");
        let kept = self.counts(id).await;
        for (place, counts) in kept.iter().enumerate() {
            let of_variant = messages.iter().filter(|message| message.variant.map(usize::from) == Some(place));
            let recount: Counts = of_variant.map(|message| tally::tally(&Row::from(message))).sum();
            let visits: Counts = counts.iter().filter(|(counter, _)| recount.get(*counter) == 0).collect();
            assert!(
                counts.iter().all(|(counter, number)| recount.get(counter) == number || visits.get(counter) == number),
                "variant {place}: {counts:?} and {recount:?}"
            );
        }
        let campaign = self.store.campaign(self.workspace, id).await.unwrap().unwrap().record;
        if let Some(recipients) = campaign.recipients {
            assert!(messages.len() as u64 <= recipients);
            if campaign.status == CampaignStatus::Sent {
                assert_eq!(messages.len() as u64, recipients, "somebody was left out");
                assert_eq!(self.store.waiting_tracks(self.workspace, id).await.unwrap(), []);
            }
        }
        let mut states = std::collections::BTreeMap::<&str, usize>::new();
        for message in &messages {
            *states.entry(message.status.as_str()).or_default() += 1;
        }
        let told: Vec<_> = states.iter().map(|(state, count)| format!("{state} {count}")).collect();
        told.join(", ")
    }

    /// Number of attempts that the transport has seen begin.
    fn attempts(&self) -> usize {
        self.transport.sent().len()
    }
}

#[tokio::test]
async fn everybody_who_agreed_gets_it_once() {
    let mailing = Mailing::start(700, 3).await;
    mailing
        .add([json!({"email": "no@d0.example", "consent": {"marketing_email": false}}), json!({"external_id": "x"})])
        .await;
    let id = mailing.send(json!({})).await;
    assert_eq!(mailing.status(id).await, "scheduled");
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 700");
    let view = mailing.view(id).await;
    assert_eq!((&view["status"], &view["recipients"], &view["waiting"]), (&json!("sent"), &json!(700), &json!(0)));
    let stats = mailing.get(&mailing.caller, &mailing.at(&format!("campaigns/{id}/stats"))).await.body;
    assert_eq!(
        (&stats["sent"], &stats["skipped"]["no_consent"], &stats["skipped"]["no_address"]),
        (&json!(700), &json!(1), &json!(1))
    );
    assert_eq!(mailing.attempts(), 700);
    // Its job has ended with the campaign.
    let lane = format!("t/{}/campaign:{id}", mailing.workspace);
    let later = mailing.app.now() + 1000 * HOUR;
    assert_eq!(mailing.store.lane_lengths(&[lane.as_str().into()], later, 10).await.unwrap(), [0]);
}

#[tokio::test]
async fn nobody_left_is_sent_to_nobody() {
    let mailing = Mailing::start(0, 1).await;
    let id = mailing.send(json!({})).await;
    mailing.work().await;
    let view = mailing.view(id).await;
    assert_eq!((&view["status"], &view["recipients"]), (&json!("sent"), &json!(0)));
}

#[tokio::test]
async fn it_begins_at_its_time_and_not_before() {
    let mailing = Mailing::start(3, 1).await;
    let id = mailing.campaign(json!({})).await;
    mailing.act(id, "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
    mailing.work().await;
    mailing.pass(HOUR - SECOND).await;
    assert_eq!((mailing.status(id).await.as_str(), mailing.attempts()), ("scheduled", 0));
    mailing.pass(SECOND).await;
    assert_eq!((mailing.status(id).await.as_str(), mailing.attempts()), ("sent", 3));
}

#[tokio::test]
async fn another_time_counts_instead_of_the_first_one() {
    let mailing = Mailing::start(1, 1).await;
    let ids = [mailing.campaign(json!({})).await, mailing.campaign(json!({})).await, mailing.campaign(json!({})).await];
    for id in ids {
        mailing.act(id, "schedule", json!({"at": "2026-01-31T11:15:00Z"})).await;
    }
    mailing.act(ids[0], "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
    mailing.act(ids[1], "schedule", json!({"at": "2026-01-31T12:15:00Z"})).await;
    mailing.act(ids[2], "unschedule", json!({})).await;
    let mut told = Vec::new();
    for _ in 0..4 {
        mailing.work().await;
        let mut states = Vec::new();
        for id in ids {
            states.push(mailing.status(id).await);
        }
        told.push(states.join(" "));
        mailing.clock.advance(HOUR);
    }
    assert_eq!(told, ["scheduled scheduled draft", "sent scheduled draft", "sent scheduled draft", "sent sent draft"]);
}

#[tokio::test]
async fn contacts_that_join_after_the_start_get_nothing() {
    let mailing = Mailing::start(5, 1).await;
    let id = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    mailing.add([json!({"email": "late@d0.example"})]).await;
    mailing.pass(HOUR).await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 5", "sent"));
}

#[tokio::test]
async fn the_version_of_the_start_is_sent() {
    let mailing = Mailing::start(1, 1).await;
    let id = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    let path = mailing.at(&format!("templates/{}", mailing.template));
    let another = json!({"name": "t", "channel": "email", "subject": "another", "text": "{{ unsubscribe_url }}"});
    let changed = mailing.patch(&mailing.caller, &path, another).await;
    assert_eq!(changed.summary(), "200");
    mailing.pass(HOUR).await;
    assert_eq!(mailing.tally(id).await, "delivered 1");
    let sent = mailing.transport.sent();
    let messaging_core::ports::transport::Content::Email(email) = &sent[0].content else { panic!("an email") };
    assert_eq!(email.subject, "s");
}

/// A mail server that defers everything does not stop the campaign.
#[tokio::test]
async fn messages_that_are_tried_again_do_not_hold_the_rest_up() {
    let mailing = Mailing::on(Product::with(MemoryTransport::default()).await, 200, 1).await;
    for message in 0..200 {
        mailing.transport.answer_next(&format!("p{message}@d0.example"), "450 4.2.1 greylisted");
    }
    let id = mailing.send(json!({})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("deferred 200", "sent"));
    mailing.pass(MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 200");
}
