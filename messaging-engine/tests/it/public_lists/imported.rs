//! Imports of contacts that are asked to confirm.

use std::collections::HashSet;

use messaging_engine::Caller;

use super::*;
use crate::imports::{announcement, upload};

/// Rows of the file.
const ROWS: usize = 2000;

/// Mails that may be sent before those that a person waits for: more than a process sends at a time.
const AHEAD: usize = 300;

/// Messages of an import that may wait for one recipient domain: 200, and as many as are made at one time.
const WAITING: u64 = 200 + 512;

/// Longest time until the confirmations that wait for room look for it again.
const LOOK: Duration = Duration::from_millis(500);

async fn import(readers: &Readers, file: &str) {
    let body = announcement(file.as_bytes(), json!({"status": "unconfirmed"}));
    let import = readers.post(&readers.caller, &readers.at("contacts/import"), body).await;
    assert_eq!(import.summary(), "200");
    upload(&readers.app, &import.body, file.as_bytes()).await.unwrap();
    readers.work().await;
    let path = readers.at(&format!("contacts/imports/{}", import["import_id"].as_str().unwrap()));
    let done = readers.get(&readers.caller, &path).await;
    assert_eq!((&done["status"], &done["failed"]), (&json!("completed"), &json!(0)), "{}", done.body);
}

async fn queue(readers: &Readers, action: &str) -> u64 {
    let path = format!("/system/queue/{action}");
    let reply = readers.post(&Caller::Operator(None), &path, json!({"domain": "example.com"})).await;
    assert_eq!(reply.summary(), "200");
    reply["messages"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_of_an_import_let_mail_go_first_that_somebody_waits_for() {
    let readers = Readers::undurable("double").await;
    let page = readers.form(json!({})).await;
    let rows: String = (0..ROWS).map(|n| format!("p{n}@example.com,{}\n", readers.list)).collect();
    let file = format!("email,list_ids\n{rows}");
    queue(&readers, "suspend").await;
    import(&readers, &file).await;
    assert_eq!((readers.mails().len(), readers.count().await), (0, json!(0)));
    // Queued behind them: the confirmation of a reader who subscribes, and a password reset, at the same provider.
    assert!(matches!(readers.subscribe(&page, "form@example.com").await, Posted::Taken));
    readers.send_to("password@example.com").await;
    readers.work().await;
    let waiting = queue(&readers, "resume").await;
    assert!((3..=WAITING + 2).contains(&waiting), "{waiting} messages were made for a domain that takes none");
    let mut mails = Vec::new();
    for _ in 0..ROWS {
        readers.work().await;
        mails.extend(readers.mails().into_iter().map(|mail| mail.0));
        if mails.len() >= ROWS + 2 {
            break;
        }
        readers.pass(LOOK).await;
    }
    assert_eq!((mails.len(), mails.iter().collect::<HashSet<_>>().len()), (ROWS + 2, ROWS + 2));
    for first in ["form@example.com", "password@example.com"] {
        let place = mails.iter().position(|to| to == first).unwrap();
        assert!(place < AHEAD, "{first} left behind {place} others");
    }

    // Importing the same file again asks no contact again, neither at once nor later.
    for wait in [MINUTE, DAY] {
        readers.pass(wait).await;
        import(&readers, &file).await;
        assert_eq!(readers.mails().len(), 0);
    }
    assert_eq!(readers.count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_queue_of_a_domain_cancels_confirmations_that_are_not_made_yet() {
    let readers = Readers::undurable("double").await;
    let rows: String = (0..ROWS).map(|n| format!("p{n}@example.com,{}\n", readers.list)).collect();
    queue(&readers, "suspend").await;
    import(&readers, &format!("email,list_ids\n{rows}")).await;
    let made = queue(&readers, "cancel").await;
    assert!((1..=WAITING).contains(&made), "{made} messages were made for a domain that takes none");
    readers.work().await;
    queue(&readers, "resume").await;
    for _ in 0..4 {
        readers.pass(LOOK).await;
        readers.work().await;
    }
    assert_eq!(readers.mails().len(), 0);
}

#[tokio::test]
async fn an_import_asks_neither_members_nor_those_who_left() {
    let readers = Readers::start("double").await;
    let consent = json!({"marketing_email": true});
    for name in ["ann", "bob"] {
        let email = format!("{name}@example.com");
        readers.contact(json!({"email": email, "consent": consent, "list_ids": [readers.list]})).await;
    }
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    let bob = readers.mails().into_iter().find(|mail| mail.0 == "bob@example.com").unwrap().1;
    readers.app.unsubscribe(readers.workspace, bob, UnsubscribeMethod::OneClick).await.unwrap();
    let file = format!("email,list_ids\nann@example.com,{0}\nbob@example.com,{0}\nnew@example.com,{0}\n", readers.list);
    let body = announcement(file.as_bytes(), json!({"status": "unconfirmed"}));
    let import = readers.post(&readers.caller, &readers.at("contacts/import"), body).await;
    upload(&readers.app, &import.body, file.as_bytes()).await.unwrap();
    readers.work().await;
    let asked: Vec<_> = readers.mails().into_iter().map(|mail| mail.0).collect();
    assert_eq!(asked, ["new@example.com"]);
    assert_eq!(readers.members("confirmed").await, ["ann@example.com:api"]);
    assert_eq!(readers.members("left").await, ["bob@example.com:unsubscribe"]);
    assert_eq!(readers.members("unconfirmed").await, ["new@example.com:import"]);
}
