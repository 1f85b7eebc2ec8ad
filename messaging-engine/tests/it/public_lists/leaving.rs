//! After the answer to an unsubscribe no marketing mail is sent: messages in progress check the suppression again.

use messaging_core::changes::{Document, Write};
use messaging_core::domain::message::MessageStatus;
use messaging_engine::App;

use super::*;
use crate::mortal::MortalStore;

const HOUR: Duration = Duration::from_hours(1);

/// True for the write that counts a message among those to its contact, right before it is sent.
fn takes_a_place(write: &Write) -> bool {
    matches!(write, Write::Put(Document::ContactSends(_), _))
}

/// Creates a reader of the list who has got a first campaign; returns the id of its message.
async fn with_mail(readers: &Readers) -> MessageId {
    let body = json!({"email": "ann@example.com", "consent": {"marketing_email": true}, "list_ids": [readers.list]});
    readers.contact(body).await;
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    readers.mails().remove(0).1
}

async fn leave(app: &App, readers: &Readers, message: MessageId, scope: UnsubscribeScope) {
    let scope = (UnsubscribeMethod::OneClick, scope);
    assert!(app.unsubscribe_from(readers.workspace, message, scope, &reader()).await.unwrap());
}

/// Lets a process send the queue, and the reader leave after its last check, right before the first mail is sent.
async fn leave_after_the_last_look(readers: &Readers, message: MessageId, scope: UnsubscribeScope) {
    let store = MortalStore::pausing_at(readers.store.clone(), takes_a_place);
    let app = readers.another_process_on(store.clone());
    let meanwhile = async {
        store.died().await;
        leave(&readers.app, readers, message, scope).await;
        store.go_on();
    };
    let sending = async { app.run_until_idle().await.unwrap() };
    tokio::join!(sending, meanwhile);
    readers.work().await;
    readers.pass(2 * HOUR).await;
    assert_eq!(readers.mails().len(), 0, "{scope:?}");
}

/// Status of the newest message.
async fn newest_status(readers: &Readers) -> Value {
    readers.get(&readers.caller, "/messages?limit=1").await["data"][0]["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_looks_again_at_who_leaves_after_its_last_look() {
    for scope in [UnsubscribeScope::OfMessage, UnsubscribeScope::Everything] {
        let readers = Readers::start("single").await;
        let message = with_mail(&readers).await;
        readers.clock.advance(HOUR);
        readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
        leave_after_the_last_look(&readers, message, scope).await;
        assert_eq!(newest_status(&readers).await, "suppressed", "{scope:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_a_message_that_was_put_off() {
    let readers = Readers::start("single").await;
    let message = with_mail(&readers).await;
    readers.transport.answer("ann@example.com", "450 4.2.1 later");
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    assert_eq!((readers.mails().len(), newest_status(&readers).await), (1, json!("deferred")));
    readers.clock.advance(HOUR);
    leave_after_the_last_look(&readers, message, UnsubscribeScope::OfMessage).await;
    assert_eq!(newest_status(&readers).await, "suppressed");
}

/// An automation that greets who joins the list, an hour later.
async fn with_automation(readers: &Readers) {
    let template = json!({"name": "w", "channel": "email", "subject": "s", "from_email": "shop@sandbox.test",
        "html": "<p>Hi</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
    let template = created(readers, "templates", template).await;
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
        {"id": "greet", "kind": "send", "config": {"template_id": template}}],
        "edges": [{"from": "w", "to": "greet"}]});
    let automation = json!({"name": "a", "graph": graph,
        "trigger": {"kind": "list_added", "config": {"list_id": readers.list}}});
    let automation = created(readers, "automations", automation).await;
    let path = readers.at(&format!("automations/{automation}/activate"));
    assert_eq!(readers.post(&readers.caller, &path, json!({})).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_automation_of_a_list_ends_for_who_leaves_it() {
    let readers = Readers::start("single").await;
    with_automation(&readers).await;
    let message = with_mail(&readers).await;
    let body = json!({"email": "bob@example.com", "consent": {"marketing_email": true}, "list_ids": [readers.list]});
    readers.contact(body).await;
    readers.work().await;
    // While it waits.
    leave(&readers.app, &readers, message, UnsubscribeScope::OfMessage).await;
    readers.pass(2 * HOUR).await;
    let sent: Vec<_> = readers.mails().into_iter().map(|mail| mail.0).collect();
    assert_eq!(sent, ["bob@example.com"]);
    // Other marketing is not of the list: consent stands.
    let shown = readers.get(&readers.caller, &readers.at("contacts?email=ann@example.com")).await;
    assert_eq!(shown["data"][0]["consent"]["marketing_email"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_automation_looks_again_at_who_leaves_after_its_last_look() {
    for scope in [UnsubscribeScope::OfMessage, UnsubscribeScope::Everything] {
        let readers = Readers::start("single").await;
        with_automation(&readers).await;
        let message = with_mail(&readers).await;
        readers.clock.advance(2 * HOUR);
        leave_after_the_last_look(&readers, message, scope).await;
        let known = readers.store.message(readers.workspace, message).await.unwrap().unwrap();
        assert_eq!(known.status, MessageStatus::Delivered);
        assert_eq!(newest_status(&readers).await, "suppressed", "{scope:?}");
    }
}
