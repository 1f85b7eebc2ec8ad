//! The exit codes of contract section 22, and the content of both output streams.

use std::net::TcpListener;

use crate::support::{Server, directory, run};

#[test]
fn what_cannot_be_understood_is_2() {
    for line in [
        vec!["workspace", "list", "--nonsense"],
        vec!["nonsense"],
        vec!["message"],
        vec![],
        vec!["message", "list", "--limit", "many"],
        vec!["message", "list", "--status", "lost"],
        vec!["message", "get"],
    ] {
        let ran = run(&line).expect(2);
        assert_eq!(ran.stdout, "", "{line:?}");
        assert!(!ran.stderr.is_empty(), "{line:?}");
    }
}

#[test]
fn an_address_to_listen_at_is_shown_by_an_example() {
    for flag in ["--listen", "--smtp-listen", "--submission-listen", "--metrics-listen", "--dns"] {
        let refused = run(["config", "check", flag, "18481"]).expect(2);
        assert!(refused.stderr.contains("an IP address and a port such as 127.0.0.1:8080"), "{refused:?}");
    }
}

#[test]
fn rules_of_sites_are_listed_and_a_fault_is_2_with_its_place() {
    let listed = run(["site", "list", "--json"]).expect(0).json();
    let rows = listed["data"].as_array().unwrap();
    let gmail = rows.iter().find(|row| row["name"] == "gmail").unwrap();
    assert_eq!((&gmail["warm_up"], &gmail["exchangers"][0]), (&4.into(), &"google.com".into()));
    assert_eq!((&rows.last().unwrap()["name"], &rows.last().unwrap()["connections"]), (&"*".into(), &20.into()));
    assert!(run(["site", "list"]).expect(0).stdout.contains("gmail"));

    let directory = directory();
    let file = directory.path().join("site-rules.toml");
    let file = file.to_str().unwrap();
    std::fs::write(file, "replace = true\n[[site]]\nname = \"acme\"\nexchangers = [\"acme.com\"]\n").unwrap();
    let listed = run(["site", "list", "--site-rules", file, "--json"]).expect(0).json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["name"]), (2, &"acme".into()));
    std::fs::write(file, "[[reply]]\ntext = \"(\"\nsays = \"rate\"\n").unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    for line in [
        vec!["site", "list", "--site-rules", file],
        vec!["config", "check", "--site-rules", file],
        vec!["serve", "--data", data, "--listen", "127.0.0.1:0", "--site-rules", file],
    ] {
        let ran = run(&line).expect(2);
        assert!(ran.stderr.contains("line 2, column 8") && ran.stderr.contains("regular expression"), "{ran:?}");
    }
    // Nothing was begun.
    assert!(!std::path::Path::new(data).exists());
}

#[test]
fn help_and_version_are_0() {
    assert!(run(["--help"]).expect(0).stdout.contains("MESSAGING_API_KEY"));
    assert!(run(["message", "send", "--help"]).expect(0).stdout.contains("--attach"));
    assert!(run(["--version"]).expect(0).stdout.starts_with("messaging "));
}

#[test]
fn without_server_and_database_the_way_out_is_said() {
    let empty = directory();
    let output = crate::support::program().args(["workspace", "list"]).current_dir(empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for word in ["--url", "--api-key", "--data", "--workspace"] {
        assert!(text.contains(word), "{text}");
    }
    // Nothing was made by looking.
    assert_eq!(empty.path().read_dir().unwrap().count(), 0);
    let ran = run(["workspace", "list", "--url", "http://127.0.0.1:1/v1"]).expect(2);
    assert!(ran.stderr.contains("MESSAGING_API_KEY"), "{ran:?}");
    let ran = run(["workspace", "list", "--api-key", "mk_live_x"]).expect(2);
    assert!(ran.stderr.contains("MESSAGING_URL"), "{ran:?}");
    let nowhere = empty.path().join("nowhere");
    run(["health", "get", "--data", nowhere.to_str().unwrap()]).expect(3);
    assert!(!nowhere.exists());
}

#[test]
fn an_unreachable_server_is_3() {
    // A port that was free a moment ago, and has no listener.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let ran = run(["health", "get", "--url", &url, "--json"]).expect(3);
    assert_eq!(ran.json()["error"]["code"], "unreachable");
    let ran = run(["workspace", "list", "--url", &url, "--api-key", "mk_live_x"]).expect(3);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
}

#[test]
fn an_unreachable_database_is_3() {
    let directory = directory();
    let path = directory.path().join("file");
    std::fs::write(&path, "not a database, only some text that is long enough to look at".repeat(100)).unwrap();
    run(["workspace", "list", "--workspace", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "--database"]
        .map(Into::into)
        .into_iter()
        .chain([path.into_os_string()]))
    .expect(3);
}

#[test]
fn a_refusal_is_1_with_the_broken_rules() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let ran = server.command(&["message", "send", "--subject", "Hello"]).expect(1);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("validation_failed"), "{ran:?}");
    assert!(ran.stderr.lines().any(|line| line.trim_start().starts_with("/to ")), "{ran:?}");
    let ran = server.command(&["message", "send", "--subject", "Hello", "--json"]).expect(1);
    assert_eq!(ran.json()["error"]["code"], "validation_failed");
    server.command(&["message", "get", "msg_00000000000000000000000000"]).expect(1);
    server.command(&["message", "list", "--api-key", "mk_live_unknown"]).expect(1);
}

#[test]
fn a_test_message_that_was_not_taken_is_1() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let test = |to: &str| server.command(&["channel", "test", "email", "--to", to, "--json"]);
    assert_eq!(test("ann@example.com").expect(0).json()["ok"], true);
    let listed = ["suppression", "create", "--channel", "email", "--address", "bob@example.com", "--reason", "manual"];
    server.command(&listed).expect(0);
    let failed = test("bob@example.com").expect(1);
    assert_eq!(failed.json()["ok"], false);
    assert!(failed.stderr.contains("the test message was not taken"), "{failed:?}");
}

/// Bodies from `--json-body`: a text that is no JSON is refused before any request, and a body that breaks a rule is
/// refused with an error for each of its fields, by a server and in the process alike.
#[test]
fn a_body_that_is_refused_is_1_and_no_body_is_2() {
    let directory = directory();
    let server = Server::dev(&directory.path().join("data"));
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let typo = file("typo.json", r#"{"channel":"email","to":"ann@example.com","sujbect":"Hi","text":"Hi","cc":[1]}"#);
    let list = file("list.json", "[1]");
    let broken = file("broken.json", r#"{"channel":"#);
    let nowhere = directory.path().join("nowhere.json").into_os_string().into_string().unwrap();
    let dev = server.dev_json();
    let workspace = dev["workspace_id"].as_str().unwrap();
    let in_process = ["--data", server.data.to_str().unwrap(), "--workspace", workspace];
    let send = |path: &str, here: bool| {
        let line = ["message", "send", "--json", "--json-body", path];
        if here { run([&line[..], &in_process[..]].concat()) } else { server.command(&line) }
    };
    for here in [false, true] {
        let refused = send(&typo, here).expect(1).json();
        let faults = refused["error"]["details"]["errors"].as_array().unwrap().clone();
        let mut told: Vec<_> = faults.iter().map(|one| format!("{} {}", one["pointer"], one["code"])).collect();
        told.sort();
        assert_eq!(told, [r#""/cc/0" "invalid_type""#, r#""/subject" "required""#, r#""/sujbect" "unknown_field""#]);
        assert_eq!(send(&list, here).expect(1).json()["error"]["code"], "invalid_json");
        for path in [&broken, &nowhere] {
            let ran = send(path, here).expect(2);
            assert!(ran.stderr.contains("json-body") || ran.stderr.contains(path.as_str()), "{ran:?}");
        }
    }
    assert_eq!(server.command(&["message", "list", "--json"]).expect(0).json()["data"], serde_json::json!([]));
}

/// An address of another machine, of no machine, or that is named twice: the server does not start, and makes nothing.
#[test]
fn a_source_that_mail_cannot_leave_from_is_2() {
    let directory = directory();
    let data = directory.path().join("data");
    for (sources, words) in [
        // Of the block that is kept for documentation, which no machine has (RFC 5737).
        (&["--source", "127.0.0.1,203.0.113.7=m7.example.org"][..], ["203.0.113.7", "--source"]),
        (&["--source", "0.0.0.0"], ["0.0.0.0", "--source"]),
        (&["--source", "127.0.0.2", "--source", "127.0.0.2=m2.example.org"], ["127.0.0.2", "twice"]),
        (&["--source", "127.0.0.2", "--source-warm", "127.0.0.3"], ["127.0.0.3", "--source-warm"]),
    ] {
        let start = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        let ran = run([&start[..], sources].concat()).expect(2);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{ran:?}");
        assert!(!data.exists(), "{sources:?}");
    }
}
