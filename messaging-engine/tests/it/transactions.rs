//! One job for each domain of a message, one transaction for each recipient, each on record before its content:
//! contract sections 4.2 and 14, with real sockets, and with runs that are cut off as a crash cuts them off.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::report::{Action as ReportedAction, RecipientReport, Report};
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::ids::MessageId;
use messaging_core::ports::Store;
use messaging_core::ports::store::PageRequest;
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, Outgoing, Reservation, Response, Route, Sent, Transport, TransportError,
};
use messaging_testing::{Action, Gate, ScriptedSmtpServer, Stage, TestDns};
use messaging_transport::{DirectDelivery, Dns, smtp::Timeouts};
use serde_json::json;
use tokio::sync::{Barrier, Notify};

use crate::support::Product;

const ANN: &str = "ann@b.test";
/// At the domain of Ann.
const BOB: &str = "bob@b.test";
/// At another one.
const CAT: &str = "cat@c.test";

const MINUTE: Duration = Duration::from_mins(1);

/// After this a claim counts no more, as after a restart.
const LEASE: Duration = Duration::from_hours(1);

/// Longest time for a step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A product and the exchangers of `b.test` and `c.test`.
struct Field {
    product: Product,
    b: ScriptedSmtpServer,
    c: ScriptedSmtpServer,
    _dns: TestDns,
}

impl Field {
    async fn start() -> Self {
        let dns = TestDns::start().await;
        let b = ScriptedSmtpServer::start().await;
        let c = ScriptedSmtpServer::builder().at((IpAddr::from([127, 0, 0, 2]), b.port()).into()).start().await;
        for (name, last) in [("b", 1), ("c", 2)] {
            dns.mx(&format!("{name}.test"), &[(10, &format!("mx.{name}.test"))]);
            dns.addresses(&format!("mx.{name}.test"), &[IpAddr::from([127, 0, 0, last])]);
        }
        let direct = DirectDelivery::builder("sender.test", Dns::new(Some(dns.addr())))
            .port(b.port())
            .allow_private(true)
            .timeouts(Timeouts::all(PATIENCE))
            .rest(Duration::ZERO)
            .allow_private(true)
            .build();
        Self { product: Product::carried_by(Arc::new(direct)).await, b, c, _dns: dns }
    }

    async fn send(&self, to: &str, cc: &[&str]) -> MessageId {
        self.product.send(&json!({"channel": "email", "to": to, "cc": cc, "subject": "s", "text": "t"})).await
    }

    /// Works until `reached`, and then cuts the work off, without recording or undoing anything in progress.
    async fn crash_when(&self, reached: impl Future<Output = ()>) {
        let app = self.product.app.clone();
        let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
        tokio::time::timeout(PATIENCE, reached).await.expect("it is reached");
        working.abort();
        working.await.unwrap_err();
    }

    /// Works on as after a restart.
    async fn restart(&self) {
        self.product.pass(LEASE).await;
    }

    /// For each event with a recipient: its kind, the recipient, and ` ambiguous` if it is marked so.
    async fn told(&self, id: MessageId) -> Vec<String> {
        let events = self.product.report(id).await.events;
        let told = events.iter().filter_map(|event| {
            let mark = if event.meta.get("ambiguous") == Some(&json!(true)) { " ambiguous" } else { "" };
            Some(format!("{:?} {}{mark}", event.kind, event.meta.get("recipient")?.as_str()?))
        });
        told.collect()
    }
}

/// Whom the messages that a server got were for.
fn arrived(server: &ScriptedSmtpServer) -> Vec<String> {
    server.messages().into_iter().flat_map(|message| message.recipients).collect()
}

#[tokio::test]
async fn each_domain_has_a_job_and_one_domain_has_one() {
    let product = Product::start().await;
    let body = |cc: &[&str], bcc: &[&str]| json!({"channel": "email", "to": ANN, "cc": cc, "bcc": bcc, "subject": "s", "text": "t"});
    product.send(&body(&[BOB], &["dan@B.TEST"])).await;
    assert_eq!(product.store.job_count().await.unwrap(), 1);
    product.work().await;
    product.transport.take();
    let id = product.send(&body(&[CAT, BOB], &["eve@C.test", "fox@d.test"])).await;
    assert_eq!(product.store.job_count().await.unwrap(), 3);
    product.work().await;
    let mut groups: Vec<_> = product.transport.take().into_iter().map(|outgoing| outgoing.recipients).collect();
    groups.sort();
    assert_eq!(groups, [vec![ANN, BOB], vec![CAT, "eve@C.test"], vec!["fox@d.test"]]);
    assert_eq!(product.report(id).await.status.as_str(), "delivered");
    assert_eq!(product.report(id).await.events.len(), 11);
}

#[tokio::test]
async fn a_crash_at_one_domain_repeats_nothing_of_another_and_is_told() {
    let field = Field::start().await;
    let gate = field.c.gate(Stage::Dot);
    let id = field.send(ANN, &[CAT]).await;
    field
        .crash_when(async {
            gate.reached().await;
            while field.product.report(id).await.status.as_str() != "delivered" {
                tokio::task::yield_now().await;
            }
        })
        .await;
    gate.open();
    field.restart().await;
    assert_eq!(arrived(&field.b), [ANN]);
    assert_eq!(field.c.commands().iter().filter(|command| *command == "DATA").count(), 2);
    let told = field.told(id).await;
    let expected = ["Sent ann@b.test", "Delivered ann@b.test", "Sent cat@c.test ambiguous", "Delivered cat@c.test"];
    assert_eq!(told, expected);
    assert_eq!(field.product.app.ambiguous_attempts(), 1);
    assert_eq!(field.product.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_crash_repeats_nothing_that_a_recipient_of_the_same_domain_has_taken() {
    let field = Field::start().await;
    field.b.next(Stage::Dot, Action::reply("250 2.0.0 taken"));
    let gate = Gate::default();
    field.b.next(Stage::Dot, Action::Wait(gate.clone()));
    let id = field.send(ANN, &[BOB]).await;
    field.crash_when(gate.reached()).await;
    gate.open();
    assert_eq!(field.product.report(id).await.status.as_str(), "sending");
    field.restart().await;
    let to_ann = field.b.commands().iter().filter(|command| command.contains("RCPT TO:<ann")).count();
    assert_eq!(to_ann, 1);
    let told = field.told(id).await;
    let expected = ["Sent ann@b.test", "Delivered ann@b.test", "Sent bob@b.test ambiguous", "Delivered bob@b.test"];
    assert_eq!(told, expected);
    assert_eq!(field.product.report(id).await.status.as_str(), "delivered");
    assert_eq!(field.product.app.ambiguous_attempts(), 1);
}

#[tokio::test]
async fn what_only_waited_is_not_marked_by_a_crash() {
    for stage in [Stage::Greeting, Stage::Mail, Stage::Data] {
        let field = Field::start().await;
        let gate = Gate::default();
        field.b.always(stage, Action::Wait(gate.clone()));
        let mut ids = Vec::new();
        for number in 0..30 {
            ids.push(field.send(&format!("a{number}@b.test"), &[]).await);
        }
        field.crash_when(gate.reached()).await;
        for id in &ids {
            let message = field.product.store.message(field.product.workspace, *id).await.unwrap().unwrap();
            assert_eq!(message.status.as_str(), "queued", "{stage:?}");
        }
        field.b.always(stage, Action::reply(if stage == Stage::Data { "354 go" } else { "250 ok" }));
        if stage == Stage::Greeting {
            field.b.always(stage, Action::reply("220 back"));
        }
        gate.open();
        field.restart().await;
        for id in ids {
            assert_eq!(field.product.story(id).await, "delivered: Queued Sent Delivered", "{stage:?}");
            assert!(!field.told(id).await.iter().any(|event| event.contains("ambiguous")), "{stage:?}");
        }
        assert_eq!(field.product.app.ambiguous_attempts(), 0);
    }
}

#[tokio::test]
async fn after_five_attempts_that_were_cut_off_there_is_no_sixth() {
    let field = Field::start().await;
    let id = field.send(ANN, &[]).await;
    for _ in 0..5 {
        let gate = field.b.gate(Stage::Dot);
        field.crash_when(gate.reached()).await;
        gate.open();
        field.product.clock.advance(LEASE);
    }
    field.restart().await;
    assert_eq!(field.product.story(id).await, "failed: Queued Failed");
    let meta = field.product.last_meta(id).await;
    assert_eq!((&meta["reason"], &meta["recipient"]), (&json!("provider_error"), &json!(ANN)));
    assert!(meta["message"].as_str().unwrap().contains("stopped 5 times"), "{meta}");
    assert_eq!(field.b.commands().iter().filter(|command| *command == "DATA").count(), 5);
    assert_eq!(field.product.app.ambiguous_attempts(), 5);
}

#[tokio::test]
async fn a_repetition_says_so_whatever_lay_between() {
    let field = Field::start().await;
    field.b.next(Stage::Dot, Action::LoseReply);
    let id = field.send(ANN, &[]).await;
    field.product.work().await;
    field.b.next(Stage::Rcpt, Action::reply("450 4.7.1 greylisted"));
    field.product.pass(MINUTE).await;
    field.product.pass(5 * MINUTE).await;
    let expected = [
        "Deferred ann@b.test ambiguous",
        "Deferred ann@b.test ambiguous",
        "Sent ann@b.test ambiguous",
        "Delivered ann@b.test",
    ];
    assert_eq!(field.told(id).await, expected);
    assert_eq!(field.product.app.ambiguous_attempts(), 1);
}

#[tokio::test]
async fn every_recipient_has_a_return_address_of_its_own_and_all_get_the_same_message() {
    let field = Field::start().await;
    let id = field.send(ANN, &[BOB, "dan@b.test"]).await;
    field.product.work().await;
    let messages = field.b.messages();
    assert_eq!(arrived(&field.b), [ANN, BOB, "dan@b.test"]);
    assert_eq!(field.b.connections(), 1);
    for message in &messages {
        let read = field.product.app.return_address(&message.from).await.unwrap().unwrap();
        let tag = field.product.app.link_key().recipient_tag(id, &message.recipients[0]);
        assert_eq!((read.message_id, read.recipient), (id, Some(tag)));
        assert_eq!(message.content, messages[0].content);
    }
}

/// Reports a bounce and a complaint that name another recipient, as anyone can who has a return address.
async fn report_back(field: &Field, from: &str, named: &str) {
    let to = field.product.app.return_address(from).await.unwrap().unwrap();
    let response = Response { code: Some(550), enhanced: Some("5.1.1".to_owned()), ..Response::default() };
    let addresses = vec![named.to_owned()];
    let report = RecipientReport { addresses: addresses.clone(), action: ReportedAction::Failed, response };
    field.product.app.receive(&to, &Report::Delivery(vec![report])).await.unwrap();
    let complaint = Report::Complaint { feedback_type: "abuse".to_owned(), recipients: addresses };
    field.product.app.receive(&to, &complaint).await.unwrap();
}

#[tokio::test]
async fn what_a_copied_recipient_sends_back_changes_nobody_else() {
    let field = Field::start().await;
    let id = field.send(ANN, &[BOB, CAT]).await;
    field.product.work().await;
    for server in [&field.b, &field.c] {
        for message in server.messages().iter().filter(|message| message.recipients != [ANN]) {
            report_back(&field, &message.from, ANN).await;
        }
    }
    assert_eq!(field.product.report(id).await.status.as_str(), "delivered");
    let told = field.told(id).await;
    for expected in [BOB, CAT].iter().flat_map(|one| [format!("Bounce {one}"), format!("Complaint {one}")]) {
        assert!(told.contains(&expected), "{expected} {told:?}");
    }
    assert!(!told.iter().any(|event| event == "Bounce ann@b.test" || event == "Complaint ann@b.test"), "{told:?}");
    let listed = [ANN, BOB, CAT].map(ToOwned::to_owned);
    let listed = field.product.store.suppressed(field.product.workspace, Channel::Email, &listed).await.unwrap();
    let mut listed: Vec<_> = listed.into_iter().map(|stored| (stored.record.address, stored.record.reason)).collect();
    listed.sort();
    assert_eq!(listed, [BOB, CAT].map(|one| (one.to_owned(), SuppressionReason::Complaint)));
}

#[tokio::test]
async fn a_suppressed_recipient_stops_copies_at_every_domain_but_its_own_bounce_does_not() {
    let product = Product::start().await;
    let body = json!({"channel": "email", "to": ANN, "cc": [CAT], "subject": "s", "text": "t"});
    product.transport.answer(ANN, "550 5.1.1 no such user");
    product.transport.answer_next(CAT, "450 4.2.1 later");
    let bounced = product.send(&body).await;
    product.work().await;
    assert_eq!(product.report(bounced).await.status.as_str(), "bounced");
    product.pass(MINUTE).await;
    let last = product.report(bounced).await.events.pop().unwrap();
    assert_eq!((format!("{:?}", last.kind), &last.meta["recipient"]), ("Delivered".to_owned(), &json!(CAT)));
    product.transport.take();

    let stopped = product.send(&body).await;
    product.work().await;
    assert_eq!(product.story(stopped).await, "suppressed: Queued Suppressed");
    assert!(product.transport.take().is_empty());
}

/// Takes the sending domain's verification away.
async fn unverify(product: &Product) {
    let page = PageRequest { after: None, limit: 1 };
    let mut domain = product.store.domains(product.workspace, page).await.unwrap().items.remove(0);
    let revision = product.store.domain(product.workspace, domain.id).await.unwrap().unwrap().revision;
    domain.status = DomainStatus::Failed;
    product.commit(Changes::from_iter([Write::put(domain, Expect::Revision(revision))])).await;
}

#[tokio::test]
async fn a_failure_after_an_attempt_that_was_cut_off_says_that_a_copy_may_have_arrived() {
    let field = Field::start().await;
    let gate = field.b.gate(Stage::Dot);
    let id = field.send(ANN, &[]).await;
    field.crash_when(gate.reached()).await;
    gate.open();
    unverify(&field.product).await;
    field.restart().await;
    assert_eq!(field.product.story(id).await, "failed: Queued Failed");
    let meta = field.product.last_meta(id).await;
    assert_eq!((&meta["reason"], &meta["ambiguous"]), (&json!("sender_domain_not_verified"), &json!(true)));
    assert_eq!(field.product.app.ambiguous_attempts(), 1);
}

/// A transport that loses its first reply, continues with the next recipient, and is cut off there.
#[derive(Debug, Default)]
struct LosingReplies {
    /// Set once the second recipient is on record.
    stuck: tokio::sync::watch::Sender<bool>,
}

#[async_trait]
impl Transport for LosingReplies {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        for recipient in &outgoing.recipients {
            assert_eq!(outgoing.last_look.begin(std::slice::from_ref(recipient)).await, [Admitted::Granted]);
            if *self.stuck.borrow() {
                continue;
            }
            if recipient == BOB {
                self.stuck.send_replace(true);
                std::future::pending::<()>().await;
            }
            outgoing.last_look.ended(recipient, &Outcome::ambiguous(Response::default()));
        }
        let accepted = Outcome::accepted(Acceptance::Delivered, Response::default());
        Ok(Sent { outcomes: vec![accepted; outgoing.recipients.len()], ..Sent::default() })
    }
}

#[tokio::test]
async fn a_lost_reply_that_was_on_record_at_a_crash_is_counted_and_its_repetition_marked() {
    let transport = Arc::new(LosingReplies::default());
    let product = Product::carried_by(Arc::clone(&transport) as _).await;
    let id = product.send(&json!({"channel": "email", "to": ANN, "cc": [BOB], "subject": "s", "text": "t"})).await;
    let app = product.app.clone();
    let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
    let mut stuck = transport.stuck.subscribe();
    tokio::time::timeout(PATIENCE, stuck.wait_for(|stuck| *stuck)).await.expect("it is reached").unwrap();
    working.abort();
    working.await.unwrap_err();
    product.pass(LEASE).await;
    product.pass(MINUTE).await;
    let events = product.report(id).await.events;
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| Some((format!("{:?}", event.kind), event.meta.get("ambiguous")?.as_bool()?)))
        .collect();
    let expected = ["Deferred", "Sent", "Sent"].map(|kind| (kind.to_owned(), true));
    assert_eq!(told, expected, "{events:?}");
    assert_eq!(product.app.ambiguous_attempts(), 2);
}

#[tokio::test]
async fn what_is_known_of_a_recipient_stays_when_nothing_can_be_sent_to_the_others() {
    for case in ["content", "domain"] {
        let product = Product::start().await;
        product.transport.answer(BOB, "550 5.1.1 no such user");
        product.send_to(BOB).await;
        product.work().await;
        let body = json!({"channel": "email", "to": ANN, "cc": [BOB], "subject": "s", "text": "t"});
        let id = product.send(&body).await;
        match case {
            "content" => product.transport.fail_next(TransportError::Content("it cannot be encoded".to_owned())),
            _ => unverify(&product).await,
        }
        // The process's cached copy of the domain expires.
        product.pass(Duration::from_secs(2)).await;
        assert_eq!(product.story(id).await, "failed: Queued Suppressed Failed", "{case}");
    }
}

/// A transport that answers one recipient with outcomes in order, and accepts after the last.
#[derive(Debug)]
struct Answering(Mutex<VecDeque<Outcome>>);

#[async_trait]
impl Transport for Answering {
    async fn send(&self, _: &Outgoing) -> Result<Sent, TransportError> {
        let next = self.0.lock().unwrap().pop_front();
        let outcome = next.unwrap_or_else(|| Outcome::accepted(Acceptance::Delivered, Response::default()));
        Ok(Sent { outcomes: vec![outcome], ..Sent::default() })
    }
}

#[tokio::test]
async fn what_was_held_costs_no_attempt() {
    let later = Outcome::deferred(Response { code: Some(450), ..Response::default() });
    let outcomes = [Outcome::Held, Outcome::Held, later.clone(), Outcome::Held, later];
    let product = Product::carried_by(Arc::new(Answering(Mutex::new(outcomes.into())))).await;
    let id = product.send_to(ANN).await;
    product.work().await;
    let seconds = Duration::from_secs(5);
    for wait in [seconds, seconds, MINUTE, seconds, 5 * MINUTE] {
        product.pass(wait).await;
    }
    let report = product.report(id).await;
    assert_eq!(report.status.as_str(), "delivered");
    let attempts: Vec<_> = report.events.iter().filter_map(|event| event.meta.get("attempt")?.as_u64()).collect();
    // The event of a held attempt has the number of the attempt that is still to come.
    assert_eq!(attempts, [1, 1, 1, 2, 2]);
}

/// Two recipients at two domains, of whom each waits for the test.
#[derive(Debug, Default)]
struct Waiting {
    /// Notified when the job of the copy may check the suppression list.
    copy: Notify,
    /// Notified when the attempt at the other recipient has begun, who was checked already.
    to_is_tried: Notify,
    /// Notified when that attempt may end.
    to_may_end: Notify,
    sent: Mutex<Vec<String>>,
}

#[async_trait]
impl Transport for Waiting {
    async fn reserve(&self, route: &Route) -> Reservation {
        if route.domain.as_deref() == Some("c.test") {
            self.copy.notified().await;
            // The next time it need not wait.
            self.copy.notify_one();
        }
        Reservation::default()
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.sent.lock().unwrap().extend(outgoing.recipients.iter().cloned());
        let mut outcome = Outcome::accepted(Acceptance::Delivered, Response::default());
        if outgoing.recipients == [ANN] {
            self.to_is_tried.notify_one();
            self.to_may_end.notified().await;
            outcome = Outcome::refused(Response { code: Some(554), ..Response::default() });
        }
        Ok(Sent { outcomes: vec![outcome; outgoing.recipients.len()], ..Sent::default() })
    }
}

#[tokio::test]
async fn copies_go_out_when_the_attempt_at_their_recipient_began_before_its_suppression() {
    let transport = Arc::new(Waiting::default());
    let product = Product::carried_by(Arc::clone(&transport) as _).await;
    let id = product.send(&json!({"channel": "email", "to": ANN, "cc": [CAT], "subject": "s", "text": "t"})).await;
    let app = product.app.clone();
    let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
    transport.to_is_tried.notified().await;
    product.commit([product.suppression(ANN, SuppressionReason::Manual)].into_iter().collect()).await;
    transport.copy.notify_one();
    // The job of the copy has postponed itself before the other one ends.
    for _ in 0..100_000 {
        if product.store.next_due(product.app.now(), product.app.monotonic()).await.unwrap() < Some(MINUTE) {
            break;
        }
        tokio::task::yield_now().await;
    }
    transport.to_may_end.notify_one();
    working.await.unwrap();
    assert_eq!(product.report(id).await.status.as_str(), "bounced");
    product.pass(MINUTE).await;
    assert_eq!(*transport.sent.lock().unwrap(), [ANN, CAT]);
    let told: Vec<_> = product.report(id).await.events.iter().map(|event| format!("{:?}", event.kind)).collect();
    assert_eq!(told, ["Queued", "Bounce", "Sent", "Delivered"]);
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}

/// Closes the store while it sends to one recipient, and continues with another.
#[derive(Debug)]
struct Closing {
    store: OnceLock<Arc<dyn Store>>,
    both: Barrier,
    is_done: AtomicBool,
}

#[async_trait]
impl Transport for Closing {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.both.wait().await;
        let store = self.store.get().unwrap();
        if outgoing.recipients == [ANN] {
            store.close().await;
        } else {
            store.watch_health().wait_for(|health| health.is_final()).await.unwrap();
            // Until the other job has ended, and it is found that no further one can be claimed.
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            self.is_done.store(true, Ordering::SeqCst);
        }
        Ok(Sent { outcomes: vec![Outcome::accepted(Acceptance::Delivered, Response::default())], ..Sent::default() })
    }

    fn is_local(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_is_in_work_ends_before_it_is_told_that_nothing_can_be_claimed() {
    let transport =
        Arc::new(Closing { store: OnceLock::new(), both: Barrier::new(2), is_done: AtomicBool::new(false) });
    let product = Product::carried_by(Arc::clone(&transport) as _).await;
    transport.store.set(Arc::clone(&product.store)).unwrap();
    for to in [ANN, CAT] {
        product.send_to(to).await;
    }
    product.app.run_until_idle().await.unwrap_err();
    assert!(transport.is_done.load(Ordering::SeqCst), "the job was dropped while it sent");
}

/// A transport with a fault.
#[derive(Debug)]
struct Faulty;

#[async_trait]
impl Transport for Faulty {
    async fn send(&self, _: &Outgoing) -> Result<Sent, TransportError> {
        panic!("a fault of the transport");
    }
}

#[tokio::test]
async fn a_job_that_panics_waits_longer_every_time_and_ends_with_its_message() {
    let product = Product::carried_by(Arc::new(Faulty)).await;
    let id = product.send_to(ANN).await;
    product.work().await;
    for wait in [30, 60, 120, 240] {
        let (now, monotonic) = (product.app.now(), product.app.clock().monotonic());
        let due_in = product.store.next_due(now, monotonic).await.unwrap();
        assert_eq!(due_in, Some(Duration::from_secs(wait)));
        product.pass(Duration::from_secs(wait)).await;
    }
    assert_eq!(product.story(id).await, "queued: Queued");
    product.pass(Duration::from_hours(72)).await;
    assert_eq!(product.story(id).await, "failed: Queued Failed");
    assert_eq!(product.last_meta(id).await["reason"], "provider_error");
    assert_eq!(product.store.job_count().await.unwrap(), 0);
}
