//! A workspace with 100,000 rows of each kind: no list counts them, shows more than a page, or takes longer.

use std::io::Write as _;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageContent, MessageStatus};
use messaging_core::ports::store::Priority;
use messaging_core::scope::Role;
use serde_json::json;

use super::filled;
use super::page::Page;
use crate::harness::TestServer;

/// Rows of each kind.
const ROWS: usize = 100_000;

/// Rows of one commit.
const AT_ONCE: usize = 5_000;

/// The names of the rows, in JavaScript.
const NAMES: &str =
    "[...document.querySelectorAll('main tbody tr')].map((row) => row.querySelector('th').textContent).join()";

fn contact(server: &TestServer, number: usize) -> Contact {
    let now = server.app.now();
    Contact {
        email: Some(format!("person{number}@people.example")),
        ..Contact::new(server.app.new_id(now), server.workspace, now)
    }
}

fn message(server: &TestServer, number: usize) -> Message {
    let now = server.app.now();
    Message {
        status: MessageStatus::Delivered,
        from_email: Some("shop@sandbox.test".to_owned()),
        ..Message::queued(
            server.app.new_id(now),
            server.workspace,
            Channel::Email,
            format!("person{number}@people.example"),
            now,
        )
    }
}

async fn fill(server: &TestServer) {
    for start in (0..ROWS).step_by(AT_ONCE) {
        let numbers = start..start + AT_ONCE;
        let contacts = numbers.clone().map(|number| Write::put_contact(contact(server, number), Expect::Absent));
        let messages = numbers.map(|number| {
            let request = MessageContent { request: format!(r#"{{"subject":"Order {number}"}}"#).into() };
            Write::InsertMessage(Box::new(message(server, number)), request)
        });
        let changes: Changes = contacts.chain(messages).collect();
        server.app.store().commit(changes, Priority::Foreground).await.unwrap();
    }
}

#[tokio::test]
async fn lists_of_a_hundred_thousand_rows_open_like_short_ones() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    for (route, newest) in [("#/messages", "person99999@"), ("#/contacts", "person99999@")] {
        page.load(route).await;
        let began = std::time::Instant::now();
        page.load(route).await;
        let took = began.elapsed();
        let _ = writeln!(std::io::stderr(), "console: {route} with {ROWS} rows: {took:.0?} with the document");
        let rows = page.browser.run("return document.querySelectorAll('main tbody tr').length", &[]).await;
        assert!((25..=200).contains(&rows.as_u64().unwrap()), "{route}: {rows} rows");
        assert!(page.text().await.contains(newest), "{route}: {}", page.text().await);
        assert!(!page.text().await.contains("100,000"), "{route} counts");

        // To the next page and back, where rows and scroll position are the same.
        let first = page.browser.run(&format!("scrollTo(0, 700); return {NAMES}"), &[]).await;
        page.press("link", "Next page").await;
        let second = page.browser.run(&format!("return {NAMES}"), &[]).await;
        assert_ne!(first, second, "{route}");
        page.browser.run("history.back()", &[]).await;
        page.until(&format!("{NAMES} === {first}")).await;
        page.until("scrollY > 500").await;
    }
    server.clock.advance(Duration::from_mins(1));
    // A contact is found by a filter, not by paging.
    page.load("#/contacts?email=person17%40people.example").await;
    let rows =
        "return [...document.querySelectorAll('main tbody tr')].map((row) => row.textContent.includes('person17@'))";
    assert_eq!(page.browser.run(rows, &[]).await, json!([true]));
    assert_eq!(page.faults().await, [""; 0]);
}
