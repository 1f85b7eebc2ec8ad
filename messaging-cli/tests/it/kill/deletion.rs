//! Workspaces that are removed while programs are killed: nothing of them is left in the end, and others are untouched.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::rounds;
use crate::support::{Server, directory, program, run, wait_for};

/// The domain of everybody in workspaces that are removed, and in no other.
const GONE: &str = "gone.example";
/// Contacts of a workspace, in requests of `BULK`.
const CONTACTS: usize = 3000;
const BULK: usize = 500;
/// Messages of a workspace, in requests of `BATCH`.
const MESSAGES: usize = 400;
const BATCH: usize = 100;
/// Milliseconds after its start within which a program is killed; starting takes a part of them.
const KILLED_WITHIN: u64 = 700;

/// A workspace with a key to it.
struct Tenant {
    id: String,
    key: String,
}

/// Flags that name a database.
struct DatabaseFlags {
    data: TempDir,
    more: Vec<String>,
}

impl DatabaseFlags {
    fn flags(&self) -> Vec<&str> {
        let data = ["--data", self.data.path().to_str().unwrap()];
        data.into_iter().chain(self.more.iter().map(String::as_str)).collect()
    }

    fn admin(&self, words: &[&str]) -> Value {
        let line = ["admin"].iter().chain(words).copied().chain(["--json"]).chain(self.flags());
        run(line).expect(0).json()
    }

    fn start(&self, command: &str, more: &[&str]) -> Server {
        let all: Vec<_> = self.more.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Server::start(command, self.data.path(), &all)
    }

    /// A workspace full of people of a domain.
    fn tenant(&self, server: &Server, name: &str, domain: &str) -> Tenant {
        let id = self.admin(&["create-workspace", "--name", name, "--owner", "admin@localhost"]);
        let id = id["id"].as_str().unwrap().to_owned();
        let words = ["create-key", "--workspace", &id, "--name", "load", "--scopes", "*", "--rate-limit", "100000"];
        let key = self.admin(&words)["key"].as_str().unwrap().to_owned();
        let tenant = Tenant { id, key };
        let contacts = format!("/v1/workspaces/{}/contacts/bulk", tenant.id);
        for first in (0..CONTACTS).step_by(BULK) {
            let people: Vec<_> =
                (first..first + BULK).map(|n| json!({"email": format!("c{n}@{domain}"), "tags": ["t"]})).collect();
            assert_eq!(tenant.post(server, &contacts, &json!({"contacts": people})).0, 200);
        }
        let channel = format!("/v1/workspaces/{}/channels/sms", tenant.id);
        assert_eq!(server.request("PUT", &channel, &tenant.key, &json!({"provider": "sandbox", "config": {}})).0, 200);
        for first in (0..MESSAGES).step_by(BATCH) {
            let text =
                |n: usize| json!({"channel": "sms", "to": format!("+4790{n:06}"), "text": format!("for {domain}")});
            let messages: Vec<_> = (first..first + BATCH).map(text).collect();
            let (status, answer) = tenant.post(server, "/v1/messages/batch", &json!({"messages": messages}));
            assert_eq!((status, &answer["failed"]), (202, &json!(0)), "{answer}");
        }
        tenant
    }
}

impl Tenant {
    fn post(&self, server: &Server, path: &str, body: &Value) -> (u16, Value) {
        server.request("POST", path, &self.key, body)
    }

    /// Everything that listings of the API show of the workspace.
    fn shown(&self, server: &Server) -> Vec<Value> {
        let contacts = format!("/v1/workspaces/{}/contacts?limit=200", self.id);
        let events = format!("/v1/workspaces/{}/channels", self.id);
        [contacts.as_str(), "/v1/messages?limit=200", events.as_str()]
            .map(|path| {
                let (status, answer) = server.request("GET", path, &self.key, &Value::Null);
                assert_eq!(status, 200, "{answer}");
                answer["data"].clone()
            })
            .to_vec()
    }
}

/// Something else each time.
fn random() -> u64 {
    RandomState::new().build_hasher().finish() % 1_000_000
}

/// Waits for a random time until a program is killed.
fn let_a_moment_pass() {
    thread::sleep(Duration::from_millis(100 + random() % KILLED_WITHIN));
}

/// All rows of all tables of a SQLite database, with their table.
fn rows(file: &Path) -> Vec<(String, String)> {
    let connection = Connection::open(file).unwrap();
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let mut text = String::new();
            for column in 0..columns {
                let _ = match row.get(column).unwrap() {
                    Cell::Blob(bytes) => write!(text, "{} ", String::from_utf8_lossy(&bytes)),
                    cell => write!(text, "{cell:?} "),
                };
            }
            all.push((table.clone(), text));
        }
    }
    all
}

#[test]
fn a_removal_on_sqlite_is_finished_whatever_is_killed() {
    let target = DatabaseFlags { data: directory(), more: Vec::new() };
    let server = target.start("dev", &[]);
    let kept = target.tenant(&server, "Kept", "kept.example");
    wait_for(|| (kept.shown(&server)[1][0]["status"] == "delivered").then_some(()));
    let mut doomed = target.tenant(&server, "Gone", GONE);
    let all_done = || kept.shown(&server)[1].as_array().unwrap().iter().all(|message| message["status"] == "delivered");
    wait_for(|| all_done().then_some(()));
    let before = kept.shown(&server);
    server.kill();

    let (mut killed, mut removed) = (0, Vec::new());
    for round in 0..10 * rounds() {
        // On a quick machine a program may have ended before it is killed.
        if round >= rounds() && killed > 0 {
            break;
        }
        let flags = target.flags();
        let mut child =
            program().args(["admin", "delete-workspace", "--id", &doomed.id, "--now"]).args(&flags).spawn().unwrap();
        let_a_moment_pass();
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        let ended = child.wait().unwrap();
        if round % 3 == 2 {
            // A server continues the deletion, and is killed as well.
            let server = target.start("serve", &[]);
            let_a_moment_pass();
            server.kill();
        }
        // One that was killed right after its last commit leaves nothing to be found by the next.
        if ended.code().is_some() {
            removed.push(doomed.id.clone());
            let server = target.start("dev", &[]);
            doomed = target.tenant(&server, "Gone again", GONE);
            server.kill();
        }
    }
    let ended = run(["admin", "delete-workspace", "--id", &doomed.id, "--now"].into_iter().chain(target.flags()));
    assert!(ended.code == Some(0) || ended.stderr.contains("not_found"), "{ended:?}");
    removed.push(doomed.id.clone());
    eprintln!("removal: {killed} programs killed, {} workspaces removed", removed.len());
    assert!(killed > 0);

    let server = target.start("dev", &[]);
    assert_eq!(kept.shown(&server), before);
    assert_eq!(server.stop(), Some(0));
    let verified = run(["admin", "verify"].into_iter().chain(target.flags())).expect(0);
    assert!(verified.stdout.contains("as they should be"), "{verified:?}");
    for (table, row) in rows(&target.data.path().join("messaging.db")) {
        assert!(!row.contains(GONE), "{table}: {row}");
        // The audit log of the installation, whose workspace is nil, keeps which workspaces there were.
        let is_of_installation = table == "audit_log" && row.starts_with(&"\0".repeat(16));
        for id in removed.iter().filter(|_| !is_of_installation) {
            assert!(!row.contains(id.as_str()), "{table}: {row}");
        }
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_removal_on_postgres_is_finished_whatever_node_is_killed() {
    let runtime = super::runtime();
    let Some(database) = runtime.block_on(messaging_conformance::cluster::Database::create()) else { return };
    let shared = directory();
    let key = shared.path().join("secret.key").to_str().unwrap().to_owned();
    let more = ["--database", &database.url, "--secret-key-file", &key, "--public-url", "http://links.nodes.test"];
    let more: Vec<String> = more.map(ToOwned::to_owned).to_vec();
    let target = DatabaseFlags { data: directory(), more: more[..4].to_vec() };
    let nodes = [directory(), directory()];
    let start =
        |node: usize| Server::start("serve", nodes[node].path(), &more.iter().map(String::as_str).collect::<Vec<_>>());
    let server = Server::start("dev", target.data.path(), &more.iter().map(String::as_str).collect::<Vec<_>>());
    let (kept, doomed) = (target.tenant(&server, "Kept", "kept.example"), target.tenant(&server, "Gone", GONE));
    let all_done = || kept.shown(&server)[1].as_array().unwrap().iter().all(|message| message["status"] == "delivered");
    wait_for(|| all_done().then_some(()));
    let before = kept.shown(&server);
    server.kill();

    let mut running = [Some(start(0)), Some(start(1))];
    let words = ["admin", "delete-workspace", "--id", &doomed.id, "--now"];
    let mut waiting = program().args(words).args(target.flags()).spawn().unwrap();
    for round in 0..rounds() {
        let_a_moment_pass();
        running[round % 2].take().unwrap().kill();
        running[round % 2] = Some(start(round % 2));
    }
    assert!(wait_for(|| waiting.try_wait().unwrap()).success());
    let server = running[0].as_ref().unwrap();
    assert_eq!(kept.shown(server), before);
    assert_eq!(server.request("GET", "/v1/messages", &doomed.key, &Value::Null).0, 401);
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
        let connected = tokio::spawn(connection);
        let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
        for table in client.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)) {
            let found = client.query(&format!("SELECT row_to_json(t)::text FROM {table} t"), &[]).await.unwrap();
            for row in found.iter().map(|row| row.get::<_, String>(0)) {
                assert!(!row.contains(GONE), "{table}: {row}");
                // The audit log of the installation, whose workspace is nil, keeps which workspaces there were.
                let is_of_installation =
                    table == "audit_log" && row.contains("\"workspace\":\"00000000-0000-0000-0000-000000000000\"");
                assert!(is_of_installation || !row.contains(&doomed.id), "{table}: {row}");
            }
        }
        drop(client);
        connected.await.unwrap().unwrap();
    });
}
