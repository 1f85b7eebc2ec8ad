//! `contact export`, `message export`, `suppression export`, and `--quiet` and `--format` for scripts.

use serde_json::Value;

use crate::support::{Server, directory};

#[test]
fn contacts_are_written_page_after_page_and_taken_back() {
    let directory = directory();
    let server = Server::dev(directory.path());
    for (email, attributes) in [
        ("ann@example.com", r#"{"plan":"=cmd()","age":31,"shoe":"42, wide"}"#),
        ("ben@example.com", r#"{"plan":"free"}"#),
        ("cleo@example.com", "{}"),
    ] {
        let line = ["contact", "upsert", "--email", email, "--attributes", attributes, "--tags", "vip,new"];
        server.command(&line).expect(0);
    }
    server.command(&["custom-field", "create", "--key", "plan", "--type", "string"]).expect(0);
    server.command(&["custom-field", "create", "--key", "age", "--type", "number"]).expect(0);
    let csv = server.command(&["contact", "export", "--limit", "1"]).expect(0).stdout;
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    assert!(
        lines[0].starts_with("id,external_id,email,")
            && lines[0].ends_with(",attributes.plan,attributes.age,tags_json,attributes")
    );
    assert!(lines[3].contains(",ann@example.com,") && lines[3].contains(",=cmd(),31,,\"{\"\"shoe\"\":"), "{csv}");
    let disarmed = server.command(&["contact", "export", "--for-spreadsheet"]).expect(0).stdout;
    assert!(disarmed.contains(",'=cmd(),31,"), "{disarmed}");
    assert!(lines[1].contains(",vip;new,") || lines[1].contains(",new;vip,"), "{csv}");

    let json = server.command(&["contact", "export", "--format", "jsonl", "--limit", "2"]).expect(0).stdout;
    let rows: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let emails: Vec<_> = rows.iter().map(|row| row["email"].as_str().unwrap()).collect();
    assert_eq!(emails, ["cleo@example.com", "ben@example.com", "ann@example.com"]);
    assert_eq!(rows[2]["attributes"]["age"], 31);

    // One contact is shown as before, and the whole file can be imported.
    let id = rows[0]["id"].as_str().unwrap();
    assert_eq!(server.command(&["contact", "export", id, "--json"]).expect(0).json()["contact"]["id"], id);
    server.command(&["contact", "export", id, "--tag", "vip"]).expect(2);
    server.command(&["contact", "export", "--json"]).expect(2);
    let file = directory.path().join("contacts.csv");
    std::fs::write(&file, csv).unwrap();
    let import = server.command(&["contact", "import", file.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!([&import["created"], &import["updated"], &import["failed"]], [0, 3, 0], "{import}");
    assert_eq!(import["attributes"], serde_json::json!([]), "{import}");
}

#[test]
fn contacts_come_back_as_they_were() {
    let directory = directory();
    let server = Server::dev(directory.path());
    for (key, kind) in [("plan", "string"), ("age", "number"), ("on", "string_array")] {
        server.command(&["custom-field", "create", "--key", key, "--type", kind]).expect(0);
    }
    let list = server.command(&["list", "create", "--name", "News", "--quiet"]).expect(0).stdout;
    for contact in [
        serde_json::json!({"email": "ann@example.com", "external_id": "007", "tags": ["vip", "a;b", " c "],
            "attributes": {"plan": "=cmd()", "age": 31.5, "on": ["x", "y"], "shoe": 42, "is": true, "of": {"a": [1, "b"]}},
            "list_ids": [list.trim()], "consent": {"marketing_email": true, "sms": false}}),
        serde_json::json!({"phone": "+14155550123", "tags": ["-1", "@x"], "locale": "en-US", "timezone": "Europe/Kyiv",
            "attributes": {"plan": "'quoted", "on": ["x;y"], "version": "1.10", "note": "two\nlines, \"quoted\""}}),
        serde_json::json!({"email": "ben@example.com", "attributes": {"plan": " ", "on": [], "code": "+1 or more"}}),
    ] {
        std::fs::write(directory.path().join("contact.json"), contact.to_string()).unwrap();
        let body = directory.path().join("contact.json");
        server.command(&["contact", "upsert", "--json-body", body.to_str().unwrap()]).expect(0);
    }
    let contacts = || {
        let lines = server.command(&["contact", "export", "--format", "jsonl"]).expect(0).stdout;
        let mut contacts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for contact in &mut contacts {
            let members = contact.as_object_mut().unwrap();
            for own in ["id", "created_at", "updated_at"] {
                members.remove(own);
            }
        }
        contacts.sort_by_key(|contact| contact["email"].to_string());
        contacts
    };
    let before = contacts();
    assert_eq!(before.len(), 3);
    let file = directory.path().join("contacts.csv");
    std::fs::write(&file, server.command(&["contact", "export"]).expect(0).stdout).unwrap();
    for id in server.command(&["contact", "list", "--quiet"]).expect(0).stdout.lines() {
        server.command(&["contact", "delete", id]).expect(0);
    }
    assert_eq!(contacts(), Vec::<Value>::new());
    let import = server.command(&["contact", "import", file.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!([&import["created"], &import["failed"]], [3, 0], "{import}");
    assert_eq!(contacts(), before);
}

#[test]
fn messages_and_suppressions_are_written_by_their_filters() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let send = |to: &str| {
        let line = ["message", "send", "--to", to, "--subject", "Order \"17\"", "--text", "Hi", "--quiet"];
        let id = server.command(&line).expect(0).stdout.trim().to_owned();
        server.command(&["message", "watch", "--until-final", &id]);
        id
    };
    let (bounced, _) = (send("bounce@simulator.invalid"), send("ann@example.com"));
    let csv = server.command(&["message", "export", "--status", "bounced", "--since", "1h"]).expect(0).stdout;
    let lines: Vec<_> = csv.lines().collect();
    assert!(lines[0].starts_with("message_id,status,reason,explanation,channel,to,"), "{csv}");
    assert!(lines[1].starts_with(&format!("{bounced},bounced,invalid_recipient,")), "{csv}");
    assert!(lines[1].contains(r#","Order ""17""","#) && lines.len() == 2, "{csv}");
    let suppressed = server.command(&["suppression", "export"]).expect(0).stdout;
    assert!(suppressed.contains(",email,bounce@simulator.invalid,bounce,"), "{suppressed}");
    let none = server.command(&["message", "export", "--tag", "nothing"]).expect(0).stdout;
    assert_eq!(none.lines().count(), 1, "a header: {none}");
}

#[test]
fn ids_and_lines_are_picked_from_answers() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let ids: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| server.command(&["list", "create", "--name", name, "-q"]).expect(0).stdout.trim().to_owned())
        .collect();
    let all = server.command(&["list", "list", "--all", "--limit", "2", "--quiet"]).expect(0).stdout;
    assert_eq!(all.lines().collect::<Vec<_>>(), [&ids[2], &ids[1], &ids[0]]);
    let lines = server.command(&["list", "list", "--all", "--limit", "2", "--format", "{{ name }}={{ id }}"]).expect(0);
    assert_eq!(lines.stdout, format!("c={}\nb={}\na={}\n", ids[2], ids[1], ids[0]));
    server.command(&["list", "list", "--format", "{{ name "]).expect(2);
    server.command(&["list", "list", "--quiet", "--json"]).expect(2);
}

#[test]
fn a_batch_with_a_refused_item_is_1_and_names_it() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let messages =
        r#"[{"channel":"email","to":"ann@example.com","subject":"Hi","text":"Hi"},{"channel":"email","text":"Hi"}]"#;
    let ran = server.command(&["message", "batch", "--messages", messages, "--json"]).expect(1);
    assert_eq!(ran.json()["accepted"], 1, "{ran:?}");
    assert!(ran.stderr.contains("1 of 2 items was refused") && ran.stderr.contains("item 1: /to "), "{ran:?}");
    let contacts = r#"[{"email":"ann@example.com"},{"email":"nobody"}]"#;
    let ran = server.command(&["contact", "bulk", "--contacts", contacts]).expect(1);
    assert!(ran.stderr.contains("item 1: /email "), "{ran:?}");
}

#[test]
fn errors_speak_of_commands_and_of_the_way_to_a_session() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let refused = server.command(&["key", "list"]).expect(1);
    for word in ["session", "messaging login", "messaging admin create-key"] {
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
    server.command(&["domain", "create", "--domain", "acme.test"]).expect(0);
    let line =
        ["message", "send", "--to", "a@example.com", "--from-email", "a@acme.test", "--subject", "s", "--text", "t"];
    let refused = server.command(&line).expect(1);
    assert!(refused.stderr.contains("`messaging domain verify dom_"), "{refused:?}");
    assert!(!refused.stderr.contains("POST /") && !refused.stderr.contains("GET /"), "{refused:?}");
}
