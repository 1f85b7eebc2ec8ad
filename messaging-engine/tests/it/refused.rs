//! One item that the store refuses for good keeps none of its siblings out: of a bulk request, a batch, a file.

use http::Method;
use messaging_core::changes::Write;
use messaging_engine::App;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, Reply, send};
use crate::imports::{announcement, upload};
use crate::mortal::MortalStore;
use crate::support::Product;

const POISON: &str = "poison@example.com";

/// A contact, an event or a message of the one.
fn is_poison(write: &Write) -> bool {
    match write {
        Write::PutContacts(puts) => puts.iter().any(|put| put.contact.email.as_deref() == Some(POISON)),
        Write::AppendProductEvents(events) => events.iter().any(|event| event.name == "poison"),
        Write::InsertMessage(message, _) => message.to == POISON,
        _ => false,
    }
}

/// An application on a store that refuses the one.
fn refusing(bed: &Bed) -> App {
    bed.another_process_on(MortalStore::refusing(bed.store.clone(), is_poison))
}

/// The addresses of items, of which every one at these places is the one.
fn addresses(count: usize, poison: &[usize]) -> Vec<String> {
    let address = |n: usize| if poison.contains(&n) { POISON.to_owned() } else { format!("p{n}@example.com") };
    (0..count).map(address).collect()
}

/// Sends the request twice with one key, asserts that both answers are the same, and returns the first.
async fn twice(app: &App, call: impl Fn() -> Call<'static>) -> Reply {
    let first = send(app, call().key("k")).await;
    let again = send(app, call().key("k")).await;
    assert!(again.replayed);
    assert_eq!(again.body, first.body);
    first
}

/// The places of the items that failed.
fn failed(reply: &Reply) -> Vec<usize> {
    let mut failed = Vec::new();
    for (index, result) in reply["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!(result["index"], index);
        if result["status"] == "error" {
            assert_eq!(result["error"]["code"], "internal_error");
            assert!(result["error"]["message"].as_str().unwrap().contains("cannot hold"), "{result}");
            failed.push(index);
        }
    }
    failed
}

#[tokio::test]
async fn the_others_of_a_bulk_request_are_stored() {
    for (count, poison) in [(1000, vec![0, 499, 500, 999]), (3, vec![1]), (1, vec![0])] {
        let (bed, workspace, owner) = Bed::with_owner().await;
        let app = refusing(&bed);
        let contacts: Vec<Value> = addresses(count, &poison).iter().map(|email| json!({"email": email})).collect();
        let body = json!({"contacts": contacts});
        let path: &'static str = format!("/workspaces/{workspace}/contacts/bulk").leak();
        let owner: &'static _ = Box::leak(Box::new(owner));
        let reply = twice(&app, || Call::new(owner, Method::POST, path).body(&body)).await;
        assert_eq!(reply.summary(), "200");
        assert_eq!(failed(&reply), poison);
        assert_eq!((&reply["created"], &reply["failed"]), (&json!(count - poison.len()), &json!(poison.len())));
        let listed = bed.get(owner, &format!("/workspaces/{workspace}/contacts?limit=200")).await;
        assert_eq!(listed["data"].as_array().unwrap().len(), (count - poison.len()).min(200));
    }
}

#[tokio::test]
async fn the_others_of_many_events_are_taken() {
    let (bed, workspace, _) = Bed::with_owner().await;
    let key: &'static _ = Box::leak(Box::new(bed.key(workspace, &["*"]).await));
    let app = refusing(&bed);
    let names = ["a", "b", "poison", "c", "d", "poison", "e"];
    let events: Vec<_> =
        names.iter().map(|name| json!({"name": name, "contact": {"email": "ann@example.com"}})).collect();
    let body = json!({"events": events});
    let reply = twice(&app, || Call::new(key, Method::POST, "/events/bulk").body(&body)).await;
    assert_eq!(reply.summary(), "202");
    assert_eq!((&reply["accepted"], &reply["rejected"]), (&json!(5), &json!(2)));
    let refused: Vec<_> = reply["errors"].as_array().unwrap().iter().map(|one| one["index"].clone()).collect();
    assert_eq!(refused, [2, 5]);
    assert_eq!(reply["errors"][0]["error"]["code"], "internal_error");
}

#[tokio::test]
async fn the_others_of_a_batch_are_sent_once() {
    let product = Product::start().await;
    let app = refusing(&product);
    let messages: Vec<_> = addresses(40, &[0, 17, 39])
        .iter()
        .map(|to| json!({"channel": "email", "to": to, "subject": "s", "text": "t"}))
        .collect();
    let body = json!({"messages": messages});
    let caller: &'static _ = Box::leak(Box::new(product.caller.clone()));
    let reply = twice(&app, || Call::new(caller, Method::POST, "/messages/batch").body(&body)).await;
    assert_eq!(reply.summary(), "202");
    assert_eq!(failed(&reply), [0, 17, 39]);
    assert_eq!((&reply["accepted"], &reply["failed"]), (&json!(37), &json!(3)));
    app.run_until_idle().await.unwrap();
    let mut sent: Vec<_> = product.transport.take().into_iter().map(|out| out.message_id.to_string()).collect();
    let results = reply["results"].as_array().unwrap();
    let mut told: Vec<_> = results.iter().filter_map(|one| Some(one.get("message_id")?.as_str()?.to_owned())).collect();
    sent.sort();
    told.sort();
    assert_eq!(sent, told);
}

#[tokio::test]
async fn a_row_of_a_file_is_refused_alone() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let app = refusing(&bed);
    let poison = [0, 700, 1001, 1499];
    let text = format!("email\n{}\n", addresses(1500, &poison).join("\n"));
    let contacts = format!("/workspaces/{workspace}/contacts");
    let announced = bed.post(&owner, &format!("{contacts}/import"), announcement(text.as_bytes(), json!({}))).await;
    upload(&bed.app, &announced.body, text.as_bytes()).await.unwrap();
    app.run_until_idle().await.unwrap();
    let id = announced["import_id"].as_str().unwrap();
    let import = bed.get(&owner, &format!("{contacts}/imports/{id}")).await;
    let told = ["status", "created", "updated", "failed"].map(|name| import[name].clone());
    assert_eq!(told, [json!("completed"), json!(1496), json!(0), json!(4)]);
    let report = bed.get(&owner, &format!("{contacts}/imports/{id}/errors")).await;
    let lines: Vec<_> = report.body.as_str().unwrap().split_terminator("\r\n").skip(1).collect();
    let rows: Vec<_> = lines.iter().map(|line| line.split_once(',').unwrap().0.parse::<usize>().unwrap()).collect();
    assert_eq!(rows, poison.map(|place| place + 2));
    assert!(lines[0].contains(",internal_error,"), "{}", lines[0]);
}
