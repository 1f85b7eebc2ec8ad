//! A workspace with readers: a public list with a form and an archive, stored mail, and actions of tests there.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::transport::{Content, Email};
use messaging_core::scope::{Role, Scope};
use messaging_engine::admin;
use messaging_http::ServerOptions;
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};

/// Beginning of the server's addresses in mails.
pub(crate) const BASE: &str = "http://127.0.0.1:8080";

/// The server with the workspace.
pub(crate) struct ReaderSite {
    pub(crate) server: TestServer,
    transport: Arc<MemoryTransport>,
    pub(crate) key: String,
    /// The list, whose readers confirm.
    pub(crate) list: String,
    /// The path of its form.
    pub(crate) form: String,
}

impl ReaderSite {
    /// A site whose list, form and archive have these members.
    pub(crate) async fn start(list: Value, form: Value, archive: &str) -> Self {
        let transport = Arc::new(MemoryTransport::default());
        let carried = vec![(Channel::Email, "sandbox", Arc::clone(&transport) as Arc<dyn Transport>)];
        let entropy = Arc::new(SystemEntropy::default());
        let server = TestServer::carrying(ServerOptions::new(any_port()), entropy, carried).await;
        admin::prepare_sandbox(&server.app, server.workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
        let key = server.key(&[Scope::All]).await;
        let mut site = Self { server, transport, key, list: String::new(), form: String::new() };
        let mut body = json!({"visibility": "public", "opt_in": "double"});
        body.as_object_mut().unwrap().extend(list.as_object().unwrap().clone());
        site.made("lists", body).await["id"].as_str().unwrap().clone_into(&mut site.list);
        let mut body = json!({"list_ids": [site.list]});
        body.as_object_mut().unwrap().extend(form.as_object().unwrap().clone());
        let form = site.made("forms", body).await;
        site.form = form["url"].as_str().unwrap().strip_prefix(BASE).unwrap().to_owned();
        let session = format!("Bearer {}", site.server.session(Some(Role::Admin)).await);
        let headers = [("authorization", session.as_str()), ("content-type", "application/json")];
        let archive = json!({"archive": {"enabled": true, "title": archive, "lists": [site.list]}}).to_string();
        assert_eq!(site.server.request("PATCH", &site.at(""), &headers, Some(&archive)).await.status, 200);
        site
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("/v1/workspaces/{}/{path}", self.server.workspace).trim_end_matches('/').to_owned()
    }

    /// Posts a request that must be accepted.
    pub(crate) async fn made(&self, what: &str, body: Value) -> Value {
        let reply = self.server.post(&self.at(what), &self.key, &body.to_string()).await;
        assert!((200..300).contains(&reply.status), "{what}: {}", reply.json());
        reply.json()
    }

    /// The items of a listing.
    pub(crate) async fn listed(&self, what: &str) -> Value {
        self.server.get(&self.at(what), &self.key).await.json()["data"].clone()
    }

    /// Sends a campaign to the list.
    pub(crate) async fn send_campaign(&self, subject: &str, html: &str) {
        let template = json!({"name": "t", "channel": "email", "subject": subject, "from_email": "shop@sandbox.test",
            "html": html});
        let template = self.made("templates", template).await["id"].clone();
        let campaign = json!({"name": "c", "channel": "email", "template_id": template,
            "audience": {"list_ids": [self.list]}});
        let campaign = self.made("campaigns", campaign).await["id"].as_str().unwrap().to_owned();
        self.made(&format!("campaigns/{campaign}/schedule"), json!({"send_now": true})).await;
    }

    /// The mails sent since the last call.
    pub(crate) async fn mails(&self) -> Vec<Email> {
        self.server.app.run_until_idle().await.unwrap();
        let email = |content| match content {
            Content::Email(email) => *email,
            _ => panic!("only email is sent here"),
        };
        self.transport.take().into_iter().map(|outgoing| email(outgoing.content)).collect()
    }
}
