//! The address that a transaction leaves from, and who chooses it.

use std::sync::{Arc, Mutex, Weak};

use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ports::paths::{Departure, Leave, OpenPath, PathRequest, PathTerms, PathWait, Paths};
use messaging_core::ports::transport::Route;

use super::*;

fn source(address: &str, name: &str) -> NamedSource {
    NamedSource { ip: address.parse().unwrap(), name: name.to_owned() }
}

fn two() -> Vec<NamedSource> {
    vec![source("127.0.0.2", "two.test"), source("127.0.0.3", "three.test")]
}

/// The addresses that connections came from, and the names in their EHLO.
fn seen(server: &ScriptedSmtpServer) -> Vec<(String, String)> {
    let commands = server.commands();
    let names = commands.iter().filter_map(|command| command.strip_prefix("EHLO ")).map(|name| name.trim().to_owned());
    server.peers().iter().map(ToString::to_string).zip(names).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(address, name)| (address.to_owned(), name.to_owned())).collect()
}

#[tokio::test]
async fn sources_take_turns_and_greet_with_their_own_names() {
    let bed = Bed::start(1).await;
    let delivery = bed.builder().sources(two()).build();
    for recipient in ["a@b.test", "c@b.test", "d@b.test"] {
        assert_eq!(send(&delivery, &[recipient]).await, "accepted 250 2.0.0");
    }
    // The third message uses the connection of the first.
    assert_eq!(seen(bed.first()), pairs(&[("127.0.0.2", "two.test"), ("127.0.0.3", "three.test")]));
    assert_eq!(bed.first().messages().len(), 3);
}

#[tokio::test]
async fn without_sources_the_system_chooses_and_the_machine_is_named() {
    let bed = Bed::start(1).await;
    assert_eq!(send(&bed.delivery(), &["a@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!(seen(bed.first()), pairs(&[("127.0.0.1", "client.test")]));
}

#[tokio::test]
async fn a_source_serves_exchangers_of_its_own_kind() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback address");
        return;
    }
    let bed = Bed::start(1).await;
    let six = ScriptedSmtpServer::builder().at(("::1".parse::<IpAddr>().unwrap(), bed.port).into()).start().await;
    bed.dns.addresses("mx1.b.test", &["::1".parse().unwrap(), address(1)]);
    let both = vec![source("::1", "six.test"), source("127.0.0.2", "four.test")];
    let delivery = bed.builder().sources(both).build();
    for _ in 0..2 {
        assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    }
    assert_eq!(seen(&six), pairs(&[("::1", "six.test")]));
    assert_eq!(seen(bed.first()), pairs(&[("127.0.0.2", "four.test")]));
    // Of an exchanger without IPv6 the IPv6 source has no turn.
    bed.dns.addresses("only4.test", &[address(1)]);
    for _ in 0..2 {
        assert_eq!(send(&delivery, &["a@only4.test"]).await, "accepted 250 2.0.0");
    }
    assert_eq!(six.connections(), 1);
    // And with no other source the message is put off.
    let alone = bed.builder().sources(vec![source("::1", "six.test")]).build();
    assert_eq!(send(&alone, &["a@only4.test"]).await, "deferred - 4.4.1");
}

#[tokio::test]
async fn a_host_that_the_operator_names_is_reached_from_any_address() {
    let bed = Bed::start(1).await;
    let fixed = format!("127.0.0.1:{}", bed.port).parse().unwrap();
    let delivery = bed.builder().sources(two()).mx_override(Some(fixed)).build();
    let keeper = Keeper::new(vec![Departure::Waits(waiting())]);
    keeper.attach(&delivery);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!(seen(bed.first()), pairs(&[("127.0.0.1", "client.test")]));
    assert!(keeper.asked().is_empty());
}

/// Gives scripted answers, and records its calls.
#[derive(Debug)]
struct Keeper {
    answers: Mutex<Vec<Departure>>,
    asked: Mutex<Vec<String>>,
    ended: Mutex<Vec<String>>,
    given_up: Mutex<usize>,
}

impl Keeper {
    fn new(mut answers: Vec<Departure>) -> Arc<Self> {
        answers.reverse();
        let (asked, ended, given_up) = <(Mutex<Vec<String>>, Mutex<Vec<String>>, Mutex<usize>)>::default();
        Arc::new(Self { answers: Mutex::new(answers), asked, ended, given_up })
    }

    fn attach(self: &Arc<Self>, delivery: &DirectDelivery) {
        delivery.attach_paths(Arc::downgrade(self) as Weak<dyn Paths>);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn ended(&self) -> Vec<String> {
        self.ended.lock().unwrap().clone()
    }

    fn given_up(&self) -> usize {
        *self.given_up.lock().unwrap()
    }
}

impl Paths for Keeper {
    fn depart(&self, request: &PathRequest<'_>) -> Departure {
        let PathRequest { domain, exchangers, reach, class, .. } = request;
        let kind = if reach.is_public { "public" } else { "private" };
        self.asked.lock().unwrap().push(format!("{domain} {} {kind} {class:?}", exchangers.join(" ")));
        self.answers.lock().unwrap().pop().expect("an answer for every question")
    }

    fn ended(&self, leave: &Leave, outcomes: &[&Outcome]) {
        let told = outcomes.iter().map(|outcome| outcome.answer().unwrap().response.code.unwrap().to_string());
        let told: Vec<_> = told.collect();
        self.ended.lock().unwrap().push(format!("{} {}", leave.source.ip, told.join(" ")));
    }

    fn given_up(&self, _: &Leave) {
        *self.given_up.lock().unwrap() += 1;
    }
}

fn waiting() -> PathWait {
    let sentence = "127.0.0.2 is warming up at b.test.".to_owned();
    PathWait { reason: Some(HoldReason::WarmingUp), wait: Duration::from_secs(90), sentence }
}

fn leaving(source: NamedSource, connections: usize, messages_per_connection: usize) -> Departure {
    let site = SiteName::parse("b.test").unwrap();
    let exchangers = ["mx1.b.test", "mx2.b.test"].map(ToOwned::to_owned).to_vec();
    let path = Some(OpenPath { site, exchangers, connections, messages_per_connection });
    Departure::Leaves(Leave { source: Arc::new(source), path })
}

fn route(class: JobClass) -> Route {
    let message = message(&[], email());
    Route {
        workspace_id: message.workspace_id,
        class,
        settings: message.settings,
        domain: Some("b.test".to_owned()),
        recipient: None,
        terms: PathTerms::default(),
    }
}

#[tokio::test]
async fn who_keeps_paths_chooses_and_hears_the_answers() {
    let bed = Bed::start(2).await;
    bed.first().answer("no@b.test", "550 5.1.1 no such user");
    let keeper = Keeper::new(vec![leaving(two().remove(1), 20, 100)]);
    let delivery = bed.builder().sources(two()).build();
    keeper.attach(&delivery);
    let mut message = message(&["no@b.test", "yes@b.test"], email());
    message.reservation = delivery.reserve(&route(JobClass::Bulk)).await;
    assert_eq!(words(&attempt(&delivery, &message).await), "refused 550 5.1.1, accepted 250 2.0.0");
    assert_eq!(keeper.asked(), ["b.test mx1.b.test mx2.b.test private Bulk"]);
    assert_eq!((keeper.ended(), keeper.given_up()), (vec!["127.0.0.3 550 250".to_owned()], 0));
    assert_eq!(seen(bed.first()), pairs(&[("127.0.0.3", "three.test")]));
}

#[tokio::test]
async fn a_message_that_has_to_wait_is_held_without_an_attempt_and_gives_its_turn_back() {
    let bed = Bed::start(1).await;
    let keeper = Keeper::new(vec![Departure::Waits(waiting()), leaving(two().remove(0), 20, 100)]);
    let delivery = bed.builder().concurrency(1, 1).timeouts(Timeouts { queue: IMPATIENCE, ..PATIENT }).build();
    keeper.attach(&delivery);
    let reservation = delivery.reserve(&route(JobClass::Transactional)).await;
    assert_eq!(reservation.wait(), Some(Duration::from_secs(90)));
    assert_eq!(reservation.hold(), Some(&waiting()));
    assert_eq!(bed.connections(), [0]);
    let mut message = message(&["a@b.test"], email());
    message.reservation = delivery.reserve(&route(JobClass::Transactional)).await;
    assert!(message.reservation.hold().is_none());
    assert_eq!(words(&attempt(&delivery, &message).await), "accepted 250 2.0.0");
}

#[tokio::test]
async fn a_transaction_that_does_not_begin_is_given_up() {
    let bed = Bed::start(1).await;
    let answers = (0..2).map(|_| leaving(two().remove(0), 20, 100)).collect();
    let delivery = bed.delivery();
    let keeper = Keeper::new(answers);
    keeper.attach(&delivery);
    // The message is not sent after all.
    drop(delivery.reserve(&route(JobClass::Bulk)).await);
    assert_eq!((keeper.given_up(), keeper.ended().len()), (1, 0));
    // Nobody listens.
    bed.exchangers("c.test", &[9]);
    assert!(send(&delivery, &["a@c.test"]).await.starts_with("deferred -"));
    assert_eq!((keeper.given_up(), keeper.ended().len()), (2, 0));
}

#[tokio::test]
async fn a_moment_of_waiting_is_no_hold() {
    let bed = Bed::start(1).await;
    let wait = PathWait { reason: None, wait: Duration::from_millis(200), sentence: String::new() };
    let delivery = bed.delivery();
    let keeper = Keeper::new(vec![Departure::Waits(wait)]);
    keeper.attach(&delivery);
    let reservation = delivery.reserve(&route(JobClass::Transactional)).await;
    assert_eq!((reservation.wait(), reservation.hold()), (Some(Duration::from_millis(200)), None));
}

#[tokio::test]
async fn a_connection_carries_as_many_messages_as_the_path_allows() {
    let bed = Bed::start(1).await;
    let answers = (0..5).map(|_| leaving(two().remove(0), 20, 2)).collect();
    let delivery = bed.delivery();
    let keeper = Keeper::new(answers);
    keeper.attach(&delivery);
    for _ in 0..5 {
        assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    }
    assert_eq!(bed.connections(), [3]);
}

#[tokio::test]
async fn transactions_of_one_message_are_counted_for_the_connection_too() {
    let bed = Bed::start(1).await;
    let delivery = bed.delivery();
    let keeper = Keeper::new(vec![leaving(two().remove(0), 20, 2)]);
    keeper.attach(&delivery);
    let mut email = email();
    let senders = ["1@x.test", "2@x.test", "3@x.test"].map(crate::support::address);
    email.envelope_from = messaging_core::ports::transport::EnvelopeFrom::PerRecipient(senders.to_vec());
    let sent = attempt(&delivery, &message(&["a@b.test", "c@b.test", "d@b.test"], email)).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0, accepted 250 2.0.0, accepted 250 2.0.0");
    assert_eq!(bed.connections(), [2]);
}

#[tokio::test]
async fn a_path_bounds_connections_over_all_exchangers_of_the_site() {
    let bed = Bed::start(2).await;
    bed.exchangers("c.test", &[2]);
    let gate = bed.first().gate(Stage::Dot);
    let answers = (0..2).map(|_| leaving(two().remove(0), 1, 100)).collect();
    let timeouts = Timeouts { queue: IMPATIENCE, ..PATIENT };
    let delivery = Arc::new(bed.builder().timeouts(timeouts).build());
    let keeper = Keeper::new(answers);
    keeper.attach(&delivery);
    let first = tokio::spawn({
        let delivery = Arc::clone(&delivery);
        async move { send(&delivery, &["a@b.test"]).await }
    });
    gate.reached().await;
    // The other exchanger is idle, but of the same site.
    assert_eq!(send(&delivery, &["a@c.test"]).await, "deferred - 4.4.5");
    assert_eq!((bed.connections(), keeper.given_up()), (vec![1, 0], 1));
    gate.open();
    assert_eq!(first.await.unwrap(), "accepted 250 2.0.0");
    assert_eq!((keeper.ended(), keeper.given_up()), (vec!["127.0.0.2 250".to_owned()], 1));
}

#[tokio::test]
async fn a_host_of_somebody_else_takes_no_connection_from_a_site() {
    let bed = Bed::start(3).await;
    bed.exchangers("c.test", &[3]);
    bed.exchangers("d.test", &[1]);
    let gate = bed.servers[2].gate(Stage::Dot);
    let answers = (0..2).map(|_| leaving(two().remove(0), 1, 100)).collect();
    let delivery = Arc::new(bed.delivery());
    let keeper = Keeper::new(answers);
    keeper.attach(&delivery);
    let first = tokio::spawn({
        let delivery = Arc::clone(&delivery);
        async move { send(&delivery, &["a@c.test"]).await }
    });
    gate.reached().await;
    assert_eq!(send(&delivery, &["a@d.test"]).await, "accepted 250 2.0.0");
    gate.open();
    assert_eq!(first.await.unwrap(), "accepted 250 2.0.0");
}
