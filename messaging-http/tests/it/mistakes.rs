//! The table of `docs/mistakes.md`: each request gets the answer that stands there.

use messaging_core::scope::Scope;

use crate::messages::sending_server;

const TABLE: &str = include_str!("../../../docs/mistakes.md");

/// The texts between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[tokio::test]
async fn each_mistake_of_the_table_is_answered_as_it_says() {
    let server = sending_server().await;
    let key = server.key(&[Scope::All]).await;
    let authorization = format!("Bearer {key}");
    let workspace = server.workspace.to_string();
    let rows = TABLE.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut told = 0;
    for row in rows {
        let row = row.replace("{workspace}", &workspace);
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [mistake, request, body, answer, says] = cells[..] else { panic!("{row}") };
        let (method, path) = quoted(request)[0].split_once(' ').unwrap();
        let mut headers = vec![("authorization", &*authorization), ("content-type", "application/json")];
        headers.retain(|(name, _)| {
            let left_out = if request.ends_with("without key") { "authorization" } else { "content-type" };
            !request.contains(" without ") || *name != left_out
        });
        let response = server.request(method, path, &headers, quoted(body).first().copied()).await;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(format!("{} {}", response.status, response.code()), quoted(answer)[0], "{mistake}: {text}");
        assert!(!quoted(says).is_empty(), "{mistake}");
        for said in quoted(says) {
            assert!(text.contains(said), "{mistake}: {text} does not say {said}");
        }
        told += 1;
    }
    assert_eq!(told, 10);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_told_where_with_and_without_a_key() {
    let server = sending_server().await;
    let key = server.key(&[Scope::All]).await;
    let authorization = format!("Bearer {key}");
    let plain = vec![("authorization", &*authorization), ("content-type", "application/json")];
    let mut keyed = plain.clone();
    keyed.push(("idempotency-key", "k"));
    for (body, place) in [
        ("{\n  \"channel\": \"email\",\n  \"to\": secret@example.com\n}", Some((3, 9))),
        ("{\"channel\": \"email\"", Some((1, 19))),
        ("{} x", Some((1, 4))),
        ("[1, 2", Some((1, 5))),
        ("[1, 2]", None),
        ("7", None),
    ] {
        for headers in [&plain, &keyed] {
            let response = server.request("POST", "/v1/messages", headers, Some(body)).await;
            assert_eq!((response.status, &*response.code()), (400, "invalid_json"), "{body}");
            let error = &response.json()["error"];
            let told = error.get("details").map(|at| (at["line"].as_u64().unwrap(), at["column"].as_u64().unwrap()));
            assert_eq!(told, place, "{body}");
            assert!(!error["message"].as_str().unwrap().contains("secret"), "nothing of the body is quoted");
        }
    }
}

#[tokio::test]
async fn an_unverified_sender_learns_what_comes_next() {
    use messaging_core::changes::{Expect, Write};
    use messaging_core::domain::mail::sending_domain::SendingDomain;
    use serde_json::json;

    let server = sending_server().await;
    let key = server.key(&[Scope::All]).await;
    let now = server.app.now();
    let pending = SendingDomain::new(server.app.new_id(now), server.workspace, "pending.example", now);
    let id = pending.id;
    server.commit([Write::put(pending, Expect::Absent)]).await;
    let domains = format!("/workspaces/{}/sending-domains", server.workspace);
    let verify = format!("{domains}/{id}/verify");
    for (from, domain, operation, path) in [
        ("a@else.where", "else.where", "createSendingDomain", &domains),
        ("a@pending.example", "pending.example", "verifySendingDomain", &verify),
        ("a@eu.pending.example", "pending.example", "verifySendingDomain", &verify),
    ] {
        let body =
            json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t", "from_email": from});
        let error = server.post("/v1/messages", &key, &body.to_string()).await.json()["error"].clone();
        assert_eq!(error["code"], "sender_domain_not_verified");
        assert_eq!(error["details"], json!({"domain": domain, "operation": operation, "path": path}));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(domain) && message.contains(path.as_str()) && !message.contains('@'), "{message}");
    }
}
