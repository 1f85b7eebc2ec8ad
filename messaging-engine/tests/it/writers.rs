//! Many concurrent writers of one resource: their writes are ordered, and none is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply};

const WRITERS: usize = 50;

struct Crowd {
    bed: Arc<Bed>,
    workspace: WorkspaceId,
    owner: Caller,
}

impl Crowd {
    async fn start() -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        Self { bed: Arc::new(bed), workspace, owner }
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}/{rest}", self.workspace)
    }

    /// Sends the requests of all writers at once.
    async fn send(&self, request: impl Fn(usize) -> (Method, String, Value)) -> Vec<Reply> {
        let start = Arc::new(tokio::sync::Barrier::new(WRITERS));
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                let (bed, owner, start) = (Arc::clone(&self.bed), self.owner.clone(), Arc::clone(&start));
                let (method, target, body) = request(n);
                tokio::spawn(async move {
                    start.wait().await;
                    bed.call(Call::new(&owner, method, &target).body(&body)).await
                })
            })
            .collect();
        let mut replies = Vec::new();
        for writer in writers {
            replies.push(writer.await.unwrap());
        }
        replies
    }

    async fn created(&self, collection: &str, body: Value) -> String {
        let reply = self.bed.post(&self.owner, &self.path(collection), body).await;
        assert_eq!(reply.summary(), "201");
        format!("{collection}/{}", reply["id"].as_str().unwrap())
    }

    async fn get(&self, rest: &str) -> Reply {
        self.bed.get(&self.owner, &self.path(rest)).await
    }
}

fn summaries(replies: &[Reply]) -> BTreeSet<String> {
    replies.iter().map(Reply::summary).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_of_one_email_are_all_done() {
    let crowd = Crowd::start().await;
    let replies = crowd
        .send(|n| {
            let email = if n % 2 == 0 { "ann@example.com" } else { "Ann@Example.com" };
            let body = json!({"email": email, "attributes": {format!("w{n}"): n}});
            (Method::POST, crowd.path("contacts"), body)
        })
        .await;
    assert_eq!(summaries(&replies), BTreeSet::from(["200".to_owned(), "201".to_owned()]));
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    // In some order, every answer shows what those before it wrote, and the last one everything.
    let mut seen: Vec<_> = replies.iter().map(|reply| reply["attributes"].as_object().unwrap().len()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=WRITERS).collect::<Vec<_>>());
    let listed = crowd.get("contacts").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    assert_eq!(listed["data"][0]["attributes"].as_object().unwrap().len(), WRITERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_and_patches_of_one_contact_are_all_done() {
    let crowd = Crowd::start().await;
    let contact = crowd.created("contacts", json!({"email": "ann@example.com", "external_id": "u-1"})).await;
    let replies = crowd
        .send(|n| {
            let attributes = json!({format!("w{n}"): n});
            match n % 4 {
                0 => (
                    Method::POST,
                    crowd.path("contacts"),
                    json!({"email": "ann@example.com", "attributes": attributes}),
                ),
                1 => (Method::POST, crowd.path("contacts"), json!({"external_id": "u-1", "attributes": attributes})),
                2 => {
                    let item = json!({"email": "ann@example.com", "attributes": attributes});
                    (Method::POST, crowd.path("contacts/bulk"), json!({"contacts": [item]}))
                }
                _ => (Method::PATCH, crowd.path(&contact), json!({"attributes": attributes})),
            }
        })
        .await;
    assert_eq!(summaries(&replies), BTreeSet::from(["200".to_owned()]));
    assert_eq!(crowd.get(&contact).await["attributes"].as_object().unwrap().len(), WRITERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_and_reverts_of_one_template_number_its_versions_without_gaps() {
    let crowd = Crowd::start().await;
    let body = |name: String| json!({"name": name, "channel": "email", "subject": "s", "text": "t"});
    let template = crowd.created("templates", body("Order".to_owned())).await;
    let replies = crowd
        .send(|n| match n % 2 {
            0 => (Method::PATCH, crowd.path(&template), body(format!("Order {n}"))),
            _ => (Method::POST, crowd.path(&format!("{template}/revert/1")), Value::Null),
        })
        .await;
    assert_eq!(summaries(&replies), BTreeSet::from(["200".to_owned()]));
    let mut answered: Vec<_> = replies.iter().map(|reply| reply["version"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    let all: Vec<u64> = (2..=WRITERS as u64 + 1).collect();
    assert_eq!(answered, all, "each has a version of its own");
    let listed = crowd.get(&format!("{template}/versions?limit=200")).await;
    let mut versions: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()).collect();
    versions.reverse();
    assert_eq!(versions, (1..=WRITERS as u64 + 1).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renamings_of_one_list_and_members_for_it_are_all_done() {
    let crowd = Crowd::start().await;
    let list = crowd.created("lists", json!({"name": "News"})).await;
    let contact = crowd.created("contacts", json!({"email": "ann@example.com"})).await;
    let contact = contact.trim_start_matches("contacts/");
    let replies = crowd
        .send(|n| match n % 2 {
            0 => (Method::PATCH, crowd.path(&list), json!({"name": format!("News {n}")})),
            _ => (Method::POST, crowd.path(&format!("{list}/contacts")), json!({"contact_ids": [contact]})),
        })
        .await;
    assert_eq!(summaries(&replies), BTreeSet::from(["200".to_owned()]));
    let added: u64 = replies.iter().filter_map(|reply| reply["added"].as_u64()).sum();
    assert_eq!((added, crowd.get(&list).await["contact_count"].as_u64()), (1, Some(1)));
}
