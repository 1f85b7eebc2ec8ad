//! Simulated days of a node, or of two on PostgreSQL, that end abruptly once a day, at a site that rates its senders.
//!
//! `SIMULATED_DAYS=30` runs the whole month; without it there are a few days. `SIMULATED_SEED` chooses another course
//! of events. With `TEST_STORE=postgres` there are two nodes that name the same address.

mod site;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_conformance::cluster::Database;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::path::{PathState, PathStatus};
use messaging_core::domain::delivery::site::SiteLimits;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::Report;
use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::Store;
use messaging_core::ports::clock::{Clock as _, ManualClock, SeededEntropy};
use messaging_core::ports::inbound::ReturnAddress;
use messaging_core::time::Timestamp;
use messaging_engine::{App, Caller, Settings, admin};
use messaging_store::{Heartbeats, PostgresStore};
use messaging_testing::Mailbox;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::site::{Site, SiteTransport};
use crate::bed::{self, Call, KEY, PUBLIC_URL, Reply, START};
use crate::mortal::MortalStore;
use crate::paths::source;
use crate::test_store;

const DAY: Duration = Duration::from_hours(24);

/// Mailings of a day, evenly spread, each to a separate list.
const MAILINGS: usize = 8;

/// Recipients of a mailing. 240 a day are four times what the site accepts from a new address.
const RECIPIENTS: usize = 30;

/// Recipient domains, all of them at the one site.
const DOMAINS: usize = 12;

/// The address that mail leaves from.
const NUMBER: u8 = 7;

/// The shortest and the longest time between two passes over due work.
const STEP: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(20));

/// Time within which a password reset must be sent.
const RESET_WITHIN: Duration = Duration::from_mins(1);

/// A node that sends heartbeats often.
const QUICK: Heartbeats = Heartbeats {
    every: Duration::from_millis(40),
    silent_after: Duration::from_mins(1),
    dead_after: Duration::from_mins(2),
    hand_over: Duration::from_mins(1),
};

fn given(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Pseudo-random numbers (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn roll(&mut self, below: usize) -> usize {
        usize::try_from(self.next() % below as u64).unwrap()
    }
}

/// The database of the nodes.
enum Place {
    File(TempDir),
    Server(Database),
}

impl Place {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::File(directory) => test_store::open(directory.path(), true),
            Self::Server(database) => {
                let mut options = database.options();
                (options.follows_clock, options.heartbeats) = (false, QUICK);
                Arc::new(PostgresStore::open(options).await.unwrap())
            }
        }
    }
}

/// A process that works and may end at any of its commits, and one beside it that only handles requests.
struct Node {
    app: App,
    mortal: MortalStore,
    front: App,
    store: Arc<dyn Store>,
}

/// Nodes, the site that they send to, and their common time.
struct Simulation {
    place: Place,
    clock: Arc<ManualClock>,
    site: Arc<Site>,
    settings: Settings,
    dice: Dice,
    nodes: Vec<Node>,
    workspace: WorkspaceId,
    caller: Caller,
    template: String,
    lists: Vec<String>,
    crashes: usize,
}

impl Simulation {
    /// Starts at midnight. `is_known` says that the site knows the address.
    async fn start(is_known: bool, mailboxes: fn(&str) -> Mailbox) -> Self {
        let place = if test_store::is_postgres() {
            Place::Server(Database::create().await.expect("TEST_STORE=postgres needs a PostgreSQL server to start"))
        } else {
            Place::File(tempfile::tempdir().unwrap())
        };
        let clock = Arc::new(ManualClock::new(START));
        let midnight = (START.as_millis().div_euclid(86_400_000) + 1) * 86_400_000;
        clock.advance(Timestamp::from_millis(midnight).since(START));
        let known: Option<IpAddr> = source(NUMBER).ip.ip().filter(|_| is_known);
        let settings = Settings::default()
            .hostname("mx.service.test")
            .public_url(PUBLIC_URL)
            .message_retry_jitter(0)
            .sources([source(NUMBER)])
            .warm_sources(known);
        let mut simulation = Self {
            site: Arc::new(Site::new(Arc::clone(&clock), mailboxes)),
            place,
            clock,
            settings,
            dice: Dice(given("SIMULATED_SEED", 1)),
            nodes: Vec::new(),
            workspace: WorkspaceId::from_bytes([0; 16]),
            caller: Caller::Operator(None),
            template: String::new(),
            lists: Vec::new(),
            crashes: 0,
        };
        for _ in 0..if test_store::is_postgres() { 2 } else { 1 } {
            let node = simulation.node().await;
            simulation.nodes.push(node);
        }
        simulation.all_claim().await;
        simulation.furnish().await;
        simulation
    }

    /// A workspace with a template, and a list for each mailing.
    async fn furnish(&mut self) {
        let app = self.nodes[0].front.clone();
        admin::create_user(&app, "owner@sandbox.test", None, None).await.unwrap();
        self.workspace = admin::create_workspace(&app, "Acme", "owner@sandbox.test").await.unwrap().id;
        self.caller = Caller::Operator(Some(self.workspace));
        admin::prepare_sandbox(&app, self.workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
        let template = json!({"name": "t", "channel": "email", "subject": "s", "from_email": "shop@sandbox.test",
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        self.template = self.made("templates", template).await;
        for mailing in 0..MAILINGS {
            let list = self.made("lists", json!({"name": format!("l{mailing}")})).await;
            let contact = |number: usize| {
                json!({"email": format!("reader{mailing}x{number}@d{}.test", number % DOMAINS),
                    "consent": {"marketing_email": true}, "list_ids": [list]})
            };
            let contacts: Vec<_> = (0..RECIPIENTS).map(contact).collect();
            let reply = self.post("contacts/bulk", json!({"contacts": contacts})).await;
            assert_eq!(reply.summary(), "200", "{}", reply.body);
            self.lists.push(list);
        }
        self.work().await;
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        let target = format!("/workspaces/{}/{path}", self.workspace);
        bed::send(&self.nodes[0].front, Call::new(&self.caller, Method::POST, &target).body(&body)).await
    }

    async fn made(&self, path: &str, body: Value) -> String {
        let reply = self.post(path, body).await;
        assert_eq!(reply.summary(), "201", "{}", reply.body);
        reply["id"].as_str().unwrap().to_owned()
    }

    /// A process that ends at one of its commits, or lives on.
    async fn node(&mut self) -> Node {
        let store = self.place.open().await;
        let last = 100 + self.dice.roll(1500);
        let mortal = MortalStore::new(Arc::clone(&store), last, self.dice.roll(2) == 0);
        let app = self.app(Arc::new(mortal.clone()), self.settings.clone()).await;
        app.prepare_to_work().await.unwrap();
        // The front has no source address, and receives complaints about mail of others.
        let front = self.app(Arc::clone(&store), Settings::default().public_url(PUBLIC_URL)).await;
        Node { app, mortal, front, store }
    }

    async fn app(&mut self, store: Arc<dyn Store>, settings: Settings) -> App {
        App::builder(store, KEY)
            .clock(Arc::clone(&self.clock) as _)
            .entropy(Arc::new(SeededEntropy::new(self.dice.next())))
            .settings(settings)
            .transport(Channel::Email, "sandbox", Arc::new(SiteTransport::new(Arc::clone(&self.site))))
            .build()
            .await
            .unwrap()
    }

    /// Ends a node abruptly, and starts it again. Everything it had in memory is gone.
    async fn crash(&mut self, at: usize) {
        let Node { app, mortal, front, store } = self.nodes.remove(at);
        mortal.hang();
        drop((app, front));
        store.close().await;
        drop(store);
        self.crashes += 1;
        let node = self.node().await;
        self.nodes.push(node);
        self.all_claim().await;
    }

    /// Waits until every node claims jobs, where there are several.
    async fn all_claim(&self) {
        for _ in 0..3000 {
            let Some(cluster) = self.nodes[0].store.cluster().await.unwrap() else { return };
            if cluster.nodes.iter().filter(|node| node.places > 0).count() == self.nodes.len() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not every node claims jobs");
    }

    /// Runs due work; a node that ends meanwhile is started again.
    async fn work(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let (app, mortal) = (self.nodes[at].app.clone(), self.nodes[at].mortal.clone());
            let mut working = tokio::spawn(async move { app.run_until_idle().await });
            let ended = tokio::select! {
                ended = &mut working => Some(ended),
                () = mortal.died() => None,
            };
            if let Some(ended) = ended {
                ended.unwrap().unwrap();
            } else {
                working.abort();
                let _ = working.await;
                self.crash(at).await;
            }
        }
        for message in self.site.take_complaints() {
            self.complain(message).await;
        }
    }

    /// A complaint comes to any node.
    async fn complain(&mut self, message_id: MessageId) {
        let at = self.dice.roll(self.nodes.len());
        let purpose = ReturnPurpose::Bounce;
        let to = ReturnAddress { workspace_id: self.workspace, message_id, purpose, recipient: None };
        let complaint = Report::Complaint { feedback_type: "abuse".to_owned(), recipients: Vec::new() };
        self.nodes[at].front.receive(&to, &complaint).await.unwrap();
    }

    /// Time until the next job is due.
    async fn next_due(&self) -> Duration {
        let mut next = STEP.1;
        for node in &self.nodes {
            let due = node.store.next_due(self.clock.now(), self.clock.monotonic()).await.unwrap();
            next = next.min(due.unwrap_or(STEP.1));
        }
        next.max(STEP.0)
    }

    /// Sends a password reset, and waits until it is delivered.
    async fn reset(&mut self) {
        let body = json!({"channel": "email", "to": format!("user@d{}.test", self.dice.roll(DOMAINS)),
            "subject": "s", "text": "t"});
        let reply =
            bed::send(&self.nodes[0].front, Call::new(&self.caller, Method::POST, "/messages").body(&body)).await;
        assert_eq!(reply.summary(), "202", "{}", reply.body);
        let id: MessageId = reply["message_id"].as_str().unwrap().parse().unwrap();
        let asked = self.clock.now();
        loop {
            self.work().await;
            let message = self.nodes[0].store.message(self.workspace, id).await.unwrap().unwrap();
            if message.status == MessageStatus::Delivered {
                return;
            }
            let waited = self.clock.now().since(asked);
            assert!(waited < RESET_WITHIN, "a reset waits for {waited:?}: {:?} {:?}", message.status, message.hold);
            self.clock.advance(Duration::from_secs(5));
        }
    }

    async fn mail(&mut self, list: usize) {
        let body = json!({"name": "c", "channel": "email", "template_id": self.template,
            "audience": {"list_ids": [self.lists[list]]}});
        let campaign = self.made("campaigns", body).await;
        let reply = self.post(&format!("campaigns/{campaign}/schedule"), json!({"send_now": true})).await;
        assert_eq!(reply.summary(), "202", "{}", reply.body);
        self.work().await;
    }

    /// A day with its mailings, a reset between any two of them, and at least one end of a node.
    async fn day(&mut self) {
        let midnight = self.clock.now();
        let spacing = DAY / u32::try_from(MAILINGS).unwrap();
        let (crashes, crash_after) = (self.crashes, self.dice.roll(MAILINGS));
        for mailing in 0..MAILINGS {
            let begin = midnight + spacing * u32::try_from(mailing).unwrap();
            self.until(begin).await;
            self.mail(mailing).await;
            let later = Duration::from_secs(60 + self.dice.next() % (spacing.as_secs() - 600));
            self.until(begin + later).await;
            self.reset().await;
            if mailing == crash_after && self.crashes == crashes {
                let at = self.dice.roll(self.nodes.len());
                self.crash(at).await;
            }
        }
        self.until(midnight + DAY).await;
    }

    /// Lets time pass, with the work that becomes due in it.
    async fn until(&mut self, end: Timestamp) {
        loop {
            let left = end.since(self.clock.now());
            if left.is_zero() {
                return;
            }
            let step = self.next_due().await.min(left);
            self.clock.advance(step);
            self.work().await;
        }
    }

    /// Asserts that the delivered messages are those that the site accepted, and that all but a few of the others have
    /// a hold or are deferred.
    async fn check_nothing_is_lost(&mut self) {
        // Work that a node's end interrupted is resumed.
        for _ in 0..2 {
            self.work().await;
        }
        let (mut delivered, mut waiting) = (HashSet::new(), BTreeMap::<String, usize>::new());
        let mut target = "/messages?limit=200".to_owned();
        for _ in 0..1000 {
            let page = bed::send(&self.nodes[0].front, Call::new(&self.caller, Method::GET, &target)).await;
            assert_eq!(page.summary(), "200");
            for message in page["data"].as_array().unwrap() {
                let text = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
                match text(&message["status"]).as_str() {
                    "delivered" | "complained" => {
                        delivered.insert(text(&message["message_id"]).parse::<MessageId>().unwrap());
                    }
                    "queued" => *waiting.entry(text(&message["hold"]["reason"])).or_default() += 1,
                    status => *waiting.entry(status.to_owned()).or_default() += 1,
                }
            }
            match page["next_cursor"].as_str() {
                Some(cursor) => target = format!("/messages?limit=200&cursor={cursor}"),
                None => break,
            }
        }
        let taken = self.site.taken();
        assert_eq!(taken.keys().copied().collect::<HashSet<_>>(), delivered, "{waiting:?}");
        let repeated: u32 = taken.values().map(|times| times - 1).sum();
        // A message in progress when a node ended is sent once more.
        assert!(repeated as usize <= self.crashes * RECIPIENTS, "{repeated} of {} ends", self.crashes);
        let told = ["warming_up", "braked", "domain_pace", "deferred"];
        let untold: usize =
            waiting.iter().filter(|(why, _)| !told.contains(&why.as_str())).map(|(_, count)| *count).sum();
        // Those whose turn is less than a minute away say nothing.
        assert!(untold <= 2 * RECIPIENTS, "{waiting:?}");
    }

    /// The state of the path, as it is stored.
    async fn path(&self) -> PathState {
        let row = self.nodes[0].store.path_row(source(NUMBER).ip, site::SITE).await.unwrap();
        serde_json::from_str(&row.expect("mail left over the path").record.state).unwrap()
    }
}

fn content(_: &str) -> Mailbox {
    Mailbox::Content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_address_comes_to_be_trusted_whatever_node_ends_when() {
    let days = given("SIMULATED_DAYS", 2);
    let mut simulation = Simulation::start(false, content).await;
    for _ in 0..days {
        simulation.day().await;
    }
    let counts = simulation.site.counts();
    assert_eq!(counts.blocked, 0, "{counts:?}");
    assert!(counts.deferred * 100 < counts.tried, "{counts:?}");
    assert!(simulation.crashes as u64 >= days);
    simulation.check_nothing_is_lost().await;
    let (path, now) = (simulation.path().await, simulation.clock.now());
    assert_ne!(path.status(now), PathStatus::Stopped);
    if days >= 30 {
        assert!(
            !path.warm_up(&SiteLimits::default(), now).is_warming(),
            "{:?}",
            path.report(&SiteLimits::default(), now)
        );
        let wanted = u64::try_from(MAILINGS * RECIPIENTS).unwrap() * days;
        assert!(counts.tried - counts.deferred >= wanted * 9 / 10, "{counts:?} of {wanted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_mail_without_a_warm_up_is_blocked_by_the_second_day() {
    let mut simulation = Simulation::start(true, content).await;
    let first = simulation.clock.now();
    for mailing in 0..2 * MAILINGS {
        if simulation.site.counts().blocked > 0 {
            break;
        }
        simulation.mail(mailing % MAILINGS).await;
        let end = simulation.clock.now() + DAY / u32::try_from(MAILINGS).unwrap();
        simulation.until(end).await;
    }
    let counts = simulation.site.counts();
    assert!(counts.blocked > 0, "{counts:?}");
    assert!(simulation.clock.now().since(first) <= 2 * DAY);
    assert_ne!(simulation.path().await.status(simulation.clock.now()), PathStatus::Ok);
}

/// Four unknown mailboxes and half a complaint in a hundred.
fn bad_list(address: &str) -> Mailbox {
    Mailbox::by_share(address, 400, 50)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_list_is_braked_within_a_quarter_of_an_hour() {
    let mut simulation = Simulation::start(true, bad_list).await;
    simulation.site.trust();
    let begin = simulation.clock.now();
    // As many as a warm address sends of 300,000 a day, a second's worth at a time.
    for number in 0..u32::MAX {
        let body = json!({"channel": "email", "to": format!("reader{number}@d{}.test", number as usize % DOMAINS),
            "subject": "s", "text": "t"});
        let call = Call::new(&simulation.caller, Method::POST, "/messages").body(&body);
        assert_eq!(bed::send(&simulation.nodes[0].front, call).await.summary(), "202");
        if number % 50 == 49 {
            simulation.work().await;
            simulation.clock.advance(Duration::from_millis(288 * 50));
            let passed = simulation.clock.now().since(begin);
            if simulation.path().await.status(simulation.clock.now()) != PathStatus::Ok {
                break;
            }
            assert!(passed < Duration::from_mins(15), "not braked: {:?}", simulation.site.counts());
        }
    }
}
