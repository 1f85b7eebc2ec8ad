//! A campaign whose server is killed again and again: every recipient gets it once, but for attempts that say that they
//! may have arrived twice.
//!
//! The suite kills a few times in a small campaign; a release is tested with `CAMPAIGN_RECIPIENTS=20000 KILL_ROUNDS=20
//! cargo test -p messaging-cli --test it kill::campaign`.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use messaging_testing::ScriptedSmtpServer;
use serde_json::json;

use super::copies::{Copies, mailed, wait_for_sink};
use super::{Installation, count as counted, post, rounds, runtime, wait_for_mail};
use crate::support::Server;

/// Recipients unless `CAMPAIGN_RECIPIENTS` says otherwise.
const RECIPIENTS: usize = 2000;

/// Domains of the recipients.
const DOMAINS: usize = 7;

/// Contacts of a request.
const AT_ONCE: usize = 1000;

fn recipients() -> usize {
    std::env::var("CAMPAIGN_RECIPIENTS")
        .map_or(RECIPIENTS, |text| text.parse().expect("CAMPAIGN_RECIPIENTS is a number"))
}

/// Prepares a workspace with contacts on a list and a campaign to them. Returns the campaign's path.
fn prepare(server: &Server, workspace: &str, key: &str, count: usize) -> String {
    let at = |path: &str| format!("/v1/workspaces/{workspace}/{path}");
    let list = post(server, key, &at("lists"), &json!({"name": "all"}))["id"].clone();
    let numbers: Vec<_> = (0..count).collect();
    for part in numbers.chunks(AT_ONCE) {
        let contact = |number: &usize| {
            json!({"email": format!("p{number}@d{}.test", number % DOMAINS), "list_ids": [list],
                "consent": {"marketing_email": true}})
        };
        let contacts: Vec<_> = part.iter().map(contact).collect();
        post(server, key, &at("contacts/bulk"), &json!({"contacts": contacts}));
    }
    let template = json!({"name": "t", "channel": "email", "subject": "s",
        "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
    let template = post(server, key, &at("templates"), &template)["id"].clone();
    let campaign = json!({"name": "c", "channel": "email", "template_id": template, "audience": {"list_ids": [list]}});
    let campaign = post(server, key, &at("campaigns"), &campaign)["id"].clone();
    at(&format!("campaigns/{}", campaign.as_str().unwrap()))
}

#[test]
fn every_recipient_of_a_campaign_gets_it_once_after_kills() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let count = recipients();
    let mut path = String::new();
    let installation = Installation::delivering(&sink, |server, workspace, key| {
        path = prepare(server, workspace, key, count);
    });
    let mut is_scheduled = false;
    let mut pauses = 0;
    let id = path.rsplit('/').next().unwrap();
    let messages_path = format!("/v1/messages?campaign_id={id}");
    let mut copies = Copies::default();
    let rounds = rounds();
    for round in 0..rounds {
        let server = installation.serve();
        if !is_scheduled {
            post(&server, &installation.key, &format!("{path}/schedule"), &json!({"send_now": true}));
            is_scheduled = true;
        }
        if round % 5 == 3 && installation.get(&server, &path)["status"] == "sending" {
            // A pause and a resume between two kills.
            pauses += 1;
            post(&server, &installation.key, &format!("{path}/pause"), &json!({}));
            thread::sleep(Duration::from_millis(100));
            post(&server, &installation.key, &format!("{path}/schedule"), &json!({}));
        }
        // Sometimes before anything is sent, sometimes while many messages are.
        let before = sink.messages().len();
        let share = (round * 7919) % (2 * count / rounds).max(1);
        let wanted = (before + share).min(count);
        wait_for_mail(&sink, || sink.messages().len() >= wanted);
        thread::sleep(Duration::from_millis((round as u64 * 37) % 150));
        let done = installation.done(&server, &messages_path, "delivered");
        server.kill();
        wait_for_sink(&sink);
        copies.killed(mailed(&sink), done);
    }

    let server = installation.serve();
    wait_for_mail(&sink, || {
        let stats = installation.get(&server, &format!("{path}/stats"));
        let number = |name: &str| stats[name].as_u64().unwrap();
        let is_over = installation.get(&server, &path)["status"] == "sent";
        is_over && number("sending") == 0 && number("deferred") == 0
    });
    let stats = installation.get(&server, &format!("{path}/stats"));
    let messages = installation.all(&server, &messages_path);
    assert_eq!(messages.len(), count, "everybody has one message: {stats}");
    let addressed: HashSet<_> = messages.iter().map(|message| message["to"].as_str().unwrap()).collect();
    assert_eq!(addressed.len(), count, "somebody has two messages");
    let (delivered, failed) = (stats["delivered"].as_u64().unwrap(), stats["failed"].as_u64().unwrap());
    assert_eq!(delivered + failed, count as u64, "{stats}");

    let arrived = counted(mailed(&sink));
    let marked = installation.marked(&server, &messages, &arrived);
    let copies = copies.check(&arrived);
    eprintln!("campaign: {count} recipients, {rounds} kills, {pauses} pauses, {copies} second copies, {marked} marked");
}
