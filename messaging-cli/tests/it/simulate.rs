//! `automation simulate`: automations as files, tried out without a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use messaging_core::ports::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::support::{Ran, Server, directory, run};

/// The examples that the documentation names.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/automations")
}

/// A folder with an automation that waits for an event, two contacts and events.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(directory());
        let graph = json!({"nodes": [
            {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": "bought"},
                "timeout": {"value": 1, "unit": "days"}}},
            {"id": "s", "kind": "send", "config": {"template_id": "tpl_01K0EXAMPYE0000000000CART1"}},
            {"id": "l", "kind": "add_to_list", "config": {"list_id": "lst_01K0EXAMPYE000000000NEWS01"}},
            {"id": "p", "kind": "split", "config": {"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}}],
            "edges": [{"from": "w", "to": "s", "branch": "timeout"}, {"from": "s", "to": "l"}, {"from": "l", "to": "p"}]});
        folder.write(
            "cart.json",
            &json!({"name": "Cart", "trigger": {"kind": "event", "config": {"name": "cart"}}, "graph": graph})
                .to_string(),
        );
        folder.write(
            "ann.json",
            r#"{"external_id": "ann", "email": "ann@example.com", "consent": {"marketing_email": true}}"#,
        );
        folder.write(
            "bob.json",
            r#"{"external_id": "bob", "email": "bob@example.com", "consent": {"marketing_email": true}}"#,
        );
        folder.write(
            "events.jsonl",
            "{\"name\": \"cart\", \"occurred_at\": \"2026-03-01T10:00:00Z\"}\n\n\
             {\"name\": \"bought\", \"occurred_at\": \"2026-03-01T12:00:00Z\", \"contact\": {\"external_id\": \"bob\"}}\n",
        );
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    /// Simulates with some contacts, and more arguments.
    fn simulate(&self, contacts: &[&str], more: &[&str]) -> Ran {
        let (file, events) = (self.path("cart.json"), self.path("events.jsonl"));
        let contacts: Vec<_> = contacts.iter().map(|name| self.path(name)).collect();
        let mut line = vec!["automation", "simulate", &file, "--contact"];
        line.extend(contacts.iter().map(String::as_str));
        line.extend(["--events", &events, "--at", "2026-03-01T00:00:00Z", "--until", "2026-03-08T00:00:00Z"]);
        line.extend(more);
        run(line)
    }
}

fn outcomes(answer: &Value) -> String {
    let step = |step: &Value| {
        let parts = ["outcome", "node_id", "branch"].map(|part| step[part].as_str());
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    answer["steps"].as_array().unwrap().iter().map(step).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_examples_do_what_their_snapshots_say() {
    let program = Path::new(env!("CARGO_BIN_EXE_messaging")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let check = examples().join("check.sh");
    let mut command = Command::new("sh");
    command.arg(check).env("PATH", path);
    if std::env::var_os("UPDATE").is_some() {
        command.arg("--update");
    }
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // Each automation has its snapshot, and something happens in it.
    for automation in fs::read_dir(examples().join("automations")).unwrap() {
        let name = automation.unwrap().path().with_extension("json");
        let snapshot = examples().join("snapshots").join(name.file_name().unwrap());
        let kept: Value = serde_json::from_str(&fs::read_to_string(&snapshot).unwrap()).unwrap();
        let steps = kept["contacts"].as_array().unwrap().iter().map(|one| one["steps"].as_array().unwrap().len());
        assert!(steps.sum::<usize>() > 3, "{}", snapshot.display());
    }
}

/// `--update` writes the stored snapshot unchanged, whatever features the build has.
#[test]
fn an_update_of_unchanged_behaviour_changes_nothing() {
    let kept = directory();
    let copied = Command::new("cp").arg("-r").arg(examples()).arg(kept.path()).status().unwrap();
    assert!(copied.success());
    let program = Path::new(env!("CARGO_BIN_EXE_messaging")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let check = kept.path().join("automations/check.sh");
    assert!(Command::new("sh").arg(check).arg("--update").env("PATH", path).status().unwrap().success());
    for snapshot in fs::read_dir(examples().join("snapshots")).unwrap() {
        let snapshot = snapshot.unwrap();
        let written = kept.path().join("automations/snapshots").join(snapshot.file_name());
        assert!(fs::read(snapshot.path()).unwrap() == fs::read(&written).unwrap(), "{}", written.display());
    }
}

#[test]
fn one_contact_and_several_are_told_of_in_json() {
    let folder = Folder::new();
    let one = folder.simulate(&["ann.json"], &["--json"]).expect(0).json();
    let told = outcomes(&one);
    assert!(told.starts_with("entered, waiting w, continued w timeout, sent s, changed l, branched p "), "{told}");
    assert_eq!(one["ended"]["status"], "completed");
    let both = folder.simulate(&["bob.json", "ann.json"], &["--json"]).expect(0).json();
    let contacts = both["contacts"].as_array().unwrap();
    assert_eq!(contacts[0]["external_id"], "bob");
    assert_eq!(outcomes(&contacts[0]), "entered, waiting w, continued w event, completed w");
    // The random values of one contact do not depend on the others.
    assert_eq!((&contacts[1]["steps"], &contacts[1]["ended"]), (&one["steps"], &one["ended"]));
    let shown = folder.simulate(&["ann.json"], &[]).expect(0);
    assert!(shown.stdout.contains("2026-03-02T10:00:00.000Z") && shown.stdout.contains("sent"), "{shown:?}");
}

#[test]
fn a_snapshot_that_is_missing_or_different_fails() {
    let folder = Folder::new();
    let snapshot = folder.path("cart.snapshot.json");
    let compare = |more: &[&str]| {
        let mut line = vec!["--json", "--snapshot", snapshot.as_str()];
        line.extend(more);
        folder.simulate(&["ann.json"], &line)
    };
    let missing = compare(&[]).expect(1);
    assert!(missing.stderr.contains("--update") && missing.json()["steps"].is_array(), "{missing:?}");
    compare(&["--update"]).expect(0);
    let kept = fs::read_to_string(&snapshot).unwrap();
    assert!(kept.ends_with("}\n") && kept.lines().count() > 20, "{kept}");
    compare(&[]).expect(0);
    fs::write(&snapshot, kept.replace("timeout", "event")).unwrap();
    let different = compare(&[]).expect(1);
    assert!(different.stderr.contains("-       \"branch\": \"event\""), "{different:?}");
    assert!(different.stderr.contains("+       \"branch\": \"timeout\""), "{different:?}");
    compare(&["--update"]).expect(0);
    assert_eq!(fs::read_to_string(&snapshot).unwrap(), kept);
}

#[test]
fn what_cannot_be_simulated_is_told_with_its_file() {
    let folder = Folder::new();
    folder.write("mail.json", r#"{"email": "no"}"#);
    let refused = folder.simulate(&["ann.json", "mail.json"], &["--json"]).expect(1);
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/contact/email");
    assert!(refused.stderr.contains("mail.json"), "{refused:?}");
    folder.write("events.jsonl", "{\"name\": \"cart\"}\n{\"message\": \"open\", \"node_id\": \"x\"}\n");
    let refused = folder.simulate(&["ann.json"], &["--json"]).expect(1);
    assert!(refused.stderr.contains("events.jsonl line 2"), "{refused:?}");
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/at");
    folder.write("events.jsonl", "[]\n");
    folder.simulate(&["ann.json"], &[]).expect(2);
    folder.write("events.jsonl", "");
    folder.write("cart.json", r#"{"name": "Cart", "trigger": {"kind": "event", "config": {}}, "graph": {}}"#);
    let refused = folder.simulate(&["ann.json"], &["--json"]).expect(1);
    assert_eq!(refused.json()["error"]["code"], "automation_invalid");
    assert!(refused.stderr.contains("cart.json"), "{refused:?}");
    folder.write("cart.json", "{");
    folder.simulate(&["ann.json"], &[]).expect(2);
}

#[test]
fn templates_of_a_folder_are_those_of_the_automation() {
    let folder = Folder::new();
    let template = folder.0.path().join("templates/tpl_01K0EXAMPYE0000000000CART1");
    fs::create_dir_all(&template).unwrap();
    fs::write(template.join("template.toml"), "name = \"Cart\"\nsubject = \"Hi\"\nfrom_email = \"a@shop.example\"\n")
        .unwrap();
    fs::write(template.join("template.txt"), "{{ contact.attributes.total | number(99) }} {{ unsubscribe_url }}")
        .unwrap();
    let templates = folder.path("templates");
    let with = || folder.simulate(&["ann.json"], &["--json", "--templates", &templates]);
    let failed = with();
    // Broken in different ways: refused, or the run fails at the node.
    if failed.code == Some(0) {
        assert!(outcomes(&failed.json()).contains("failed s"), "{failed:?}");
    } else {
        assert!(failed.expect(1).stderr.contains("tpl_01K0EXAMPYE0000000000CART1"));
    }
    fs::write(template.join("template.txt"), "Hello {{ unsubscribe_url }}").unwrap();
    assert!(outcomes(&with().expect(0).json()).contains("sent s"));
}

#[test]
fn the_past_of_a_workspace_goes_through_an_automation() {
    let (folder, data) = (Folder::new(), directory());
    let server = Server::dev(data.path());
    let send = |path: &[&str], body: &Value| {
        folder.write("body.json", &body.to_string());
        let file = folder.path("body.json");
        let mut line = path.to_vec();
        line.extend(["--json", "--json-body", &file]);
        server.command(&line).expect(0);
    };
    let ago = |hours: u64| SystemClock.now() - Duration::from_secs(hours * 3600);
    for name in ["ann", "bob"] {
        let email = format!("{name}@example.com");
        send(
            &["contact", "upsert"],
            &json!({"external_id": name, "email": email, "consent": {"marketing_email": name == "ann"}}),
        );
        let event =
            |event: &str, hours| json!({"name": event, "contact": {"external_id": name}, "occurred_at": ago(hours)});
        send(&["event", "send"], &event("cart", 72));
        send(&["event", "send"], &event("cart", 24 * 100));
    }
    send(&["event", "send"], &json!({"name": "bought", "contact": {"external_id": "bob"}, "occurred_at": ago(70)}));
    let file = folder.path("cart.json");
    let before = server.command(&["automation", "list", "--json"]).expect(0).json();
    let past =
        |span: &str| server.command(&["automation", "simulate", &file, "--past", span, "--json"]).expect(0).json();
    let all = past("30d");
    assert_eq!((&all["contacts"], &all["entered"]), (&json!(2), &json!(2)), "{all}");
    assert_eq!(all["nodes"][0]["id"], "w");
    assert_eq!(all["nodes"][0]["branches"], json!({"event": 1, "timeout": 1}), "{all}");
    assert_eq!(all["nodes"][1]["entered"], json!(1), "{all}");
    assert_eq!(past("48h")["entered"], json!(0));
    assert_eq!(server.command(&["automation", "list", "--json"]).expect(0).json(), before);
    // The table for people.
    let shown = server.command(&["automation", "simulate", &file, "--past", "30d"]).expect(0);
    assert!(shown.stderr.contains("2 contacts, 2 entered") && shown.stdout.contains("event 1, timeout 1"), "{shown:?}");
    folder.write(
        "cart.json",
        r#"{"name": "Cart", "trigger": {"kind": "manual"}, "graph": {"nodes": [{"id": "x", "kind": "exit"}]}}"#,
    );
    let refused = server.command(&["automation", "simulate", &file, "--past", "30d", "--json"]).expect(1);
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/trigger/kind");
}
