//! State of a message after what mail servers do: contract section 4.2, with real sockets.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_testing::{Action, DnsFailure, Gate, ScriptedSmtpServer, Stage, TestDns};
use messaging_transport::{DirectDelivery, Dns, smtp::Timeouts};
use serde_json::json;

use crate::support::Product;

const ANN: &str = "ann@b.test";
const MINUTE: Duration = Duration::from_mins(1);

/// Timeout longer than any exchange here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Timeout for peers that are silent on purpose.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// A product and the mail server of `b.test`.
struct Field {
    product: Product,
    server: ScriptedSmtpServer,
    dns: TestDns,
}

impl Field {
    async fn start() -> Self {
        Self::with(Timeouts::all(PATIENCE)).await
    }

    async fn with(timeouts: Timeouts) -> Self {
        let (server, dns) = (ScriptedSmtpServer::start().await, TestDns::start().await);
        dns.mx("b.test", &[(10, "mx.b.test")]);
        dns.addresses("mx.b.test", &[IpAddr::from([127, 0, 0, 1])]);
        let direct = DirectDelivery::builder("sender.test", Dns::new(Some(dns.addr())))
            .port(server.port())
            .allow_private(true)
            .timeouts(timeouts)
            .rest(Duration::ZERO)
            .allow_private(true)
            .build();
        Self { product: Product::carried_by(Arc::new(direct)).await, server, dns }
    }

    /// Sends a message and makes the first attempt; returns status and events.
    async fn story(&self, to: &str) -> String {
        let id = self.product.send_to(to).await;
        self.product.work().await;
        self.product.story(id).await
    }
}

#[tokio::test]
async fn a_message_that_the_exchanger_took_is_delivered() {
    let field = Field::start().await;
    let id = field.product.send_to(ANN).await;
    field.product.work().await;
    assert_eq!(field.product.story(id).await, "delivered: Queued Sent Delivered");
    insta::assert_json_snapshot!(field.product.last_meta(id).await, @r#"
    {
      "mx": "mx.b.test",
      "recipient": "ann@b.test",
      "response": "2.0.0 taken",
      "smtp_code": 250
    }
    "#);
}

#[tokio::test]
async fn a_lost_reply_is_repeated_as_the_same_message_and_called_ambiguous() {
    let field = Field::start().await;
    field.server.next(Stage::Dot, Action::LoseReply);
    let id = field.product.send_to(ANN).await;
    field.product.work().await;
    assert_eq!(field.product.story(id).await, "deferred: Queued Deferred");
    let meta = field.product.last_meta(id).await;
    assert_eq!((&meta["ambiguous"], &meta["enhanced_code"]), (&json!(true), &json!("4.4.2")));
    field.product.pass(MINUTE).await;
    assert_eq!(field.product.story(id).await, "delivered: Queued Deferred Sent Delivered");
    let messages = field.server.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].content, messages[1].content);
}

#[tokio::test]
async fn trouble_on_the_way_is_put_off_and_nothing_is_lost() {
    let troubles = [
        (Stage::Greeting, Action::Close),
        (Stage::Greeting, Action::Wait(Gate::default())),
        (Stage::Ehlo, Action::Flood("250-and".into())),
        (Stage::Mail, Action::ReplyAndClose("421 4.3.2 shutting down".into())),
        (Stage::Rcpt, Action::reply("450 4.7.1 greylisted")),
        (Stage::Data, Action::Close),
        (Stage::Content, Action::Close),
        (Stage::Dot, Action::reply("451 4.3.0 later")),
    ];
    for (stage, action) in troubles {
        let is_silent = matches!(action, Action::Wait(_));
        let greeting = if is_silent { 5 * IMPATIENCE } else { PATIENCE };
        let field = Field::with(Timeouts { greeting, ..Timeouts::all(PATIENCE) }).await;
        field.server.next(stage, action);
        let id = field.product.send_to(ANN).await;
        field.product.work().await;
        let story = field.product.story(id).await;
        assert_eq!(story, "deferred: Queued Deferred", "{stage:?}");
        field.product.pass(MINUTE).await;
        assert_eq!(field.product.story(id).await, "delivered: Queued Deferred Sent Delivered", "{stage:?}");
        assert_eq!(field.server.messages().len(), 1);
    }
}

#[tokio::test]
async fn refusals_bounce_and_only_hard_ones_suppress() {
    let field = Field::start().await;
    field.server.answer("unknown@b.test", "550 5.1.1 no such user");
    field.server.answer("policy@b.test", "550 5.7.1 not from you");
    field.dns.mx("null.test", &[(0, ".")]);
    field.dns.txt("empty.test", &["no mail here"]);
    field.dns.fail("servfail.test", DnsFailure::ServFail);
    for (to, class) in [
        ("unknown@b.test", Some(("hard", "invalid_recipient"))),
        ("policy@b.test", Some(("soft", "policy"))),
        ("a@nowhere.test", Some(("hard", "invalid_domain"))),
        ("a@null.test", Some(("hard", "invalid_domain"))),
        ("a@empty.test", Some(("soft", "unreachable"))),
        ("a@servfail.test", None),
    ] {
        let id = field.product.send_to(to).await;
        field.product.work().await;
        let story = field.product.story(id).await;
        let meta = field.product.last_meta(id).await;
        match class {
            Some((kind, class)) => {
                assert_eq!(story, "bounced: Queued Bounce", "{to}");
                assert_eq!((&meta["bounce_type"], &meta["bounce_class"]), (&json!(kind), &json!(class)), "{to}");
            }
            None => assert_eq!(story, "deferred: Queued Deferred", "{to}"),
        }
        let store = &field.product.store;
        let listed = store.suppressed(field.product.workspace, Channel::Email, &[to.to_owned()]).await.unwrap();
        assert_eq!(!listed.is_empty(), class.is_some_and(|(kind, _)| kind == "hard"), "{to}");
    }
}

#[tokio::test]
async fn a_dead_domain_is_deferred_for_everyone_and_then_found_again() {
    let field = Field::start().await;
    field.server.always(Stage::Greeting, Action::Close);
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(field.product.send_to(&format!("a{number}@b.test")).await);
    }
    field.product.work().await;
    for &id in &ids {
        assert_eq!(field.product.story(id).await, "deferred: Queued Deferred");
        assert_eq!(field.product.last_meta(id).await["enhanced_code"], "4.4.1");
    }
    field.server.always(Stage::Greeting, Action::reply("220 back again"));
    // One of them probes; the others may be deferred once more meanwhile.
    field.product.pass(MINUTE).await;
    field.product.pass(5 * MINUTE).await;
    for &id in &ids {
        assert_eq!(field.product.report(id).await.status.as_str(), "delivered");
    }
    assert_eq!(field.server.messages().len(), ids.len());
}

#[tokio::test]
async fn a_message_too_large_for_the_exchanger_bounces_soft() {
    let field = Field::start().await;
    field.server.always(Stage::Ehlo, Action::reply("250-mx\n250 SIZE 100"));
    assert_eq!(field.story(ANN).await, "bounced: Queued Bounce");
    assert!(!field.server.commands().iter().any(|command| command.starts_with("MAIL")));
}
