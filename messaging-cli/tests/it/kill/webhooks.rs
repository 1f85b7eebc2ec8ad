//! Webhooks: every event arrives, its copies under one id.

use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;

use messaging_transport::testing::ScriptedHttpServer;
use serde_json::{Value, json};

use super::{Installation, count, load_until, put, rounds, runtime, second_copies};
use crate::support::wait_for;

/// Accepted messages after which a round is cut off; each has two events.
const ACCEPTED_A_ROUND: usize = 100;

#[test]
fn every_event_arrives_after_a_kill_and_copies_have_one_id() {
    let runtime = runtime();
    let receiver = runtime.block_on(ScriptedHttpServer::start());
    let mut hook = String::new();
    let installation = Installation::new(vec!["--allow-private-targets".to_owned()], |server, workspace, key| {
        let path = format!("/v1/workspaces/{workspace}/webhooks");
        let body = json!({"url": receiver.url("/hook"), "events": ["sent", "delivered"]});
        let (status, created) = server.request("POST", &path, key, &body);
        assert_eq!(status, 201, "{created}");
        hook = format!("{path}/{}", created["id"].as_str().unwrap());
    });
    let accepted = Mutex::new(HashSet::new());
    let mut open_at_kills = 0;
    for round in 0..rounds() {
        let server = installation.serve();
        let wanted = accepted.lock().unwrap().len() + ACCEPTED_A_ROUND / 2 + (round * 37) % ACCEPTED_A_ROUND;
        let kill = || {
            server.freeze();
            let knocking = knock(&receiver);
            open_at_kills += receiver.open() - 1;
            drop(knocking);
            server.kill_in_place();
        };
        load_until(
            || accepted.lock().unwrap().len() >= wanted,
            kill,
            |n| {
                let to = format!("user-{round}-{n}@example.com");
                let message = json!({"channel": "email", "to": to, "subject": "s", "text": "t"});
                if let Some((status, answer)) = server.try_request("/v1/messages", &installation.key, &[], &message) {
                    assert_eq!(status, 202, "{answer}");
                    put(&accepted, answer["message_id"].as_str().unwrap().to_owned());
                }
            },
        );
        drop(server);
        wait_for(|| (receiver.open() == 0).then_some(()));
    }

    let server = installation.serve();
    let is_delivered = |message: &Value| message["status"] == "delivered";
    wait_for(|| installation.all(&server, "/v1/messages").iter().all(is_delivered).then_some(()));
    let messages = installation.all(&server, "/v1/messages");
    let events = 2 * messages.len();
    let deliveries = format!("{hook}/deliveries?status=delivered");
    wait_for(|| (installation.all(&server, &deliveries).len() >= events).then_some(()));
    let delivered = installation.all(&server, &format!("{hook}/deliveries"));
    assert_eq!(delivered.len(), events, "one delivery for each event");
    let delivered: HashSet<_> =
        delivered.iter().map(|delivery| delivery["event_id"].as_str().unwrap().to_owned()).collect();

    let requests: Vec<_> = receiver.requests().into_iter().filter(|request| request.target == "/hook").collect();
    let mut told: HashMap<String, HashSet<String>> = HashMap::new();
    for request in &requests {
        let body = request.json();
        let event = format!("{} of {}", body["type"], body["data"]["message_id"]);
        told.entry(event).or_default().insert(request.header("webhook-id").to_owned());
    }
    assert!(told.values().all(|ids| ids.len() == 1), "an event has one id");
    let known: HashSet<_> = messages.iter().map(|message| message["message_id"].as_str().unwrap()).collect();
    assert!(accepted.into_inner().unwrap().iter().all(|id| known.contains(id.as_str())), "an accepted one is lost");
    assert_eq!(told.len(), events, "every event of every message has arrived");
    let arrived = count(requests.iter().map(|request| request.header("webhook-id").to_owned()));
    assert_eq!(arrived.keys().cloned().collect::<HashSet<_>>(), delivered);
    let copies = second_copies(&arrived);
    eprintln!("webhooks: {events} events, {} kills, {open_at_kills} connections open at them", rounds());
    eprintln!("webhooks: {copies} second copies");
    assert!(copies <= open_at_kills, "{copies} second copies, {open_at_kills} connections open at the kills");
}

/// Makes a request and waits for its answer: every connection from before is accepted then. Its own connection
/// counts as one while it is held.
fn knock(receiver: &ScriptedHttpServer) -> TcpStream {
    let mut stream = TcpStream::connect(receiver.address()).unwrap();
    stream.write_all(b"GET /knock HTTP/1.1\r\nHost: receiver\r\n\r\n").unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
    stream
}
