//! Many requests that write one resource at the same moment, over the wire.

use std::sync::Arc;

use messaging_core::scope::Scope;
use serde_json::json;

use crate::harness::{TestServer, request_text};
use crate::wire::{Response, Wire};

const WRITERS: usize = 50;

/// Sends the requests over a connection each, all at the same moment.
async fn at_once(server: &TestServer, requests: Vec<String>) -> Vec<Response> {
    let start = Arc::new(tokio::sync::Barrier::new(requests.len()));
    let mut writers = Vec::new();
    for request in requests {
        let (address, start) = (server.address, Arc::clone(&start));
        writers.push(tokio::spawn(async move {
            let mut wire = Wire::connect(address).await;
            start.wait().await;
            wire.send(request).await;
            wire.response().await.expect("an answer")
        }));
    }
    let mut responses = Vec::new();
    for writer in writers {
        responses.push(writer.await.unwrap());
    }
    responses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_contact_are_all_done() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::ContactsWrite, Scope::ContactsRead]).await;
    let contacts = format!("/v1/workspaces/{}/contacts", server.workspace);
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let upsert = |n: usize| {
        let body = json!({"email": "ann@example.com", "attributes": {format!("w{n}"): n}}).to_string();
        request_text("POST", &contacts, &headers, Some(&body))
    };
    let responses = at_once(&server, (0..WRITERS).map(upsert).collect()).await;
    let mut statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; WRITERS - 1], vec![201]].concat());

    let contact = format!("{contacts}/{}", responses[0].json()["id"].as_str().unwrap());
    let patch = |n: usize| {
        let body = json!({"attributes": {format!("p{n}"): n}}).to_string();
        request_text("PATCH", &contact, &headers, Some(&body))
    };
    for response in at_once(&server, (0..WRITERS).map(patch).collect()).await {
        assert_eq!(response.status, 200, "{}", response.code());
    }
    let stored = server.get(&contact, &key).await.json();
    assert_eq!(stored["attributes"].as_object().unwrap().len(), 2 * WRITERS, "no write is lost");
}
