//! Lists that face their readers: contract section 23.

mod abuse;
mod archive;
mod forms;
mod imported;
mod leaving;
mod preferences;
mod races;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::mail::link_token::Link;
use messaging_core::ids::{CampaignId, ContactId, MessageId, WorkspaceId};
use messaging_core::ports::transport::Content;
use messaging_engine::services::confirming::Followed;
use messaging_engine::services::forms::{FormPage, FormPost, Posted};
use messaging_engine::services::subscribing::Reader;
use messaging_engine::services::unsubscribe::UnsubscribeScope;
use messaging_engine::work::sweep::sweep;
use messaging_testing::MemoryFetch;
use serde_json::{Value, json};

use crate::support::Product;

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// A workspace with a public list.
struct Readers {
    product: Product,
    list: String,
}

impl std::ops::Deref for Readers {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Readers {
    async fn start(opt_in: &str) -> Self {
        Self::of(Product::start().await, opt_in).await
    }

    /// Readers on a database that does not wait for the disk, for very many commits.
    async fn undurable(opt_in: &str) -> Self {
        Self::of(Product::undurable(Arc::new(MemoryFetch::default())).await, opt_in).await
    }

    async fn of(product: Product, opt_in: &str) -> Self {
        let body = json!({"name": "News", "visibility": "public", "opt_in": opt_in, "description": "Each Friday"});
        let list = created(&product, "lists", body).await;
        Self { product, list }
    }

    fn at(&self, path: &str) -> String {
        format!("/workspaces/{}/{path}", self.workspace).trim_end_matches('/').to_owned()
    }

    async fn contact(&self, body: Value) -> String {
        created(&self.product, "contacts", body).await
    }

    /// The members of the list with a status, as `ann@example.com:api`.
    async fn members(&self, status: &str) -> Vec<String> {
        let path = self.at(&format!("lists/{}/contacts?status={status}", self.list));
        let reply = self.get(&self.caller, &path).await;
        assert_eq!(reply.summary(), "200");
        let member = |one: &Value| {
            assert_eq!(one["membership"]["status"], status);
            let how = one["membership"]["proof"]["how"].as_str().unwrap_or("-");
            format!("{}:{how}", one["email"].as_str().unwrap())
        };
        reply["data"].as_array().unwrap().iter().map(member).collect()
    }

    async fn count(&self) -> Value {
        self.get(&self.caller, &self.at(&format!("lists/{}", self.list))).await["contact_count"].clone()
    }

    async fn add(&self, contact: &str, members: Value) -> String {
        let mut body = json!({"contact_ids": [contact]});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.post(&self.caller, &self.at(&format!("lists/{}/contacts", self.list)), body).await.summary()
    }

    /// The mails that left since the last call: recipient, id, and text.
    fn mails(&self) -> Vec<(String, MessageId, String)> {
        let mail = |outgoing: messaging_core::ports::transport::Outgoing| match outgoing.content {
            Content::Email(email) => {
                (outgoing.recipients[0].clone(), outgoing.message_id, email.text.unwrap_or_default())
            }
            _ => panic!("only email is sent here"),
        };
        self.transport.take().into_iter().map(mail).collect()
    }

    /// The workspace and message that the link below `path` in a text names.
    fn linked(&self, text: &str, path: &str, expected: Link) -> (WorkspaceId, MessageId) {
        let base = format!("https://track.service.test{path}");
        let rest = text.split_once(&base).unwrap_or_else(|| panic!("no {path} in {text}")).1;
        let token: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect();
        let (workspace, message, link) = self.app.link_key().read_link(&token).unwrap();
        assert_eq!(link, expected);
        (workspace, message)
    }

    /// Follows the link of a confirmation and presses the button.
    async fn confirm(&self, text: &str) -> &'static str {
        let (workspace, message) = self.linked(text, "/c/", Link::Confirm);
        match self.app.confirm_subscription(workspace, message, &reader()).await.unwrap() {
            Followed::Found(page) => {
                assert_eq!(page.lists.len(), 1);
                "confirmed"
            }
            Followed::Expired => "expired",
            Followed::Unknown => "unknown",
        }
    }

    async fn form(&self, members: Value) -> FormPage {
        let mut body = json!({"name": "Subscribe", "list_ids": [self.list]});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let reply = self.post(&self.caller, &self.at("forms"), body).await;
        assert_eq!(reply.summary(), "201", "{}", reply.body);
        let url = reply["url"].as_str().unwrap().to_owned();
        self.app.form_page(url.strip_prefix("https://track.service.test/f/").unwrap()).await.unwrap().unwrap()
    }

    async fn subscribe(&self, page: &FormPage, email: &str) -> Posted {
        let post = FormPost { answers: vec![("email".to_owned(), email.to_owned())], ..FormPost::default() };
        self.app.post_to_form(page, &post, &Reader::default()).await.unwrap()
    }

    async fn campaign(&self, audience: Value, settings: Value) -> CampaignId {
        let template = json!({"name": "t", "channel": "email", "subject": "s", "from_email": "shop@sandbox.test",
            "html": "<p>Hi</p><a href=\"{{ unsubscribe_url }}\">stop</a> <a href=\"{{ preferences_url }}\">choose</a>"});
        let template = created(&self.product, "templates", template).await;
        let body = json!({"name": "c", "channel": "email", "template_id": template, "audience": audience, "settings": settings});
        let campaign = created(&self.product, "campaigns", body).await;
        let path = self.at(&format!("campaigns/{campaign}/schedule"));
        assert_eq!(self.post(&self.caller, &path, json!({"send_now": true})).await.summary(), "202");
        campaign.parse().unwrap()
    }
}

fn reader() -> Reader {
    Reader { ip: Some("192.0.2.7".parse().unwrap()), user_agent: Some("Mozilla".to_owned()) }
}

async fn created(product: &Product, what: &str, body: Value) -> String {
    let reply = product.post(&product.caller, &format!("/workspaces/{}/{what}", product.workspace), body).await;
    assert_eq!(reply.summary(), "201", "{}", reply.body);
    reply["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn who_is_added_by_the_api_is_confirmed_unless_it_says_otherwise() {
    let readers = Readers::start("single").await;
    let ann = readers.contact(json!({"email": "ann@example.com", "list_ids": [readers.list]})).await;
    let bob = readers.contact(json!({"email": "bob@example.com"})).await;
    assert_eq!(readers.members("confirmed").await, ["ann@example.com:api"]);
    assert_eq!(readers.add(&bob, json!({"status": "left"})).await, "422 /status unknown_value");
    assert_eq!(readers.add(&bob, json!({"status": "unconfirmed"})).await, "200");
    assert_eq!(readers.members("unconfirmed").await, ["bob@example.com:api"]);
    assert_eq!(readers.count().await, 1);
    readers.work().await;
    let mails = readers.mails();
    assert_eq!(mails.iter().map(|(to, ..)| to.as_str()).collect::<Vec<_>>(), ["bob@example.com"]);
    assert!(mails[0].2.contains("News"), "{}", mails[0].2);
    // Asked once: adding again sends nothing.
    assert_eq!(readers.add(&bob, json!({"status": "unconfirmed"})).await, "200");
    readers.work().await;
    assert_eq!(readers.mails().len(), 0);
    assert_eq!(readers.confirm(&mails[0].2).await, "confirmed");
    assert_eq!(readers.confirm(&mails[0].2).await, "confirmed");
    assert_eq!(readers.members("confirmed").await, ["bob@example.com:confirmation", "ann@example.com:api"]);
    assert_eq!(readers.count().await, 2);
    let shown = readers.get(&readers.caller, &readers.at(&format!("contacts/{bob}"))).await;
    assert_eq!((&shown["list_ids"], &shown["consent"]["marketing_email"]), (&json!([readers.list]), &json!(true)));
    // A private list has no statuses.
    let private = created(&readers, "lists", json!({"name": "private"})).await;
    let path = readers.at(&format!("lists/{private}/contacts"));
    let refused = readers.post(&readers.caller, &path, json!({"contact_ids": [ann], "status": "unconfirmed"})).await;
    assert_eq!(refused.summary(), "422 /status not_allowed");
}

#[tokio::test]
async fn who_left_is_taken_back_only_when_that_is_said() {
    let readers = Readers::start("single").await;
    let ann = readers
        .contact(json!({"email": "ann@example.com", "consent": {"marketing_email": true},
        "list_ids": [readers.list]}))
        .await;
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    let (_, message, _) = readers.mails().remove(0);
    assert!(readers.app.unsubscribe(readers.workspace, message, UnsubscribeMethod::OneClick).await.unwrap());
    assert!(!readers.app.unsubscribe(readers.workspace, message, UnsubscribeMethod::OneClick).await.unwrap());
    // The campaign went to one public list: that is left, and nothing else.
    assert_eq!(readers.members("left").await, ["ann@example.com:unsubscribe"]);
    assert_eq!(readers.last_meta(message).await, json!({"method": "one_click", "list_id": readers.list}));
    let contact = readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}"))).await;
    assert_eq!((&contact["list_ids"], &contact["consent"]["marketing_email"]), (&json!([]), &json!(true)));
    assert_eq!(contact["suppressed_channels"], json!([]));

    assert_eq!(readers.add(&ann, json!({})).await, "422 /contact_ids/0 not_allowed");
    let body = json!({"email": "ann@example.com", "list_ids": [readers.list]});
    let refused = readers.post(&readers.caller, &readers.at("contacts"), body.clone()).await;
    assert_eq!(refused.summary(), "422 /list_ids/0 not_allowed");
    let refused = readers.patch(&readers.caller, &readers.at(&format!("contacts/{ann}")), body).await;
    assert_eq!(refused.summary(), "422 /list_ids/0 not_allowed");
    assert_eq!(readers.count().await, 0);
    let export = readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}/export"))).await;
    assert_eq!(export["memberships"][0]["status"], "left");
    assert_eq!(readers.add(&ann, json!({"resubscribe": true})).await, "200");
    assert_eq!(
        (readers.members("confirmed").await, readers.count().await),
        (vec!["ann@example.com:api".to_owned()], json!(1))
    );
    // A contact that the workspace removes has not left.
    let path = readers.at(&format!("lists/{}/contacts/{ann}", readers.list));
    assert_eq!(readers.delete(&readers.caller, &path).await.summary(), "204");
    assert_eq!(readers.members("left").await, Vec::<String>::new());
    assert_eq!(readers.add(&ann, json!({})).await, "200");
}

#[tokio::test]
async fn what_is_unsubscribed_from_is_not_sent_later() {
    let readers = Readers::start("single").await;
    let consent = json!({"marketing_email": true});
    for name in ["ann", "bob"] {
        let email = format!("{name}@example.com");
        readers.contact(json!({"email": email, "consent": consent, "list_ids": [readers.list]})).await;
    }
    let campaign = readers.campaign(json!({"list_ids": [readers.list]}), json!({"rate_limit": 10})).await;
    readers.work().await;
    let first = readers.mails();
    assert_eq!(first.len(), 1);
    let waiting = if first[0].0.starts_with("ann") { "bob@example.com" } else { "ann@example.com" };
    let found = readers.get(&readers.caller, &readers.at(&format!("contacts?email={waiting}"))).await;
    let contact: ContactId = found["data"][0]["id"].as_str().unwrap().parse().unwrap();
    let message = readers.store.campaign_message_of(readers.workspace, campaign, contact).await.unwrap().unwrap();
    let scope = (UnsubscribeMethod::Link, UnsubscribeScope::OfMessage);
    assert!(readers.app.unsubscribe_from(readers.workspace, message, scope, &reader()).await.unwrap());
    readers.pass(10 * MINUTE).await;
    readers.work().await;
    assert_eq!(readers.mails().len(), 0);
    assert!(readers.story(message).await.starts_with("suppressed:"), "{}", readers.story(message).await);
}

#[tokio::test]
async fn everything_ends_every_public_list() {
    let readers = Readers::start("single").await;
    let second = created(&readers, "lists", json!({"name": "Offers", "visibility": "public"})).await;
    let consent = json!({"marketing_email": true});
    let lists = json!([readers.list, second]);
    let ann = readers.contact(json!({"email": "ann@example.com", "consent": consent, "list_ids": lists})).await;
    readers.campaign(json!({"list_ids": lists}), json!({})).await;
    readers.work().await;
    let (_, message, _) = readers.mails().remove(0);
    let page = readers.app.unsubscribe_page(readers.workspace, message).await.unwrap();
    assert_eq!(page.lists.len(), 2);
    // The message is for more than one list: one click ends all marketing mail.
    assert!(readers.app.unsubscribe(readers.workspace, message, UnsubscribeMethod::OneClick).await.unwrap());
    assert_eq!(readers.members("left").await, ["ann@example.com:unsubscribe"]);
    let contact = readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}"))).await;
    assert_eq!((&contact["list_ids"], &contact["suppressed_channels"]), (&json!([]), &json!(["email"])));
    assert_eq!(contact["consent"]["marketing_email"], false);
}

#[tokio::test]
async fn of_two_contacts_that_become_one_the_reader_s_last_word_counts() {
    let readers = Readers::start("single").await;
    let ann = readers.contact(json!({"email": "ann@example.com", "list_ids": [readers.list]})).await;
    let twin = readers
        .contact(json!({"email": "twin@example.com", "consent": {"marketing_email": true},
        "list_ids": [readers.list]}))
        .await;
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    let (to, message, _) = readers.mails().remove(0);
    assert_eq!(to, "twin@example.com");
    assert!(readers.app.unsubscribe(readers.workspace, message, UnsubscribeMethod::OneClick).await.unwrap());
    let body = json!({"primary_id": ann, "duplicate_id": twin});
    let merged = readers.post(&readers.caller, &readers.at("contacts/merge"), body).await;
    assert_eq!((merged.summary().as_str(), &merged["list_ids"]), ("200", &json!([])));
    assert_eq!(readers.members("left").await, ["ann@example.com:unsubscribe"]);
    assert_eq!(readers.count().await, 0);
}

#[tokio::test]
async fn a_segment_asks_for_a_status() {
    let readers = Readers::start("double").await;
    let bob = readers.contact(json!({"email": "bob@example.com"})).await;
    readers.contact(json!({"email": "ann@example.com", "list_ids": [readers.list]})).await;
    assert_eq!(readers.add(&bob, json!({"status": "unconfirmed"})).await, "200");
    let preview = async |status: &str| {
        let filter = json!({"type": "list", "op": "member", "id": readers.list, "status": status});
        let path = readers.at("segments/preview");
        readers.post(&readers.caller, &path, json!({"filter": filter})).await["sample"][0]["email"].clone()
    };
    assert_eq!(preview("unconfirmed").await, "bob@example.com");
    assert_eq!(preview("confirmed").await, "ann@example.com");
    assert_eq!(preview("left").await, Value::Null);
}
