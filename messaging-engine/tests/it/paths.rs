//! Messages whose path warms up, is stopped, or is none: what they say, and when they leave.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::MessageId;
use messaging_core::ports::paths::{Departure, Leave, PathRequest, Paths, Reach};
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, Outgoing, Reservation, Response, Route, Sent, Transport, TransportError,
};
use messaging_engine::App;

use crate::bed::START;
use crate::support::Product;

const HOUR: Duration = Duration::from_hours(1);

/// Direct delivery without a network: every domain has one exchanger at a public address, which takes everything.
#[derive(Debug, Default)]
struct Exchangers {
    paths: Mutex<Option<Weak<dyn Paths>>>,
}

impl Exchangers {
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
    // The next day has room again, and nobody has to do anything.
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
