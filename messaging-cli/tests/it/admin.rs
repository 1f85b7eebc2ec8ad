//! `admin`: straight on the database.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ran, Server, directory, run, run_with_input};

fn admin(data: &std::path::Path, line: &[&str]) -> Ran {
    run([&["admin"], line, &["--json", "--data", data.to_str().unwrap()]].concat())
}

#[test]
fn an_installation_begins_with_a_user_a_workspace_and_a_key() {
    let directory = directory();
    let data = directory.path();
    let user = admin(data, &["create-user", "--email", "Ann@Example.com", "--name", "Ann"]).expect(0).json();
    assert_eq!((&user["email"], &user["name"]), (&"ann@example.com".into(), &"Ann".into()), "{user}");
    let made_up = admin(data, &["create-user", "--email", "ann@example.com", "--generate-password"]).expect(0);
    assert_eq!(made_up.json()["id"], user["id"]);
    assert!(made_up.stderr.starts_with("password: "), "{made_up:?}");

    let workspace = admin(data, &["create-workspace", "--name", "Acme", "--owner", "ann@example.com"]).expect(0).json();
    let id = workspace["id"].as_str().unwrap();
    let line = ["create-key", "--workspace", id, "--name", "backend", "--scopes", "messages:send,pii:read"];
    let more = ["--rate-limit", "10", "--ip-allow", "10.0.0.0/8,127.0.0.1", "--expires-at", "2999-01-01T00:00:00Z"];
    let key = admin(data, &[&line[..], &more[..]].concat()).expect(0).json();
    assert_eq!(key["scopes"], serde_json::json!(["messages:send", "pii:read"]));
    assert_eq!(key["ip_allowlist"].as_array().unwrap().len(), 2);
    assert!(key["key"].as_str().unwrap().starts_with("mk_live_"), "{key}");

    let revoked = admin(data, &["revoke-key", "--id", key["id"].as_str().unwrap()]).expect(0).json();
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    let page = admin(data, &["list-keys", "--workspace", id]).expect(0).json();
    assert_eq!(page["data"][0]["id"], key["id"]);
    assert!(page["next_cursor"].is_null());
}

#[test]
fn addresses_are_released_and_pools_shared() {
    let directory = directory();
    let data = directory.path();
    admin(data, &["create-user", "--email", "ann@example.com"]).expect(0);
    let workspace = admin(data, &["create-workspace", "--name", "Acme", "--owner", "ann@example.com"]).expect(0).json();
    let workspace = ["--workspace", workspace["id"].as_str().unwrap()];
    let grant = admin(data, &[&["grant-ip", "--ip", "2001:DB8::7"], &workspace[..]].concat()).expect(0).json();
    assert_eq!(grant["ip"], "2001:db8::7");
    let listed = admin(data, &[&["list-grants"], &workspace[..]].concat()).expect(0).json();
    assert_eq!(listed["data"], json!([grant]));
    admin(data, &[&["grant-ip", "--ip", "mx.example.org"], &workspace[..]].concat()).expect(1);
    admin(data, &[&["revoke-ip", "--ip", "2001:db8::7"], &workspace[..]].concat()).expect(0);
    admin(data, &[&["revoke-ip", "--ip", "2001:db8::7"], &workspace[..]].concat()).expect(1);

    let create = ["create-pool", "--name", "transactional", "--ip", "203.0.113.8,203.0.113.9"];
    admin(data, &create).expect(2);
    let pool = admin(data, &[&create[..], &["--shared"]].concat()).expect(0).json();
    assert_eq!((&pool["shared"], pool["ips"].as_array().map(Vec::len)), (&json!(true), Some(2)));
    let id = ["--id", pool["id"].as_str().unwrap()];
    admin(data, &[&["update-pool"], &id[..]].concat()).expect(2);
    let changed = admin(data, &[&["update-pool", "--ip", "203.0.113.9"], &id[..]].concat()).expect(0).json();
    assert_eq!((&changed["name"], &changed["ips"]), (&json!("transactional"), &json!(["203.0.113.9"])));
    assert_eq!(admin(data, &["list-pools"]).expect(0).json()["data"], json!([changed]));
    admin(data, &[&["delete-pool"], &id[..]].concat()).expect(0);
    admin(data, &[&["delete-pool"], &id[..]].concat()).expect(1);
}

#[test]
fn an_installation_gets_another_name() {
    let directory = directory();
    admin(directory.path(), &["create-user", "--email", "ann@example.com"]).expect(0);
    let set = |name| admin(directory.path(), &["set-name", "--name", name]);
    for name in ["Mail.Example.com", "mail.example.com", "other.example.com"] {
        assert_eq!(set(name).expect(0).json(), serde_json::json!({"name": name.to_ascii_lowercase()}));
    }
    let refused = set("not a name").expect(1).json();
    assert_eq!(refused["error"]["details"]["errors"][0]["pointer"], "/name", "{refused}");
}

#[test]
fn what_breaks_a_rule_is_refused_with_the_rule() {
    let directory = directory();
    let data = directory.path();
    let ran = admin(data, &["create-user", "--email", "nobody", "--password", "short"]).expect(1);
    assert_eq!(ran.json()["error"]["details"]["errors"].as_array().unwrap().len(), 2);
    admin(data, &["create-workspace", "--name", "Acme", "--owner", "nobody@example.com"]).expect(1);
    admin(data, &["revoke-key", "--id", "key_1"]).expect(1);
    admin(data, &["create-key", "--workspace", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "--name", "x", "--scopes", "*"])
        .expect(1);
    for line in [
        &["create-user"][..],
        &["create-key", "--workspace", "wsp_1", "--name", "x", "--scopes", "nonsense"],
        &["create-key", "--workspace", "wsp_1", "--name", "x", "--scopes", "*"],
        &["create-user", "--email", "a@example.com", "--password", "x", "--generate-password"],
    ] {
        admin(data, line).expect(2);
    }
}

#[test]
fn it_works_beside_a_running_server() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let id = dev["workspace_id"].as_str().unwrap();
    let line = ["create-key", "--workspace", id, "--name", "second", "--scopes", "messages:send"];
    let key = admin(directory.path(), &line).expect(0).json();
    let secret = key["key"].as_str().unwrap();
    server.command(&["message", "list", "--api-key", secret]).expect(0);
    let ran = server.command(&["channel", "list", "--api-key", secret]).expect(1);
    assert!(ran.stderr.contains("scope required: *"), "{ran:?}");
    admin(directory.path(), &["revoke-key", "--id", key["id"].as_str().unwrap()]).expect(0);
    crate::support::wait_for(|| {
        (server.command(&["message", "list", "--api-key", secret]).code == Some(1)).then_some(())
    });
}

#[test]
fn what_is_kept_is_compared_with_rows_and_files() {
    let directory = directory();
    let data = directory.path();
    let verify = || admin(data, &["verify"]);
    assert_eq!(verify().expect(3).json()["error"]["code"], "unreachable");
    assert!(!data.join("messaging.db").exists(), "nothing is made by looking");

    let server = Server::dev(data);
    let dev = server.dev_json();
    let body = serde_json::json!({"channel": "email", "to": "ann@example.com", "from_email": dev["from_email"], "subject": "s",
        "text": "t", "attachments": [{"filename": "a.txt", "content_b64": "aGVsbG8="}]});
    let key = dev["api_key"].as_str().unwrap();
    let line = ["message", "send", "--api-key", key, "--json-body", "-", "--url", dev["base_url"].as_str().unwrap()];
    run_with_input(&line, &body.to_string()).expect(0);
    // Beside the server, while it sends, and when it has stopped.
    let report = verify().expect(0).json();
    assert!(report["checked"].as_u64() > Some(50), "{report}");
    assert_eq!(report["differences"], serde_json::json!([]));
    assert_eq!(server.stop(), Some(0));
    verify().expect(0);

    remove_files(&data.join("attachments"));
    let ran = verify().expect(1);
    let report = ran.json();
    let difference = &report["differences"][0];
    assert!(difference["what"].as_str().unwrap().starts_with("msg_"), "{report}");
    assert_eq!((&difference["stored"], &difference["counted"]), (&0.into(), &5.into()));
    assert_eq!(report["differences"].as_array().unwrap().len(), 1, "{report}");
    assert!(ran.stderr.contains("1 of "), "{ran:?}");
    let text = run(["admin", "verify", "--data", data.to_str().unwrap()]).expect(1);
    assert!(text.stdout.ends_with(": stored 0, counted 5\n"), "{text:?}");
}

/// Removes the files of a directory and of those in it.
fn remove_files(directory: &std::path::Path) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            remove_files(&entry.path());
        } else {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn a_password_from_standard_input_signs_in() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let data = directory.path().to_str().unwrap();
    let line = ["admin", "create-user", "--email", "ann@example.com", "--password", "-", "--data", data];
    run_with_input(&line, "correct horse battery\n").expect(0);
    let line = ["auth", "login", "--email", "ann@example.com", "--password", "correct horse battery", "--json"];
    let session = server.command(&line).expect(0).json();
    assert_eq!(session["user"]["email"], "ann@example.com");
    server.command(&["auth", "me", "--api-key", session["token"].as_str().unwrap()]).expect(0);
}

#[test]
fn a_mistyped_directory_is_told_and_nothing_is_made() {
    let directory = directory();
    let nowhere = directory.path().join("mesaging-data");
    let data = nowhere.to_str().unwrap();
    let lines: &[&[&str]] = &[
        &["admin", "create-user", "--email", "ann@example.com"],
        &["admin", "create-workspace", "--name", "Acme", "--owner", "ann@example.com"],
        &["admin", "list-users"],
        &["admin", "list-workspaces"],
        &["admin", "login-link", "--email", "ann@example.com"],
        &["admin", "set-name", "--name", "mail.example.com"],
        &["admin", "resume", "--queued", "send"],
        &["admin", "verify"],
        &["message", "list"],
        &["api", "GET", "/health"],
        &["backup", "/nonexistent/file"],
    ];
    for line in lines {
        let ran = run(line.iter().copied().chain(["--data", data])).expect(3);
        assert!(ran.stderr.contains(data) && ran.stderr.contains("--data"), "{line:?}: {ran:?}");
        assert!(!nowhere.exists(), "{line:?}");
        let ran = crate::support::run_in(*line, &[("MESSAGING_DATA", nowhere.as_os_str())], "").expect(3);
        assert!(ran.stderr.contains("MESSAGING_DATA"), "{line:?}: {ran:?}");
    }
    // A directory that is something else already.
    std::fs::write(directory.path().join("notes.txt"), "").unwrap();
    admin(directory.path(), &["create-user", "--email", "ann@example.com"]).expect(3);
    assert!(!directory.path().join("messaging.db").exists());
}

#[test]
fn users_and_workspaces_are_listed_page_by_page_or_all() {
    let directory = directory();
    let data = directory.path();
    for name in ["ann", "ben", "eva"] {
        admin(data, &["create-user", "--email", &format!("{name}@example.com")]).expect(0);
        admin(data, &["create-workspace", "--name", name, "--owner", &format!("{name}@example.com")]).expect(0);
    }
    let emails = |page: &serde_json::Value| {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["email"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = admin(data, &["list-users", "--limit", "2"]).expect(0).json();
    assert_eq!(emails(&first), ["eva@example.com", "ben@example.com"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = admin(data, &["list-users", "--limit", "2", "--cursor", cursor]).expect(0).json();
    assert_eq!(
        (emails(&second), &second["next_cursor"]),
        (vec!["ann@example.com".to_owned()], &serde_json::Value::Null)
    );
    assert_eq!(emails(&admin(data, &["list-users", "--all"]).expect(0).json()).len(), 3);
    let workspaces = admin(data, &["list-workspaces"]).expect(0).json();
    assert_eq!(workspaces["data"][0]["name"], "eva");
    let table = run(["admin", "list-workspaces", "--all", "--data", data.to_str().unwrap()]).expect(0).stdout;
    assert!(table.starts_with("ID") && table.contains("ann") && table.contains("eva"), "{table}");
}

#[test]
fn an_operator_is_made_and_unmade() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let create = ["create-user", "--email", "ann@example.com", "--password", "correct horse battery", "--operator"];
    let ann = admin(directory.path(), &create).expect(0).json();
    assert_eq!(ann["operator"], true);
    let sign_in = || {
        let body = json!({"email": "ann@example.com", "password": "correct horse battery"});
        server.request("POST", "/v1/auth/login", "", &body).1["token"].as_str().unwrap().to_owned()
    };
    assert_eq!(server.request("GET", "/v1/system", &sign_in(), &Value::Null).0, 200);
    let off = admin(directory.path(), &["set-operator", "--email", "ann@example.com", "--off"]).expect(0).json();
    assert_eq!(off["operator"], false);
    let (status, refused) = server.request("GET", "/v1/system", &sign_in(), &Value::Null);
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("role_forbidden")));
    assert_eq!(
        admin(directory.path(), &["set-operator", "--email", "ann@example.com"]).expect(0).json()["operator"],
        true
    );
    admin(directory.path(), &["set-operator", "--email", "nobody@example.com"]).expect(1);
}

#[test]
fn a_login_link_signs_in_once() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let link = admin(directory.path(), &["login-link", "--email", "admin@localhost"]).expect(0).json();
    let url = link["url"].as_str().unwrap();
    let ticket = url.strip_prefix(&format!("http://{}/console#ticket=", server.address)).unwrap();
    let redeem = ["auth", "redeem", "--ticket", ticket, "--json"];
    let session = server.command(&redeem).expect(0).json();
    assert_eq!(session["user"]["email"], "admin@localhost");
    server.command(&["auth", "me", "--api-key", session["token"].as_str().unwrap()]).expect(0);
    assert_eq!(server.command(&redeem).expect(1).json()["error"]["code"], "link_expired");
    let public = ["login-link", "--email", "admin@localhost", "--public-url", "https://mail.example.com/"];
    let link = admin(directory.path(), &public).expect(0).json();
    assert!(link["url"].as_str().unwrap().starts_with("https://mail.example.com/console#ticket="), "{link}");
    admin(directory.path(), &["login-link", "--email", "nobody@example.com"]).expect(1);
}

#[test]
fn a_login_link_begins_with_the_public_address_of_the_running_server() {
    let directory = directory();
    admin(directory.path(), &["create-user", "--email", "ann@example.com"]).expect(0);
    let server = Server::start("serve", directory.path(), &["--public-url", "https://mail.example.org/"]);
    let link = |more: &[&str]| {
        let line = [&["login-link", "--email", "ann@example.com"], more].concat();
        admin(directory.path(), &line).expect(0).json()["url"].as_str().unwrap().to_owned()
    };
    assert!(link(&[]).starts_with("https://mail.example.org/console#ticket="), "{}", link(&[]));
    let other = link(&["--public-url", "https://other.example.org"]);
    assert!(other.starts_with("https://other.example.org/console#ticket="), "{other}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_is_of_the_whole_installation_needs_no_workspace() {
    let directory = directory();
    let data = directory.path();
    admin(data, &["create-user", "--email", "ann@example.com"]).expect(0);
    let on_data = |line: &[&str]| run([line, &["--json", "--data", data.to_str().unwrap()]].concat());
    assert!(on_data(&["source", "list"]).expect(0).json()["data"].is_array());
    assert!(on_data(&["system", "get"]).expect(0).json().is_object());
    assert_eq!(on_data(&["queue", "retry", "--domain", "a.example"]).expect(0).json()["messages"], 0);
    // Commands on one workspace do need it.
    assert!(on_data(&["template", "list"]).expect(2).stderr.contains("--workspace"));
}

#[test]
fn what_was_put_aside_is_listed_and_decided_about() {
    let directory = directory();
    let data = directory.path();
    admin(data, &["create-user", "--email", "ann@example.com"]).expect(0);
    let list = admin(data, &["quarantine", "list"]).expect(0).json();
    assert_eq!(list, serde_json::json!({"data": [], "next_cursor": null}));
    let none = serde_json::json!({"done": [], "left": []});
    for verb in ["release", "drop"] {
        assert_eq!(admin(data, &["quarantine", verb, "--all"]).expect(0).json(), none);
        let unknown = admin(data, &["quarantine", verb, "job_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"]).expect(1);
        assert!(unknown.stdout.contains("no such record"), "{unknown:?}");
        admin(data, &["quarantine", verb, "nothing"]).expect(2);
        admin(data, &["quarantine", verb]).expect(2);
        admin(data, &["quarantine", verb, "--all", "job_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"]).expect(2);
    }
}

#[test]
fn a_workspace_and_its_owner_are_deleted() {
    let directory = directory();
    let data = directory.path();
    for name in ["ann", "ben"] {
        admin(data, &["create-user", "--email", &format!("{name}@example.com")]).expect(0);
    }
    let workspace =
        |name| admin(data, &["create-workspace", "--name", name, "--owner", "ann@example.com"]).expect(0).json();
    let acme = workspace("Acme");
    let id = acme["id"].as_str().unwrap();
    let refused = admin(data, &["delete-user", "--email", "ann@example.com"]).expect(1).json();
    let fault = &refused["error"]["details"]["errors"][0];
    assert!(fault["pointer"] == "/email" && fault["message"].as_str().unwrap().contains(id), "{refused}");

    let soon = admin(data, &["delete-workspace", "--id", id]).expect(0);
    assert!(soon.stderr.contains("workspace restore"), "{soon:?}");
    assert_eq!((&soon.json()["name"], &soon.json()["removed"]), (&json!("Acme"), &json!({})));
    let again = admin(data, &["delete-workspace", "--id", id]).expect(0).json();
    assert_eq!(again["deletes_at"], soon.json()["deletes_at"]);
    let now = admin(data, &["delete-workspace", "--id", id, "--now"]).expect(0).json();
    assert_eq!(now["removed"], json!({"audit_chains": 1, "audit_log": 4, "members": 1}));
    admin(data, &["delete-workspace", "--id", id, "--now"]).expect(1);
    assert_eq!(admin(data, &["list-workspaces"]).expect(0).json()["data"], json!([]));

    let gone = admin(data, &["delete-user", "--email", "Ann@Example.com"]).expect(0).json();
    assert_eq!(gone["email"], "ann@example.com");
    let left = admin(data, &["list-users"]).expect(0).json();
    assert_eq!(left["data"].as_array().unwrap().len(), 1, "{left}");
    admin(data, &["delete-user", "--email", "ann@example.com"]).expect(1);
    admin(data, &["delete-workspace", "--id", "nonsense"]).expect(2);
}

/// Runs a command in a new terminal and types a line; returns its exit code and output.
fn in_a_terminal(line: &[&str], typed: &str) -> (Option<i32>, String) {
    let quoted: Vec<_> = [env!("CARGO_BIN_EXE_messaging")].iter().chain(line).map(|word| format!("'{word}'")).collect();
    let mut child = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &quoted.join(" "), "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, of util-linux");
    child.stdin.take().unwrap().write_all(format!("{typed}\n").as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[test]
fn what_nothing_takes_back_is_asked_for_in_a_terminal() {
    let directory = directory();
    let data = directory.path();
    admin(data, &["create-user", "--email", "ann@example.com"]).expect(0);
    let workspace = admin(data, &["create-workspace", "--name", "Acme", "--owner", "ann@example.com"]).expect(0).json();
    let id = workspace["id"].as_str().unwrap();
    let path = data.to_str().unwrap();
    let delete = ["admin", "delete-workspace", "--id", id, "--now", "--data", path];
    let (code, shown) = in_a_terminal(&delete, "n");
    assert!(code == Some(1) && shown.contains("[y/N]") && shown.contains("nothing was done"), "{code:?} {shown}");
    assert_eq!(admin(data, &["list-workspaces"]).expect(0).json()["data"][0]["id"], id);
    let (code, shown) = in_a_terminal(&delete, "y");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(admin(data, &["list-workspaces"]).expect(0).json()["data"], json!([]));
    for (more, typed, is_asked, left) in [(&[][..], "n", true, 1), (&["--yes"], "", false, 0)] {
        let line = [&["admin", "delete-user", "--email", "ann@example.com", "--data", path], more].concat();
        let (_, shown) = in_a_terminal(&line, typed);
        assert_eq!(shown.contains("[y/N]"), is_asked, "{shown}");
        assert_eq!(admin(data, &["list-users"]).expect(0).json()["data"].as_array().unwrap().len(), left);
    }
}
