//! Remains of a removed workspace: nothing in any table and no file, while another one keeps everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use messaging_conformance::cluster::Database;
use messaging_conformance::put;
use messaging_conformance::sample::{at, id, workspace};
use messaging_core::changes::{Expect, JobWrite, NewJob, Write};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::security::account::{Workspace, WorkspaceEnd};
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{Claim, Jobs as _, Store};
use messaging_core::time::Monotonic;
use messaging_store::{PostgresStore, SqliteOptions, SqliteStore};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::moving::{Filled, moved, path};

/// Tables that keep the id of a removed workspace.
const TOMBSTONES: [&str; 2] = ["ending_workspaces", "workspace_numbers"];
/// Tables that are not filled here: of the installation, of users, or written by the store itself.
const NOT_FILLED: &[&str] = &[
    "automation_note_number",
    "ending_workspaces",
    "factors",
    "health_probe",
    "installation",
    "jobs",
    "lanes",
    "linked_identities",
    "paths",
    "pending_sign_ins",
    "recovery_codes",
    "refinery_schema_history",
    "sign_in_failures",
    "sources",
    "sts_policies",
    "users",
    "workspace_numbers",
    "workspaces",
];
/// Tables with rows that others name, filled before those.
const PARENTS: &[&str] = &[
    "api_keys",
    "automations",
    "automation_nodes",
    "campaigns",
    "event_names",
    "imports",
    "lists",
    "message_contents",
    "segments",
    "tags",
    "webhooks",
];

fn lane(workspace: WorkspaceId, class: JobClass) -> Write {
    let lane = Lane::new(class, workspace, "sms").of_sender("cmp_1");
    Write::Job(JobWrite::Enqueue(NewJob {
        id: id(),
        kind: "deliver_message",
        lane,
        due_at: at(5),
        payload: "{}".into(),
    }))
}

/// Begins the removal of a workspace.
async fn begin(store: &dyn Store, workspace: WorkspaceId) {
    let stored = store.workspace(workspace).await.unwrap().unwrap();
    let end = WorkspaceEnd { deletes_at: at(9), removing_since: Some(at(9)) };
    let ending = Workspace { end: Some(end), ..stored.record };
    put(store, [Write::put(ending, Expect::Revision(stored.revision))]).await;
}

/// Removes all rows, and files through their ports.
async fn remove(store: &dyn Store, workspace: WorkspaceId) {
    for blob in store.blobs().blobs_of(workspace, 100).await.unwrap() {
        store.blobs().remove_blobs(&[(workspace, blob)]).await.unwrap();
    }
    for file in store.uploads().uploads_of(workspace, 100).await.unwrap() {
        store.uploads().remove_upload(file).await.unwrap();
    }
    messaging_conformance::workspace_ends::remove_all(store, workspace).await;
    put(store, [Write::EndWorkspace(workspace)]).await;
}

/// Fills tables of SQLite with rows of a workspace, made up from the names and types of their columns.
struct Fill<'a> {
    connection: &'a Connection,
    workspace: WorkspaceId,
    number: i64,
    next: i64,
}

impl<'a> Fill<'a> {
    fn new(connection: &'a Connection, workspace: WorkspaceId) -> Self {
        let sql = "SELECT number FROM workspace_numbers WHERE workspace = ?1";
        let number = connection.query_row(sql, [workspace.to_bytes()], |row| row.get(0)).unwrap();
        Self { connection, workspace, number, next: number * 1_000_000 }
    }

    /// Adds a row to each table; returns the rows by table.
    fn all(&mut self) -> BTreeMap<String, Vec<Value>> {
        let all = tables(self.connection);
        let mut order: Vec<String> = PARENTS.iter().map(|name| (*name).to_owned()).collect();
        order.extend(all.into_iter().filter(|name| !PARENTS.contains(&name.as_str())));
        order.retain(|name| !NOT_FILLED.contains(&name.as_str()));
        order.into_iter().map(|table| (table.clone(), self.row(&table))).collect()
    }

    fn row(&mut self, table: &str) -> Vec<Value> {
        let sql = "SELECT name, type FROM pragma_table_xinfo(?1) WHERE hidden = 0";
        let mut statement = self.connection.prepare(sql).unwrap();
        let columns = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
        let values: Vec<Value> = columns.iter().map(|(name, kind)| self.value(table, name, kind)).collect();
        let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT OR REPLACE INTO {table} ({}) VALUES ({marks})", names.join(", "));
        self.connection.execute(&sql, params_from_iter(&values)).unwrap_or_else(|error| panic!("{table}: {error}"));
        values
    }

    fn value(&mut self, table: &str, column: &str, kind: &str) -> Value {
        self.next += 1;
        let n = self.next;
        match (table, column, kind) {
            (_, "workspace", _) => Value::Blob(self.workspace.to_bytes().to_vec()),
            (_, "workspace_number", _) => Value::Integer(self.number),
            (_, "contact", "INTEGER") | ("contacts" | "deleted_contacts", "n", _) => Value::Integer((self.number << 40) + n),
            ("contact_texts" | "changed_contact_texts", "block", _) => Value::Integer(((self.number << 40) + n) >> 5),
            (_, "campaign", "INTEGER") => self.of("SELECT max(n) FROM campaigns WHERE workspace = ?1"),
            (_, "automation", "INTEGER") => self.of("SELECT max(n) FROM automations WHERE workspace = ?1"),
            (_, "node", "INTEGER") => self.of(
                "SELECT max(n) FROM automation_nodes WHERE automation = (SELECT max(n) FROM automations WHERE workspace = ?1)",
            ),
            (_, "list", _) => self.numbered("SELECT max(n) FROM lists WHERE workspace_number = ?1"),
            (_, "tag", "INTEGER") => self.numbered("SELECT max(n) FROM tags WHERE workspace_number = ?1"),
            (_, "segment", _) => self.numbered("SELECT max(n) FROM segments WHERE workspace_number = ?1"),
            ("product_events" | "product_event_activity", "name", _) => {
                self.numbered("SELECT max(n) FROM event_names WHERE workspace_number = ?1")
            }
            ("messages", "content", _) => self.of("SELECT max(n) FROM message_contents WHERE workspace = ?1"),
            ("import_errors", "import", _) => self.of("SELECT max(id) FROM imports WHERE workspace = ?1"),
            ("webhook_deliveries", "webhook", _) => self.of("SELECT max(id) FROM webhooks WHERE workspace = ?1"),
            ("replies", "credential", _) | ("api_key_uses" | "api_key_operations", "id", _) => {
                self.of("SELECT max(id) FROM api_keys WHERE workspace = ?1")
            }
            ("tickets" | "quarantined", "doc", _) | ("suspensions", "scope", _) => Value::Text(format!("{{\"workspace_id\":\"{}\"}}", self.workspace)),
            (_, "doc" | "filter" | "interest" | "lanes" | "head", _) => Value::Text(format!("{{\"id\":\"{n}\"}}")),
            // A session of any user, whatever they are a member of.
            ("sessions", "user", _) | (_, _, "BLOB") => Value::Blob(id::<WorkspaceId>().to_bytes().to_vec()),
            (_, _, "INTEGER") => Value::Integer(n),
            _ => Value::Text(format!("text {n} of {}", self.workspace)),
        }
    }

    fn of(&self, sql: &str) -> Value {
        self.connection.query_row(sql, [self.workspace.to_bytes()], |row| row.get(0)).unwrap()
    }

    fn numbered(&self, sql: &str) -> Value {
        self.connection.query_row(sql, [self.number], |row| row.get(0)).unwrap()
    }
}

fn tables(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// All rows of a table, without computed columns.
fn rows(connection: &Connection, table: &str) -> Vec<Vec<Value>> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0";
    let mut statement = connection.prepare(sql).unwrap();
    let names: Vec<String> = statement.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut statement = connection.prepare(&format!("SELECT {} FROM {table}", names.join(", "))).unwrap();
    let read = statement.query_map([], |row| (0..names.len()).map(|column| row.get(column)).collect()).unwrap();
    read.map(Result::unwrap).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The values of a row as texts; bytes also in each form in which they may be read.
fn told(row: &[Value]) -> String {
    let mut text = String::new();
    for value in row {
        let _ = match value {
            Value::Blob(bytes) => write!(text, "{} {} ", hexadecimal(bytes), String::from_utf8_lossy(bytes)),
            other => write!(text, "{other:?} "),
        };
    }
    text
}

fn files(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        found.insert(entry.file_name().to_string_lossy().into_owned());
        found.extend(files(&entry.path()));
    }
    found
}

#[tokio::test]
async fn of_a_removed_workspace_no_row_and_no_file_is_left() {
    let filled = Box::pin(Filled::new()).await;
    let (home, other) = (filled.workspace, workspace());
    put(&filled.store, [Write::put(other.clone(), Expect::Absent)]).await;
    put(&filled.store, [Write::put(messaging_conformance::sample::contact_list(other.id), Expect::Absent)]).await;
    for class in JobClass::ALL {
        put(&filled.store, [lane(home, class), lane(other.id, class)]).await;
    }
    filled.store.close().await;

    let file = path(filled.directory.path());
    let connection = Connection::open(&file).unwrap();
    let made = Fill::new(&connection, home).all();
    let kept = Fill::new(&connection, other.id).all();
    assert!(made.len() > 60 && made.len() == kept.len(), "{}", made.len());
    drop(connection);

    let store = SqliteStore::open(SqliteOptions::new(&file)).unwrap();
    // A lane whose jobs are left alone is parked, and is removed as well.
    let mut claim = Claim::new(at(10), Monotonic::new(Duration::ZERO), Duration::from_mins(1));
    claim.withheld = &["sms"];
    assert_eq!(store.claim(claim).await.unwrap().iter().filter(|job| job.handle.lane.resource() == "sms").count(), 0);
    begin(&store, home).await;
    remove(&store, home).await;
    store.close().await;

    let connection = Connection::open(&file).unwrap();
    let (bytes, text) = (hexadecimal(&home.to_bytes()), home.to_string());
    for table in tables(&connection) {
        let found = rows(&connection, &table);
        if let Some(row) = made.get(&table).filter(|_| table != "sessions") {
            assert!(!found.contains(row), "{table} still has {row:?}");
        }
        if let Some(row) = kept.get(&table) {
            assert!(found.contains(row), "{table} has lost {row:?}");
        }
        if !TOMBSTONES.contains(&table.as_str()) {
            for row in found.iter().map(|row| told(row)) {
                assert!(!row.contains(&bytes) && !row.contains(&text), "{table}: {row}");
                for personal in ["bob@example.org", "soft@example.org", "no@example.org", "acme.example"] {
                    assert!(!row.contains(personal), "{table}: {row}");
                }
            }
        }
    }
    let lanes: Vec<String> = rows(&connection, "lanes").iter().map(|row| told(row)).collect();
    assert!(lanes.iter().any(|lane| lane.contains(&other.id.to_string())), "{lanes:?}");
    let left: Vec<_> = files(filled.directory.path()).into_iter().filter(|name| name.contains(&text)).collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn of_a_removed_workspace_no_row_is_left_on_postgres() {
    let Some(target) = Database::create().await else { return };
    let filled = Box::pin(Filled::new()).await;
    let (home, other) = (filled.workspace, workspace());
    put(&filled.store, [Write::put(other.clone(), Expect::Absent)]).await;
    for class in JobClass::ALL {
        put(&filled.store, [lane(home, class), lane(other.id, class)]).await;
    }
    filled.store.close().await;
    moved(filled.directory.path(), &target).await.unwrap();
    let store = PostgresStore::open(target.options()).await.unwrap();
    begin(&store, home).await;
    remove(&store, home).await;
    store.close().await;

    let (client, connection) = tokio_postgres::connect(&target.url, tokio_postgres::NoTls).await.unwrap();
    let connected = tokio::spawn(connection);
    let sql =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let tables: Vec<String> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(tables.len() > 70, "{}", tables.len());
    let hexadecimal = hexadecimal(&home.to_bytes());
    let (mut jobs, text) = (0, home.to_string());
    for table in tables.iter().filter(|table| !TOMBSTONES.contains(&table.as_str())) {
        let found = client.query(&format!("SELECT row_to_json(t)::text FROM {table} t"), &[]).await.unwrap();
        for row in found.iter().map(|row| row.get::<_, String>(0)) {
            jobs += usize::from(table == "jobs" && row.contains(&other.id.to_string()));
            let plain = row.replace('-', "");
            assert!(!plain.contains(&hexadecimal) && !row.contains(&text), "{table}: {row}");
            for personal in ["bob@example.org", "soft@example.org", "no@example.org", "acme.example"] {
                assert!(!row.contains(personal), "{table}: {row}");
            }
        }
    }
    assert_eq!(jobs, 2);
    drop(client);
    connected.await.unwrap().unwrap();
}
