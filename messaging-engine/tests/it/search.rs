//! Searching contacts and messages (contract section 26).

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::bed::{Bed, Call, Reply};
use crate::campaigns::Shop;

/// Time after which everything written is indexed by the next pass.
const SETTLED: Duration = Duration::from_secs(10);

fn ids(reply: &Reply, member: &str) -> Vec<String> {
    let rows = reply.body["data"].as_array().unwrap();
    rows.iter().map(|row| row[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn contacts_are_found_by_those_who_may_read_what_is_searched() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/contacts");
    let mut made = Vec::new();
    for (email, external, last) in [("ann@example.org", "u-1", "Smith"), ("bob@example.org", "u-2", "Smithers")] {
        let body = json!({"email": email, "external_id": external, "attributes": {"last_name": last}});
        made.push(bed.post(&owner, &path, body).await["id"].as_str().unwrap().to_owned());
    }
    let blind = bed.key(workspace, &["contacts:read"]).await;
    for _ in 0..2 {
        let found = async |caller, q: &str| ids(&bed.get(caller, &format!("{path}?q={q}")).await, "id");
        assert_eq!(found(&owner, "SMITH").await, [made[1].clone(), made[0].clone()]);
        assert_eq!(found(&owner, "nn%40ex").await, [made[0].clone()]);
        assert_eq!(found(&blind, "smith").await, Vec::<String>::new());
        assert_eq!(found(&blind, "u-2").await, [made[1].clone()]);
        bed.app.run_until_idle().await.unwrap();
    }
    let first = bed.get(&owner, &format!("{path}?q=smith&limit=1")).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = bed.get(&owner, &format!("{path}?q=smith&limit=1&cursor={cursor}")).await;
    assert_eq!(ids(&second, "id"), [made[0].clone()]);
    assert_eq!(bed.get(&owner, &format!("{path}?q=other&limit=1&cursor={cursor}")).await.status, 400);
}

#[tokio::test]
async fn what_is_searched_has_two_to_a_hundred_characters() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let (long, named) = ("a".repeat(101), workspace.to_string());
    for path in [format!("/workspaces/{workspace}/contacts"), "/messages".to_owned()] {
        for (q, code) in [("", "too_short"), ("a", "too_short"), (long.as_str(), "too_long")] {
            let target = format!("{path}?q={q}");
            let call = Call::new(&owner, Method::GET, &target).in_workspace(&named);
            let reply = bed.call(call).await;
            assert_eq!(reply.status, 422, "{path} {q}");
            let fault = &reply.body["error"]["details"]["errors"][0];
            assert_eq!((&fault["parameter"], &fault["code"]), (&json!("q"), &json!(code)), "{path} {q}");
        }
    }
}

#[tokio::test]
async fn messages_are_found_by_the_subject_that_they_are_sent_with() {
    let shop = Shop::start().await;
    let template =
        json!({"name": "Order", "channel": "email", "subject": "Order {{ number }}", "html": "<p>Thanks</p>"});
    let template = shop.made("/templates", template).await;
    let mut sent = Vec::new();
    for body in [
        json!({"channel": "email", "to": "ann@example.com", "subject": "Hello Ann", "text": "t"}),
        json!({"channel": "email", "to": "bob@example.com", "template_id": template, "variables": {"number": 17}}),
    ] {
        let reply = shop.post(&shop.caller, "/messages", body).await;
        assert_eq!(reply.summary(), "202", "{}", reply.body);
        sent.push(reply["message_id"].as_str().unwrap().to_owned());
    }
    let found = async |q: &str| ids(&shop.get(&shop.caller, &format!("/messages?q={q}")).await, "message_id");
    assert_eq!(found("ann%40").await, [sent[0].clone()]);
    shop.app.run_until_idle().await.unwrap();
    shop.clock.advance(SETTLED);
    shop.app.run_until_idle().await.unwrap();
    assert_eq!(found("order+17").await, [sent[1].clone()]);
    assert_eq!(found("HELLO").await, [sent[0].clone()]);
    assert_eq!(found("example.com").await, [sent[1].clone(), sent[0].clone()]);
    assert_eq!(found(&sent[0][6..]).await, [sent[0].clone()]);
    let blind = shop.key(shop.workspace, &["messages:read"]).await;
    let found = async |q: &str| ids(&shop.get(&blind, &format!("/messages?q={q}")).await, "message_id");
    assert_eq!(found("example.com").await, Vec::<String>::new());
    assert_eq!(found("order").await, [sent[1].clone()]);
}
