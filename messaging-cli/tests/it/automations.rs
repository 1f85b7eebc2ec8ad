//! Automations with the command line.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Server, directory, run_page, wait_for};

#[test]
fn the_example_of_the_page_works_word_for_word() {
    let (data, work) = (directory(), directory());
    let server = Server::dev(data.path());
    let (told, said) = run_page(&server, work.path(), "automations.md");
    for expected in ["Abandoned cart", "unchanged", "abandoned-cart.json"] {
        assert!(told.contains(expected), "{expected}\n{told}\n{said}");
    }
    let automation = server.command(&["automation", "list", "--json"]).expect(0).json()["data"][0].clone();
    assert_eq!((&automation["status"], &automation["version"]), (&json!("active"), &json!(1)));
    // The event enters its contact, which waits for the order.
    let id = automation["id"].as_str().unwrap();
    let run = wait_for(|| {
        let runs = server.command(&["automation", "runs", id, "--json"]).expect(0).json();
        Some(runs["data"][0].clone()).filter(|run| run["status"] == "waiting")
    });
    assert_eq!(run["node_id"], "bought");
    let shown = server.command(&["automation", "run", id, run["id"].as_str().unwrap(), "--json"]).expect(0).json();
    let outcomes: Vec<_> = shown["history"].as_array().unwrap().iter().map(|step| step["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("entered"), json!("waiting")]);
}

#[test]
fn automations_are_pushed_and_pulled() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let write = |path: &str, text: &str| fs::write(files.path().join(path), text).unwrap();
    let node = json!({"id": "t", "kind": "add_tag", "config": {"tag": "vip"}});
    let welcome = json!({"name": "Welcome", "trigger": {"kind": "contact_created"}, "graph": {"nodes": [node]}});
    write("welcome.json", &welcome.to_string());
    write("draft.toml", "# still to be written\n[trigger]\n[graph]\n");
    write("notes.md", "no automation");
    let directory_of = files.path().to_str().unwrap();
    let push = || server.command(&["automation", "push", directory_of, "--json"]).expect(0).json();
    let results = |ran: &Value| -> Vec<String> {
        let rows = ran["data"].as_array().unwrap().iter();
        let row = |row: &Value| format!("{} {} {} {}", row["file"], row["status"], row["version"], row["result"]);
        rows.map(|one| row(one).replace('"', "")).collect()
    };
    assert_eq!(results(&push()), ["draft.toml draft 1 created", "welcome.json draft 1 created"]);
    let pushed = push();
    assert_eq!(results(&pushed), ["draft.toml draft 1 unchanged", "welcome.json draft 1 unchanged"]);
    let id = pushed["data"][1]["id"].as_str().unwrap().to_owned();
    // An active one is changed too, as long as it stays complete.
    let activated = server.command(&["automation", "activate", &id, "--json"]).expect(0).json();
    assert_eq!((&activated["result"], &activated["status"]), (&json!("activated"), &json!("active")));
    write("welcome.json", &welcome.to_string().replace("vip", "new"));
    assert_eq!(results(&push()), ["draft.toml draft 1 unchanged", "welcome.json active 2 changed"]);
    write("welcome.json", &welcome.to_string().replace(r#"{"tag":"vip"}"#, "{}"));
    let refused = server.command(&["automation", "push", directory_of, "--json"]).expect(1);
    assert_eq!(refused.json()["error"]["code"], "automation_invalid");
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/graph/nodes/0/config/tag");
    assert!(refused.stderr.contains("welcome.json"), "{refused:?}");

    let pulled = directory();
    let target = pulled.path().join("new");
    let pull = |target: &std::path::Path| {
        server.command(&["automation", "pull", target.to_str().unwrap(), "--json"]).expect(0).json()
    };
    assert_eq!(results(&pull(&target)), ["welcome.json active 2 written", "draft.json draft 1 written"]);
    assert_eq!(results(&pull(&target)), ["welcome.json active 2 unchanged", "draft.json draft 1 unchanged"]);
    let text = fs::read_to_string(target.join("welcome.json")).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["graph"]["nodes"][0]["config"], json!({"tag": "new"}));
    assert_eq!((&read["re_entry"], read.get("id")), (&json!("never"), None));
    let back = server.command(&["automation", "push", target.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(results(&back), ["draft.json draft 1 unchanged", "welcome.json active 2 unchanged"]);
    // A file of another name, and its format, stay the automation's.
    fs::write(target.join("mine.toml"), "name = \"Welcome\"\n[trigger]\n[graph]\n").unwrap();
    fs::remove_file(target.join("welcome.json")).unwrap();
    pull(&target);
    assert!(fs::read_to_string(target.join("mine.toml")).unwrap().contains("tag = \"new\""));
    assert!(!target.join("welcome.json").exists());
    // Two files with one name are ambiguous.
    fs::copy(target.join("draft.json"), target.join("other.json")).unwrap();
    server.command(&["automation", "push", target.to_str().unwrap()]).expect(2);
    write("welcome.json", "{");
    let unread = server.command(&["automation", "push", directory_of]).expect(2);
    assert!(unread.stderr.contains("welcome.json"), "{unread:?}");
}

#[test]
fn files_name_templates_and_lists_by_name_or_id() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let made = |line: &[&str]| {
        server.command(&[line, &["--json"]].concat()).expect(0).json()["id"].as_str().unwrap().to_owned()
    };
    let template = |name: &str| {
        made(&["template", "create", "--name", name, "--channel", "email", "--subject", "s", "--text", "t"])
    };
    let (welcome, list) = (template("Welcome"), made(&["list", "create", "--name", "News"]));
    let path = files.path().join("a.json");
    let write = |template: &str, list: &str| {
        let body = json!({"name": "A", "trigger": {"kind": "list_added", "config": {"list_id": list}}, "graph": {"nodes":
            [{"id": "s", "kind": "send", "config": {"template_id": template}}]}});
        fs::write(&path, body.to_string()).unwrap();
    };
    let directory_of = files.path().to_str().unwrap();
    let push = || server.command(&["automation", "push", directory_of, "--json"]);
    write("Welcome", "News");
    let id = push().expect(0).json()["data"][0]["id"].as_str().unwrap().to_owned();
    let shown = server.command(&["automation", "get", &id, "--json"]).expect(0).json();
    assert_eq!(shown["graph"]["nodes"][0]["config"]["template_id"], json!(welcome));
    assert_eq!(shown["trigger"]["config"]["list_id"], json!(list));
    // A file with ids means the same.
    write(&welcome, &list);
    assert_eq!(push().expect(0).json()["data"][0]["result"], "unchanged");
    let pull =
        |to: &std::path::Path| server.command(&["automation", "pull", to.to_str().unwrap(), "--json"]).expect(0).json();
    pull(files.path());
    assert!(
        fs::read_to_string(&path).unwrap().contains("Welcome"),
        "re_entry was not in the file, so it is written anew"
    );
    assert_eq!(pull(files.path())["data"][0]["result"], "unchanged");
    // Nothing has the name, or two have it; nothing is changed then.
    write("Goodbye", "News");
    let refused = push().expect(2);
    assert!(
        refused.stderr.contains("a.json: /graph/nodes/0/config/template_id: no template is called \"Goodbye\""),
        "{refused:?}"
    );
    let other = template("Welcome");
    write("Welcome", "News");
    let refused = push().expect(2);
    assert!(refused.stderr.contains("several templates") && refused.stderr.contains(&other), "{refused:?}");
    let pulled = directory();
    pull(pulled.path());
    let text = fs::read_to_string(pulled.path().join("a.json")).unwrap();
    assert!(text.contains(&welcome) && text.contains("\"News\""), "{text}");
}

#[test]
fn the_recipes_of_the_page_are_pushed_word_for_word_after_the_first_page() {
    let (data, work) = (directory(), directory());
    let server = Server::dev(data.path());
    run_page(&server, work.path(), "automations.md");
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/automations/recipes.md");
    let page = fs::read_to_string(page).unwrap();
    for rest in page.split("Save as `").skip(1) {
        let (name, rest) = rest.split_once("`:\n\n```json\n").unwrap();
        fs::write(work.path().join(name), rest.split("```").next().unwrap()).unwrap();
    }
    run_page(&server, work.path(), "automations/recipes.md");
    let all = server.command(&["automation", "list", "--json"]).expect(0).json();
    let told: Vec<_> = all["data"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(told, vec![json!("active"); 6]);
}

#[test]
fn an_automation_is_let_through_its_states_by_commands() {
    let data = directory();
    let server = Server::dev(data.path());
    let made = |line: &[&str]| server.command(&[line, &["--json"]].concat()).expect(0).json();
    let graph = r#"{"nodes":[{"id":"w","kind":"wait","config":{"duration":{"value":1,"unit":"days"}}}]}"#;
    let line = ["automation", "create", "--name", "A", "--trigger", r#"{"kind":"manual"}"#, "--graph", graph];
    let id = made(&line)["id"].as_str().unwrap().to_owned();
    made(&["contact", "upsert", "--external-id", "ann"]);
    let early = server.command(&["automation", "trigger", &id, "--external-id", "ann", "--json"]).expect(1);
    assert_eq!(early.json()["error"]["code"], "invalid_state");
    made(&["automation", "activate", &id]);
    let run = made(&["automation", "trigger", &id, "--external-id", "ann"]);
    let again = server.command(&["automation", "trigger", &id, "--external-id", "ann", "--json"]).expect(1);
    assert_eq!(again.json()["error"]["code"], "re_entry_not_allowed");
    let paused = made(&["automation", "pause", &id]);
    assert_eq!(paused["status"], "paused");
    let ended = made(&["automation", "exit-run", &id, run["id"].as_str().unwrap()]);
    assert_eq!((&ended["status"], &ended["exit_reason"]), (&json!("exited"), &json!("manual")));
    let stats = made(&["automation", "stats", &id]);
    assert_eq!((&stats["entered"], &stats["exited"]), (&json!(1), &json!(1)));
    server.command(&["automation", "delete", &id]).expect(0);
    let gone = server.command(&["automation", "get", &id, "--json"]).expect(1);
    assert_eq!(gone.json()["error"]["code"], "not_found");
}
