//! Messages through a relay that fails us: contract section 4.2, with a real peer.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::soft_bounce;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_testing::{Action, ScriptedSmtpServer, Stage};
use messaging_transport::SmtpRelay;
use messaging_transport::smtp::Timeouts;
use serde_json::json;

use crate::bed::Bed;
use crate::support::Product;

const ANN: &str = "ann@example.com";

/// Longest time for a step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A product whose email goes through a relay that knows one user.
struct Field {
    product: Product,
    server: ScriptedSmtpServer,
}

impl Field {
    async fn start() -> Self {
        let server = ScriptedSmtpServer::builder().login(&["PLAIN"], "acme", "right").start().await;
        let relay = SmtpRelay::builder().timeouts(Timeouts::all(PATIENCE)).allow_private(true).build();
        let field = Self { product: Product::carried_by(Arc::new(relay)).await, server };
        field.password("wrong").await;
        field
    }

    async fn password(&self, password: &str) {
        let config = json!({"host": "127.0.0.1", "port": self.server.port(), "tls": "none", "username": "acme",
            "password": password});
        let settings = ChannelSettings {
            workspace_id: self.product.workspace,
            channel: Channel::Email,
            provider: "sandbox".to_owned(),
            config: config.as_object().unwrap().clone(),
            registration: None,
        };
        let revision =
            self.product.store.channel(self.product.workspace, Channel::Email).await.unwrap().unwrap().revision;
        let write = Write::put(settings, Expect::Revision(revision));
        self.product.commit(Changes::from_iter([write])).await;
        // The process's cached settings expire.
        self.product.clock.advance(Duration::from_secs(2));
    }

    /// Lets the message and all of its retries come to their end.
    async fn expire(&self) {
        for _ in 0..16 {
            self.product.pass(Duration::from_hours(12)).await;
        }
    }
}

#[tokio::test]
async fn messages_that_only_the_relays_login_stopped_fail_and_suppress_nobody() {
    let field = Field::start().await;
    let product = &field.product;
    let mut ids = Vec::new();
    for _ in 0..soft_bounce::LIMIT {
        ids.push(product.send_to(ANN).await);
    }
    product.work().await;
    assert_eq!(product.story(ids[0]).await, "deferred: Queued Deferred");
    assert!(product.last_meta(ids[0]).await["response"].as_str().unwrap().contains("refused the login with 535"));
    let explanation = product.report(*ids.last().unwrap()).await.explanation;
    assert_eq!(explanation.code, "channel_failing");
    assert!(explanation.text.contains("535") && explanation.next_attempt_at.is_some(), "{explanation:?}");
    field.expire().await;
    for &id in &ids {
        assert_eq!(product.report(id).await.status.as_str(), "failed");
        let meta = product.last_meta(id).await;
        assert_eq!(meta["reason"], "provider_error");
        assert!(meta["message"].as_str().unwrap().contains("535"), "{meta}");
    }
    let spelled = [ANN.to_owned()];
    assert!(product.store.suppressed(product.workspace, Channel::Email, &spelled).await.unwrap().is_empty());
    let streak = product.store.soft_bounces(product.workspace, Channel::Email, ANN).await.unwrap();
    assert_eq!(streak.length, 0);

    field.password("right").await;
    let id = product.send_to(ANN).await;
    product.work().await;
    assert_eq!(product.story(id).await, "sent: Queued Sent");
}

#[tokio::test]
async fn a_message_that_a_server_put_off_too_bounces_when_it_expires() {
    let field = Field::start().await;
    field.password("right").await;
    field.server.next(Stage::Rcpt, Action::reply("450 4.2.1 mailbox is busy"));
    let id = field.product.send_to(ANN).await;
    field.product.work().await;
    field.password("wrong").await;
    field.expire().await;
    assert_eq!(field.product.report(id).await.status.as_str(), "bounced");
    let meta = field.product.last_meta(id).await;
    assert_eq!((&meta["bounce_type"], &meta["bounce_class"]), (&json!("soft"), &json!("unreachable")));
}

#[tokio::test]
async fn a_private_host_is_refused_when_it_is_given() {
    for (allow, expected) in [(false, "422 /config/host not_allowed"), (true, "200")] {
        let relay = SmtpRelay::builder().allow_private(allow).build();
        let (bed, workspace, _) = Bed::carrying("smtp", Arc::new(relay)).and_owner().await;
        let key = bed.key(workspace, &["*"]).await;
        for host in ["127.0.0.1", "10.0.0.7", "localhost", "0x7f.1"] {
            let body = json!({"provider": "smtp", "config": {"host": host, "port": 25}});
            let reply = bed.put(&key, &format!("/workspaces/{workspace}/channels/email"), body).await;
            assert_eq!(reply.summary(), expected, "{host}");
        }
        let body = json!({"provider": "smtp", "config": {"host": "127.0.0.1", "port": 0}});
        let reply = bed.put(&key, &format!("/workspaces/{workspace}/channels/email"), body).await;
        assert!(reply.summary().ends_with("/config/port out_of_range"), "{}", reply.summary());
        assert_eq!(reply.summary().contains("/config/host"), !allow);
    }
}
