//! Mail over simulated hours and days to sites that rate their senders, over real sockets and with a manual clock.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::ids::MessageId;
use messaging_core::ports::clock::ManualClock;
use messaging_core::ports::transport::{Outgoing, Reservation, Route, RouteState, Sent, Transport, TransportError};
use messaging_testing::mailbox_provider::{Ledger, MailboxProviderBuilder};
use messaging_testing::{Mailbox, MailboxProvider, SitePolicy, SiteStyle, TestDns};
use messaging_transport::direct::DirectDeliveryBuilder;
use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::SmtpServerOptions;
use messaging_transport::{DirectDelivery, Dns, smtp::Timeouts};

use crate::bed::START;
use crate::support::Product;

/// The address that the system chooses for connections to loopback.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Simulated time between two passes over due work.
const STEP: Duration = Duration::from_mins(20);

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Longest time for a step on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Messages of one sender, spread evenly over the day, a recipient each.
struct Load {
    per_day: u64,
    /// Number of recipient domains of the site, used in turn.
    domains: usize,
}

/// Makes a client for mail exchangers.
type Clients = Box<dyn Fn() -> DirectDelivery + Send + Sync>;

/// Direct delivery over simulated time: a learned pace lasts for seconds of the machine's clock, so each step has a new
/// client.
struct RenewedClient {
    make: Clients,
    client: Mutex<Arc<DirectDelivery>>,
}

impl std::fmt::Debug for RenewedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenewedClient").finish_non_exhaustive()
    }
}

impl RenewedClient {
    fn new(make: Clients) -> Self {
        let client = Mutex::new(Arc::new(make()));
        Self { make, client }
    }

    fn client(&self) -> Arc<DirectDelivery> {
        Arc::clone(&self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn renew(&self) {
        let fresh = Arc::new((self.make)());
        let old = std::mem::replace(&mut *self.client.lock().unwrap_or_else(PoisonError::into_inner), fresh);
        old.close().await;
    }
}

#[async_trait]
impl Transport for RenewedClient {
    async fn reserve(&self, route: &Route) -> Reservation {
        self.client().reserve(route).await
    }

    fn state_of(&self, route: &Route) -> RouteState {
        self.client().state_of(route)
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.client().send(outgoing).await
    }
}

/// A product, the one site that it sends to, and their common time.
struct Simulation {
    product: Product,
    site: MailboxProvider,
    ids: Vec<MessageId>,
    client: Arc<RenewedClient>,
    site_clock: Arc<ManualClock>,
    dns: TestDns,
}

impl Simulation {
    /// Starts at 09:15. `sources` tells the client where to send from.
    async fn start(
        site: MailboxProviderBuilder,
        sources: impl Fn(DirectDeliveryBuilder) -> DirectDeliveryBuilder + Send + Sync + 'static,
    ) -> Self {
        let site_clock = Arc::new(ManualClock::new(START));
        let site = site.start(Arc::clone(&site_clock) as _).await;
        let dns = TestDns::start().await;
        let (resolver, port) = (dns.addr(), site.address().port());
        let make = move || {
            let client = DirectDelivery::builder("mx.service.test", Dns::new(Some(resolver)))
                .port(port)
                .allow_private(true)
                .timeouts(Timeouts::all(PATIENCE))
                .rest(Duration::ZERO);
            sources(client).build()
        };
        let client = Arc::new(RenewedClient::new(Box::new(make)));
        let product = Product::carried_undurably_by(Arc::clone(&client) as _).await;
        Self { product, site, ids: Vec::new(), client, site_clock, dns }
    }

    /// Sends to the next recipient, at the domain whose turn it is.
    async fn send_one(&mut self, domains: usize) {
        let number = self.ids.len();
        let domain = format!("d{}.test", number % domains);
        if number < domains {
            self.site.publish(&self.dns, &[&domain]);
        }
        self.ids.push(self.product.send_to(&format!("reader{number}@{domain}")).await);
    }

    /// Lets time pass while the load is sent.
    async fn run(&mut self, span: Duration, load: &Load) {
        let before = self.ids.len();
        let mut passed = Duration::ZERO;
        while passed < span {
            let due = load.per_day * passed.as_secs() / DAY.as_secs();
            while (self.ids.len() - before) as u64 <= due {
                self.send_one(load.domains).await;
            }
            self.product.work().await;
            self.pass(STEP).await;
            passed += STEP;
        }
    }

    /// Advances the clocks, and then runs due work.
    async fn pass(&self, span: Duration) {
        self.client.renew().await;
        self.site_clock.advance(span);
        self.product.pass(span).await;
    }

    /// Numbers of messages by status.
    async fn statuses(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for id in &self.ids {
            *found.entry(self.product.report(*id).await.status.as_str().to_owned()).or_default() += 1;
        }
        found
    }

    /// Asserts that the site has accepted as many messages as are delivered. Returns their number.
    async fn check_nothing_is_lost(&self) -> u64 {
        let statuses = self.statuses().await;
        let delivered = statuses.get("delivered").copied().unwrap_or_default();
        assert_eq!(delivered, self.site.ledger().total().accepted, "{statuses:?}");
        assert_eq!(statuses.values().sum::<u64>(), self.ids.len() as u64);
        delivered
    }

    /// Transcripts of the attempts of a message, as one text.
    async fn transcripts(&self, id: MessageId) -> String {
        self.product.attempts(id, "messages:send,pii:read").await["data"].to_string()
    }
}

/// A product that sends a load to a site for a time, from the addresses that `sources` names.
async fn simulate(
    site: MailboxProviderBuilder,
    span: Duration,
    load: &Load,
    sources: impl Fn(DirectDeliveryBuilder) -> DirectDeliveryBuilder + Send + Sync + 'static,
) -> Simulation {
    let mut simulation = Simulation::start(site, sources).await;
    simulation.run(span, load).await;
    simulation
}

/// Leaves the client with its only source without a setting: the address that the system chooses.
fn default_source(client: DirectDeliveryBuilder) -> DirectDeliveryBuilder {
    client
}

/// A site with Microsoft's rules that accepts this many messages on the first day of an address.
fn site(first_day: u32, push_factor: u32) -> MailboxProviderBuilder {
    let policy = SitePolicy { first_day, push_factor, ..SiteStyle::Microsoft.policy() };
    MailboxProvider::builder("mailbox.test", SiteStyle::Microsoft).policy(policy)
}

#[tokio::test]
async fn a_new_address_that_is_too_fast_is_deferred_in_the_words_of_the_site_and_nothing_is_lost() {
    // 60 a day and 15 an hour are allowed, and 36 an hour are sent.
    let load = Load { per_day: 36 * 24, domains: 50 };
    let simulation = simulate(site(60, 1000), 3 * HOUR, &load, default_source).await;
    let ledger = simulation.site.ledger().clone();
    let today = Ledger::day_of(START);
    assert_eq!(ledger.days(), [today]);
    let day = ledger.day(today);
    assert!((45..=60).contains(&day.accepted), "{day:?}");
    assert!(day.deferred_share() > 0.2, "{day:?}");
    assert_eq!((day.blocked, day.unknown, day.too_many), (0, 0, 0));
    assert!((1..=20).contains(&ledger.most_connections(HERE)));
    assert_eq!(ledger.sources(), [HERE]);
    assert!(simulation.check_nothing_is_lost().await < simulation.ids.len() as u64);

    let deferred = ledger.transactions().into_iter().find(|one| &*one.reply != "250 2.0.0 taken").unwrap();
    assert_eq!(&*deferred.ehlo, "mx.service.test");
    let number: usize = deferred.recipient.trim_start_matches("reader").split('@').next().unwrap().parse().unwrap();
    let transcripts = simulation.transcripts(simulation.ids[number]).await;
    assert!(transcripts.contains("< 451 4.7.650 The mail server [127.0.0.1] has been temporarily rate limited"));

    // The site comes to trust the address, and accepts the waiting messages.
    for _ in 0..72 {
        if simulation.statuses().await.keys().eq(["delivered"]) {
            break;
        }
        simulation.pass(HOUR).await;
    }
    assert_eq!(simulation.check_nothing_is_lost().await, simulation.ids.len() as u64);
    assert!(simulation.site.reputation(HERE).unwrap().score() > 60);
}

#[tokio::test]
async fn a_new_address_that_goes_on_pushing_is_blocked_on_the_second_day() {
    let load = Load { per_day: 72, domains: 36 };
    let simulation = simulate(site(10, 5), 27 * HOUR, &load, default_source).await;
    let ledger = simulation.site.ledger();
    assert_eq!(ledger.day(Ledger::day_of(START)).blocked, 0);
    assert_eq!(ledger.first_blocked_day(HERE), Some(Ledger::day_of(START) + 1));
    assert!(simulation.site.reputation(HERE).unwrap().is_blocked());
    assert!(simulation.check_nothing_is_lost().await < 30);
    let refused = ledger.transactions().into_iter().find(|one| one.reply.contains("(S3150)"));
    assert!(refused.unwrap().reply.starts_with("550 5.7.1 Unfortunately, messages from [127.0.0.1]"));
}

#[tokio::test]
async fn every_kind_of_site_is_heard_over_tls() {
    for (style, words) in [
        (SiteStyle::Gmail, "421-4.7.28 [127.0.0.1]"),
        (SiteStyle::Microsoft, "451 4.7.650"),
        (SiteStyle::Yahoo, "421 4.7.0 [TSS04]"),
        (SiteStyle::Icloud, "421 4.7.1 Messages to reader1@d1.test"),
        (SiteStyle::Postfix, "450 4.7.1 Error: too much mail"),
    ] {
        let policy = SitePolicy { first_day: 4, ..style.policy() };
        let site = MailboxProvider::builder("mailbox.test", style).policy(policy).exchangers(2).start_tls();
        let mut simulation = Simulation::start(site, default_source).await;
        for _ in 0..2 {
            simulation.send_one(2).await;
            simulation.product.work().await;
        }
        let (taken, put_off) = (simulation.ids[0], simulation.ids[1]);
        assert_eq!(simulation.product.story(taken).await, "delivered: Queued Sent Delivered", "{style:?}");
        assert_eq!(simulation.product.story(put_off).await, "deferred: Queued Deferred", "{style:?}");
        let transcripts = simulation.transcripts(put_off).await;
        assert!(transcripts.contains(&format!("< {words}")), "{style:?} {transcripts}");
        assert!((simulation.site.ledger().total().tls_share() - 1.0).abs() < 1e-9);

        simulation.pass(HOUR).await;
        assert_eq!(simulation.check_nothing_is_lost().await, 2, "{style:?}");
    }
}

#[tokio::test]
async fn unknown_mailboxes_bounce_and_complaints_come_back() {
    let mailboxes = |address: &str| match address {
        "reader0@d0.test" => Mailbox::Unknown,
        "reader1@d1.test" => Mailbox::Complaining,
        _ => Mailbox::Content,
    };
    let site = MailboxProvider::builder("mailbox.test", SiteStyle::Yahoo).mailboxes(mailboxes);
    let mut simulation = Simulation::start(site, default_source).await;
    for _ in 0..3 {
        simulation.send_one(3).await;
    }
    let product = &simulation.product;
    product.work().await;
    assert_eq!(product.story(simulation.ids[0]).await, "bounced: Queued Bounce");
    assert_eq!(product.story(simulation.ids[2]).await, "delivered: Queued Sent Delivered");

    let returned =
        Inbound::bind("127.0.0.1:0".parse().unwrap(), SmtpServerOptions::returned_mail("mail.test")).unwrap();
    let address = returned.local_addr();
    tokio::spawn(returned.run(Arc::new(product.app.clone()), std::future::pending()));
    let complaints = simulation.site.take_complaints();
    assert_eq!(complaints.len(), 1);
    for _ in 0..2 {
        complaints[0].post(address).await.unwrap();
    }
    assert_eq!(product.story(simulation.ids[1]).await, "complained: Queued Sent Delivered Complaint");
    assert_eq!(product.listed("reader1@d1.test").await.unwrap().reason, SuppressionReason::Complaint);
    let reputation = simulation.site.reputation(HERE).unwrap();
    assert!(!reputation.is_blocked());
    assert_eq!(simulation.site.ledger().total().complaints, 1);
}
