//! A change and its row in the audit log are one commit: after kills in the middle of changes there is neither a change
//! without its row nor a row without its change, and the chain of rows is complete.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::{Installation, load_until, put, rounds};
use crate::support::{Server, run};

/// Changes that are answered before a round is cut off.
const ANSWERED_A_ROUND: usize = 90;

/// A kind of resource, whose changes are recorded.
struct Kind {
    name: &'static str,
    path: &'static str,
    /// Operations that create, change and delete one.
    operations: [&'static str; 3],
}

const KINDS: [Kind; 3] = [
    Kind { name: "list", path: "lists", operations: ["createList", "updateList", "deleteList"] },
    Kind { name: "template", path: "templates", operations: ["createTemplate", "updateTemplate", "deleteTemplate"] },
    // A key is not changed, and stays listed when it has ended.
    Kind { name: "api_key", path: "api-keys", operations: ["createApiKey", "", "deleteApiKey"] },
];

impl Kind {
    fn body(&self, text: &str) -> Value {
        match self.name {
            "list" => json!({"name": text}),
            "template" => json!({"name": text, "channel": "email", "subject": "s", "text": "Hello"}),
            _ => json!({"name": text, "scopes": ["contacts:read"]}),
        }
    }
}

/// Names of the resources that the test has made, by kind and id.
type States = HashMap<(&'static str, String), String>;

/// Names that the test gives begin so.
const OURS: &str = "killed-";

/// Creates a resource, changes every second and deletes every third; remembers the successful answers.
fn change(server: &Server, base: &str, keys: [&str; 2], n: usize, answered: &Mutex<HashSet<(String, String)>>) {
    let kind = &KINDS[n % KINDS.len()];
    let key = keys[usize::from(kind.name == "api_key")];
    let place = format!("{base}/{}", kind.path);
    let call = |method: &str, path: &str, body: &Value| {
        let (status, answer) = server.try_any(method, path, key, body)?;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        Some(answer)
    };
    let Some(made) = call("POST", &place, &kind.body(&format!("{OURS}{n}"))) else { return };
    let id = made["id"].as_str().unwrap().to_owned();
    put(answered, (id.clone(), kind.operations[0].to_owned()));
    let one = format!("{place}/{id}");
    if n.is_multiple_of(2) && !kind.operations[1].is_empty() {
        let Some(_) = call("PATCH", &one, &kind.body(&format!("{OURS}{n}-changed"))) else { return };
        put(answered, (id.clone(), kind.operations[1].to_owned()));
    }
    if n % 9 < 3 && call("DELETE", &one, &Value::Null).is_some() {
        put(answered, (id, kind.operations[2].to_owned()));
    }
}

/// All items of a listing, newest first.
fn all(server: &Server, key: &str, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.request("GET", &format!("{path}?limit=200{cursor}"), key, &Value::Null);
        assert_eq!(status, 200, "{page}");
        items.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

/// The states that there are.
fn shown(server: &Server, base: &str, keys: [&str; 2]) -> States {
    let mut states = States::new();
    for kind in &KINDS {
        let key = keys[usize::from(kind.name == "api_key")];
        for one in all(server, key, &format!("{base}/{}", kind.path)) {
            let text = one["name"].as_str().unwrap_or_default();
            if text.starts_with(OURS) && one["revoked_at"].is_null() {
                states.insert((kind.name, one["id"].as_str().unwrap().to_owned()), text.to_owned());
            }
        }
    }
    states
}

/// The states that follow from the rows, and the changes that these tell of.
fn told(rows: &[Value]) -> (States, HashSet<(String, String)>) {
    let (mut states, mut changes) = (States::new(), HashSet::new());
    for row in rows.iter().rev() {
        let operation = row["operation"].as_str().unwrap();
        let Some(kind) = KINDS.iter().find(|kind| kind.operations.contains(&operation)) else { continue };
        let value = |side: &str| {
            let found = row["changes"].as_array().unwrap().iter().find(|change| change["pointer"] == "/name");
            found.and_then(|change| change[side].as_str()).map(ToOwned::to_owned)
        };
        let id = row["resource"]["id"].as_str().unwrap().to_owned();
        let place = (kind.name, id.clone());
        let (before, after) = (value("before"), value("after"));
        if !before.iter().chain(&after).any(|text| text.starts_with(OURS)) {
            continue;
        }
        assert_eq!(states.get(&place), before.as_ref(), "a row follows from the one before it: {row}");
        match after {
            Some(text) => states.insert(place, text),
            None => states.remove(&place),
        };
        assert!(changes.insert((id, operation.to_owned())), "told twice: {row}");
    }
    (states, changes)
}

#[test]
fn a_change_and_its_row_are_there_or_neither_is() {
    let mut token = String::new();
    let installation = Installation::new(Vec::new(), |server, _, _| {
        let dev = server.dev_json();
        let body = json!({"email": dev["console_email"], "password": dev["console_password"]});
        let (status, session) = server.request("POST", "/v1/auth/login", "", &body);
        assert_eq!(status, 200, "{session}");
        session["token"].as_str().unwrap().clone_into(&mut token);
    });
    let base = format!("/v1/workspaces/{}", installation.workspace);
    let keys = [installation.key.as_str(), token.as_str()];
    let (answered, rounds) = (Mutex::new(HashSet::new()), rounds());
    for round in 0..rounds {
        let server = installation.serve();
        let wanted = answered.lock().unwrap().len() + ANSWERED_A_ROUND;
        let is_enough = || answered.lock().unwrap().len() >= wanted;
        let first = round << 20;
        load_until(is_enough, || server.kill_in_place(), |n| change(&server, &base, keys, first + n, &answered));
    }
    let server = installation.serve();
    let rows = all(&server, &token, &format!("{base}/audit"));
    let (states, changes) = told(&rows);
    assert_eq!(states, shown(&server, &base, keys), "what the rows tell of is what there is");
    let answered = answered.into_inner().unwrap();
    let missing: Vec<_> = answered.difference(&changes).collect();
    assert!(missing.is_empty(), "answered, and not told: {missing:?}");
    assert_eq!(server.stop(), Some(0));
    let data = installation.data.path().to_str().unwrap();
    let verified = run(["admin", "verify", "--json", "--data", data]).expect(0).json();
    assert_eq!(verified["differences"], json!([]));
    let unanswered = changes.len() - answered.len();
    eprintln!("audit: {} changes, {rounds} kills, {unanswered} done without an answer", changes.len());
}
