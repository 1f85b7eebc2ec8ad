//! Contract section 14.6: delivery results by site, sending domain and pool.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Expect, SourceWrite, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, AttemptTls, Dialog, TlsVerification};
use messaging_core::domain::delivery::ip_pool::IpGrant;
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, PathRow, SourceAddress, SourceRow};
use messaging_core::domain::delivery::path::PathState;
use messaging_core::domain::delivery::site::SiteLimits;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::{Action, RecipientReport, Report};
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::ReturnAddress;
use messaging_core::ports::resolver::NoResolver;
use messaging_core::ports::store::Priority;
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, Outgoing, Response, Sent, Transport, TransportError,
};
use messaging_engine::services::Visitor;
use messaging_engine::work::sweep::sweep;
use messaging_engine::{Caller, admin};
use messaging_testing::MemoryFetch;
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};
use crate::support::Product;

/// Mail servers of every domain, `mx.` and the domain. They do not know a recipient `gone`, defer a recipient `later`
/// once, and have TLS unless the domain begins with `clear`.
#[derive(Debug, Default)]
struct Exchangers {
    seen: Mutex<HashSet<String>>,
}

impl Exchangers {
    fn answer(&self, recipient: &str) -> (Outcome, Dialog) {
        let (name, domain) = recipient.split_once('@').unwrap();
        let host = format!("mx.{domain}");
        let reply = |code, enhanced: &str| Response {
            code: Some(code),
            enhanced: Some(enhanced.to_owned()),
            text: "so it is".to_owned(),
            host: Some(host.clone()),
        };
        let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(recipient.to_owned());
        let (outcome, ended) = if name.starts_with("gone") {
            (Outcome::refused(reply(550, "5.1.1")), AttemptOutcome::Bounced)
        } else if name.starts_with("later") && is_new {
            (Outcome::deferred(reply(451, "4.3.2")), AttemptOutcome::Deferred)
        } else {
            (Outcome::accepted(Acceptance::Delivered, reply(250, "2.0.0")), AttemptOutcome::Delivered)
        };
        let tls = AttemptTls { version: "TLSv1.3".to_owned(), cipher: None, verified: TlsVerification::None };
        let dialog = Dialog {
            mx: Some(host.clone()),
            remote_addr: Some("192.0.2.1:25".to_owned()),
            tls: (!domain.starts_with("clear")).then_some(tls),
            tls_failure: None,
            source: None,
            outcome: ended,
            transcript: Vec::new(),
        };
        (outcome, dialog)
    }
}

#[async_trait]
impl Transport for Exchangers {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let mut sent = Sent::default();
        for recipient in &outgoing.recipients {
            let admitted = outgoing.last_look.begin(std::slice::from_ref(recipient)).await;
            let (answered, dialog) = self.answer(recipient);
            let outcome = admitted.into_iter().find_map(Admitted::refusal).unwrap_or(answered);
            outgoing.last_look.ended(recipient, &outcome);
            sent.outcomes.push(outcome);
            sent.dialogs.push(dialog);
        }
        Ok(sent)
    }
}

/// A workspace whose email goes to these mail servers.
async fn product() -> Product {
    let exchangers: Arc<dyn Transport> = Arc::new(Exchangers::default());
    let transports = vec![(Channel::Email, "builtin", exchangers)];
    let bed = Bed::build_on(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), transports, false);
    admin::create_user(&bed.app, "owner@acme.com", None, None).await.unwrap();
    let workspace = admin::create_workspace(&bed.app, "Acme", "owner@acme.com").await.unwrap().id;
    admin::prepare_sandbox(&bed.app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
    let caller = Caller::Operator(Some(workspace));
    let path = format!("/workspaces/{workspace}/channels/email");
    assert_eq!(bed.put(&caller, &path, json!({"provider": "builtin"})).await.summary(), "200");
    // A span ends before its end time, and the clock begins at a quarter of an hour.
    bed.clock.advance(Duration::from_secs(1));
    Product { bed, transport: Arc::default(), workspace, caller }
}

async fn seen(product: &Product, query: &str) -> Reply {
    let reply = product.get(&product.caller, &format!("/workspaces/{}/deliverability{query}", product.workspace)).await;
    assert_eq!(reply.summary(), "200");
    reply
}

/// Receives a report at the return address of a message.
async fn receive(product: &Product, message: MessageId, report: &Report) {
    let (workspace_id, purpose) = (product.workspace, ReturnPurpose::Bounce);
    let to = ReturnAddress { workspace_id, message_id: message, purpose, recipient: None };
    product.app.receive(&to, report).await.unwrap();
}

fn site(name: &str, numbers: [u64; 7], median: Value, tls: Value) -> Value {
    let [accepted, delivered, deferred, hard, soft, complaints, opened] = numbers;
    json!({"site": name, "accepted": accepted, "delivered": delivered, "deferred": deferred, "bounced_hard": hard,
        "bounced_soft": soft, "complaints": complaints, "opened_human": opened, "median_seconds": median, "tls_share": tls})
}

#[tokio::test]
async fn what_sites_do_is_counted_by_recipient() {
    let product = product().await;
    let empty = seen(&product, "").await;
    assert_eq!((&empty["sites"], &empty["pools"]), (&json!([]), &json!([])));
    assert_eq!(empty["summary"], "No email went to a mailbox provider in this time, so there is nothing to judge.");

    let first = product.send_to("ann@a.example").await;
    let second = product.send_to("bob@a.example").await;
    product.send_to("later@a.example").await;
    product.send_to("gone@b.example").await;
    let copied = json!({"channel": "email", "to": "ann@clear.example", "cc": ["gone2@b.example", "bob@clear.example"],
        "subject": "s", "text": "t"});
    product.send(&copied).await;
    product.work().await;
    assert_eq!(product.story(first).await, "delivered: Queued Sent Delivered");
    let sites = seen(&product, "").await["sites"].clone();
    assert_eq!(
        sites,
        json!([
            site("a.example", [3, 2, 1, 0, 0, 0, 0], json!(1), json!(1.0)),
            site("b.example", [2, 0, 0, 2, 0, 0, 0], Value::Null, Value::Null),
            site("clear.example", [2, 2, 0, 0, 0, 0, 0], json!(1), json!(0.0)),
        ])
    );

    // A deferred message was accepted once, and a later report counts where the message was delivered.
    product.pass(Duration::from_mins(4)).await;
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0";
    let person = Visitor {
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some(agent.to_owned()),
        is_head: false,
        is_prefetch: false,
    };
    let machine = Visitor { user_agent: Some("Mozilla/5.0".to_owned()), ..person.clone() };
    for visitor in [&machine, &person, &person] {
        product.app.record_open(product.workspace, first, visitor).await.unwrap();
    }
    let complaint =
        Report::Complaint { feedback_type: "abuse".to_owned(), recipients: vec!["ann@a.example".to_owned()] };
    let failed = Report::Delivery(vec![RecipientReport {
        addresses: vec!["bob@a.example".to_owned()],
        action: Action::Failed,
        response: Response { code: Some(550), enhanced: Some("5.1.1".to_owned()), ..Response::of_text("no such user") },
    }]);
    for _ in 0..2 {
        receive(&product, first, &complaint).await;
        receive(&product, second, &failed).await;
    }
    let reply = seen(&product, "").await;
    assert_eq!(reply["sites"][0], site("a.example", [3, 2, 1, 1, 0, 1, 1], json!(1), json!(1.0)));
    let summary = reply["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("1 complaint at a.example for 2 delivered messages (50.0 %): Gmail and Yahoo mind"),
        "{summary}"
    );
    // The time before has no results.
    assert_eq!(seen(&product, "?since=2026-01-01T00:00:00Z&until=2026-01-31T09:00:00Z").await["sites"], json!([]));
}

#[tokio::test]
async fn counts_of_sites_are_forgotten_after_a_year() {
    let product = product().await;
    product.send_to("ann@a.example").await;
    product.work().await;
    let year = Duration::from_hours(365 * 24);
    product.clock.advance(year);
    sweep(&product.app).await.unwrap();
    let whole = "?since=2026-01-31T00:00:00Z&until=2026-02-01T00:00:00Z";
    assert_eq!(seen(&product, whole).await["sites"].as_array().unwrap().len(), 1);
    product.clock.advance(year);
    sweep(&product.app).await.unwrap();
    assert_eq!(seen(&product, whole).await["sites"], json!([]));
}

#[tokio::test]
async fn what_a_relay_or_the_sandbox_takes_has_no_site() {
    let product = Product::start().await;
    let message = product.send_to("ann@a.example").await;
    product.work().await;
    assert_eq!(product.story(message).await, "delivered: Queued Sent Delivered");
    assert_eq!(seen(&product, "").await["sites"], json!([]));
}

#[tokio::test]
async fn domains_are_told_with_what_they_prove() {
    let product = product().await;
    let path = format!("/workspaces/{}/sending-domains", product.workspace);
    product.clock.advance(Duration::from_secs(1));
    let made = product.post(&product.caller, &path, json!({"domain": "acme.com"})).await;
    assert_eq!(made.summary(), "201");
    let reply = seen(&product, "").await;
    let domains = reply["domains"].as_array().unwrap();
    let shown = |domain: &Value| {
        let text = |name: &str| domain[name].as_str().unwrap().to_owned();
        [text("domain"), text("spf"), text("dkim"), text("dmarc"), domain["one_click"].to_string()].join(" ")
    };
    let shown: Vec<_> = domains.iter().map(shown).collect();
    assert_eq!(shown, ["acme.com pending pending pending false", "sandbox.test verified verified verified true"]);
    for domain in domains {
        assert_eq!(
            (&domain["verdict"]["status"], &domain["verdict"]["next_record"]),
            (&json!("no_data"), &Value::Null)
        );
    }
}

#[tokio::test]
async fn pools_are_told_with_warm_up_and_brakes() {
    let product = product().await;
    let now = product.app.now();
    let ip: IpAddr = "203.0.113.7".parse().unwrap();
    let source = SourceAddress::from(ip);
    let named = NamedSource { ip: source, name: "mx.example.org".to_owned() };
    let announce = async || product.store.announce_sources(std::slice::from_ref(&named)).await.unwrap();
    announce().await;
    let (mut warming, mut stopped) = (PathState::default(), PathState::default());
    for path in [&mut warming, &mut stopped] {
        (0..7).for_each(|_| path.sent(&SiteLimits::default(), now));
    }
    stopped.stop();
    let path = |site: &str, state: &PathState| {
        let row = PathRow {
            ip: source,
            site: site.to_owned(),
            state: serde_json::to_string(state).unwrap(),
            sent_today: 7,
            day: now.as_millis().div_euclid(86_400_000),
            is_stopped: false,
            updated_at: now,
        };
        Write::Source(SourceWrite::PutPath(Box::new(row), Expect::Absent))
    };
    let row = SourceRow { level: 2, last_used_at: Some(now), ..SourceRow::new(source, now) };
    let grant = IpGrant { workspace_id: product.workspace, ip, granted_at: now };
    let writes = [
        Write::Source(SourceWrite::Grant(grant)),
        Write::Source(SourceWrite::PutSource(row, Expect::Absent)),
        path("a.example", &stopped),
        path("elsewhere.example", &warming),
    ];
    product.store.commit(writes.into_iter().collect(), Priority::Foreground).await.unwrap();
    let ips = json!({"name": "marketing", "ips": ["203.0.113.7", "203.0.113.8"]});
    // The second address belongs to no workspace yet.
    let grant = IpGrant { workspace_id: product.workspace, ip: "203.0.113.8".parse().unwrap(), granted_at: now };
    let write = Write::Source(SourceWrite::Grant(grant));
    product.store.commit([write].into_iter().collect(), Priority::Foreground).await.unwrap();
    let pools = format!("/workspaces/{}/ip-pools", product.workspace);
    let pool = product.post(&product.caller, &pools, ips).await;
    assert_eq!(pool.summary(), "201");

    let reply = seen(&product, "").await;
    assert_eq!(
        reply["pools"],
        json!([{"id": pool["id"], "name": "marketing", "sources": [
            {"ip": "203.0.113.7", "status": "warming", "level": 2, "sent_today": 14, "allowed_today": 100},
            {"ip": "203.0.113.8", "status": "absent", "level": 0, "sent_today": 0, "allowed_today": null},
        ]}])
    );
    // Brakes at sites that the workspace sends nothing to are not shown.
    assert!(!reply["summary"].as_str().unwrap().contains("Nothing leaves"));
    product.send_to("ann@a.example").await;
    product.work().await;
    // The process begins with its own results.
    announce().await;
    let summary = seen(&product, "").await["summary"].clone();
    let summary = summary.as_str().unwrap();
    let expected = "Nothing leaves from 203.0.113.7 to a.example, because the operator stopped it";
    assert!(summary.starts_with(expected), "{summary}");
}

#[tokio::test]
async fn who_may_not_see_it_is_refused_and_spans_are_checked() {
    let product = product().await;
    let path = format!("/workspaces/{}/deliverability", product.workspace);
    let writer = product.key(product.workspace, &["messages:send"]).await;
    assert!(product.get(&writer, &path).await.summary().starts_with("403"));
    let reader = product.key(product.workspace, &["analytics:read"]).await;
    for (query, expected) in [
        ("", "200"),
        ("?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "422 since out_of_range"),
        ("?since=2024-01-01T00:00:00Z&until=2025-01-02T00:00:00.001Z", "422 since out_of_range"),
        ("?since=yesterday", "422 since invalid_format"),
    ] {
        assert_eq!(product.get(&reader, &format!("{path}{query}")).await.summary(), expected, "{query}");
    }
}
