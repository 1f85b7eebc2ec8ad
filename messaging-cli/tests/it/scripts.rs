//! Features for scripts: all pages, files, examples, raw requests, profiles, manual pages.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Ran, Server, directory, run, run_in, run_with_input};

/// The flags that name a server and its key.
fn target(server: &Server) -> [String; 4] {
    let dev = server.dev_json();
    let text = |name: &str| dev[name].as_str().unwrap().to_owned();
    ["--url".to_owned(), text("base_url"), "--api-key".to_owned(), text("api_key")]
}

#[test]
fn all_follows_the_cursors() {
    let directory = directory();
    let server = Server::dev(directory.path());
    for name in ["a", "b", "c", "d", "e"] {
        server.command(&["list", "create", "--name", name]).expect(0);
    }
    let page = server.command(&["list", "list", "--limit", "2", "--json"]).expect(0).json();
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    let ran = server.command(&["list", "list", "--all", "--limit", "2", "--json"]).expect(0);
    let all = ran.json();
    let names: Vec<_> = all["data"].as_array().unwrap().iter().map(|list| list["name"].as_str().unwrap()).collect();
    assert_eq!((names.join(""), &all["next_cursor"]), ("edcba".to_owned(), &Value::Null));
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("\"name\"")).count(), 5, "an item a line: {ran:?}");
    let table = server.command(&["list", "list", "--all", "--limit", "2"]).expect(0).stdout;
    assert_eq!(table.lines().filter(|line| line.starts_with("lst_")).count(), 5, "{table}");
    server.command(&["list", "list", "--all", "--cursor", "x"]).expect(2);
    let none = server.command(&["segment", "list", "--all", "--json"]).expect(0).json();
    assert_eq!(none["data"], serde_json::json!([]));
}

#[test]
fn a_listing_that_breaks_off_is_one_document_that_says_so() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // Two answers, a connection each: a page, and a refusal.
    let server = std::thread::spawn(move || {
        let answers = [
            ("200 OK", r#"{"data":[{"id":"wsp_1"},{"id":"wsp_2"}],"next_cursor":"next"}"#),
            ("500 Internal Server Error", r#"{"error":{"code":"internal_error","message":"broken"}}"#),
        ];
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n");
            write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    let line = ["workspace", "list", "--all", "--json", "--url", &url, "--api-key", "mk_live_x"];
    let ran = run(line).expect(1);
    server.join().unwrap();
    let document = ran.json();
    assert_eq!(document["data"].as_array().unwrap().len(), 2, "{document}");
    assert_eq!(document["next_cursor"], "next");
    assert_eq!(document["error"]["code"], "refused");
    assert!(ran.stderr.contains("broken"), "{ran:?}");
}

#[test]
fn values_come_from_files() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (html, text) = (file("a.html", "<p>from the file</p>"), file("a.txt", "plain from the file"));
    let metadata = file("meta.json", r#"{"order": 17}"#);
    let send = |more: &[&str]| -> Ran {
        server.command(&[&["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--json"], more].concat())
    };
    let id = |ran: Ran| ran.expect(0).json()["message_id"].as_str().unwrap().to_owned();
    let content = |id: &str| server.command(&["api", "GET", &format!("/messages/{id}/content")]).expect(0).stdout;
    let meta = format!("@{metadata}");
    let first = id(send(&["--html-file", &html, "--text", &format!("@{text}"), "--metadata", &meta]));
    let shown = content(&first);
    assert!(shown.contains("from the file") && shown.contains("plain from the file"), "{shown}");
    assert_eq!(server.command(&["message", "get", &first, "--json"]).expect(0).json()["metadata"]["order"], 17);
    let at = content(&id(send(&["--text", "@@home"])));
    assert!(at.contains("@home") && !at.contains("@@home"), "{at}");
    let missing = send(&["--text", "@/nonexistent/file"]).expect(2);
    assert!(missing.stderr.contains("/nonexistent/file"), "{missing:?}");
    send(&["--html-file", &html, "--html", "<p>twice</p>"]).expect(2);
}

#[test]
fn an_example_can_be_sent_back() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let target = target(&server);
    let target: Vec<_> = target.iter().map(String::as_str).collect();
    for words in [&["message", "send"][..], &["contact", "upsert"], &["segment", "create"], &["template", "create"]] {
        let example = run(words.iter().chain(&["--example"])).expect(0);
        example.json();
        run_with_input(&[words, &["--json-body", "-"], &target].concat(), &example.stdout).expect(0);
    }
    // Without the id that the command otherwise needs.
    run(["webhook", "update", "--example"]).expect(0).json();
    run(["message", "list", "--example"]).expect(2);
}

#[test]
fn booleans_are_given_either_way() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let created = server.command(&["domain", "create", "--domain", "acme.test", "--json"]).expect(0).json();
    let id = created["id"].as_str().unwrap();
    for (flag, expected) in [
        (&["--open-tracking", "false"][..], false),
        (&["--open-tracking"], true),
        (&["--open-tracking=false"], false),
        (&["--open-tracking", "true"], true),
    ] {
        let line = [&["domain", "update", id, "--json"], flag].concat();
        assert_eq!(server.command(&line).expect(0).json()["open_tracking"], expected, "{flag:?}");
    }
    server.command(&["domain", "update", "--open-tracking", id]).expect(0);
}

#[test]
fn a_raw_request_is_sent_as_it_is_written() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let target = target(&server);
    let target: Vec<_> = target.iter().map(String::as_str).collect();
    let body = r#"{"name":"Customers"}"#;
    let create = ["api", "post", "/v1/workspaces/{workspace_id}/lists", "--json-body", "-"];
    let list: Value =
        serde_json::from_str(&run_with_input(&[&create[..], &target].concat(), body).expect(0).stdout).unwrap();
    let path = format!("workspaces/{{workspace_id}}/lists/{}", list["id"].as_str().unwrap());
    let got: Value = serde_json::from_str(&server.command(&["api", "GET", &path]).expect(0).stdout).unwrap();
    assert_eq!(got["name"], "Customers");
    let data = directory.path().to_str().unwrap();
    let got: Value = serde_json::from_str(&run(["api", "GET", &path, "--data", data]).expect(0).stdout).unwrap();
    assert_eq!(got["name"], "Customers", "the same on the database");
    let limited = ["api", "GET", "/workspaces/{workspace_id}/lists", "--query", "limit=0"];
    let refused = server.command(&limited).expect(1);
    assert_eq!(refused.json()["error"]["code"], "validation_failed", "{refused:?}");
    server.command(&["api", "GET", "/nothing/here"]).expect(1);
    run(["api", "GET", "/nothing/here", "--data", data]).expect(2);
    server.command(&["api", "FETCH", "/health"]).expect(2);
}

#[test]
fn a_profile_is_saved_for_its_owner_alone_and_used() {
    let (directory, home) = (directory(), directory());
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let text = |name: &str| dev[name].as_str().unwrap().to_owned();
    let url = text("base_url");
    let environment = [("XDG_CONFIG_HOME", home.path().as_os_str())];
    let run = |line: &[&str], input: &str| run_in(line, &environment, input);
    let key = format!("{}\n", text("api_key"));

    let refused = run(&["login", "--url", &url], "mk_live_wrong.secret\n").expect(1);
    assert!(refused.stderr.contains("invalid_credentials"), "{refused:?}");
    let file = home.path().join("messaging/profiles.toml");
    assert!(!file.exists(), "what does not work is not saved");
    let saved = run(&["login", "--url", &url, "--json"], &key).expect(0);
    assert!(!saved.stdout.contains(key.trim()) && !saved.stderr.contains(key.trim()), "{saved:?}");
    assert_eq!(saved.json()["workspace_id"], dev["workspace_id"]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mine = run(&["workspace", "list", "--json"], "").expect(0).json();
    assert_eq!(mine["data"][0]["id"], dev["workspace_id"]);

    let given = ["login", "--url", &url, "--profile", "given", "--api-key", &text("api_key")];
    assert!(run(&given, "").expect(0).stderr.is_empty());
    run(&["workspace", "list", "--profile", "given"], "").expect(0);

    // A profile of a person, under another name.
    let password = format!("{}\n", text("console_password"));
    let login = ["login", "--url", &url, "--email", &text("console_email"), "--profile", "me"];
    run(&login, &password).expect(0);
    let me = run(&["auth", "me", "--profile", "me", "--json"], "").expect(0).json();
    assert_eq!(me["user"]["email"], dev["console_email"]);
    run(&["message", "list", "--profile", "me"], "").expect(0);
    run(&["auth", "me"], "").expect(1);

    // Flags take precedence, and a key is never sent to another server than its own.
    assert!(run(&["workspace", "list", "--profile", "nobody"], "").expect(2).stderr.contains("me"));
    run(&["workspace", "list", "--profile", "me", "--url", &url], "").expect(2);
    run(&["workspace", "list", "--url", &url], "").expect(2);
    run(&["workspace", "list", "--data", "/nonexistent"], "").expect(3);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run(&["workspace", "list"], "").expect(2).stderr.contains("chmod 600"));
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = directory();
    let pages = directory.path().join("man1");
    run(["man", pages.to_str().unwrap()]).expect(0);
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("messaging.1").contains("messaging"), "{}", page("messaging.1"));
    assert!(page("messaging-message-send.1").contains("attach"));
    assert!(page("messaging-admin-login-link.1").contains("email"));
    for endpoint in messaging_engine::ops::all() {
        let name = format!("messaging-{}.1", endpoint.cli.replace(' ', "-"));
        assert!(pages.join(&name).exists(), "{name}");
    }
}
