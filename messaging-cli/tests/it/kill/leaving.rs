//! Readers who confirm and leave while a campaign and an automation are at work and the server is killed: an answered
//! action holds, and a reader who was told that they left gets no marketing mail afterwards.
//!
//! The suite kills a few times; a release is tested with `LEAVING_READERS=3000 KILL_ROUNDS=20 cargo test -p
//! messaging-cli --test it kill::leaving`.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use messaging_testing::{Received, ScriptedSmtpServer};
use serde_json::{Value, json};

use super::copies::wait_for_sink;
use super::{Ending, Installation, load_until, post, rounds, runtime, wait_for_mail};
use crate::support::{Server, allowed};

/// Members of the list, and as many who are asked to confirm, unless `LEAVING_READERS` says otherwise.
const READERS: usize = 240;

/// Domains of the readers.
const DOMAINS: usize = 7;

/// Contacts or events of a request.
const AT_ONCE: usize = 500;

/// Time within which a mail arrives that was already leaving when its reader was told that they left.
pub(super) const UNDER_WAY: Duration = Duration::from_secs(2);

/// Interval at which arrivals are looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// An action of a reader, with the body that the form or the mail program posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Confirm,
    Leave,
    LeaveAll,
}

impl Act {
    const fn body(self) -> &'static str {
        match self {
            Self::Confirm => "confirm=yes",
            Self::Leave => "List-Unsubscribe=One-Click",
            Self::LeaveAll => "list=all&confirm=yes",
        }
    }
}

/// A reader with a link.
struct Reader {
    email: String,
    act: Act,
    path: String,
}

fn readers() -> usize {
    std::env::var("LEAVING_READERS").map_or(READERS, |text| text.parse().expect("LEAVING_READERS is a number"))
}

pub(super) fn address(kind: &str, number: usize) -> String {
    format!("{kind}{number}@d{}.test", number % DOMAINS)
}

pub(super) fn subject(received: &Received) -> String {
    let content = String::from_utf8_lossy(&received.content);
    let line = content.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
    line.trim().to_owned()
}

/// The path of the first link of a kind in a mail.
pub(super) fn link(received: &Received, kind: &str) -> Option<String> {
    let content = String::from_utf8_lossy(&received.content).replace("=\r\n", "");
    // Signatures may hold the same characters, but no address.
    let is_in_url = |at: usize| content[..at].rsplit(char::is_whitespace).next().is_some_and(|url| url.contains("://"));
    let (at, _) = content.match_indices(kind).find(|(at, _)| is_in_url(*at))?;
    let rest = &content[at + kind.len()..];
    let token: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    Some(format!("{kind}{token}"))
}

/// Ids and paths of one workspace.
struct Places {
    list: String,
    campaigns: [String; 2],
    automation: String,
}

/// Prepares a workspace with a public list of members and of readers who are asked to confirm, two campaigns, the first
/// of which is sent, and an automation.
fn prepare(server: &Server, (workspace, key): (&str, &str), count: usize, sink: &ScriptedSmtpServer) -> Places {
    let at = |path: &str| format!("/v1/workspaces/{workspace}/{path}");
    let id = |made: Value| made["id"].as_str().unwrap().to_owned();
    let list = json!({"name": "News", "visibility": "public", "opt_in": "double"});
    let list = id(post(server, key, &at("lists"), &list));
    let numbers: Vec<_> = (0..count).collect();
    for part in numbers.chunks(AT_ONCE) {
        let member = |number: &usize| {
            json!({"external_id": format!("p{number}"), "email": address("p", *number), "list_ids": [list],
                "consent": {"marketing_email": true}})
        };
        let members: Vec<_> = part.iter().map(member).collect();
        post(server, key, &at("contacts/bulk"), &json!({"contacts": members}));
        let asked: Vec<_> = part.iter().map(|number| json!({"email": address("q", *number)})).collect();
        let made = post(server, key, &at("contacts/bulk"), &json!({"contacts": asked}));
        let ids: Vec<_> = made["results"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        let body = json!({"contact_ids": ids, "status": "unconfirmed"});
        post(server, key, &at(&format!("lists/{list}/contacts")), &body);
    }
    let template = |subject: &str| {
        let body = json!({"name": subject, "channel": "email", "subject": subject,
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        post(server, key, &at("templates"), &body)["id"].clone()
    };
    let campaign = |subject: &str, settings: Value| {
        let body = json!({"name": subject, "channel": "email", "template_id": template(subject),
            "audience": {"list_ids": [list]}, "settings": settings});
        at(&format!("campaigns/{}", id(post(server, key, &at("campaigns"), &body))))
    };
    // The second campaign takes half a minute, so that it is being sent in all rounds.
    let pace = json!({"rate_limit": (2 * count).max(60)});
    let campaigns = [campaign("first", json!({})), campaign("second", pace)];
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 10, "unit": "seconds"}}},
        {"id": "s", "kind": "send", "config": {"template_id": template("automated")}}],
        "edges": [{"from": "w", "to": "s"}]});
    let automation = json!({"name": "a", "graph": graph, "trigger": {"kind": "event", "config": {"name": "signup"}}});
    let automation = at(&format!("automations/{}", id(post(server, key, &at("automations"), &automation))));
    post(server, key, &format!("{automation}/activate"), &json!({}));
    post(server, key, &format!("{}/schedule", campaigns[0]), &json!({"send_now": true}));
    wait_for_mail(sink, || sink.messages().len() >= 2 * count);
    Places { list: at(&format!("lists/{list}/contacts")), campaigns, automation }
}

/// The readers who act, with their links: of three members one leaves the list and one leaves everything, and every
/// second reader who is asked confirms.
fn acting(sink: &ScriptedSmtpServer) -> Vec<Reader> {
    let act = |received: Received| {
        let email = received.recipients[0].clone();
        let number: usize = email[1..].split('@').next()?.parse().ok()?;
        let (act, kind) = match (&email[..1], number % 3, number % 2) {
            ("p", 0, _) => (Act::Leave, "/u/"),
            ("p", 1, _) => (Act::LeaveAll, "/u/"),
            ("q", _, 0) => (Act::Confirm, "/c/"),
            _ => return None,
        };
        Some(Reader { path: link(&received, kind)?, email, act })
    };
    sink.messages().into_iter().filter_map(act).collect()
}

#[test]
fn what_readers_were_answered_holds_after_kills_and_who_left_gets_no_more_mail() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let count = readers();
    let mut places = None;
    let installation = Installation::delivering(&sink, |server, workspace, key| {
        places = Some(prepare(server, (workspace, key), count, &sink));
    });
    let Places { list, campaigns, automation } = places.unwrap();
    let readers = acting(&sink);
    assert!(readers.len() >= count, "{} have links", readers.len());
    let answered: Mutex<HashMap<&str, Instant>> = Mutex::default();
    let (arrivals, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let (next, rounds) = (AtomicUsize::new(0), rounds());
    let settled = |server: &Server| {
        let stats = installation.get(server, &format!("{}/stats", campaigns[1]));
        let is_sent = installation.get(server, &campaigns[1])["status"] == "sent";
        let runs = installation.get(server, &format!("{automation}/stats"));
        is_sent && stats["sending"] == 0 && stats["deferred"] == 0 && runs["completed"] == count
    };
    thread::scope(|scope| {
        let _ending = Ending(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let known = sink.messages().len();
                arrivals.lock().unwrap().resize(known, Instant::now());
                thread::sleep(LOOK);
            }
        });
        for round in 0..rounds {
            let server = installation.serve();
            if round == 0 {
                post(&server, &installation.key, &format!("{}/schedule", campaigns[1]), &json!({"send_now": true}));
                for part in (0..count).collect::<Vec<_>>().chunks(AT_ONCE) {
                    let event = |n: &usize| json!({"name": "signup", "contact": {"external_id": format!("p{n}")}});
                    let events: Vec<_> = part.iter().map(event).collect();
                    post(&server, &installation.key, "/v1/events/bulk", &json!({"events": events}));
                }
            }
            let before = sink.messages().len();
            wait_for_mail(&sink, || sink.messages().len() > before || settled(&server));
            let wanted = readers.len() * (round + 1) / rounds.max(1);
            let press = |_: usize| {
                let reader = &readers[next.fetch_add(1, Ordering::Relaxed) % readers.len()];
                if answered.lock().unwrap().contains_key(reader.email.as_str()) {
                    return;
                }
                if server.press(&reader.path, reader.act.body()) == Some(200) {
                    answered.lock().unwrap().entry(&reader.email).or_insert_with(Instant::now);
                }
            };
            load_until(|| answered.lock().unwrap().len() >= wanted, || server.kill_in_place(), press);
            drop(server);
            wait_for_sink(&sink);
        }
        let server = installation.serve();
        wait_for_mail(&sink, || settled(&server));
        thread::sleep(2 * LOOK);

        let with = |status: &str| -> HashSet<String> {
            let found = installation.all(&server, &format!("{list}?status={status}"));
            found.iter().map(|one| one["email"].as_str().unwrap().to_owned()).collect()
        };
        let (confirmed, left) = (with("confirmed"), with("left"));
        let answered = answered.lock().unwrap();
        for reader in readers.iter().filter(|reader| answered.contains_key(reader.email.as_str())) {
            let holds = if reader.act == Act::Confirm { &confirmed } else { &left };
            assert!(holds.contains(&reader.email), "{} was answered that {:?} is done", reader.email, reader.act);
        }
        // Nobody left who did not ask to.
        let stayed = (0..count).filter(|number| number % 3 == 2).map(|number| address("p", number));
        assert!(stayed.clone().all(|email| confirmed.contains(&email)));
    });

    let (answered, arrivals) = (answered.into_inner().unwrap(), arrivals.into_inner().unwrap());
    let mut mailed: HashMap<&str, HashSet<String>> = HashMap::new();
    for (received, arrived) in sink.messages().into_iter().zip(arrivals) {
        let (email, subject) = (&received.recipients[0], subject(&received));
        let Some(reader) = readers.iter().find(|reader| reader.email == *email) else { continue };
        let is_ended = match reader.act {
            Act::Confirm => false,
            Act::Leave => subject == "second",
            Act::LeaveAll => ["second", "automated"].contains(&subject.as_str()),
        };
        if let Some(told) = answered.get(reader.email.as_str()).filter(|_| is_ended) {
            let late = arrived.saturating_duration_since(*told);
            assert!(late <= allowed(UNDER_WAY), "{email} got {subject} {late:?} after the answer that it has left");
        }
        mailed.entry(&reader.email).or_default().insert(subject);
    }
    let spared = readers.iter().filter(|reader| {
        let is_left = reader.act != Act::Confirm && answered.contains_key(reader.email.as_str());
        is_left && !mailed.get(reader.email.as_str()).is_some_and(|subjects| subjects.contains("second"))
    });
    let spared = spared.count();
    assert!(spared > 0, "nobody left before the campaign came to them");
    eprintln!("leaving: {count} readers, {rounds} kills, {} answered, {spared} spared", answered.len());
}
