//! Bulk requests: repeated with their Idempotency-Key after a kill, each is done once.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::{Installation, load_until, rounds};
use crate::support::Server;

/// Contacts of a request: two parts of it.
const CONTACTS: usize = 1000;
/// Product events of a request.
const EVENTS: usize = 300;
/// Answered requests after which a round is cut off.
const ANSWERED_A_ROUND: usize = 6;

/// A request that may have had an effect: its key and body.
#[derive(Clone)]
struct Request {
    path: String,
    key: String,
    body: Value,
}

impl Request {
    fn send(&self, server: &Server, installation: &Installation) -> Option<Value> {
        let headers = [("Idempotency-Key", self.key.as_str())];
        let (status, answer) = server.try_request(&self.path, &installation.key, &headers, &self.body)?;
        assert!(matches!(status, 200 | 202), "{status} {answer}");
        Some(answer)
    }
}

/// Sends requests until the server is killed in the middle of some, again and again; requests without an answer
/// are repeated with the next server. Answers all requests with their answers.
fn kill_again_and_again(installation: &Installation, make: impl Fn(usize, usize) -> Request + Sync) -> Vec<Value> {
    let answers = Mutex::new(Vec::new());
    let unanswered: Mutex<Vec<Request>> = Mutex::default();
    let send = |server: &Server, request: Request| match request.send(server, installation) {
        Some(answer) => answers.lock().unwrap().push(answer),
        None => unanswered.lock().unwrap().push(request),
    };
    let repeat = |server: &Server| {
        let requests = std::mem::take(&mut *unanswered.lock().unwrap());
        for request in requests {
            send(server, request);
        }
    };
    let mut cut_off = 0;
    for round in 0..rounds() {
        let server = installation.serve();
        repeat(&server);
        let wanted = answers.lock().unwrap().len() + ANSWERED_A_ROUND;
        let is_enough = || answers.lock().unwrap().len() >= wanted;
        load_until(is_enough, || server.kill_in_place(), |n| send(&server, make(round, n)));
        cut_off += unanswered.lock().unwrap().len();
    }
    let server = installation.serve();
    repeat(&server);
    assert!(unanswered.lock().unwrap().is_empty());
    server.kill();
    assert!(cut_off > 0, "no request was cut off");
    eprintln!("bulk: {cut_off} requests cut off by {} kills", rounds());
    answers.into_inner().unwrap()
}

#[test]
fn contacts_of_a_bulk_request_that_a_kill_cut_off_are_there_once() {
    let installation = Installation::new(Vec::new(), |_, _, _| {});
    let contacts = format!("/v1/workspaces/{}/contacts", installation.workspace);
    let bulk = format!("{contacts}/bulk");
    let answers = kill_again_and_again(&installation, |round, n| {
        let contact = |number: usize| {
            let name = format!("{round}-{n}-{number}");
            json!({"external_id": name, "email": format!("u-{name}@example.com"), "attributes": {"n": name}})
        };
        let key = format!("contacts-{round}-{n}");
        let body = json!({"contacts": (0..CONTACTS).map(contact).collect::<Vec<_>>()});
        Request { path: bulk.clone(), key, body }
    });
    let server = installation.serve();
    let (mut touched, mut created) = (0, 0);
    for answer in &answers {
        assert_eq!(answer["failed"], 0, "{answer}");
        created += answer["created"].as_u64().unwrap();
        touched += created_or_updated(answer);
    }
    let found = installation.all(&server, &contacts);
    assert_eq!(found.len(), touched);
    assert_eq!(found.len(), answers.len() * CONTACTS);
    for contact in &found {
        let name = contact["external_id"].as_str().unwrap();
        assert_eq!(contact["email"], format!("u-{name}@example.com"));
        assert_eq!(contact["attributes"]["n"], name);
    }
    eprintln!("bulk: {touched} contacts, {created} of them told as created");
}

fn created_or_updated(answer: &Value) -> usize {
    ["created", "updated"].iter().map(|name| usize::try_from(answer[*name].as_u64().unwrap()).unwrap()).sum()
}

#[test]
fn product_events_of_a_bulk_request_that_a_kill_cut_off_are_there_once() {
    let installation = Installation::new(Vec::new(), |_, _, _| {});
    // Without a `unique_id` nothing but the key tells the repetition.
    let answers = kill_again_and_again(&installation, |round, n| {
        let event = |number: usize| {
            let contact = format!("{round}-{n}@example.com");
            json!({"name": "viewed", "contact": {"email": contact}, "properties": {"number": number}})
        };
        let key = format!("events-{round}-{n}");
        let body = json!({"events": (0..EVENTS).map(event).collect::<Vec<_>>()});
        Request { path: "/v1/events/bulk".to_owned(), key, body }
    });
    let server = installation.serve();
    assert!(answers.iter().all(|answer| answer["accepted"] == EVENTS), "{answers:?}");
    let contacts = format!("/v1/workspaces/{}/contacts", installation.workspace);
    let contacts: Vec<_> = installation.all(&server, &contacts);
    let export = |contact: &Value| {
        let id = contact["id"].as_str().unwrap();
        let path = format!("/v1/workspaces/{}/contacts/{id}/export", installation.workspace);
        installation.get(&server, &path)["events"].as_array().unwrap().len()
    };
    assert_eq!(contacts.iter().map(export).sum::<usize>(), answers.len() * EVENTS);
}
