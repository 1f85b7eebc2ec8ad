//! Readers of a public list who confirm, leave and choose at two nodes of one database, while files with their
//! addresses are imported, a campaign is sent and nodes are killed: the last action of each reader holds, and a reader
//! who was told that they left gets no mail of the list afterwards.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use messaging_testing::Received;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{Installation, Nodes, kills};
use crate::kill::leaving::{LOOK, UNDER_WAY, address, link, subject};
use crate::kill::{Ending, load_until, post, runtime, wait_for_mail};
use crate::support::{Server, allowed, wait_or_tell};

/// Servers side by side.
const NODES: usize = 2;

/// Time for the campaign to be sent after the last kill; what is left of it then is cancelled.
const PATIENCE: Duration = Duration::from_secs(75);

/// Members of the list, and as many who are asked to confirm.
const READERS: usize = 120;

/// Number of times that each reader is in an imported file.
const TIMES_IN_FILE: usize = 10;

/// An action of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Confirm,
    /// By the button of a mail program.
    Leave,
    /// On the page of preferences.
    LeaveByChoice,
    /// The same page, where the list is chosen again.
    ComeBack,
}

impl Act {
    /// The kind of link that the action follows.
    const fn link(self) -> &'static str {
        match self {
            Self::Confirm => "/c/",
            Self::Leave => "/u/",
            Self::LeaveByChoice | Self::ComeBack => "/p/",
        }
    }

    /// The form that the action posts there.
    fn form(self, list: &str) -> String {
        match self {
            Self::Confirm => "confirm=yes".to_owned(),
            Self::Leave => "List-Unsubscribe=One-Click".to_owned(),
            Self::LeaveByChoice => format!("shown={list}"),
            Self::ComeBack => format!("shown={list}&list={list}"),
        }
    }
}

/// A reader with links, who acts step by step.
struct Reader {
    email: String,
    acts: &'static [Act],
    links: HashMap<&'static str, String>,
    /// Number of answered actions, and the time of the last answer; locked while somebody acts for the reader.
    done: Mutex<(usize, Option<Instant>)>,
}

/// Actions of the reader with a number: members leave, leave and come back, leave by choice, or stay; of the readers
/// who are asked every second confirms.
fn acts(email: &str, number: usize) -> &'static [Act] {
    match (&email[..1], number % 4) {
        ("p", 0) => &[Act::Leave],
        ("p", 1) => &[Act::Leave, Act::ComeBack],
        ("p", 2) => &[Act::LeaveByChoice],
        ("q", 0 | 2) => &[Act::Confirm],
        _ => &[],
    }
}

impl Reader {
    fn last(&self) -> Option<Act> {
        self.acts.last().copied()
    }

    /// Does the next action at a node; if it is not answered, it stays the next one.
    fn act(&self, node: &Server, list: &str) {
        // Another thread may be acting.
        let Ok(mut done) = self.done.try_lock() else { return };
        let Some(act) = self.acts.get(done.0) else { return };
        if node.press(&self.links[act.link()], &act.form(list)) == Some(200) {
            *done = (done.0 + 1, Some(Instant::now()));
        }
    }
}

/// A workspace with a list, and campaigns to it.
struct Shop {
    base: String,
    list: String,
    second: String,
}

impl Shop {
    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// A public list with members and with readers who are asked to confirm, and two campaigns, the first of which is
    /// sent.
    fn prepare(installation: &Installation, server: &Server) -> Self {
        let key = &installation.key;
        let (status, page) = server.request("GET", "/v1/workspaces", key, &Value::Null);
        assert_eq!(status, 200, "{page}");
        let base = format!("/v1/workspaces/{}", page["data"][0]["id"].as_str().unwrap());
        let made = |path: &str, body: Value| {
            post(server, key, &format!("{base}/{path}"), &body)["id"].as_str().unwrap().to_owned()
        };
        let list = made("lists", json!({"name": "News", "visibility": "public", "opt_in": "double"}));
        let consent = json!({"marketing_email": true});
        let member = |n| json!({"email": address("p", n), "list_ids": [list], "consent": consent});
        let members: Vec<_> = (0..READERS).map(member).collect();
        post(server, key, &format!("{base}/contacts/bulk"), &json!({"contacts": members}));
        let asked: Vec<_> = (0..READERS).map(|n| json!({"email": address("q", n), "consent": consent})).collect();
        let asked = post(server, key, &format!("{base}/contacts/bulk"), &json!({"contacts": asked}));
        let ids: Vec<_> = asked["results"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        let body = json!({"contact_ids": ids, "status": "unconfirmed"});
        post(server, key, &format!("{base}/lists/{list}/contacts"), &body);
        let campaign = |subject: &str, settings: Value| {
            let html = "<a href=\"{{ unsubscribe_url }}\">stop</a> <a href=\"{{ preferences_url }}\">choose</a>";
            let template = json!({"name": subject, "channel": "email", "subject": subject, "html": html});
            let template = made("templates", template);
            let body = json!({"name": subject, "channel": "email", "template_id": template,
                "audience": {"list_ids": [list]}, "settings": settings});
            format!("{base}/campaigns/{}", made("campaigns", body))
        };
        let first = campaign("first", json!({}));
        // Takes a minute, so that nodes are killed while it is being sent.
        let second = campaign("second", json!({"rate_limit": READERS}));
        post(server, key, &format!("{first}/schedule"), &json!({"send_now": true}));
        wait_for_mail(&installation.sink, || installation.sink.messages().len() >= 2 * READERS);
        Self { base, list, second }
    }

    /// Has a file with all readers imported; returns the path of the import.
    fn import(&self, installation: &Installation, server: &Server, status: &str) -> String {
        let mut file = String::from("email,list_ids,attributes.n\n");
        for n in 0..READERS * TIMES_IN_FILE {
            for kind in ["p", "q"] {
                writeln!(file, "{},{},{n}", address(kind, n % READERS), self.list).unwrap();
            }
        }
        let sha256: String =
            digest(&SHA256, file.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let body = json!({"filename": "a.csv", "size_bytes": file.len(), "sha256": sha256, "status": status});
        let import = post(server, &installation.key, &self.at("contacts/import"), &body);
        let (status, answer) = server.upload(import["upload_url"].as_str().unwrap(), file.as_bytes()).unwrap();
        assert_eq!(status, 202, "{answer}");
        self.at(&format!("contacts/imports/{}", import["import_id"].as_str().unwrap()))
    }

    /// Email addresses of the contacts with a status on the list.
    fn with(&self, installation: &Installation, server: &Server, status: &str) -> HashSet<String> {
        let (mut found, mut cursor) = (HashSet::new(), String::new());
        loop {
            let path = self.at(&format!("lists/{}/contacts?status={status}&limit=200{cursor}", self.list));
            let page = installation.get(server, &path);
            found.extend(page["data"].as_array().unwrap().iter().map(|one| one["email"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    }
}

impl Installation {
    fn get(&self, server: &Server, path: &str) -> Value {
        let (status, answer) = server.request("GET", path, &self.key, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

/// The readers who act, with the links of their first mails.
fn readers(mails: Vec<Received>) -> Vec<Reader> {
    let reader = |received: Received| {
        let email = received.recipients[0].clone();
        let acts = acts(&email, email[1..].split('@').next()?.parse().ok()?);
        let links: HashMap<_, _> =
            ["/c/", "/u/", "/p/"].into_iter().filter_map(|kind| Some((kind, link(&received, kind)?))).collect();
        (!acts.is_empty()).then(|| Reader { email, acts, links, done: Mutex::default() })
    };
    mails.into_iter().filter_map(reader).collect()
}

/// Lets readers act at the running nodes, until `until` actions were answered in all.
fn go_on(readers: &[Reader], nodes: &[&Server], list: &str, until: usize, kill: impl FnOnce()) {
    let next = AtomicUsize::new(0);
    let answered = || readers.iter().map(|reader| reader.done.lock().unwrap().0).sum::<usize>();
    load_until(
        || answered() >= until,
        kill,
        |_| {
            let n = next.fetch_add(1, Ordering::Relaxed);
            // No node has readers of its own.
            readers[n % readers.len()].act(nodes[(n / 3) % nodes.len()], list);
        },
    );
}

/// Checks mails and the list against the answers to readers.
fn check(installation: &Installation, shop: &Shop, server: &Server, readers: &[Reader], arrivals: &[Instant]) {
    let [confirmed, left] = ["confirmed", "left"].map(|status| shop.with(installation, server, status));
    for reader in readers {
        let holds = match reader.last().unwrap() {
            Act::Confirm | Act::ComeBack => &confirmed,
            Act::Leave | Act::LeaveByChoice => &left,
        };
        assert!(holds.contains(&reader.email), "{} did {:?} last, and is not so", reader.email, reader.acts);
    }
    let stayed = (0..READERS).filter(|n| n % 4 == 3).map(|n| address("p", n));
    assert!(stayed.clone().all(|email| confirmed.contains(&email)), "nobody left who did not ask to");
    let count = &installation.get(server, &shop.at(&format!("lists/{}", shop.list)))["contact_count"];
    assert_eq!(*count, confirmed.len(), "the list counts its members");

    let mut spared: HashSet<_> =
        readers.iter().filter(|reader| left.contains(&reader.email)).map(|one| &one.email).collect();
    for (received, arrived) in installation.sink.messages().iter().zip(arrivals) {
        let Some(reader) = readers.iter().find(|reader| reader.email == received.recipients[0]) else { continue };
        if subject(received) != "second" || !left.contains(&reader.email) {
            continue;
        }
        spared.remove(&reader.email);
        let told = reader.done.lock().unwrap().1.unwrap();
        let late = arrived.saturating_duration_since(told);
        assert!(late <= allowed(UNDER_WAY), "{} got mail {late:?} after the answer that it has left", reader.email);
    }
    assert!(!spared.is_empty(), "nobody left before the campaign came to them");
    eprintln!("leaving at nodes: {} readers, {} spared", readers.len(), spared.len());
}

#[test]
fn the_last_act_of_a_reader_holds_at_two_nodes_that_are_killed_during_imports() {
    let runtime = runtime();
    let Some(installation) = Installation::new(&runtime, NODES) else { return };
    let nodes: Nodes = installation.start_all();
    let shop = Shop::prepare(&installation, &nodes.node(0));
    let readers = readers(installation.sink.messages());
    let all: usize = readers.iter().map(|reader| reader.acts.len()).sum();
    assert!(readers.iter().all(|reader| reader.acts.iter().all(|act| reader.links.contains_key(act.link()))));
    let (arrivals, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let kills = kills();
    thread::scope(|scope| {
        let _ending = Ending(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let known = installation.sink.messages().len();
                arrivals.lock().unwrap().resize(known, Instant::now());
                thread::sleep(LOOK);
            }
        });
        post(&nodes.node(1), &installation.key, &format!("{}/schedule", shop.second), &json!({"send_now": true}));
        let mut imports = Vec::new();
        for round in 0..kills {
            let (victim, other) = (nodes.node(round), nodes.node(round + 1));
            // The status in a file for readers who are asked differs by round.
            let status = if round % 2 == 0 { "unconfirmed" } else { "confirmed" };
            imports.push(shop.import(&installation, &other, status));
            let part = |half: usize| all * (2 * round + half) / (2 * kills);
            go_on(&readers, &[&victim, &other], &shop.list, part(1), || victim.kill_in_place());
            // With one node, until the other restarts.
            go_on(&readers, &[&other], &shop.list, part(2), || {});
            drop(victim);
            nodes.put(round % NODES, installation.start("serve", round % NODES));
        }
        let server = nodes.node(0);
        wait_or_tell(|| {
            let mut states = imports.iter().map(|path| installation.get(&server, path));
            match states.find(|import| import["status"] != "completed") {
                Some(import) if import["status"] == "failed" => panic!("{import}"),
                Some(import) => Err(format!("not read: {import}")),
                None => Ok(()),
            }
        });
        // Where one node releases the messages and another sends them, a rate limit leaves some of them every minute.
        let is_sending = || installation.get(&server, &shop.second)["status"] == "sending";
        let patience = Instant::now() + PATIENCE;
        wait_for_mail(&installation.sink, || !is_sending() || Instant::now() >= patience);
        if is_sending() {
            post(&server, &installation.key, &format!("{}/cancel", shop.second), &json!({}));
        }
        wait_for_mail(&installation.sink, || {
            let stats = installation.get(&server, &format!("{}/stats", shop.second));
            !is_sending() && stats["sending"] == 0 && stats["deferred"] == 0
        });
        thread::sleep(2 * LOOK);
        check(&installation, &shop, &server, &readers, &arrivals.lock().unwrap());
    });
    assert_eq!(installation.admin(&["verify"])["differences"], json!([]));
}
