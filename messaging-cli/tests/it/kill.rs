//! `kill -9` is an ordinary event: no accepted message is lost, and none is sent twice without a mark.
//!
//! Every scenario kills the server repeatedly in the middle of its work, lets the last server finish and then counts.
//! The suite kills a few times; a release is tested with `KILL_ROUNDS=40 cargo test -p messaging-cli --test it kill::`.

mod audit;
mod automation;
mod bulk;
mod campaign;
mod copies;
mod deletion;
mod imports;
mod key_rotation;
mod keys;
mod leaving;
mod mail;
#[cfg(feature = "postgres")]
mod nodes;
mod submission;
mod texts;
mod webhooks;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use messaging_testing::ScriptedSmtpServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, directory, run, wait_for};

/// Clients that send requests at the same time.
const CLIENTS: usize = 4;

/// Kills in a scenario, unless `KILL_ROUNDS` says otherwise.
const ROUNDS: usize = 3;

/// Items of a page, and so the size of a request when everything is listed.
const PAGE: usize = 200;

/// Time without mail after which a test fails. A message that kills cut off twice is tried again within it, and a
/// deferred one after a minute.
const SILENCE: Duration = Duration::from_mins(2);

/// Number of kills in each scenario.
fn rounds() -> usize {
    std::env::var("KILL_ROUNDS").map_or(ROUNDS, |text| text.parse().expect("KILL_ROUNDS is a number"))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A data directory with a workspace, and a key to it without a rate limit.
struct Installation {
    data: TempDir,
    workspace: String,
    key: String,
    /// Settings of its server.
    settings: Vec<String>,
}

impl Installation {
    /// Prepares a directory with `dev`; `prepare` may use its server before it is killed.
    fn new(settings: Vec<String>, prepare: impl FnOnce(&Server, &str, &str)) -> Self {
        let data = directory();
        let more: Vec<_> = settings.iter().map(String::as_str).collect();
        let server = Server::start("dev", data.path(), &more);
        let workspace = server.dev_json()["workspace_id"].as_str().unwrap().to_owned();
        let path = data.path().to_str().unwrap();
        let words = ["admin", "create-key", "--workspace", &workspace, "--name", "load", "--scopes", "*"];
        let limit = ["--rate-limit", "100000", "--json", "--data", path];
        let key = run(words.into_iter().chain(limit)).expect(0).json()["key"].as_str().unwrap().to_owned();
        prepare(&server, &workspace, &key);
        server.kill();
        Self { data, workspace, key, settings }
    }

    /// An installation whose mail goes to a server of the test.
    fn delivering(sink: &ScriptedSmtpServer, prepare: impl FnOnce(&Server, &str, &str)) -> Self {
        let settings = vec!["--mx-override".to_owned(), sink.address().to_string()];
        Self::new(settings, |server, workspace, key| {
            let channel = format!("/v1/workspaces/{workspace}/channels/email");
            let body = json!({"provider": "builtin", "config": {}});
            assert_eq!(server.request("PUT", &channel, key, &body).0, 200);
            prepare(server, workspace, key);
        })
    }

    fn serve(&self) -> Server {
        let more: Vec<_> = self.settings.iter().map(String::as_str).collect();
        Server::start("serve", self.data.path(), &more)
    }

    fn get(&self, server: &Server, path: &str) -> Value {
        let (status, answer) = server.request("GET", path, &self.key, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The ids of the messages of a listing with the status `end`.
    fn done(&self, server: &Server, path: &str, end: &str) -> HashSet<String> {
        let messages = self.all(server, path);
        let done = messages.iter().filter(|message| message["status"] == end);
        done.map(|message| message["message_id"].as_str().unwrap().to_owned()).collect()
    }

    /// Checks that each message arrived once and is delivered, or is marked as ambiguous. Returns the number of marked
    /// ones.
    fn marked(&self, server: &Server, messages: &[Value], arrived: &HashMap<String, usize>) -> usize {
        let ids = messages.iter().filter_map(|message| {
            let id = message["message_id"].as_str().unwrap();
            let got = arrived.get(id).copied().unwrap_or_default();
            (got != 1 || message["status"] != "delivered").then_some((id, got))
        });
        let mut marked = 0;
        for (id, got) in ids {
            let report = self.get(server, &format!("/v1/messages/{id}"));
            assert!(is_marked(&report), "{got} copies without a mark: {report}");
            marked += 1;
        }
        marked
    }

    /// All items of a listing.
    fn all(&self, server: &Server, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        let and = if path.contains('?') { '&' } else { '?' };
        loop {
            let mut page = self.get(server, &format!("{path}{and}limit={PAGE}{cursor}"));
            let Value::Array(more) = page["data"].take() else { panic!("no page: {page}") };
            items.extend(more);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }
}

/// Calls `send` with 0, 1, 2, … from several threads until `is_enough`, and `kill` in the middle of their calls.
fn load_until(is_enough: impl Fn() -> bool, kill: impl FnOnce(), send: impl Fn(usize) + Sync) {
    let (stop, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        // Also if the code below panics: the scope waits for its threads.
        let _ending = Ending(&stop);
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    send(next.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
        wait_for(|| is_enough().then_some(()));
        kill();
    });
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns true if the report of a message says that an attempt may have arrived.
fn is_marked(report: &Value) -> bool {
    report["events"].as_array().unwrap().iter().any(|event| event["meta"]["ambiguous"] == true)
}

/// Adds an item to a set that several threads fill.
fn put<T: Eq + Hash>(set: &Mutex<HashSet<T>>, item: T) {
    set.lock().unwrap().insert(item);
}

/// Number of times that each item occurs.
fn count<T: Eq + Hash>(items: impl IntoIterator<Item = T>) -> HashMap<T, usize> {
    let mut count = HashMap::new();
    for item in items {
        *count.entry(item).or_default() += 1;
    }
    count
}

/// Posts a request, which must be accepted.
fn post(server: &Server, key: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = server.request("POST", path, key, body);
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    answer
}

/// Waits while mail arrives, until `is_over`; fails after some time without any.
fn wait_for_mail(sink: &ScriptedSmtpServer, is_over: impl Fn() -> bool) {
    let (mut known, mut since) = (0, Instant::now());
    while !is_over() {
        let arrived = sink.messages().len();
        if arrived > known {
            (known, since) = (arrived, Instant::now());
        }
        assert!(since.elapsed() < SILENCE, "{arrived} arrived, and nothing more for {SILENCE:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
