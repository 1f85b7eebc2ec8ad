//! Messages whose path warms up, is stopped, or does not exist: the reported hold, and when they are sent.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::IpPool;
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::delivery::path::PathState;
use messaging_core::domain::delivery::site::SiteLimits;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::{MessageId, PoolId};
use messaging_core::ports::paths::{Departure, Leave, PathRequest, Paths, Reach};
use messaging_core::ports::store::PageRequest;
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, Outgoing, Reservation, Response, Route, Sent, Transport, TransportError,
};
use messaging_engine::{App, Settings};
use serde_json::json;
use tokio::sync::Notify;

use crate::bed::{Bed, START};
use crate::support::Product;

const HOUR: Duration = Duration::from_hours(1);

/// Direct delivery without a network: every domain has one exchanger at a public address, which accepts everything.
#[derive(Debug, Default)]
pub(crate) struct Exchangers {
    paths: Mutex<Option<Weak<dyn Paths>>>,
    sent: AtomicUsize,
}

impl Exchangers {
    /// Number of messages that left.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    fn paths(&self) -> Arc<dyn Paths> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.as_ref().and_then(Weak::upgrade).expect("the application keeps paths")
    }
}

#[async_trait]
impl Transport for Exchangers {
    async fn reserve(&self, route: &Route) -> Reservation {
        let Some(domain) = route.domain.as_deref() else { return Reservation::default() };
        let exchangers = [format!("mx.{domain}")];
        let reach = Reach { ipv4: true, ipv6: false, is_public: true };
        let (class, terms) = (route.class, &route.terms);
        let request = PathRequest { domain, exchangers: &exchangers, reach, class, terms };
        match self.paths().depart(&request) {
            Departure::Leaves(leave) => Reservation::holding(leave),
            Departure::Waits(wait) => Reservation::held(wait),
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let leave: Leave = outgoing.reservation.take().expect("a message leaves over a path");
        self.sent.fetch_add(1, Ordering::Relaxed);
        let mut outcomes = Vec::new();
        for recipient in &outgoing.recipients {
            let admitted = outgoing.last_look.begin(std::slice::from_ref(recipient)).await;
            let response = Response { code: Some(250), text: "2.0.0 ok".to_owned(), ..Response::default() };
            let taken = Outcome::accepted(Acceptance::Delivered, response);
            let outcome = admitted.into_iter().find_map(Admitted::refusal).unwrap_or(taken);
            outgoing.last_look.ended(recipient, &outcome);
            outcomes.push(outcome);
        }
        self.paths().ended(&leave, &outcomes.iter().collect::<Vec<_>>());
        Ok(Sent { outcomes, ..Sent::default() })
    }

    fn attach_paths(&self, paths: Weak<dyn Paths>) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = Some(paths);
    }
}

/// A product whose only source has this state.
async fn product(status: SourceStatus) -> Product {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    let row = SourceRow { status, ..SourceRow::new(SourceAddress::Default, START) };
    let write = Write::Source(SourceWrite::PutSource(row, Expect::Absent));
    product.commit(Changes::from_iter([write])).await;
    product.app.prepare_to_work().await.unwrap();
    product
}

/// Sends messages to a domain, and lets those leave that may.
async fn send_many(product: &Product, count: usize) -> Vec<MessageId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(product.send_to(&format!("n{number}@b.example")).await);
    }
    product.work().await;
    ids
}

async fn with_status(product: &Product, ids: &[MessageId], status: MessageStatus) -> usize {
    let mut count = 0;
    for id in ids {
        count += usize::from(product.report(*id).await.status == status);
    }
    count
}

#[tokio::test]
async fn what_a_new_source_may_not_send_today_is_held_and_says_so() {
    let product = product(SourceStatus::Warming).await;
    let ids = send_many(&product, 55).await;
    assert_eq!(with_status(&product, &ids, MessageStatus::Delivered).await, 50);
    let mut held = 0;
    for id in &ids {
        let report = product.report(*id).await;
        let Some(hold) = &report.hold else { continue };
        held += 1;
        assert_eq!((report.status, hold.reason), (MessageStatus::Queued, HoldReason::WarmingUp));
        assert!(hold.until.is_some_and(|until| until > START));
        assert_eq!(report.explanation.code, "warming_up");
        let text = "default is warming up at b.example: 50 of the 50 messages of today were sent.";
        assert_eq!(report.explanation.text, text);
        assert_eq!(report.explanation.next_attempt_at, hold.until);
    }
    assert_eq!(held, 5);
    // The next day has room again without any action.
    for _ in 0..24 {
        product.pass(HOUR).await;
    }
    assert_eq!(with_status(&product, &ids, MessageStatus::Delivered).await, 55);
    let report = product.report(ids[54]).await;
    assert!(report.hold.is_none(), "{:?}", report.hold);
}

#[tokio::test]
async fn another_process_goes_on_where_the_last_one_was() {
    let product = product(SourceStatus::Warming).await;
    send_many(&product, 50).await;
    let row = product.store.path_row(SourceAddress::Default, "b.example").await.unwrap().unwrap();
    assert_eq!((row.record.sent_today, row.record.is_stopped), (50, false));
    let next: App = product.another_process();
    next.prepare_to_work().await.unwrap();
    let id = product.send_to("late@b.example").await;
    next.run_until_idle().await.unwrap();
    let report = product.report(id).await;
    assert_eq!(report.hold.map(|hold| hold.reason), Some(HoldReason::WarmingUp));
}

#[tokio::test]
async fn a_source_that_is_known_sends_without_a_bound() {
    let product = product(SourceStatus::Warm).await;
    let ids = send_many(&product, 60).await;
    assert_eq!(with_status(&product, &ids, MessageStatus::Delivered).await, 60);
}

#[tokio::test]
async fn what_a_stopped_source_would_send_waits_and_ends_with_the_reason() {
    let product = product(SourceStatus::Stopped).await;
    let ids = send_many(&product, 1).await;
    let report = product.report(ids[0]).await;
    assert_eq!(report.hold.map(|hold| hold.reason), Some(HoldReason::Braked));
    assert_eq!((report.status, report.explanation.code.as_str()), (MessageStatus::Queued, "braked"));
    product.pass(73 * HOUR).await;
    let report = product.report(ids[0]).await;
    assert_eq!(report.status, MessageStatus::Failed);
    let meta = product.last_meta(ids[0]).await;
    assert_eq!(meta["reason"], "provider_error");
    let message = meta["message"].as_str().unwrap();
    assert!(message.contains("was stopped by the operator"), "{message}");
}

#[tokio::test]
async fn a_source_of_an_installation_that_is_older_than_paths_is_known() {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    let name = Write::PutInstallationName("mx.service.test".to_owned(), None);
    if product.store.installation_name().await.unwrap().is_none() {
        product.commit(Changes::from_iter([name])).await;
    }
    product.app.prepare_to_work().await.unwrap();
    let ids = send_many(&product, 60).await;
    assert_eq!(with_status(&product, &ids, MessageStatus::Delivered).await, 60);
    let row = product.store.source_row(SourceAddress::Default).await.unwrap().unwrap();
    assert_eq!(row.record.status, SourceStatus::Warm);
}

/// State of the default source, as it is kept.
async fn default_source(product: &Product) -> SourceStatus {
    product.store.source_row(SourceAddress::Default).await.unwrap().unwrap().record.status
}

#[tokio::test]
async fn a_new_installation_whose_first_process_is_killed_stays_a_new_one() {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    assert_eq!(product.store.installation_name().await.unwrap(), None);
    product.app.prepare_to_work().await.unwrap();
    assert!(product.store.installation_name().await.unwrap().is_some());
    // Nothing was written at an end.
    assert_eq!(default_source(&product).await, SourceStatus::Warming);
    let next = product.another_process();
    next.prepare_to_work().await.unwrap();
    assert_eq!(default_source(&product).await, SourceStatus::Warming);
    product.send_to("ann@b.example").await;
    next.run_until_idle().await.unwrap();
    let path = product.store.path_row(SourceAddress::Default, "b.example").await.unwrap().unwrap();
    let state: PathState = serde_json::from_str(&path.record.state).unwrap();
    assert!(state.report(&SiteLimits::default(), START).allowed_today.is_some());
}

#[tokio::test]
async fn an_installation_that_was_named_before_its_first_start_is_new() {
    let bed = Bed::start();
    messaging_engine::admin::set_installation_name(&bed.app, "mx.service.test").await.unwrap();
    bed.app.prepare_to_work().await.unwrap();
    let row = bed.store.source_row(SourceAddress::Default).await.unwrap().unwrap();
    assert_eq!(row.record.status, SourceStatus::Warming);
}

/// A source at an address that is kept for documentation.
pub(crate) fn source(number: u8) -> NamedSource {
    NamedSource { ip: IpAddr::from([203, 0, 113, number]).into(), name: format!("m{number}.service.test") }
}

/// Gives the sending domain of the product a pool of these addresses.
async fn with_pool(product: &Product, numbers: &[u8]) -> PoolId {
    let pool = IpPool {
        id: product.app.new_id(START),
        workspace_id: Some(product.workspace),
        name: "own".to_owned(),
        ips: numbers.iter().map(|number| IpAddr::from([203, 0, 113, *number])).collect(),
        created_at: START,
        updated_at: START,
    };
    let all = PageRequest { after: None, limit: 10 };
    let domain = product.store.domains(product.workspace, all).await.unwrap().items.remove(0);
    let stored = product.store.domain(product.workspace, domain.id).await.unwrap().unwrap();
    let id = pool.id;
    let domain = SendingDomain { ip_pool_id: Some(id), ..stored.record };
    let writes = [Write::put(pool, Expect::Absent), Write::put(domain, Expect::Revision(stored.revision))];
    product.commit(Changes::from_iter(writes)).await;
    id
}

#[tokio::test]
async fn a_pool_decides_which_sources_a_domain_uses() {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    let settings = Settings::default().sources([source(7), source(8)]).warm_sources([IpAddr::from([203, 0, 113, 7])]);
    let node = product.another_process_told(settings);
    node.prepare_to_work().await.unwrap();
    with_pool(&product, &[7]).await;
    for _ in 0..4 {
        product.send_to("ann@b.example").await;
    }
    node.run_until_idle().await.unwrap();
    let sent = product.store.path_row(source(7).ip, "b.example").await.unwrap().unwrap();
    assert_eq!(sent.record.sent_today, 4);
    assert!(product.store.path_row(source(8).ip, "b.example").await.unwrap().is_none());
    // The address that was configured as warm does not warm up, and the other one does.
    let known = (status_of(&product, 7).await, status_of(&product, 8).await);
    assert_eq!(known, (SourceStatus::Warm, SourceStatus::Warming));
    let live = product.store.live_sources().await.unwrap();
    assert_eq!(live.into_iter().map(|live| live.source).collect::<Vec<_>>(), [source(7), source(8)]);
}

async fn status_of(product: &Product, number: u8) -> SourceStatus {
    product.store.source_row(source(number).ip).await.unwrap().unwrap().record.status
}

#[tokio::test]
async fn what_is_held_without_an_address_leaves_once_the_pool_is_corrected() {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    let settings = Settings::default().sources([source(7)]);
    let node = product.another_process_told(settings.clone());
    node.prepare_to_work().await.unwrap();
    let pool = with_pool(&product, &[9]).await;
    let held = product.send_to("ann@b.example").await;
    let scheduled = json!({"channel": "email", "to": "bob@b.example", "subject": "s", "text": "t",
        "send_at": (START + Duration::from_mins(2)).to_string()});
    let scheduled = product.send(&scheduled).await;
    node.run_until_idle().await.unwrap();
    assert_eq!(product.report(held).await.explanation.code, "no_source");
    product.clock.advance(Duration::from_secs(1));

    messaging_engine::admin::grant_ip(&product.app, product.workspace, "203.0.113.7").await.unwrap();
    let path = format!("/workspaces/{}/ip-pools/{pool}", product.workspace);
    for ips in [["203.0.113.7"], ["203.0.113.7"]] {
        assert_eq!(product.patch(&product.caller, &path, json!({"ips": ips})).await.summary(), "200");
    }
    product.clock.advance(Duration::from_secs(3));
    let node = product.another_process_told(settings);
    node.prepare_to_work().await.unwrap();
    node.run_until_idle().await.unwrap();
    assert_eq!(product.report(held).await.status, MessageStatus::Delivered);
    assert_eq!(product.report(scheduled).await.status, MessageStatus::Queued);
}

#[tokio::test]
async fn without_an_address_of_the_pool_a_message_is_held() {
    let product = Product::carried_by(Arc::new(Exchangers::default())).await;
    let node = product.another_process_told(Settings::default().sources([source(7)]));
    node.prepare_to_work().await.unwrap();
    with_pool(&product, &[9]).await;
    let id = product.send_to("ann@b.example").await;
    node.run_until_idle().await.unwrap();
    let report = product.report(id).await;
    assert_eq!(report.explanation.code, "no_source");
    assert_eq!(report.hold.map(|hold| hold.reason), Some(HoldReason::NoSource));
    let better = product.another_process_told(Settings::default().sources([source(9)]));
    better.prepare_to_work().await.unwrap();
    product.clock.advance(HOUR);
    better.run_until_idle().await.unwrap();
    assert_eq!(product.report(id).await.status, MessageStatus::Delivered);
}

/// Exchangers that accept a message only after the test lets them.
#[derive(Debug, Default)]
struct Gated {
    inner: Exchangers,
    has_begun: Notify,
    may_go_on: Notify,
}

#[async_trait]
impl Transport for Gated {
    async fn reserve(&self, route: &Route) -> Reservation {
        self.inner.reserve(route).await
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.has_begun.notify_one();
        self.may_go_on.notified().await;
        self.inner.send(outgoing).await
    }

    fn attach_paths(&self, paths: Weak<dyn Paths>) {
        self.inner.attach_paths(paths);
    }
}

#[tokio::test]
async fn an_attempt_under_way_ends_over_the_address_that_is_taken_from_its_pool() {
    let gated = Arc::new(Gated::default());
    let product = Product::carried_by(Arc::clone(&gated) as _).await;
    let node = product.another_process_told(Settings::default().sources([source(7), source(8)]));
    node.prepare_to_work().await.unwrap();
    for ip in ["203.0.113.7", "203.0.113.8"] {
        messaging_engine::admin::grant_ip(&product.app, product.workspace, ip).await.unwrap();
    }
    let pool = with_pool(&product, &[7]).await;
    let under_way = product.send_to("ann@b.example").await;
    let working = tokio::spawn({
        let node = node.clone();
        async move { node.run_until_idle().await.unwrap() }
    });
    gated.has_begun.notified().await;
    let path = format!("/workspaces/{}/ip-pools/{pool}", product.workspace);
    assert_eq!(product.patch(&product.caller, &path, json!({"ips": ["203.0.113.8"]})).await.summary(), "200");
    messaging_engine::admin::revoke_ip(&product.app, product.workspace, "203.0.113.7").await.unwrap();
    product.clock.advance(Duration::from_secs(2));
    gated.may_go_on.notify_one();
    working.await.unwrap();
    assert_eq!(product.report(under_way).await.status, MessageStatus::Delivered);
    // Later messages use the other address, and each address counts its own messages.
    let later = product.send_to("bob@b.example").await;
    gated.may_go_on.notify_one();
    node.run_until_idle().await.unwrap();
    assert_eq!(product.report(later).await.status, MessageStatus::Delivered);
    for number in [7, 8] {
        let row = product.store.path_row(source(number).ip, "b.example").await.unwrap().unwrap();
        assert_eq!(row.record.sent_today, 1, "{number}");
    }
}
