//! `kill -9` is an ordinary event: nothing accepted is lost, nothing is sent twice unseen.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use messaging_transport::testing::ScriptedSmtpServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, directory, run, wait_for};

const CLIENTS: usize = 4;
/// Accepted messages after which a round is cut off, on average; the exact number differs by round.
const ACCEPTED_A_ROUND: usize = 120;

/// How mail leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through a relay of the workspace.
    Relayed,
    /// Straight to the recipient's mail exchanger, whose place the test's server takes.
    Direct,
}

/// A data directory whose workspace sends to an SMTP server of the test, and a key without limits.
struct Installation {
    data: TempDir,
    key: String,
    way: Way,
    port: u16,
}

impl Installation {
    fn sending_to(port: u16, way: Way) -> Self {
        let data = directory();
        let server = Server::dev(data.path());
        let dev = server.dev_json();
        let workspace = dev["workspace_id"].as_str().unwrap().to_owned();
        let settings = match way {
            Way::Relayed => json!({"provider": "smtp", "config": {"host": "127.0.0.1", "port": port, "tls": "none"}}),
            Way::Direct => json!({"provider": "builtin", "config": {}}),
        };
        let path = format!("/v1/workspaces/{workspace}/channels/email");
        let (status, answer) = server.request("PUT", &path, dev["api_key"].as_str().unwrap(), &settings);
        assert_eq!(status, 200, "{answer}");
        let path = data.path().to_str().unwrap();
        let arguments =
            ["admin", "create-key", "--workspace", &workspace, "--name", "load", "--scopes", "messages:send,pii:read"];
        let ran = run(arguments.into_iter().chain(["--rate-limit", "100000", "--json", "--data", path])).expect(0);
        let key = ran.json()["key"].as_str().unwrap().to_owned();
        server.kill();
        Self { data, key, way, port }
    }

    fn serve(&self) -> Server {
        let exchanger = format!("127.0.0.1:{}", self.port);
        let more = match self.way {
            Way::Relayed => &[][..],
            Way::Direct => &["--mx-override", &exchanger],
        };
        Server::start("serve", self.data.path(), more)
    }
}

fn message(n: usize) -> Value {
    json!({"channel": "email", "to": format!("user-{n}@example.test"), "subject": "s", "text": format!("number {n}")})
}

/// Posts from several clients until `wanted` messages are accepted, then kills the server in mid-work.
/// Answers the ids of what was accepted.
fn load_and_kill(installation: &Installation, server: Server, round: usize, wanted: usize) -> HashSet<String> {
    let accepted = Mutex::new(HashSet::new());
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(round * 1_000_000);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    // The server may die at any moment: no answer is no promise.
                    let Some((status, answer)) =
                        server.try_request("/v1/messages", &installation.key, &[], &message(n))
                    else {
                        continue;
                    };
                    assert_eq!(status, 202, "{answer}");
                    accepted.lock().unwrap().insert(answer["message_id"].as_str().unwrap().to_owned());
                }
            });
        }
        wait_for(|| (accepted.lock().unwrap().len() >= wanted).then_some(()));
        server.kill_in_place();
        stop.store(true, Ordering::Relaxed);
    });
    accepted.into_inner().unwrap()
}

/// How often each message arrived, by its id.
fn arrivals(sink: &ScriptedSmtpServer) -> HashMap<String, usize> {
    let mut count = HashMap::new();
    for received in sink.messages() {
        let content = String::from_utf8(received.content).unwrap();
        let header = content.lines().find_map(|line| line.strip_prefix("Message-ID: <")).expect("every mail has one");
        let id = header.split('@').next().unwrap().to_owned();
        *count.entry(id).or_default() += 1;
    }
    count
}

#[test]
fn every_202_is_relayed_after_a_kill_and_every_duplicate_is_marked() {
    kill_again_and_again(Way::Relayed, 5, "sent");
}

#[test]
fn every_202_is_delivered_after_a_kill_and_every_duplicate_is_marked() {
    kill_again_and_again(Way::Direct, 10, "delivered");
}

fn kill_again_and_again(way: Way, rounds: usize, end: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let installation = Installation::sending_to(sink.port(), way);
    let mut accepted = HashSet::new();
    for round in 1..=rounds {
        let wanted = ACCEPTED_A_ROUND / 2 + round * ACCEPTED_A_ROUND / rounds;
        accepted.extend(load_and_kill(&installation, installation.serve(), round, wanted));
    }

    let server = installation.serve();
    let key = &installation.key;
    for id in &accepted {
        let path = format!("/v1/messages/{id}");
        wait_for(|| (server.request("GET", &path, key, &Value::Null).1["status"] == end).then_some(()));
    }
    let arrivals = arrivals(&sink);
    let lost: Vec<_> = accepted.iter().filter(|id| !arrivals.contains_key(*id)).collect();
    assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), accepted.len());
    for (id, count) in arrivals.iter().filter(|(_, count)| **count > 1) {
        let (_, report) = server.request("GET", &format!("/v1/messages/{id}"), key, &Value::Null);
        let marked = report["events"].as_array().unwrap().iter().any(|event| event["meta"]["ambiguous"] == true);
        assert!(marked, "{id} arrived {count} times without a mark: {report}");
        assert!(*count <= rounds, "{id} arrived {count} times");
    }
}

#[test]
fn a_key_that_was_used_before_a_kill_still_makes_one_message() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let installation = Installation::sending_to(sink.port(), Way::Relayed);
    let ids = Mutex::new(HashSet::new());
    let hundred_requests = |server: &Server| {
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    let headers = [("Idempotency-Key", "the-same")];
                    match server.try_request("/v1/messages", &installation.key, &headers, &message(1)) {
                        Some((202, answer)) => {
                            ids.lock().unwrap().insert(answer["message_id"].as_str().unwrap().to_owned());
                        }
                        Some((409, answer)) => assert_eq!(answer["error"]["code"], "idempotency_in_progress"),
                        other => panic!("{other:?}"),
                    }
                });
            }
        });
    };
    let server = installation.serve();
    hundred_requests(&server);
    assert_eq!(ids.lock().unwrap().len(), 1);
    server.kill();

    let server = installation.serve();
    hundred_requests(&server);
    let ids = ids.into_inner().unwrap();
    assert_eq!(ids.len(), 1);
    let path = format!("/v1/messages/{}", ids.iter().next().unwrap());
    wait_for(|| (server.request("GET", &path, &installation.key, &Value::Null).1["status"] == "sent").then_some(()));
    let (_, page) = server.request("GET", "/v1/messages", &installation.key, &Value::Null);
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
}
