//! Webhooks: every event arrives, its copies under one id.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use messaging_testing::{HttpRequest, ScriptedHttpServer};
use serde_json::{Value, json};

use super::copies::{Copies, requests, wait_for_web};
use super::{Installation, count, load_until, put, rounds, runtime};
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
    let done_deliveries = format!("{hook}/deliveries?status=delivered");
    let event_ids = |deliveries: &[Value]| -> HashSet<_> {
        deliveries.iter().map(|delivery| delivery["event_id"].as_str().unwrap().to_owned()).collect()
    };
    let mut copies = Copies::default();
    for round in 0..rounds() {
        let server = installation.serve();
        let wanted = accepted.lock().unwrap().len() + ACCEPTED_A_ROUND / 2 + (round * 37) % ACCEPTED_A_ROUND;
        let mut done = HashSet::new();
        let kill = || {
            done = event_ids(&installation.all(&server, &done_deliveries));
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
        wait_for_web(&receiver);
        copies.killed(requests(&receiver).map(|request| event_id(&request)), done);
    }

    let server = installation.serve();
    let is_delivered = |message: &Value| message["status"] == "delivered";
    wait_for(|| installation.all(&server, "/v1/messages").iter().all(is_delivered).then_some(()));
    let messages = installation.all(&server, "/v1/messages");
    let events = 2 * messages.len();
    wait_for(|| (installation.all(&server, &done_deliveries).len() >= events).then_some(()));
    let delivered = installation.all(&server, &format!("{hook}/deliveries"));
    assert_eq!(delivered.len(), events, "one delivery for each event");
    let delivered = event_ids(&delivered);

    let requests: Vec<_> = requests(&receiver).collect();
    let mut told: HashMap<String, HashSet<String>> = HashMap::new();
    for request in &requests {
        let body = request.json();
        let event = format!("{} of {}", body["type"], body["data"]["message_id"]);
        told.entry(event).or_default().insert(event_id(request));
    }
    assert!(told.values().all(|ids| ids.len() == 1), "an event has one id");
    let known: HashSet<_> = messages.iter().map(|message| message["message_id"].as_str().unwrap()).collect();
    assert!(accepted.into_inner().unwrap().iter().all(|id| known.contains(id.as_str())), "an accepted one is lost");
    assert_eq!(told.len(), events, "every event of every message has arrived");
    let arrived = count(requests.iter().map(event_id));
    assert_eq!(arrived.keys().cloned().collect::<HashSet<_>>(), delivered);
    let copies = copies.check(&arrived);
    eprintln!("webhooks: {events} events, {} kills, {copies} second copies", rounds());
}

/// The event that a request tells.
fn event_id(request: &HttpRequest) -> String {
    request.header("webhook-id").to_owned()
}
