//! An automation whose server is killed repeatedly with runs in progress: one run for an event, one message for a node,
//! and no run gets stuck.
//!
//! The suite kills a few times with some hundred runs; a release is tested with `AUTOMATION_RUNS=10000 KILL_ROUNDS=30
//! cargo test -p messaging-cli --test it kill::automation`.

use std::thread;
use std::time::Duration;

use messaging_testing::ScriptedSmtpServer;
use serde_json::{Value, json};

use super::copies::{Copies, mailed, wait_for_sink};
use super::{Installation, post, rounds, runtime, wait_for_mail};
use crate::support::Server;

/// Runs unless `AUTOMATION_RUNS` says otherwise.
const RUNS: usize = 300;

/// Domains of the recipients.
const DOMAINS: usize = 7;

/// Contacts or events of a request.
const AT_ONCE: usize = 500;

fn runs() -> usize {
    std::env::var("AUTOMATION_RUNS").map_or(RUNS, |text| text.parse().expect("AUTOMATION_RUNS is a number"))
}

/// Prepares a workspace with contacts, and an automation that greets them, waits, changes them, and thanks them.
/// Returns its path.
fn prepare(server: &Server, workspace: &str, key: &str, count: usize) -> String {
    let at = |path: &str| format!("/v1/workspaces/{workspace}/{path}");
    let numbers: Vec<_> = (0..count).collect();
    for part in numbers.chunks(AT_ONCE) {
        let contact = |number: &usize| {
            json!({"external_id": format!("p{number}"), "email": format!("p{number}@d{}.test", number % DOMAINS),
                "consent": {"marketing_email": true}})
        };
        let contacts: Vec<_> = part.iter().map(contact).collect();
        post(server, key, &at("contacts/bulk"), &json!({"contacts": contacts}));
    }
    let template = |name: &str| {
        let body = json!({"name": name, "channel": "email", "subject": name,
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        post(server, key, &at("templates"), &body)["id"].clone()
    };
    let graph = json!({"nodes": [
        {"id": "greet", "kind": "send", "config": {"template_id": template("greet")}},
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 2, "unit": "seconds"}}},
        {"id": "tag", "kind": "add_tag", "config": {"tag": "greeted"}},
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["greeted"]}}},
        {"id": "thank", "kind": "send", "config": {"template_id": template("thank"), "category": "transactional"}}],
        "edges": [{"from": "greet", "to": "w"}, {"from": "w", "to": "tag"}, {"from": "tag", "to": "c"},
            {"from": "c", "to": "thank", "branch": "yes"}]});
    let automation = json!({"name": "a", "re_entry": "always", "graph": graph,
        "trigger": {"kind": "event", "config": {"name": "signup"}}});
    let automation = post(server, key, &at("automations"), &automation)["id"].clone();
    let path = at(&format!("automations/{}", automation.as_str().unwrap()));
    post(server, key, &format!("{path}/activate"), &json!({}));
    path
}

#[test]
fn every_event_begins_one_run_that_sends_once_at_each_node_after_kills() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let count = runs();
    let mut path = String::new();
    let installation = Installation::delivering(&sink, |server, workspace, key| {
        path = prepare(server, workspace, key, count);
    });
    let id = path.rsplit('/').next().unwrap();
    let messages_path = format!("/v1/messages?automation_id={id}");
    let mut copies = Copies::default();
    let rounds = rounds();
    let numbers: Vec<_> = (0..count).collect();
    let mut parts = numbers.chunks(count.div_ceil(rounds.max(1)).min(AT_ONCE));
    for round in 0..rounds {
        let server = installation.serve();
        // Each round tells some, so that runs of all ages are in flight.
        let wanted = count.div_ceil(rounds.max(1)).div_ceil(AT_ONCE).max(1);
        for part in parts.by_ref().take(wanted) {
            let event = |number: &usize| json!({"name": "signup", "unique_id": format!("s{number}"), "contact": {"external_id": format!("p{number}")}});
            let events: Vec<_> = part.iter().map(event).collect();
            post(&server, &installation.key, "/v1/events/bulk", &json!({"events": events}));
        }
        // Sometimes while contacts enter, sometimes while mail is on the wire.
        let before = sink.messages().len();
        let share = (round * 7919) % (count / rounds).max(1);
        wait_for_mail(&sink, || sink.messages().len() >= before + share.min(count / rounds / 2));
        thread::sleep(Duration::from_millis((round as u64 * 37) % 150));
        let done = installation.done(&server, &messages_path, "delivered");
        server.kill();
        wait_for_sink(&sink);
        copies.killed(mailed(&sink), done);
    }

    let server = installation.serve();
    for part in parts {
        let event = |number: &usize| json!({"name": "signup", "unique_id": format!("s{number}"), "contact": {"external_id": format!("p{number}")}});
        let events: Vec<_> = part.iter().map(event).collect();
        post(&server, &installation.key, "/v1/events/bulk", &json!({"events": events}));
    }
    wait_for_mail(&sink, || {
        let stats = installation.get(&server, &format!("{path}/stats"));
        stats["completed"] == count
    });
    let settled = |message: &Value| ["delivered", "failed", "bounced"].contains(&message["status"].as_str().unwrap());
    wait_for_mail(&sink, || installation.all(&server, &messages_path).iter().all(settled));

    let runs = installation.all(&server, &format!("{path}/runs"));
    assert_eq!(runs.len(), count, "one run for an event");
    let of_contact = super::count(runs.iter().map(|run| run["contact_id"].as_str().unwrap().to_owned()));
    assert!(of_contact.values().all(|runs| *runs == 1), "somebody entered twice");
    let messages = installation.all(&server, &messages_path);
    let by_node =
        super::count(messages.iter().map(|message| (message["to"].to_string(), message["template_id"].to_string())));
    assert_eq!((messages.len(), by_node.len()), (2 * count, 2 * count), "one message for a node");

    let arrived = super::count(mailed(&sink));
    let marked = installation.marked(&server, &messages, &arrived);
    let copies = copies.check(&arrived);
    eprintln!("automation: {count} runs, {rounds} kills, {copies} second copies, {marked} marked");
}
