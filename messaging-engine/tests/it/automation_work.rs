//! Automations at work: entries and their order, and the effect of pauses, crashes and many contacts. Contract sections
//! 13.1, 13.3 and 13.4.

mod announced;
pub(crate) mod crashes;
mod crowds;
mod dates;
mod edits;
mod moments;
mod nodes;
mod order;
mod recipes;
mod refused;
mod restored;
mod suppressions;
mod triggers;

use std::ops::Deref;
use std::time::Duration;

use messaging_core::ports::transport::Content;
use serde_json::{Value, json};

use crate::bed::Reply;
use crate::support::Product;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A workspace with automations.
pub(crate) struct Journeys {
    pub(crate) product: Product,
}

impl Deref for Journeys {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.product
    }
}

impl Journeys {
    pub(crate) async fn start() -> Self {
        Self { product: Product::start().await }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("/workspaces/{}/{path}", self.workspace)
    }

    /// Posts a body and returns the body of the successful answer.
    pub(crate) async fn made(&self, path: &str, body: Value) -> Value {
        let reply = self.post(&self.caller, &self.at(path), body).await;
        assert!((200..300).contains(&reply.status), "{path}: {:?}", reply.body);
        reply.body
    }

    /// Creates a resource and returns its id.
    pub(crate) async fn id_of(&self, path: &str, body: Value) -> String {
        self.made(path, body).await["id"].as_str().unwrap().to_owned()
    }

    /// A contact `name`, who agreed to email; with more members.
    pub(crate) async fn contact(&self, name: &str, more: Value) -> String {
        let mut body = json!({"external_id": name, "email": format!("{name}@example.com"),
            "consent": {"marketing_email": true}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.id_of("contacts", body).await
    }

    pub(crate) async fn change(&self, contact: &str, body: Value) {
        let reply = self.patch(&self.caller, &self.at(&format!("contacts/{contact}")), body).await;
        assert_eq!(reply.summary(), "200", "{:?}", reply.body);
    }

    /// An event of the contact with an external id.
    pub(crate) async fn event(&self, name: &str, contact: &str, properties: Value) {
        let body = json!({"name": name, "contact": {"external_id": contact}, "properties": properties});
        let reply = self.post(&self.caller, "/events", body).await;
        assert_eq!(reply.summary(), "202", "{:?}", reply.body);
    }

    /// A template, as an email that needs nothing.
    pub(crate) async fn template(&self, subject: &str) -> String {
        let body = json!({"name": subject, "channel": "email", "subject": subject, "from_email": "shop@sandbox.test",
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        self.id_of("templates", body).await
    }

    /// A draft.
    pub(crate) async fn draft(&self, trigger: Value, graph: Value, more: Value) -> String {
        let mut body = json!({"name": "a", "trigger": trigger, "graph": graph});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.id_of("automations", body).await
    }

    /// An active automation.
    pub(crate) async fn active(&self, trigger: Value, graph: Value, more: Value) -> String {
        let id = self.draft(trigger, graph, more).await;
        self.act(&id, "activate").await;
        self.work().await;
        id
    }

    pub(crate) async fn act(&self, id: &str, action: &str) {
        let reply = self.post(&self.caller, &self.at(&format!("automations/{id}/{action}")), json!({})).await;
        assert_eq!(reply.summary(), "202", "{:?}", reply.body);
    }

    pub(crate) async fn edit(&self, id: &str, body: Value) {
        let reply = self.patch(&self.caller, &self.at(&format!("automations/{id}")), body).await;
        assert_eq!(reply.summary(), "200", "{:?}", reply.body);
    }

    /// Calls the trigger of an automation for a contact, by external id.
    pub(crate) async fn call_in(&self, id: &str, contact: &str) -> Reply {
        let body = json!({"external_id": contact});
        self.post(&self.caller, &self.at(&format!("automations/{id}/trigger")), body).await
    }

    /// All runs of an automation, newest first.
    pub(crate) async fn runs(&self, id: &str) -> Vec<Value> {
        let (mut runs, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = self.at(&format!("automations/{id}/runs?limit=200{cursor}"));
            let mut page = self.get(&self.caller, &path).await;
            assert_eq!(page.summary(), "200", "{:?}", page.body);
            runs.append(page.body["data"].as_array_mut().unwrap());
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return runs,
            }
        }
    }

    /// The runs of an automation in the order of their entries, as `waiting w, exited x exit`; runs that entered at the
    /// same moment are sorted as text.
    pub(crate) async fn told(&self, id: &str) -> String {
        tell(&self.runs(id).await)
    }

    /// The runs of one contact, as in `told`.
    pub(crate) async fn told_of(&self, id: &str, contact: &str) -> String {
        let mut runs = self.runs(id).await;
        runs.retain(|run| run["contact_id"] == contact);
        tell(&runs)
    }

    /// The history of a run, as `entered, waiting w, continued w timeout`.
    pub(crate) async fn history(&self, id: &str, run: &Value) -> String {
        let path = self.at(&format!("automations/{id}/runs/{}", run["id"].as_str().unwrap()));
        let found = self.get(&self.caller, &path).await;
        assert_eq!(found.summary(), "200", "{:?}", found.body);
        let steps = found["history"].as_array().unwrap().iter().map(|step| {
            let parts = ["outcome", "node_id", "branch", "reason"].map(|part| step[part].as_str());
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        steps.collect::<Vec<_>>().join(", ")
    }

    /// Subjects of the mails that were sent to a recipient, in their order.
    pub(crate) fn mail_to(&self, name: &str) -> Vec<String> {
        let to = format!("{name}@example.com");
        let sent = self.transport.sent().into_iter().filter(|outgoing| outgoing.recipients.contains(&to));
        let subject = |content: Content| match content {
            Content::Email(email) => email.subject.clone(),
            _ => String::new(),
        };
        sent.map(|outgoing| subject(outgoing.content)).collect()
    }
}

fn tell(runs: &[Value]) -> String {
    let told = |run: &Value| {
        let parts = ["status", "node_id", "exit_reason"].map(|part| run[part].as_str());
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        (run["entered_at"].as_str().unwrap().to_owned(), text)
    };
    let mut told: Vec<_> = runs.iter().map(told).collect();
    told.sort();
    told.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

/// One wait of an hour, and the end.
pub(crate) fn waits() -> Value {
    json!({"nodes": [{"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}}], "edges": []})
}

/// Nothing but an end.
pub(crate) fn ends() -> Value {
    json!({"nodes": [{"id": "x", "kind": "exit"}], "edges": []})
}

pub(crate) fn on_event(name: &str) -> Value {
    json!({"kind": "event", "config": {"name": name}})
}
