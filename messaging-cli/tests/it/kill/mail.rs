//! Mail through a relay, to one mail server for all domains, and to the mail servers that a DNS server names.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;

use messaging_testing::{ScriptedSmtpServer, TestDns};
use serde_json::{Value, json};

use super::copies::{Copies, mails, message_id, wait_for_sink};
use super::{Installation, is_marked, load_until, put, rounds, runtime};
use crate::support::{Server, wait_for, wait_or_tell};

/// Accepted messages after which a round is cut off, on average; the exact number differs by round.
const ACCEPTED_A_ROUND: usize = 120;

/// Number of attempts cut off by kills after which a message is given up, because nobody knows if a copy arrived.
/// Several kills in a row on a slow machine hit the same messages, which go first after each.
const CUT_OFF: usize = 5;

/// Domains of the recipients, each with both mail servers.
const DOMAINS: [&str; 3] = ["a.test", "b.test", "c.test"];

/// The mail servers that the server sends to, and the DNS server that names them, if there is one.
struct Peers {
    sinks: Vec<ScriptedSmtpServer>,
    /// Kept because it answers until it is dropped.
    dns: Option<TestDns>,
}

impl Peers {
    /// The mails that arrived, each as its recipient and its whole header field `Message-ID`.
    fn arrived(&self) -> Vec<(String, String)> {
        self.sinks.iter().flat_map(mails).collect()
    }

    /// The messages that arrived.
    fn message_ids(&self) -> impl Iterator<Item = String> {
        self.arrived().into_iter().map(|(_, field)| message_id(&field))
    }
}

#[test]
fn every_202_is_relayed_after_a_kill_and_every_second_copy_is_marked() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let settings = json!({"provider": "smtp", "config": {"host": "127.0.0.1", "port": sink.port(), "tls": "none"}});
    let peers = Peers { sinks: vec![sink], dns: None };
    kill_again_and_again(&peers, vec!["--allow-private-targets".to_owned()], &settings, "sent");
}

#[test]
fn every_202_is_delivered_after_a_kill_and_every_second_copy_is_marked() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let flags = vec!["--mx-override".to_owned(), sink.address().to_string()];
    let peers = Peers { sinks: vec![sink], dns: None };
    kill_again_and_again(&peers, flags, &json!({"provider": "builtin", "config": {}}), "delivered");
}

#[test]
fn every_202_reaches_its_exchanger_after_a_kill_and_every_second_copy_is_marked() {
    let runtime = runtime();
    let Some(exchangers) = exchangers() else {
        eprintln!("skipped: exchangers listen at port 25, which this user may not");
        return;
    };
    let peers = runtime.block_on(async {
        let dns = TestDns::start().await;
        let names = ["mx1.exchangers.test", "mx2.exchangers.test"];
        for domain in DOMAINS {
            dns.mx(domain, &[(10, names[0]), (10, names[1])]);
        }
        let mut sinks = Vec::new();
        for (name, address) in names.into_iter().zip(exchangers) {
            dns.addresses(name, &[address.ip()]);
            sinks.push(ScriptedSmtpServer::builder().at(address).start().await);
        }
        Peers { sinks, dns: Some(dns) }
    });
    let dns = peers.dns.as_ref().unwrap().addr().to_string();
    let flags = ["--allow-private-targets", "--dns", &dns].map(str::to_owned).to_vec();
    kill_again_and_again(&peers, flags, &json!({"provider": "builtin", "config": {}}), "delivered");
    assert!(peers.sinks.iter().all(|sink| sink.connections() > 0), "both exchangers are used");
}

/// Two addresses of this machine whose port 25 is free; `None` if this user may not listen there.
fn exchangers() -> Option<[SocketAddr; 2]> {
    let [.., high, low] = std::process::id().to_be_bytes();
    let free = |last: u8| {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, high.max(1), low, last)), 25);
        match TcpListener::bind(address) {
            Ok(_) => Some(address),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(error) => panic!("{address}: {error}"),
        }
    };
    Some([free(1)?, free(2)?])
}

fn kill_again_and_again(peers: &Peers, flags: Vec<String>, channel: &Value, end: &str) {
    let installation = Installation::new(flags, |server, workspace, key| {
        let path = format!("/v1/workspaces/{workspace}/channels/email");
        let (status, answer) = server.request("PUT", &path, key, channel);
        assert_eq!(status, 200, "{answer}");
    });
    let rounds = rounds();
    let accepted = Mutex::new(HashSet::new());
    let mut copies = Copies::default();
    for round in 0..rounds {
        let done = load_and_kill(&installation, round, &accepted, end);
        peers.sinks.iter().for_each(wait_for_sink);
        copies.killed(peers.message_ids(), done);
    }
    let accepted = accepted.into_inner().unwrap();

    let server = installation.serve();
    for id in &accepted {
        let path = format!("/v1/messages/{id}");
        wait_or_tell(|| {
            let message = installation.get(&server, &path);
            if is_over(&message, end) { Ok(()) } else { Err(format!("not {end}: {message}")) }
        });
    }
    // A message whose 202 was lost may have been accepted all the same.
    let messages = installation.all(&server, "/v1/messages");
    wait_for(|| installation.all(&server, "/v1/messages").iter().all(|message| is_over(message, end)).then_some(()));

    let mut ids: HashMap<String, HashSet<String>> = HashMap::new();
    for (recipient, id) in peers.arrived() {
        ids.entry(recipient).or_default().insert(id);
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "a copy has another Message-ID: {ids:?}");
    let arrived = super::count(peers.message_ids());
    let listed = installation.all(&server, "/v1/messages");
    let failed = listed.iter().filter(|message| message["status"] == "failed");
    let given_up: HashSet<_> = failed.map(|message| given_up(&installation, &server, message)).collect();
    let lost: Vec<_> = accepted.iter().filter(|id| !arrived.contains_key(*id) && !given_up.contains(*id)).collect();
    assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), accepted.len());
    let known: HashSet<_> = messages.iter().map(|message| message["message_id"].as_str().unwrap()).collect();
    assert_eq!(known.len(), messages.len(), "a message is listed once");
    assert!(arrived.keys().all(|id| known.contains(id.as_str())), "what arrived is known");
    let missing: Vec<_> = known.iter().filter(|id| !arrived.contains_key(**id) && !given_up.contains(**id)).collect();
    assert!(missing.is_empty(), "known, and not arrived: {missing:?}");

    let mut marked = 0;
    for id in &known {
        let report = installation.get(&server, &format!("/v1/messages/{id}"));
        let is_marked = is_marked(&report);
        marked += usize::from(is_marked);
        let copies = arrived.get(*id).copied().unwrap_or_default();
        assert!(copies <= 1 || is_marked, "{id} arrived {copies} times without a mark: {report}");
    }
    let copies = copies.check(&arrived);
    eprintln!("{end}: {} messages, {rounds} kills, {copies} second copies, {marked} messages marked", known.len());
    assert!(given_up.is_empty() || rounds >= CUT_OFF, "given up after {rounds} kills: {given_up:?}");
}

fn is_over(message: &Value, end: &str) -> bool {
    message["status"] == end || message["status"] == "failed"
}

/// The id of a failed message, after making sure that it failed because of too many kills and says so.
fn given_up(installation: &Installation, server: &Server, message: &Value) -> String {
    let id = message["message_id"].as_str().unwrap();
    let report = installation.get(server, &format!("/v1/messages/{id}"));
    let cut_off = format!("the server stopped {CUT_OFF} times");
    let is_told = report["events"].as_array().unwrap().iter().any(|event| {
        let meta = &event["meta"];
        event["kind"] == "failed"
            && meta["ambiguous"] == true
            && meta["message"].as_str().is_some_and(|text| text.starts_with(&cut_off))
    });
    assert!(is_told, "{report}");
    id.to_owned()
}

/// Posts from several clients until enough messages are accepted, then kills the server meanwhile. Returns the messages
/// that it had reported with the status `end`.
fn load_and_kill(
    installation: &Installation,
    round: usize,
    accepted: &Mutex<HashSet<String>>,
    end: &str,
) -> HashSet<String> {
    let server = installation.serve();
    let before = accepted.lock().unwrap().len();
    let wanted = before + ACCEPTED_A_ROUND / 2 + (round * 37) % ACCEPTED_A_ROUND;
    let is_enough = || accepted.lock().unwrap().len() >= wanted;
    let mut done = HashSet::new();
    load_until(
        is_enough,
        || {
            done = installation.done(&server, "/v1/messages", end);
            server.kill_in_place();
        },
        |n| {
            let domain = DOMAINS[n % DOMAINS.len()];
            let to = format!("user-{round}-{n}@{domain}");
            let message = json!({"channel": "email", "to": to, "subject": "s", "text": format!("number {n}")});
            // The server may be killed at any moment: without an answer there is no promise.
            let Some((status, answer)) = server.try_request("/v1/messages", &installation.key, &[], &message) else {
                return;
            };
            assert_eq!(status, 202, "{answer}");
            put(accepted, answer["message_id"].as_str().unwrap().to_owned());
        },
    );
    done
}

#[test]
fn a_key_that_was_used_before_a_kill_still_makes_one_message() {
    let runtime = runtime();
    let sink = runtime.block_on(ScriptedSmtpServer::start());
    let channel = json!({"provider": "smtp", "config": {"host": "127.0.0.1", "port": sink.port(), "tls": "none"}});
    let installation = Installation::new(vec!["--allow-private-targets".to_owned()], |server, workspace, key| {
        let path = format!("/v1/workspaces/{workspace}/channels/email");
        assert_eq!(server.request("PUT", &path, key, &channel).0, 200);
    });
    let ids = Mutex::new(HashSet::new());
    let message = json!({"channel": "email", "to": "user@example.test", "subject": "s", "text": "t"});
    let hundred_requests = |server: &Server| {
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    let headers = [("Idempotency-Key", "the-same")];
                    match server.try_request("/v1/messages", &installation.key, &headers, &message) {
                        Some((202, answer)) => put(&ids, answer["message_id"].as_str().unwrap().to_owned()),
                        Some((409, answer)) => assert_eq!(answer["error"]["code"], "idempotency_in_progress"),
                        other => panic!("{other:?}"),
                    }
                });
            }
        });
    };
    let server = installation.serve();
    hundred_requests(&server);
    assert_eq!(ids.lock().unwrap().len(), 1);
    server.kill();

    let server = installation.serve();
    hundred_requests(&server);
    let ids = ids.into_inner().unwrap();
    assert_eq!(ids.len(), 1);
    let path = format!("/v1/messages/{}", ids.iter().next().unwrap());
    wait_for(|| (installation.get(&server, &path)["status"] == "sent").then_some(()));
    assert_eq!(installation.all(&server, "/v1/messages").len(), 1);
}
