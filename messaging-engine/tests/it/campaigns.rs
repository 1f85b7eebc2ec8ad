//! Contract section 12: the operations of campaigns. Rows that jobs would write are put into the store here.

mod explain;
mod in_use;
mod inputs;
mod recipients;
mod states;
mod test_send;

use std::ops::Deref;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::campaign::Campaign;
use messaging_core::ids::CampaignId;
use serde_json::{Value, json};

use crate::bed::Reply;
use crate::support::Product;

/// A workspace with a verified domain, a template and a list.
pub(crate) struct Shop {
    pub(crate) product: Product,
    pub(crate) template: String,
    pub(crate) list: String,
}

impl Deref for Shop {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Shop {
    pub(crate) async fn start() -> Self {
        let product = Product::start().await;
        let mut shop = Self { product, template: String::new(), list: String::new() };
        shop.template = shop.made("/templates", template(json!({}))).await;
        shop.list = shop.made("/lists", json!({"name": "News"})).await;
        shop
    }

    pub(crate) fn path(&self, path: &str) -> String {
        format!("/workspaces/{}{path}", self.workspace)
    }

    pub(crate) async fn request(&self, path: &str, body: Value) -> Reply {
        self.post(&self.caller, &self.path(path), body).await
    }

    pub(crate) async fn read(&self, path: &str) -> Reply {
        self.get(&self.caller, &self.path(path)).await
    }

    /// Creates a resource and returns its id.
    pub(crate) async fn made(&self, path: &str, body: Value) -> String {
        let reply = self.request(path, body).await;
        assert_eq!(reply.summary(), "201", "{path}: {}", reply.body);
        reply["id"].as_str().unwrap().to_owned()
    }

    /// A contact that agreed to marketing, on the list.
    pub(crate) async fn contact(&self, email: &str) -> String {
        self.contact_with(json!({"email": email, "consent": {"marketing_email": true}})).await
    }

    /// A contact on the list.
    pub(crate) async fn contact_with(&self, body: Value) -> String {
        let id = self.made("/contacts", body).await;
        let members = format!("/lists/{}/contacts", self.list);
        assert_eq!(self.request(&members, json!({"contact_ids": [id]})).await.summary(), "200");
        id
    }

    /// The body of a campaign to the list.
    pub(crate) fn body(&self, more: Value) -> Value {
        let body = json!({"name": "Spring", "channel": "email", "template_id": self.template,
            "audience": {"list_ids": [self.list]}});
        with(body, more)
    }

    pub(crate) async fn campaign(&self, more: Value) -> String {
        self.made("/campaigns", self.body(more)).await
    }

    /// Changes a campaign as a job would.
    pub(crate) async fn change(&self, id: &str, change: impl FnOnce(&mut Campaign)) -> Campaign {
        let id: CampaignId = id.parse().unwrap();
        let stored = self.store.campaign(self.workspace, id).await.unwrap().unwrap();
        let mut campaign = stored.record;
        change(&mut campaign);
        let put = Write::put(Box::new(campaign.clone()), Expect::Revision(stored.revision));
        self.commit(Changes::from_iter([put])).await;
        campaign
    }
}

/// The body of an email template that can be sent.
pub(crate) fn template(more: Value) -> Value {
    let html = "<p>Hi {{ contact.email }}, <a href=\"{{ unsubscribe_url }}\">stop</a></p>";
    with(json!({"name": "News", "channel": "email", "subject": "News", "html": html}), more)
}

/// An object with more members.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}
