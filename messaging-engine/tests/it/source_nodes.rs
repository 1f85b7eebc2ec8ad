//! Nodes with their own addresses: mail is sent by a node that has a suitable address, and an address is used by one
//! node.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_conformance::cluster::Database;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::ip_pool::IpPool;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::Store;
use messaging_core::ports::clock::ManualClock;
use messaging_core::ports::store::{PageRequest, Priority};
use messaging_engine::ops::messages::{GetMessage, MessagePath, MessageReport, SendMessage};
use messaging_engine::ops::{Endpoint, Operation as _, Request};
use messaging_engine::{App, Caller, Settings, admin};
use messaging_store::{Heartbeats, PostgresStore};
use serde_json::{Value, json};

use crate::bed::{KEY, START};
use crate::paths::{Exchangers, source};

/// Longest time for a step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node that sends heartbeats often, and that no node declares dead within a test.
const QUICK: Heartbeats = Heartbeats {
    every: Duration::from_millis(40),
    silent_after: Duration::from_mins(1),
    dead_after: Duration::from_mins(2),
    hand_over: Duration::from_mins(1),
};

/// A node that says once that it is there, so that it does not come back when it is declared dead.
const STILL: Heartbeats = Heartbeats { every: Duration::from_hours(1), ..QUICK };

/// A node, and the mail exchangers that it sends to.
struct Node {
    app: App,
    store: Arc<dyn Store>,
    exchangers: Arc<Exchangers>,
}

/// Nodes on one database, at one time.
struct Installation {
    database: Database,
    clock: Arc<ManualClock>,
    nodes: Vec<Node>,
    workspace: WorkspaceId,
    caller: Caller,
}

impl Installation {
    /// Starts nodes with these sources, in their order; sites know those of `warm`. `None` if there is no PostgreSQL
    /// server.
    async fn start(nodes: &[(&[u8], Heartbeats)], warm: &[u8]) -> Option<Self> {
        let database = Database::create().await?;
        let clock = Arc::new(ManualClock::new(START));
        let mut started = Vec::new();
        for (numbers, heartbeats) in nodes {
            let mut options = database.options();
            (options.follows_clock, options.heartbeats) = (false, *heartbeats);
            let store: Arc<dyn Store> = Arc::new(PostgresStore::open(options).await.unwrap());
            let exchangers = Arc::new(Exchangers::default());
            let sources = numbers.iter().map(|number| source(*number));
            let warm = warm.iter().map(|number| IpAddr::from([203, 0, 113, *number]));
            let app = App::builder(Arc::clone(&store), KEY)
                .clock(Arc::clone(&clock) as _)
                .settings(Settings::default().sources(sources).warm_sources(warm))
                .transport(Channel::Email, "sandbox", Arc::clone(&exchangers) as _)
                .build()
                .await
                .unwrap();
            app.prepare_to_work().await.unwrap();
            started.push(Node { app, store, exchangers });
        }
        let app = &started[0].app;
        admin::create_user(app, "owner@sandbox.test", None, None).await.unwrap();
        let workspace = admin::create_workspace(app, "Acme", "owner@sandbox.test").await.unwrap().id;
        admin::prepare_sandbox(app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
        let caller = Caller::Operator(Some(workspace));
        Some(Self { database, clock, nodes: started, workspace, caller })
    }

    /// Waits until every node claims jobs.
    async fn all_claim(&self) {
        let began = Instant::now();
        loop {
            let cluster = self.nodes[0].store.cluster().await.unwrap().unwrap();
            if cluster.nodes.iter().filter(|node| node.places > 0).count() == self.nodes.len() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{cluster:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until so many nodes say which sources they have.
    async fn only_these_live(&self, count: usize) {
        let began = Instant::now();
        while self.nodes[0].store.live_sources().await.unwrap().len() != count {
            assert!(began.elapsed() < PATIENCE, "a node lives on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Has the sending domain use a pool of these addresses.
    async fn pool(&self, numbers: &[u8]) {
        let (app, store) = (&self.nodes[0].app, &self.nodes[0].store);
        let pool = IpPool {
            id: app.new_id(START),
            workspace_id: Some(self.workspace),
            name: format!("of {numbers:?}"),
            ips: numbers.iter().map(|number| IpAddr::from([203, 0, 113, *number])).collect(),
            created_at: START,
            updated_at: START,
        };
        let page = PageRequest { after: None, limit: 1 };
        let id = store.domains(self.workspace, page).await.unwrap().items.remove(0).id;
        let stored = store.domain(self.workspace, id).await.unwrap().unwrap();
        let domain = SendingDomain { ip_pool_id: Some(pool.id), ..stored.record };
        let writes = [Write::put(pool, Expect::Absent), Write::put(domain, Expect::Revision(stored.revision))];
        store.commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();
        self.clock.advance(Duration::from_secs(2));
    }

    async fn send(&self, to: &str) -> MessageId {
        let body = json!({"channel": "email", "to": to, "subject": "s", "text": "t"});
        let admitted = self.nodes[0].app.admit(self.caller.clone(), Endpoint::row::<SendMessage>(), &[], None).await;
        let request =
            Request { path: SendMessage::PATH, body: body.to_string().into_bytes().into(), ..Request::default() };
        let answer = admitted.unwrap().run(request).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        answer["message_id"].as_str().unwrap().parse().unwrap()
    }

    /// Sends a message to each of so many domains.
    async fn send_to_domains(&self, count: usize) -> Vec<MessageId> {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(self.send(&format!("reader@d{number}.example")).await);
        }
        ids
    }

    /// Lets every node run due work, several times, with seconds in between.
    async fn work(&self) {
        for _ in 0..4 {
            for node in &self.nodes {
                node.app.run_until_idle().await.unwrap();
            }
            self.clock.advance(Duration::from_secs(4));
        }
    }

    async fn report(&self, id: MessageId) -> MessageReport {
        let path = MessagePath { id };
        self.nodes.last().unwrap().app.run(GetMessage).path(path).by(&self.caller).await.unwrap()
    }

    async fn delivered(&self, ids: &[MessageId]) -> usize {
        let mut count = 0;
        for id in ids {
            count += usize::from(self.report(*id).await.status == MessageStatus::Delivered);
        }
        count
    }

    /// Numbers of messages that left from each node.
    fn sent(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.exchangers.sent()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_on_at_the_node_that_has_an_address_for_it() {
    let nodes: [(&[u8], Heartbeats); 2] = [(&[7], QUICK), (&[8], QUICK)];
    let Some(installation) = Installation::start(&nodes, &[7, 8]).await else { return };
    installation.all_claim().await;
    // Without a pool both send.
    let ids = installation.send_to_domains(24).await;
    installation.work().await;
    assert_eq!(installation.delivered(&ids).await, 24);
    let before = installation.sent();
    assert!(before.iter().all(|sent| *sent > 0), "{before:?}");
    // With one only the node that has its address.
    installation.pool(&[8]).await;
    let ids = installation.send_to_domains(24).await;
    installation.work().await;
    assert_eq!(installation.delivered(&ids).await, 24);
    assert_eq!(installation.sent(), [before[0], before[1] + 24]);
    // No node has this one.
    installation.pool(&[9]).await;
    let id = installation.send("reader@d0.example").await;
    installation.work().await;
    let report = installation.report(id).await;
    assert_eq!(report.hold.map(|hold| hold.reason), Some(HoldReason::NoSource));
    assert_eq!(report.explanation.code, "no_source");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_two_nodes_name_is_used_by_one() {
    let nodes: [(&[u8], Heartbeats); 2] = [(&[7], QUICK), (&[7], QUICK)];
    let Some(installation) = Installation::start(&nodes, &[]).await else { return };
    installation.all_claim().await;
    let ids = installation.send_to_domains(24).await;
    installation.work().await;
    assert_eq!(installation.delivered(&ids).await, 24);
    assert_eq!(installation.sent(), [24, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_node_goes_on_with_the_address_of_one_that_died() {
    let nodes: [(&[u8], Heartbeats); 2] = [(&[7], STILL), (&[7], QUICK)];
    let Some(mut installation) = Installation::start(&nodes, &[]).await else { return };
    for number in 0..40 {
        installation.send(&format!("reader{number}@b.example")).await;
    }
    installation.work().await;
    assert_eq!(installation.sent(), [40, 0]);
    // The first node ends without notice, and a process with a shorter limit declares it dead.
    drop(installation.nodes.remove(0));
    let mut options = installation.database.options();
    options.works = false;
    options.heartbeats = Heartbeats { dead_after: Duration::from_secs(1), ..QUICK };
    let beside = PostgresStore::open(options).await.unwrap();
    installation.only_these_live(1).await;
    installation.all_claim().await;
    let mut ids = Vec::new();
    for number in 40..60 {
        ids.push(installation.send(&format!("reader{number}@b.example")).await);
    }
    installation.work().await;
    // The number of messages sent from the address today is known: 50 are allowed.
    assert_eq!(installation.delivered(&ids).await, 10);
    for id in ids {
        let report = installation.report(id).await;
        if report.status != MessageStatus::Delivered {
            assert_eq!(report.hold.map(|hold| hold.reason), Some(HoldReason::WarmingUp));
        }
    }
    beside.close().await;
}
