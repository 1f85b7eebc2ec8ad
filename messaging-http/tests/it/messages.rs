//! Messages over HTTP, from the request to the delivery.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::mail::sending_domain::{DomainStatus, SendingDomain};
use messaging_core::ports::transport::Content;
use messaging_core::scope::Scope;

use crate::harness::TestServer;

/// A server whose workspace may send from `acme.com` through the test's transport.
pub(crate) async fn sending_server() -> TestServer {
    let server = TestServer::start().await;
    let now = server.app.now();
    let domain = SendingDomain {
        status: DomainStatus::Verified,
        verified_at: Some(now),
        ..SendingDomain::new(server.app.new_id(now), server.workspace, "acme.com", now)
    };
    server.commit([Write::put(domain, Expect::Absent)]).await;
    let administrator = server.key(&[Scope::All]).await;
    let path = format!("/v1/workspaces/{}/channels/email", server.workspace);
    let settings = r#"{"provider":"smtp","config":{"host":"relay.test","port":25}}"#;
    assert_eq!(server.put(&path, &administrator, settings).await.code(), "ok");
    server
}

#[tokio::test]
async fn an_accepted_message_is_sent_and_can_be_followed() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let body =
        r#"{"channel":"email","to":"ann@example.com","from_email":"shop@acme.com","subject":"Hi","text":"Hello"}"#;
    let accepted = server.post("/v1/messages", &key, body).await;
    assert_eq!((accepted.status, &accepted.json()["status"]), (202, &"queued".into()));

    server.app.run_until_idle().await.unwrap();
    let sent = server.transport.take();
    let Content::Email(email) = &sent[0].content else { panic!("{sent:?}") };
    assert_eq!((sent.len(), email.subject.as_str(), email.to.as_str()), (1, "Hi", "ann@example.com"));

    let id = accepted.json()["message_id"].as_str().unwrap().to_owned();
    let status = server.get(&format!("/api/v1/messages/{id}"), &key).await;
    assert_eq!(status.json()["status"], "delivered");
    let unknown = server.get("/v1/messages/msg_nobody", &key).await;
    assert_eq!((unknown.status, &*unknown.code()), (404, "not_found"));
}

#[tokio::test]
async fn attachments_of_the_largest_size_are_taken_by_many_at_once() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    // 15 MiB decoded.
    let content = "AAAA".repeat(5 << 20);
    let body = format!(
        r#"{{"channel":"email","to":"ann@example.com","from_email":"shop@acme.com","subject":"Hi","text":"Hello",
            "attachments":[{{"filename":"a.bin","content_b64":"{content}"}}]}}"#
    );
    let requests = (0..4).map(|_| server.post("/v1/messages", &key, &body));
    let answers = futures_util::future::join_all(requests).await;
    let codes: Vec<_> = answers.iter().map(crate::wire::Response::code).collect();
    assert_eq!(codes, ["ok"; 4]);
}

#[tokio::test]
async fn a_batch_costs_a_token_for_each_message() {
    let server = sending_server().await;
    let key = server.key_with(&[Scope::MessagesSend], |key| key.rate_limit = 10).await;
    let one =
        r#"{"channel":"email","to":"ann@example.com","from_email":"shop@acme.com","subject":"Hi","text":"Hello"}"#;
    let batch = |count: usize| format!(r#"{{"messages":[{}]}}"#, vec![one; count].join(","));
    let answer = server.post("/v1/messages/batch", &key, &batch(7)).await;
    assert_eq!((answer.status, answer.header("ratelimit")), (202, Some("\"default\";r=3;t=42")));
    let refused = server.post("/v1/messages/batch", &key, &batch(4)).await;
    assert_eq!((refused.status, &*refused.code(), refused.header("retry-after")), (429, "rate_limited", Some("6")));
    let listed = server.get("/v1/messages?limit=200", &key).await;
    assert_eq!(listed.json()["data"].as_array().unwrap().len(), 7, "nothing of what was refused is there");
    // A repetition is a request like others and costs one.
    let fresh = server.key_with(&[Scope::MessagesSend], |key| key.rate_limit = 10).await;
    let authorization = format!("Bearer {fresh}");
    let headers = [("authorization", &*authorization), ("content-type", "application/json"), ("idempotency-key", "k")];
    for left in ["\"default\";r=5;t=30", "\"default\";r=4;t=36"] {
        let answer = server.request("POST", "/v1/messages/batch", &headers, Some(&batch(5))).await;
        assert_eq!((answer.status, answer.header("ratelimit")), (202, Some(left)));
    }
}
