//! Several nodes on one PostgreSQL database: one is killed, one sleeps, one stops, and the others take over its work.

mod leaving;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use messaging_conformance::cluster::Database;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_testing::{ScriptedSmtpServer, Stage};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::copies::second_copies;
use super::{CLIENTS, count, is_marked, post, runtime, wait_for_mail};
use crate::support::{Server, allowed, directory, run, wait_for, wait_or_tell};

/// Kills, unless `NODE_KILLS` says otherwise.
const KILLS: usize = 4;

/// Servers side by side.
const NODES: usize = 3;

/// Messages that clients send in a round.
const SENT_A_ROUND: usize = 160;

/// Accepted messages of a round at which a node is killed.
const BEFORE_THE_KILL: usize = 70;

/// Domains of the recipients: so many that every node has some.
const DOMAINS: usize = 24;

/// Time within which the work of a killed node continues after most kills; twice as long if the machine is busy.
const GOES_ON_WITHIN: Duration = Duration::from_secs(15);

/// Time within which the work of a node that stops in order continues.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(5);

/// Delay until messages are due that are sent before a node is told to stop.
const SOON: Duration = Duration::from_secs(3);

/// Public URL for links, which nobody follows.
const LINKS: &str = "http://links.nodes.test";

fn kills() -> usize {
    std::env::var("NODE_KILLS").map_or(KILLS, |text| text.parse().expect("NODE_KILLS is a number"))
}

fn domain(n: usize) -> String {
    format!("d{}.test", n % DOMAINS)
}

/// An installation on a PostgreSQL database.
struct Installation {
    database: Database,
    /// Directory with the key file that all nodes share.
    shared: TempDir,
    data: Vec<TempDir>,
    sink: ScriptedSmtpServer,
    key: String,
}

/// The running nodes. A client that talks to a node keeps it until it has its answer.
struct Nodes {
    running: Vec<Mutex<Arc<Server>>>,
}

impl Installation {
    /// An installation whose mail goes to a server of the test; `None` if there is no PostgreSQL.
    fn new(runtime: &tokio::runtime::Runtime, nodes: usize) -> Option<Self> {
        let database = runtime.block_on(Database::create())?;
        let sink = runtime.block_on(ScriptedSmtpServer::start());
        let data = (0..nodes).map(|_| directory()).collect();
        let mut installation = Self { database, shared: directory(), data, sink, key: String::new() };
        // `dev` makes a workspace with a domain to send from.
        let server = installation.start("dev", 0);
        let workspace = server.dev_json()["workspace_id"].as_str().unwrap().to_owned();
        let words =
            ["create-key", "--workspace", &workspace, "--name", "load", "--scopes", "*", "--rate-limit", "100000"];
        installation.admin(&words)["key"].as_str().unwrap().clone_into(&mut installation.key);
        let channel = format!("/v1/workspaces/{workspace}/channels/email");
        let body = json!({"provider": "builtin", "config": {}});
        let (status, answer) = server.request("PUT", &channel, &installation.key, &body);
        assert_eq!(status, 200, "{answer}");
        assert_eq!(server.stop(), Some(0));
        Some(installation)
    }

    fn key_file(&self) -> String {
        self.shared.path().join("secret.key").to_str().unwrap().to_owned()
    }

    fn admin(&self, words: &[&str]) -> Value {
        let (key_file, data) = (self.key_file(), self.data[0].path().to_str().unwrap());
        let place = ["--json", "--database", &self.database.url, "--secret-key-file", &key_file, "--data", data];
        run(["admin"].iter().chain(words).chain(&place)).expect(0).json()
    }

    /// Starts a node: `serve` or `worker`.
    fn start(&self, command: &str, node: usize) -> Server {
        let (key_file, name, sink) = (self.key_file(), host_name(node), self.sink.address().to_string());
        let database = ["--database", &self.database.url, "--secret-key-file", &key_file, "--public-url", LINKS];
        let mail = ["--hostname", &name, "--mx-override", &sink];
        Server::start(command, self.data[node].path(), &[&database[..], &mail[..]].concat())
    }

    fn start_all(&self) -> Nodes {
        let running = (0..self.data.len()).map(|node| Mutex::new(Arc::new(self.start("serve", node)))).collect();
        Nodes { running }
    }

    fn all_messages(&self, server: &Server) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/messages?limit=200{cursor}");
            let (status, mut page) = server.request("GET", &path, &self.key, &Value::Null);
            assert_eq!(status, 200, "{page}");
            let Value::Array(more) = page["data"].take() else { panic!("no page: {page}") };
            items.extend(more);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Number of copies that arrived, by recipient.
    fn arrived(&self) -> HashMap<String, usize> {
        count(self.sink.messages().into_iter().map(|received| received.recipients.join(" ")))
    }

    /// Waits until each recipient has a message.
    fn wait_for_mail_to(&self, recipients: &[String]) {
        wait_for_mail(&self.sink, || {
            let arrived = self.arrived();
            recipients.iter().all(|to| arrived.contains_key(to))
        });
    }

    /// Waits until everything accepted is done, and counts: nothing is lost, and every second copy is marked. Returns
    /// the number of second copies and the number of marked messages.
    fn settle(&self, server: &Server, accepted: &HashMap<String, String>) -> (usize, usize) {
        let messages = wait_or_tell(|| {
            let messages = self.all_messages(server);
            match messages.iter().find(|message| message["status"] != "delivered") {
                None => Ok(messages),
                Some(message) => Err(format!("not delivered: {message}")),
            }
        });
        let listed: HashSet<_> = messages.iter().map(|message| message["message_id"].as_str().unwrap()).collect();
        assert_eq!(listed.len(), messages.len(), "a message is listed once");
        assert_eq!(listed.len(), accepted.len(), "a key makes one message, however often it is used");
        let arrived = self.arrived();
        let lost: Vec<_> = accepted.keys().filter(|to| !arrived.contains_key(*to)).collect();
        assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), accepted.len());
        let mut marked = 0;
        for (to, id) in accepted {
            assert!(listed.contains(id.as_str()), "{to}: {id} was answered, and is not known");
            let (status, report) = server.request("GET", &format!("/v1/messages/{id}"), &self.key, &Value::Null);
            assert_eq!(status, 200, "{report}");
            let is_marked = is_marked(&report);
            marked += usize::from(is_marked);
            let copies = arrived[to];
            assert!(copies == 1 || is_marked, "{to} arrived {copies} times without a mark: {report}");
        }
        assert_eq!(arrived.len(), accepted.len(), "what arrived is known");
        (second_copies(&arrived), marked)
    }

    /// The terms of the running processes, by name.
    fn terms(&self, runtime: &tokio::runtime::Runtime) -> HashMap<String, i64> {
        self.query(runtime, "SELECT name, term FROM nodes WHERE works").into_iter().collect()
    }

    /// The node that works for a domain which has something to do.
    fn node_of(&self, runtime: &tokio::runtime::Runtime, domain: &str) -> usize {
        let sql = format!(
            "SELECT nodes.name, nodes.term FROM jobs JOIN places USING (place) JOIN nodes ON nodes.term = places.term
             WHERE jobs.lane LIKE '%email:{domain}'"
        );
        let found = self.query(runtime, &sql);
        let (name, _) = found.first().expect("the job is there until it is done");
        (0..self.data.len()).find(|node| host_name(*node) == *name).expect("one of ours")
    }

    /// Number of transactions that may be written at a time under a term: none once it has ended.
    fn writers(&self, runtime: &tokio::runtime::Runtime, term: i64) -> usize {
        let rows = self.query(runtime, "SELECT ''::text, term FROM writers");
        rows.into_iter().filter(|(_, of)| *of == term).count()
    }

    fn query(&self, runtime: &tokio::runtime::Runtime, sql: &str) -> Vec<(String, i64)> {
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.database.url, tokio_postgres::NoTls).await.unwrap();
            let driving = tokio::spawn(connection);
            let rows = client.query(sql, &[]).await.unwrap();
            drop(client);
            driving.await.unwrap().unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        })
    }
}

fn host_name(node: usize) -> String {
    format!("mx{node}.nodes.test")
}

impl Nodes {
    fn node(&self, number: usize) -> Arc<Server> {
        Arc::clone(&self.running[number % self.running.len()].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, number: usize, server: Server) {
        *self.running[number].lock().unwrap() = Arc::new(server);
    }

    /// Sends a message to one node, and to the next if that one does not accept it, until it is accepted. Returns its
    /// id.
    fn send(&self, key: &str, first: usize, leave_out: Option<usize>, to: &str) -> String {
        let body = json!({"channel": "email", "to": to, "subject": "s", "text": format!("for {to}")});
        let headers = [("Idempotency-Key", to)];
        let mut turn = first;
        wait_or_tell(|| {
            turn += 1;
            if leave_out == Some(turn % self.running.len()) {
                turn += 1;
            }
            match self.node(turn).try_request("/v1/messages", key, &headers, &body) {
                Some((202, answer)) => Ok(answer["message_id"].as_str().unwrap().to_owned()),
                // No answer, an unavailable database, or the same request is still being answered.
                Some((409, answer)) if answer["error"]["code"] == "idempotency_in_progress" => Err(answer.to_string()),
                Some((503, answer)) => Err(answer.to_string()),
                None => Err("no answer".to_owned()),
                Some((status, answer)) => panic!("{to}: {status} {answer}"),
            }
        })
    }

    /// Sends one message to each domain by the running nodes and waits for all of them; returns the time from `since`
    /// to the last arrival.
    fn goes_on(
        &self,
        installation: &Installation,
        round: usize,
        leave_out: Option<usize>,
        since: Instant,
        accepted: &Mutex<HashMap<String, String>>,
    ) -> Duration {
        let probes: Vec<_> = (0..DOMAINS).map(|n| format!("probe-{round}@{}", domain(n))).collect();
        for (n, to) in probes.iter().enumerate() {
            let id = self.send(&installation.key, n, leave_out, to);
            accepted.lock().unwrap().insert(to.clone(), id);
        }
        installation.wait_for_mail_to(&probes);
        since.elapsed()
    }
}

#[test]
fn nodes_that_are_killed_lose_nothing_and_send_nothing_twice_unmarked() {
    let runtime = runtime();
    let Some(installation) = Installation::new(&runtime, NODES) else { return };
    let nodes = installation.start_all();
    let accepted = Mutex::new(HashMap::new());
    let kills = kills();
    let mut times = Vec::new();
    for round in 0..kills {
        // Not in turn, so that a node that has just started is killed as well.
        let victim = (round * round + round / 3) % NODES;
        let (next, before) = (AtomicUsize::new(0), accepted.lock().unwrap().len());
        let took = thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= SENT_A_ROUND {
                            return;
                        }
                        let to = format!("user-{round}-{n}@{}", domain(n));
                        let id = nodes.send(&installation.key, n, None, &to);
                        accepted.lock().unwrap().insert(to, id);
                    }
                });
            }
            wait_for(|| (accepted.lock().unwrap().len() >= before + BEFORE_THE_KILL).then_some(()));
            nodes.node(victim).kill_in_place();
            let since = Instant::now();
            // It restarts at once, or when the others have taken over its work.
            if round % 2 == 0 {
                nodes.put(victim, installation.start("serve", victim));
                nodes.goes_on(&installation, round, None, since, &accepted)
            } else {
                let took = nodes.goes_on(&installation, round, Some(victim), since, &accepted);
                nodes.put(victim, installation.start("serve", victim));
                took
            }
        });
        eprintln!("nodes: kill {round} of node {victim}: every domain goes on after {took:?}");
        times.push(took);
    }
    let accepted = accepted.into_inner().unwrap();
    let (copies, marked) = installation.settle(&nodes.node(0), &accepted);
    times.sort();
    let (median, longest) = (times[kills / 2], times[kills - 1]);
    eprintln!("nodes: {} messages, {kills} kills, 0 lost, {copies} second copies, {marked} marked", accepted.len());
    eprintln!("nodes: work went on after {median:?} in the median, {longest:?} at most");
    assert!(median <= allowed(GOES_ON_WITHIN) && longest <= allowed(GOES_ON_WITHIN * 2), "{times:?}");
}

#[test]
fn a_node_that_sleeps_before_the_content_writes_nothing_under_its_old_term() {
    // The message had not begun, and does not begin any more.
    sleep_too_long(Stage::Data, 1);
}

#[test]
fn a_node_that_sleeps_before_the_reply_writes_nothing_under_its_old_term() {
    // The other node cannot know that the content had left; both copies are accepted.
    sleep_too_long(Stage::Dot, 2);
}

/// A node sleeps in the middle of a conversation; `copies_of_held` copies of that message arrive.
fn sleep_too_long(stage: Stage, copies_of_held: usize) {
    let runtime = runtime();
    let Some(installation) = Installation::new(&runtime, NODES) else { return };
    let nodes = installation.start_all();
    let accepted = Mutex::new(HashMap::new());
    let gate = installation.sink.gate(stage);
    let held = format!("held@{}", domain(0));
    accepted.lock().unwrap().insert(held.clone(), nodes.send(&installation.key, 0, None, &held));
    runtime
        .block_on(async { tokio::time::timeout(allowed(GOES_ON_WITHIN), gate.reached()).await })
        .expect("it is on the wire");
    let sleeper = installation.node_of(&runtime, &domain(0));
    let before = installation.terms(&runtime)[&host_name(sleeper)];
    // More messages in work, with outcomes about to be written.
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (nodes, installation, accepted) = (&nodes, &installation, &accepted);
            scope.spawn(move || {
                for n in 0..SENT_A_ROUND / CLIENTS {
                    let to = format!("user-{client}-{n}@{}", domain(n * CLIENTS + client));
                    let id = nodes.send(&installation.key, n, Some(sleeper), &to);
                    accepted.lock().unwrap().insert(to, id);
                }
            });
        }
        wait_for(|| (accepted.lock().unwrap().len() >= BEFORE_THE_KILL).then_some(()));
        nodes.node(sleeper).freeze();
    });
    let since = Instant::now();
    let took = nodes.goes_on(&installation, 0, Some(sleeper), since, &accepted);
    wait_for(|| (installation.writers(&runtime, before) == 0).then_some(()));
    wait_for(|| installation.arrived().contains_key(&held).then_some(()));

    nodes.node(sleeper).thaw();
    gate.open();
    // It takes part again, under another term, and answers.
    let after = wait_for(|| installation.terms(&runtime).get(&host_name(sleeper)).copied());
    assert!(after > before, "{after} follows {before}");
    let body = json!({"channel": "email", "to": "after@d0.test", "subject": "s", "text": "t"});
    let answer = post(&nodes.node(sleeper), &installation.key, "/v1/messages", &body);
    let id = answer["message_id"].as_str().unwrap().to_owned();
    accepted.lock().unwrap().insert("after@d0.test".to_owned(), id);
    let again = nodes.goes_on(&installation, 1, None, Instant::now(), &accepted);
    assert_eq!(installation.writers(&runtime, before), 0, "nothing is written under the old term");
    wait_for(|| (installation.arrived()[&held] >= copies_of_held).then_some(()));
    let accepted = accepted.into_inner().unwrap();
    let (copies, marked) = installation.settle(&nodes.node(0), &accepted);
    let held = installation.arrived()[&held];
    eprintln!("nodes: {} messages, one node asleep, 0 lost, {copies} second copies, {marked} marked", accepted.len());
    eprintln!(
        "nodes: what was on the wire arrived {held} times; on in {took:?}, and in {again:?} with the one that slept"
    );
    assert_eq!(held, copies_of_held, "of what was on the wire");
    assert!(took <= allowed(GOES_ON_WITHIN * 2), "{took:?}");
}

/// The server has an endless conversation, and messages that become due after it was told to stop.
#[test]
fn a_worker_goes_on_when_the_server_stops_in_order() {
    let runtime = runtime();
    let Some(installation) = Installation::new(&runtime, 2) else { return };
    let nodes = Nodes { running: vec![Mutex::new(Arc::new(installation.start("serve", 0)))] };
    let worker = installation.start("worker", 1);
    wait_for(|| (installation.terms(&runtime).len() == 2).then_some(()));
    let mut accepted = HashMap::new();
    for n in 0..SENT_A_ROUND {
        let to = format!("user-{n}@{}", domain(n));
        let id = nodes.send(&installation.key, 0, None, &to);
        accepted.insert(to, id);
    }
    wait_for_mail(&installation.sink, || installation.arrived().len() == accepted.len());
    let (held, gate) = (0..DOMAINS)
        .find_map(|n| {
            let gate = installation.sink.gate(Stage::Dot);
            let to = format!("held@{}", domain(n));
            accepted.insert(to.clone(), nodes.send(&installation.key, 0, None, &to));
            runtime.block_on(async { tokio::time::timeout(allowed(GOES_ON_WITHIN), gate.reached()).await }).unwrap();
            if installation.node_of(&runtime, &domain(n)) == 0 {
                return Some((to, gate));
            }
            gate.open();
            None
        })
        .expect("the server has some domain");
    let since = Instant::now();
    let due = SystemClock.now() + SOON;
    let held_domain = held.split('@').next_back().unwrap();
    let mut later = Vec::new();
    for n in (0..DOMAINS).filter(|n| domain(*n) != held_domain) {
        let to = format!("later@{}", domain(n));
        let body = json!({"channel": "email", "to": to, "subject": "s", "text": "t", "send_at": due});
        let answer = post(&nodes.node(0), &installation.key, "/v1/messages", &body);
        accepted.insert(to.clone(), answer["message_id"].as_str().unwrap().to_owned());
        later.push(to);
    }
    assert!(since.elapsed() < SOON, "they are due when the server has been told to stop");
    let server =
        Arc::into_inner(nodes.running.into_iter().next().unwrap().into_inner().unwrap()).expect("nobody talks to it");
    let told = Instant::now();
    server.ask_to_stop();
    installation.wait_for_mail_to(&later);
    let took = told.elapsed();
    assert!(!installation.arrived().contains_key(&held), "the server is still at it");
    gate.open();
    assert_eq!(server.ended(), Some(0));
    let stopped = told.elapsed();
    let names: Vec<_> = installation.terms(&runtime).into_keys().collect();
    assert_eq!(names, [host_name(1)], "who stops in order says so");
    let server = installation.start("serve", 0);
    let (copies, marked) = installation.settle(&server, &accepted);
    eprintln!("nodes: the worker was done {took:?} after the server was told to stop, which took {stopped:?}");
    assert_eq!((copies, marked), (0, 0), "nothing was cut off");
    assert!(took <= SOON + allowed(HANDED_OVER_WITHIN), "{took:?}");
    assert_eq!(worker.stop(), Some(0));
}
