//! Mail of campaigns: its content, and the counters of a campaign. Contract sections 10, 12.3, 12.5 and 18.

use std::time::Duration;

use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::analytics::tally::{Counter, Counts};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::domain::mail::report::Report;
use messaging_core::ids::{CampaignId, MessageId};
use messaging_core::ports::inbound::ReturnAddress;
use messaging_core::ports::store::SeriesOf;
use messaging_core::ports::transport::{Content, Email, EnvelopeFrom};
use messaging_engine::services::Visitor;
use serde_json::{Value, json};

use crate::bed::{Reply, START};
use crate::support::Product;

const UNSUBSCRIBE: &str = "https://track.service.test/u/";
const REDIRECT: &str = "https://track.service.test/t/c/";

/// Workspace, list and template of campaigns.
struct Shop {
    product: Product,
    list: String,
}

impl std::ops::Deref for Shop {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Shop {
    async fn start() -> Self {
        let product = Product::start().await;
        let list = created(&product, "lists", json!({"name": "news"})).await;
        Self { product, list }
    }

    async fn subscribe(&self, email: &str, attributes: Value) -> String {
        let consent = json!({"marketing_email": true});
        let body = json!({"email": email, "consent": consent, "list_ids": [self.list], "attributes": attributes});
        created(&self.product, "contacts", body).await
    }

    async fn template(&self, members: Value) -> String {
        let mut body = json!({"name": "t", "channel": "email", "subject": "News", "from_email": "shop@sandbox.test"});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        created(&self.product, "templates", body).await
    }

    async fn campaign(&self, template: &str, members: Value) -> CampaignId {
        let mut body = json!({
            "name": "Spring", "channel": "email", "template_id": template, "audience": {"list_ids": [self.list]},
        });
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        created(&self.product, "campaigns", body).await.parse().unwrap()
    }

    /// A campaign that is sent now, to all recipients that can be sent to.
    async fn sent(&self, template: &str, members: Value) -> CampaignId {
        let campaign = self.campaign(template, members).await;
        self.act(campaign, "schedule", json!({"send_now": true})).await;
        self.work().await;
        campaign
    }

    async fn act(&self, campaign: CampaignId, action: &str, body: Value) {
        let path = format!("/workspaces/{}/campaigns/{campaign}/{action}", self.workspace);
        let reply = self.post(&self.caller, &path, body).await;
        assert_eq!(reply.summary(), "202", "{}", reply.body);
    }

    /// The emails sent since the last call, by recipient.
    fn mails(&self) -> Vec<(String, MessageId, Email)> {
        let mails = self.transport.take().into_iter().map(|outgoing| match outgoing.content {
            Content::Email(email) => (outgoing.recipients[0].clone(), outgoing.message_id, *email),
            _ => panic!("campaigns here send email"),
        });
        let mut mails: Vec<_> = mails.collect();
        mails.sort_by(|one, other| one.0.cmp(&other.0));
        mails
    }

    /// The only email sent since the last call.
    fn mail(&self) -> (MessageId, Email) {
        let mut mails = self.mails();
        assert_eq!(mails.len(), 1);
        let (_, id, email) = mails.remove(0);
        (id, email)
    }

    async fn counts(&self, campaign: CampaignId) -> Counts {
        self.store.campaign_counts(self.workspace, campaign).await.unwrap().into_iter().sum()
    }

    /// Totals of a campaign for the given counters: `sent=1 opens=2`.
    async fn counted(&self, campaign: CampaignId, counters: &[Counter]) -> String {
        let counts = self.counts(campaign).await;
        let shown: Vec<_> =
            counters.iter().map(|counter| format!("{}={}", counter.as_str(), counts.get(*counter))).collect();
        shown.join(" ")
    }

    /// Sums over the whole time series of a campaign, or of the workspace.
    async fn series(&self, campaign: Option<CampaignId>) -> Counts {
        let of = campaign.map_or(SeriesOf::Workspace(None), SeriesOf::Campaign);
        let end = Quarter::of(self.app.now() + Duration::from_hours(1));
        let series = self.store.series(self.workspace, of, Quarter::of(START), end).await.unwrap();
        series.into_iter().map(|(_, counts)| counts).sum()
    }

    async fn follow(&self, token: &str) {
        let click = self.app.click(token).await.unwrap().expect("a link of ours");
        self.app.record_click(&click, &person()).await.unwrap();
    }

    async fn message(&self, id: MessageId) -> Reply {
        self.get(&self.caller, &format!("/messages/{id}")).await
    }
}

async fn created(product: &Product, what: &str, body: Value) -> String {
    let path = format!("/workspaces/{}/{what}", product.workspace);
    let reply = product.post(&product.caller, &path, body).await;
    assert_eq!(reply.summary(), "201", "{}", reply.body);
    reply["id"].as_str().unwrap().to_owned()
}

fn person() -> Visitor {
    Visitor {
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0".to_owned()),
        is_head: false,
        is_prefetch: false,
    }
}

fn scanner() -> Visitor {
    Visitor { is_head: true, ..person() }
}

/// The texts behind each `mark` in a text, each up to the end of its attribute.
fn behind(text: &str, mark: &str) -> Vec<String> {
    text.split(mark).skip(1).map(|rest| rest.split(['"', '\'', '>', '\n', ' ']).next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_campaign_says_what_its_template_and_its_contacts_say() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({"first_name": "Ann", "plan": "pro"})).await;
    shop.subscribe("bob@example.com", json!({"first_name": "Bob"})).await;
    let template = shop
        .template(json!({
            "reply_to": "help@acme.com", "from_name": "{{ never }}",
            "html": "<body><p>{{ first_name }} ({{ contact.email }}, {{ plan | default('free') }}) {{ campaign.name }} \
                     {{ campaign.id }} {{ workspace.name }} {{ message_id }}</p><a href=\"{{ unsubscribe_url }}\">stop</a>",
        }))
        .await;
    let members = json!({"subject_override": "For {{ first_name }}", "from_name": "Acme & {{ first_name }}\u{2028}"});
    let campaign = shop.sent(&template, members).await;
    let mails = shop.mails();
    assert_eq!(mails.len(), 2);
    for (to, id, email) in &mails {
        let (name, plan) = if to == "ann@example.com" { ("Ann", "pro") } else { ("Bob", "free") };
        assert_eq!(email.subject, format!("For {name}"));
        assert!(email.from.name.as_ref().unwrap().starts_with(&format!("Acme & {name}")), "{:?}", email.from.name);
        assert_eq!(email.from.address.as_str(), "shop@sandbox.test");
        assert_eq!(email.reply_to.as_ref().map(ToString::to_string).as_deref(), Some("help@acme.com"));
        let html = email.html.as_ref().unwrap();
        assert!(html.contains(&format!("<p>{name} ({to}, {plan}) Spring {campaign} Acme {id}</p>")), "{html}");
        assert_eq!(behind(html, UNSUBSCRIBE).len(), 1, "no footer where there is a link: {html}");
        assert!(email.text.as_ref().unwrap().contains(name));
        let header =
            |name: &str| email.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let offer = header("List-Unsubscribe").unwrap();
        assert!(offer.contains(">, <mailto:unsubscribe+") && offer.ends_with("@bounce.sandbox.test>"), "{offer}");
        let token = offer.strip_prefix('<').unwrap().strip_prefix(UNSUBSCRIBE).unwrap().split('>').next().unwrap();
        assert_eq!(shop.app.link_key().read_link(token), Some((shop.workspace, *id, Link::Unsubscribe)));
        assert_eq!(behind(html, UNSUBSCRIBE), [token]);
        assert_eq!(header("List-Unsubscribe-Post"), Some("List-Unsubscribe=One-Click"));
        assert!(!email.signers.is_empty());
    }
    // The sender's name in a template is plain text.
    let plain = shop.sent(&template, json!({})).await;
    assert!(shop.mails().iter().all(|(_, _, email)| email.from.name.as_deref() == Some("{{ never }}")));
    assert_eq!(shop.counted(plain, &[Counter::Sent, Counter::Delivered]).await, "sent=2 delivered=2");
}

#[tokio::test]
async fn a_campaign_sends_the_version_that_it_began_with() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({})).await;
    let template = shop.template(json!({"html": "<p>one</p>", "from_name": "One"})).await;
    let quiet = json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}});
    shop.sent(&template, quiet).await;
    assert!(shop.mails().is_empty());
    let path = format!("/workspaces/{}/templates/{template}", shop.workspace);
    let change = json!({"name": "t", "channel": "email", "html": "<p>two</p>", "from_name": "Two"});
    assert_eq!(shop.patch(&shop.caller, &path, change).await.summary(), "200");
    shop.pass(Duration::from_mins(46)).await;
    let (_, email) = shop.mail();
    assert!(email.html.unwrap().starts_with("<p>one</p>"));
    assert_eq!(email.from.name.as_deref(), Some("One"));
}

#[tokio::test]
async fn an_html_without_the_link_gets_a_footer_and_its_text_too() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({})).await;
    let plain = shop.template(json!({"html": "<html><body><p>Hi</p></body></html>"})).await;
    shop.sent(&plain, json!({})).await;
    let (_, email) = shop.mail();
    let html = email.html.unwrap();
    assert_eq!(behind(&html, UNSUBSCRIBE).len(), 1, "{html}");
    assert!(html.find(UNSUBSCRIBE).unwrap() < html.find("</body>").unwrap(), "{html}");
    assert!(email.text.unwrap().contains(UNSUBSCRIBE));
    // A condition may omit the link for some contacts; an own text of the link is kept.
    let hidden = "{% if vip %}<a href='{{ unsubscribe_url }}'>stop</a>{% endif %}<p>Hi</p>";
    let conditional = shop.template(json!({"html": hidden, "text": "Hi"})).await;
    shop.sent(&conditional, json!({})).await;
    let (_, email) = shop.mail();
    assert_eq!(behind(&email.html.unwrap(), UNSUBSCRIBE).len(), 1);
    assert_eq!(email.text.as_deref(), Some("Hi"));
    // Transactional mail is left unchanged.
    let body = json!({"channel": "email", "to": "ann@example.com", "template_id": plain});
    shop.send(&body).await;
    shop.work().await;
    let (_, email) = shop.mail();
    assert!(!email.html.unwrap().contains(UNSUBSCRIBE) && email.headers.is_empty());
}

#[tokio::test]
async fn links_have_parameters_and_are_counted_as_they_stand_in_the_template() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({"items": ["a", "b"]})).await;
    shop.subscribe("bob@example.com", json!({"items": []})).await;
    let template = shop
        .template(
            json!({"html": "<body>{% for i in items %}<a href=\"https://acme.com/{{ i }}?x=1&amp;y=2\">{{ i }}</a>\
             {% endfor %}<a href='https://acme.com/?utm_medium=own#top'>all</a>\
             <a href=\"{{ unsubscribe_url }}\">stop</a></body>"}),
        )
        .await;
    let settings = json!({"utm": {"source": "news", "medium": "email", "campaign": "spring"}});
    let campaign = shop.sent(&template, json!({"settings": settings})).await;
    let mails = shop.mails();
    let tokens: Vec<_> = mails.iter().map(|(_, _, email)| behind(email.html.as_ref().unwrap(), REDIRECT)).collect();
    assert_eq!((tokens[0].len(), tokens[1].len()), (3, 1), "{mails:?}");
    // Links in the text part stay, except for the ones that must not be followed.
    assert!(!mails[0].2.html.as_ref().unwrap().contains("href=\"https://acme.com"));
    shop.clock.advance(Duration::from_mins(1));
    let first = shop.app.click(&tokens[0][0]).await.unwrap().unwrap();
    assert_eq!(first.url, "https://acme.com/a?x=1&y=2&utm_source=news&utm_medium=email&utm_campaign=spring");
    let last = shop.app.click(&tokens[0][2]).await.unwrap().unwrap();
    assert_eq!(last.url, "https://acme.com/?utm_medium=own&utm_source=news&utm_campaign=spring#top");
    // Ann follows the first link twice and the other one of the loop once, Bob the last, as a scanner does.
    for token in [&tokens[0][0], &tokens[0][0], &tokens[0][1], &tokens[1][0]] {
        shop.follow(token).await;
        shop.clock.advance(Duration::from_secs(10));
    }
    let click = shop.app.click(&tokens[1][0]).await.unwrap().unwrap();
    shop.app.record_click(&click, &scanner()).await.unwrap();
    let mut links = shop.store.campaign_links(shop.workspace, campaign).await.unwrap();
    links.sort_by_key(|link| link.link);
    let links: Vec<_> =
        links.iter().map(|link| (link.link, link.url.as_str(), link.clicks, link.unique_clicks)).collect();
    assert_eq!(
        links,
        [(0, "https://acme.com/{{ i }}?x=1&y=2", 3, 1), (1, "https://acme.com/?utm_medium=own#top", 1, 1)]
    );
    assert_eq!(shop.counted(campaign, &[Counter::Clicks, Counter::UniqueClicks]).await, "clicks=4 unique_clicks=2");
    let ann = shop.store.message(shop.workspace, mails[0].1).await.unwrap().unwrap();
    assert_eq!(ann.milestones.links, 0b01);
}

#[tokio::test]
async fn visits_are_counted_with_their_events_and_the_first_once() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({})).await;
    let template = shop.template(json!({"html": "<p>Hi</p>"})).await;
    let campaign = shop.sent(&template, json!({})).await;
    let (id, _) = shop.mail();
    let before = shop.report(id).await;
    shop.clock.advance(Duration::from_mins(20));
    // All read the message before the first is committed.
    let people = vec![person(); 4];
    let opens = people.iter().map(|person| shop.app.record_open(shop.workspace, id, person));
    assert!(futures_util::future::join_all(opens).await.iter().all(Result::is_ok));
    for _ in 0..2 {
        shop.app.record_open(shop.workspace, id, &scanner()).await.unwrap();
    }
    let all = [Counter::Opens, Counter::UniqueOpens, Counter::MachineOpens, Counter::UniqueMachineOpens];
    let expected = "opens=4 unique_opens=1 machine_opens=2 unique_machine_opens=1";
    assert_eq!(shop.counted(campaign, &all).await, expected);
    let series = shop.series(Some(campaign)).await;
    assert_eq!((series.get(Counter::Opens), series.get(Counter::UniqueOpens)), (4, 1));
    let after = shop.report(id).await;
    assert_eq!(after.events.len() - before.events.len(), 6);
    assert_eq!((after.status, after.updated_at), (before.status, before.updated_at));
}

#[tokio::test]
async fn visits_of_transactional_mail_count_in_series() {
    let shop = Shop::start().await;
    let id = shop.send_to("ann@example.com").await;
    shop.work().await;
    shop.clock.advance(Duration::from_mins(1));
    for _ in 0..3 {
        shop.app.record_open(shop.workspace, id, &person()).await.unwrap();
    }
    let series = shop.series(None).await;
    let shown = [Counter::Sent, Counter::Delivered, Counter::Opens, Counter::UniqueOpens].map(|one| series.get(one));
    assert_eq!(shown, [1, 1, 3, 1]);
}

#[tokio::test]
async fn counting_stops_with_the_events() {
    let shop = Shop::start().await;
    let id = shop.send_to("ann@example.com").await;
    shop.work().await;
    for _ in 0..505 {
        shop.app.record_open(shop.workspace, id, &person()).await.unwrap();
    }
    assert_eq!(shop.series(None).await.get(Counter::Opens), 500);
}

#[tokio::test]
async fn leaving_and_complaining_count_for_the_campaign_once() {
    let shop = Shop::start().await;
    let ann = shop.subscribe("ann@example.com", json!({})).await;
    shop.subscribe("bob@example.com", json!({})).await;
    let template = shop.template(json!({"html": "<p>Hi</p>"})).await;
    let campaign = shop.sent(&template, json!({})).await;
    let mails = shop.mails();
    let (to_ann, to_bob) = (mails[0].1, mails[1].1);
    // Ann has another address by now, and leaves all the same.
    let path = format!("/workspaces/{}/contacts/{ann}", shop.workspace);
    assert_eq!(shop.patch(&shop.caller, &path, json!({"email": "ann@home.example"})).await.summary(), "200");
    let unsubscribe = messaging_core::domain::audience::unsubscribe::UnsubscribeMethod::OneClick;
    assert!(shop.app.unsubscribe(shop.workspace, to_ann, unsubscribe).await.unwrap());
    assert!(!shop.app.unsubscribe(shop.workspace, to_ann, unsubscribe).await.unwrap());
    assert_eq!(shop.get(&shop.caller, &path).await["consent"]["marketing_email"], false);

    // Bob's provider complains twice, at the address from which his message came.
    let EnvelopeFrom::PerRecipient(paths) = &mails[1].2.envelope_from else { panic!("{mails:?}") };
    let to: ReturnAddress = shop.app.return_address(paths[0].as_str()).await.unwrap().expect("an address of ours");
    let complaint = Report::Complaint { feedback_type: "abuse".to_owned(), recipients: Vec::new() };
    for _ in 0..2 {
        shop.app.receive(&to, &complaint).await.unwrap();
    }
    let all = [Counter::Unsubscribes, Counter::Complaints, Counter::Sent, Counter::Delivered];
    assert_eq!(shop.counted(campaign, &all).await, "unsubscribes=1 complaints=1 sent=2 delivered=2");
    for (outcome, id) in [("unsubscribed", to_ann), ("complained", to_bob)] {
        let path = format!("/workspaces/{}/campaigns/{campaign}/recipients?outcome={outcome}", shop.workspace);
        let page = shop.get(&shop.caller, &path).await;
        let found: Vec<_> = page["data"].as_array().unwrap().iter().map(|line| line["message_id"].clone()).collect();
        assert_eq!(found, [json!(id)], "{outcome}");
    }
}

#[tokio::test]
async fn whoever_left_before_the_second_half_is_kept_out_of_it() {
    let shop = Shop::start().await;
    for name in ["ann", "bob"] {
        shop.subscribe(&format!("{name}@example.com"), json!({})).await;
    }
    let template = shop.template(json!({"html": "<p>Hi</p>"})).await;
    shop.sent(&template, json!({})).await;
    let earlier = shop.mails();
    let quiet = json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}});
    let campaign = shop.sent(&template, quiet).await;
    assert!(shop.mails().is_empty());
    let token = &behind(earlier[0].2.html.as_ref().unwrap(), UNSUBSCRIBE)[0];
    let (workspace, message, _) = shop.app.link_key().read_link(token).unwrap();
    let method = messaging_core::domain::audience::unsubscribe::UnsubscribeMethod::Link;
    assert!(shop.app.unsubscribe(workspace, message, method).await.unwrap());
    shop.pass(Duration::from_mins(46)).await;
    let sent: Vec<_> = shop.mails().into_iter().map(|(to, ..)| to).collect();
    assert_eq!(sent, ["bob@example.com"]);
    assert_eq!(
        shop.counted(campaign, &[Counter::Sent, Counter::SkippedSuppressed]).await,
        "sent=1 skipped_suppressed=1"
    );
}

#[tokio::test]
async fn a_message_says_its_variant_what_it_waits_for_and_why() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({})).await;
    shop.subscribe("bob@example.com", json!({})).await;
    let template = shop.template(json!({"html": "<p>Hi</p>"})).await;
    let variants = json!([{"name": "Short", "subject": "Hi"}, {"name": "Long", "subject": "Good day"}]);
    let settings = json!({"quiet_hours": {"start": "09:00", "end": "10:00"}});
    let campaign = shop.sent(&template, json!({"kind": "ab_test", "variants": variants, "settings": settings})).await;
    let listed = shop.get(&shop.caller, &format!("/messages?campaign_id={campaign}")).await;
    let listed = listed["data"].as_array().unwrap();
    let mut names: Vec<_> = listed.iter().map(|one| one["variant"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Long", "Short"]);
    for one in listed {
        assert_eq!(one["hold"], json!({"reason": "quiet_hours", "until": "2026-01-31T10:00:00.000Z"}));
        assert_eq!(one["explanation"]["code"], "quiet_hours");
        assert_eq!(one["explanation"]["next_attempt_at"], "2026-01-31T10:00:00.000Z");
    }
    let id: MessageId = listed[0]["message_id"].as_str().unwrap().parse().unwrap();
    shop.act(campaign, "pause", Value::Null).await;
    let paused = shop.message(id).await;
    assert_eq!(paused["hold"], json!({"reason": "paused", "until": null}));
    let cure = &paused["explanation"]["cure"];
    assert_eq!((&cure["operation"], &cure["body"]), (&json!("scheduleCampaign"), &json!({})));
    // The advised cure works.
    let reply = shop.post(&shop.caller, cure["path"].as_str().unwrap(), cure["body"].clone()).await;
    assert_eq!(reply.summary(), "202");
    shop.pass(Duration::from_mins(46)).await;
    let sent = shop.message(id).await;
    assert_eq!((&sent["status"], &sent["hold"]), (&json!("delivered"), &Value::Null));
    let variant = sent["variant"].clone();
    let subjects: Vec<_> = shop.mails().into_iter().map(|(_, id, email)| (id, email.subject)).collect();
    let subject = &subjects.iter().find(|(sent, _)| *sent == id).unwrap().1;
    assert_eq!(subject, if variant == "Short" { "Hi" } else { "Good day" });
}

#[tokio::test]
async fn a_message_that_waits_can_be_cancelled_alone() {
    let shop = Shop::start().await;
    shop.subscribe("ann@example.com", json!({})).await;
    shop.subscribe("bob@example.com", json!({})).await;
    let template = shop.template(json!({"html": "<p>Hi</p>"})).await;
    let quiet = json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}});
    let campaign = shop.sent(&template, quiet).await;
    let listed = shop.get(&shop.caller, "/messages?to=ANN@example.com").await;
    let id = listed["data"][0]["message_id"].as_str().unwrap().to_owned();
    let path = format!("/messages/{id}/cancel");
    let reply = shop.post(&shop.caller, &path, Value::Null).await;
    assert_eq!((reply.summary().as_str(), &reply["status"]), ("202", &json!("cancelled")));
    let again = shop.post(&shop.caller, &path, Value::Null).await;
    assert_eq!(again.summary(), "409 invalid_state");
    let details = json!({"status": "cancelled", "allowed": ["queued", "deferred"]});
    assert_eq!(again["error"]["details"], details);
    shop.pass(Duration::from_mins(46)).await;
    let sent: Vec<_> = shop.mails().into_iter().map(|(to, ..)| to).collect();
    assert_eq!(sent, ["bob@example.com"]);
    assert_eq!(shop.story(id.parse().unwrap()).await, "cancelled: Queued Cancelled");
    let all = [Counter::Waiting, Counter::Sent, Counter::Cancelled];
    assert_eq!(shop.counted(campaign, &all).await, "waiting=0 sent=1 cancelled=1");
    let path = format!("/workspaces/{}/campaigns/{campaign}", shop.workspace);
    assert_eq!(shop.get(&shop.caller, &path).await["status"], "sent");
    let tracks = shop.store.waiting_tracks(shop.workspace, campaign).await.unwrap();
    assert_eq!(tracks, []);
}

#[tokio::test]
async fn a_deferred_message_can_be_cancelled_and_a_delivered_one_cannot() {
    let shop = Shop::start().await;
    shop.transport.answer_next("ann@example.com", "451 4.7.1 later");
    let id = shop.send_to("ann@example.com").await;
    shop.work().await;
    let shown = shop.message(id).await;
    let explanation = &shown["explanation"];
    assert_eq!((&shown["status"], &explanation["code"]), (&json!("deferred"), &json!("deferred")));
    assert!(explanation["text"].as_str().unwrap().contains("451 4.7.1"), "{explanation}");
    assert_eq!(explanation["next_attempt_at"], "2026-01-31T09:16:00.000Z");
    let path = format!("/messages/{id}/cancel");
    assert_eq!(shop.post(&shop.caller, &path, Value::Null).await.summary(), "202");
    shop.pass(Duration::from_hours(1)).await;
    assert_eq!(shop.story(id).await, "cancelled: Queued Deferred Cancelled");
    assert_eq!(shop.series(None).await.get(Counter::Sent), 0);

    let other = shop.send_to("bob@example.com").await;
    shop.work().await;
    let reply = shop.post(&shop.caller, &format!("/messages/{other}/cancel"), Value::Null).await;
    assert_eq!(reply.summary(), "409 invalid_state");
    let nobody = shop.post(&shop.caller, "/messages/msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH/cancel", Value::Null).await;
    assert_eq!(nobody.summary(), "404 not_found");
    assert_eq!(
        shop.store.suppressed(shop.workspace, Channel::Email, &["ann@example.com".to_owned()]).await.unwrap(),
        []
    );
}
