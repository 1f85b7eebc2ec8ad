//! Webhooks with the real program: delivery, `kill -9`, and events sent on to a local program.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use messaging_core::domain::security::signature::SigningKey;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_testing::{Answer, HttpRequest, ScriptedHttpServer};
use serde_json::{Value, json};

use crate::support::{Server, directory, program, run, wait_for};

const PRIVATE: &[&str] = &["--allow-private-targets"];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[track_caller]
fn assert_signed(request: &HttpRequest, secret: &str) {
    let (id, timestamp, signature) =
        (request.header("webhook-id"), request.header("webhook-timestamp"), request.header("webhook-signature"));
    let now = SystemClock.now();
    SigningKey::parse(secret).unwrap().verify(id, timestamp, signature, &request.body, now).unwrap();
}

#[test]
fn an_event_reaches_its_receiver_and_private_ones_only_where_that_is_allowed() {
    let runtime = runtime();
    let receiver = runtime.block_on(ScriptedHttpServer::start());
    let directory = directory();
    let server = Server::dev(directory.path());
    let url = receiver.url("/hook");
    let line = ["webhook", "create", "--json", "--events", "delivered", "--json-body", "-"];
    let body = json!({"url": url}).to_string();
    let target = |server: &Server| {
        let dev = server.dev_json();
        let text = |name: &str| dev[name].as_str().unwrap().to_owned();
        ["--url".to_owned(), text("base_url"), "--api-key".to_owned(), text("api_key")]
    };
    let create = |server: &Server| {
        let target = target(server);
        let line: Vec<&str> = line.iter().copied().chain(target.iter().map(String::as_str)).collect();
        crate::support::run_with_input(&line, &body)
    };
    let refused = create(&server).expect(1).json();
    assert_eq!(refused["error"]["code"], "url_not_allowed");
    assert_eq!(server.stop(), Some(0));

    let server = Server::start("dev", directory.path(), PRIVATE);
    let created = create(&server).expect(0).json();
    let send = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json"];
    server.command(&send).expect(0);
    let requests = runtime.block_on(receiver.received(1));
    assert_signed(&requests[0], created["secret"].as_str().unwrap());
    assert_eq!(requests[0].json()["type"], "delivered");
    let id = created["id"].as_str().unwrap();
    let delivered = || {
        let listed = server.command(&["webhook", "deliveries", id, "--json"]).expect(0).json();
        (listed["data"][0]["status"] == "delivered").then_some(())
    };
    wait_for(delivered);
}

#[test]
fn a_thousand_deliveries_survive_a_kill_and_duplicates_have_one_id() {
    const MESSAGES: usize = 500;
    let runtime = runtime();
    let receiver = runtime.block_on(ScriptedHttpServer::start());
    // Nothing is answered before the kill.
    receiver.always(Answer::Silence);
    let data = directory();
    let server = Server::start("dev", data.path(), PRIVATE);
    let dev = server.dev_json();
    let (workspace, key) = (dev["workspace_id"].as_str().unwrap(), dev["api_key"].as_str().unwrap());
    let path = data.path().to_str().unwrap();
    let admin = ["admin", "create-key", "--workspace", workspace, "--name", "load", "--scopes", "*"];
    let ran = run(admin.into_iter().chain(["--rate-limit", "100000", "--json", "--data", path])).expect(0);
    let load = ran.json()["key"].as_str().unwrap().to_owned();
    let hooks = format!("/v1/workspaces/{workspace}/webhooks");
    let body = json!({"url": receiver.url("/hook"), "events": ["sent", "delivered"]});
    let (status, hook) = server.request("POST", &hooks, key, &body);
    assert_eq!(status, 201, "{hook}");
    for number in 0..MESSAGES {
        let message =
            json!({"channel": "email", "to": format!("user-{number}@example.com"), "subject": "s", "text": "t"});
        let (status, answer) = server.request("POST", "/v1/messages", &load, &message);
        assert_eq!(status, 202, "{answer}");
    }
    let deliveries = format!("{hooks}/{}/deliveries", hook["id"].as_str().unwrap());
    let pages = |server: &Server, status: &str| {
        let mut ids = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("{deliveries}?limit=200&status={status}{cursor}");
            let (_, page) = server.request("GET", &path, &load, &Value::Null);
            let items = page["data"].as_array().unwrap();
            ids.extend(items.iter().map(|delivery| delivery["event_id"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return ids,
            }
        }
    };
    wait_for(|| (pages(&server, "pending").len() == 2 * MESSAGES).then_some(()));
    // Some of them are being attempted right now.
    runtime.block_on(receiver.received(10));
    server.kill();
    let expected: HashSet<String> = {
        receiver.always(Answer::status(200));
        let server = Server::start("serve", data.path(), PRIVATE);
        wait_for(|| (pages(&server, "delivered").len() == 2 * MESSAGES).then_some(()));
        pages(&server, "delivered").into_iter().collect()
    };
    assert_eq!(expected.len(), 2 * MESSAGES);
    let mut arrivals: HashMap<String, HashSet<String>> = HashMap::new();
    for request in receiver.requests() {
        let body = request.json();
        let told = format!("{} {}", body["type"], body["data"]["message_id"]);
        arrivals.entry(told).or_default().insert(request.header("webhook-id").to_owned());
    }
    assert_eq!(arrivals.len(), 2 * MESSAGES, "every event of every message");
    assert!(arrivals.values().all(|ids| ids.len() == 1), "an event has one id");
    let arrived: HashSet<String> = arrivals.into_values().flatten().collect();
    assert_eq!(arrived, expected);
}

#[test]
fn events_are_sent_on_to_a_local_program() {
    let runtime = runtime();
    let receiver = runtime.block_on(ScriptedHttpServer::start());
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut child = program()
        .args(["webhook", "listen", "--json", "--events", "sent,delivered", "--secret", secret, "--forward"])
        .arg(receiver.url("/hook"))
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains(secret), "{said}");
    receiver.next(Answer::status(500));
    let send = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json"];
    server.command(&send).expect(0);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (kind, status) in [("sent", 500), ("delivered", 200)] {
        let shown: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&shown["event"]["type"], &shown["response_status"]), (&json!(kind), &json!(status)), "{shown}");
    }
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_signed(request, secret);
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0));
}

#[test]
fn listen_refuses_types_that_no_webhook_may_ask_for() {
    for events in ["deliverd", "sent,deliverd"] {
        let refused = run(["webhook", "listen", "--events", events]).expect(2);
        let told = ["deliverd", "delivered", "audit.recorded"];
        assert!(told.iter().all(|word| refused.stderr.contains(word)), "{refused:?}");
    }
}

#[test]
fn the_secret_of_listen_is_kept_between_starts() {
    let (directory, home) = (directory(), directory());
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let start = || {
        let mut child = program()
            .args(["webhook", "listen", "--forward", "http://127.0.0.1:1/hook"])
            .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
            .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
            .env("XDG_CONFIG_HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
        assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0));
        let secret = said.split("signed with ").nth(1).unwrap().split(';').next().unwrap();
        assert!(secret.starts_with("whsec_"), "{said}");
        secret.to_owned()
    };
    assert_eq!(start(), start());
    let file = home.path().join("messaging/webhook-listen.secret");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
