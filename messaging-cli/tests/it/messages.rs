//! Sending and following messages with the command line.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Server, directory, program, run_with_input, wait_for};

#[test]
fn a_message_is_sent_shown_and_found_in_the_sandbox() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let file = directory.path().join("order 17.pdf");
    std::fs::write(&file, "%PDF-1.7 not much").unwrap();
    let line = ["message", "send", "--to", "ann@example.com", "--subject", "Order 17", "--text", "Thanks", "--json"];
    let more = ["--tag", "order", "--header", "X-Order=17", "--attach", file.to_str().unwrap()];
    let sent = server.command(&[&line[..], &more[..]].concat()).expect(0).json();
    assert_eq!(sent["status"], "queued");
    let id = sent["message_id"].as_str().unwrap();

    let ran = server.command(&["message", "watch", "--until-final", id, "--json"]).expect(0);
    let kinds: Vec<_> =
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds, ["queued", "sent", "delivered"]);

    let source = server.command(&["sandbox", "get", id]).expect(0).stdout;
    for part in ["Subject: Order 17", "X-Order: 17", "application/pdf", "To: "] {
        assert!(source.contains(part), "{part}\n{source}");
    }
    let wrapped = server.command(&["sandbox", "get", id, "--json"]).expect(0).json();
    assert_eq!(wrapped["content_type"], "message/rfc822");

    let table = server.command(&["message", "list", "--tag", "order"]).expect(0).stdout;
    assert!(table.starts_with("MESSAGE_ID"), "{table}");
    assert!(table.contains(id), "{table}");
    let pairs = server.command(&["message", "get", id]).expect(0).stdout;
    assert!(pairs.contains("delivered"), "{pairs}");
}

#[test]
fn the_body_comes_from_standard_input_and_flags_replace_its_members() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let target = ["--url", dev["base_url"].as_str().unwrap(), "--api-key", dev["api_key"].as_str().unwrap()];
    let line = ["message", "send", "--json", "--json-body", "-", "--to", "ben@example.com"];
    let body = r#"{"to":"ann@example.com","subject":"Hello","text":"It works"}"#;
    let sent = run_with_input(&[&line[..], &target[..]].concat(), body).expect(0).json();
    let id = sent["message_id"].as_str().unwrap().to_owned();
    server.command(&["message", "watch", "--until-final", &id]).expect(0);
    let source = server.command(&["sandbox", "get", &id]).expect(0).stdout;
    assert!(source.contains("ben@example.com") && !source.contains("ann@example.com"), "{source}");
}

#[test]
fn the_same_idempotency_key_sends_once() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let line = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json"];
    let line = [&line[..], &["--idempotency-key", "order-17"]].concat();
    let first = server.command(&line).expect(0);
    let second = server.command(&line).expect(0);
    assert_eq!(first.stdout, second.stdout);
    assert!(second.stderr.contains("idempotency"), "{second:?}");
}

#[test]
fn watch_shows_new_events_and_ends_with_an_interrupt() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let send = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json"];
    // An old message: not news.
    let old = server.command(&send).expect(0).json();
    server.command(&["message", "watch", "--until-final", old["message_id"].as_str().unwrap()]).expect(0);
    let mut child = program()
        .args(["message", "watch", "--json"])
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says when it is watching.
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let new = server.command(&send).expect(0).json();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for kind in ["sent", "delivered"] {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&event["message_id"], &event["kind"]), (&new["message_id"], &Value::from(kind)), "{event}");
        assert_eq!(event["to"], "ann@example.com");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0));
}

#[test]
fn an_interrupt_before_the_end_is_not_success() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let line = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json"];
    let later = server.command(&[&line[..], &["--send-at", "+2h"]].concat()).expect(0).json();
    let dev = server.dev_json();
    let mut child = program()
        .args(["message", "watch", "--json", "--until-final", later["message_id"].as_str().unwrap()])
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It shows that the message waits, and keeps watching.
    let mut shown = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut shown).unwrap();
    assert!(shown.contains("queued"), "{shown}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(3));
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("interrupted before the message was final"), "{said}");
}

/// Starts `message watch --json`, and waits until it says that it is watching.
fn watch(server: &Server, more: &[&str]) -> (std::process::Child, BufReader<std::process::ChildStderr>) {
    let dev = server.dev_json();
    let mut child = program()
        .args(["message", "watch", "--json"])
        .args(more)
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("watching"), "{line}");
    (child, said)
}

/// Ends the command as Ctrl-C does; returns the cursor that it prints.
fn interrupt(mut child: std::process::Child, mut said: BufReader<std::process::ChildStderr>) -> String {
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0));
    let mut last = String::new();
    said.read_line(&mut last).unwrap();
    last.trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn watch_goes_on_where_it_ended() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let send = |to: &str| {
        let sent = server.command(&["message", "send", "--to", to, "--subject", "Hi", "--text", "Hi", "--json"]);
        let id = sent.expect(0).json()["message_id"].as_str().unwrap().to_owned();
        server.command(&["message", "watch", "--until-final", &id]).expect(0);
    };
    let (mut child, said) = watch(&server, &[]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    send("ann@example.com");
    let mut next = || -> (Value, Value) {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        (event["to"].clone(), event["kind"].clone())
    };
    assert_eq!(next(), ("ann@example.com".into(), "sent".into()));
    assert_eq!(next(), ("ann@example.com".into(), "delivered".into()));
    let cursor = interrupt(child, said);
    // While no command watches.
    send("ben@example.com");
    let (mut child, said) = watch(&server, &["--after", &cursor]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    send("eva@example.com");
    let seen: Vec<_> = (0..4)
        .map(|_| serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap())
        .map(|event| format!("{} {}", event["to"].as_str().unwrap(), event["kind"].as_str().unwrap()))
        .collect();
    let expected =
        ["ben@example.com sent", "ben@example.com delivered", "eva@example.com sent", "eva@example.com delivered"];
    assert_eq!(seen, expected, "nothing is missed and nothing comes twice");
    interrupt(child, said);
}

#[test]
fn until_final_ends_with_the_message() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let send = |more: &[&str]| {
        let line = [&["message", "send", "--subject", "Hi", "--text", "Hi", "--json"], more].concat();
        server.command(&line).expect(0).json()["message_id"].as_str().unwrap().to_owned()
    };
    for (to, code) in [("delivered", 0), ("bounce", 1), ("softbounce", 1)] {
        let id = send(&["--to", &format!("{to}@simulator.invalid")]);
        let ran = server.command(&["message", "watch", "--until-final", &id, "--json"]).expect(code);
        let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert!(last["kind"].is_string(), "{to}: only events are on standard output: {last}");
    }
    let id = send(&["--to", "deferred@simulator.invalid"]);
    let ran = server.command(&["message", "watch", "--until-final", &id, "--timeout", "1"]).expect(3);
    assert!(ran.stderr.contains("not final"), "{ran:?}");
    server.command(&["message", "watch", "--timeout", "1"]).expect(2);
}

#[test]
fn masked_addresses_name_the_scope_that_shows_them() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let workspace = server.dev_json()["workspace_id"].as_str().unwrap().to_owned();
    let data = directory.path().to_str().unwrap();
    let line = ["admin", "create-key", "--workspace", &workspace, "--name", "x", "--scopes", "messages:send"];
    let key = crate::support::run(line.into_iter().chain(["--json", "--data", data])).expect(0).json();
    server.command(&["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi"]).expect(0);
    let masked = server.command(&["message", "list", "--api-key", key["key"].as_str().unwrap()]).expect(0);
    assert!(masked.stdout.contains("a***@example.com"), "{masked:?}");
    assert!(masked.stderr.contains("pii:read"), "{masked:?}");
    let clear = server.command(&["message", "list"]).expect(0);
    assert!(!clear.stderr.contains("pii:read"), "{clear:?}");
}
