//! Strangers and programs at forms: bounds of the mail they can cause, and of what they can find out.

use std::collections::HashMap;
use std::net::IpAddr;

use messaging_core::domain::audience::subscription::{ASK_AGAIN_AFTER, MAX_ASKED};
use messaging_core::time::Timestamp;
use messaging_engine::Error;

use super::*;
use crate::mortal::MortalStore;

const POSTS: u32 = 10_000;
const CALLERS: u32 = 100;

/// Posts that a caller may make in an hour.
const OF_CALLER: usize = 10;

/// Posts an address for a caller; returns true if it was accepted.
async fn post(readers: &Readers, page: &FormPage, caller: u32, email: String) -> bool {
    let post = FormPost { answers: vec![("email".to_owned(), email)], ..FormPost::default() };
    let from = Reader { ip: Some(IpAddr::from((0xc633_6400 + caller).to_be_bytes())), user_agent: None };
    match readers.app.post_to_form(page, &post, &from).await {
        Ok(Posted::Taken) => true,
        Err(Error::RateLimited { .. }) => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_posts_of_some_addresses_cause_the_mails_that_are_allowed() {
    let readers = Readers::undurable("double").await;
    let page = readers.form(json!({})).await;
    let mut asked: HashMap<String, Vec<Timestamp>> = HashMap::new();
    let mut taken = 0;
    // Over two hours, so that the counts of callers begin anew once.
    let step = Duration::from_hours(2) / POSTS;
    for n in 0..POSTS {
        let email = format!("p{}@example.com", (n / CALLERS) % 100);
        taken += usize::from(post(&readers, &page, n % CALLERS, email).await);
        readers.clock.advance(step);
        if n % 250 == 249 {
            readers.work().await;
            for (to, _, _) in readers.mails() {
                asked.entry(to).or_default().push(readers.app.now());
            }
        }
    }
    assert!(taken <= 2 * OF_CALLER * CALLERS as usize, "{taken}");
    assert!(!asked.is_empty());
    for (to, times) in &asked {
        assert!(times.len() <= MAX_ASKED, "{to} was asked {times:?}");
        // Mail was looked for every three minutes.
        let is_apart = |pair: &[Timestamp]| pair[1].since(pair[0]) + 4 * MINUTE >= ASK_AGAIN_AFTER;
        assert!(times.windows(2).all(is_apart), "{to} was asked {times:?}");
    }
    assert_eq!(readers.count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_causes_no_more_mails_than_it_may_post() {
    let readers = Readers::undurable("double").await;
    let page = readers.form(json!({})).await;
    for n in 0..POSTS {
        post(&readers, &page, n % CALLERS, format!("q{n}@example.com")).await;
    }
    readers.work().await;
    assert_eq!(readers.mails().len(), OF_CALLER * CALLERS as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_the_same_work_whoever_is_known() {
    for opt_in in ["single", "double"] {
        let readers = Readers::start(opt_in).await;
        let page = readers.form(json!({})).await;
        let agrees = json!({"marketing_email": true});
        for name in ["member", "left"] {
            let email = format!("{name}@example.com");
            readers.contact(json!({"email": email, "consent": agrees, "list_ids": [readers.list]})).await;
        }
        readers.contact(json!({"email": "known@example.com"})).await;
        readers.contact(json!({"email": "refusing@example.com", "consent": {"marketing_email": false}})).await;
        for reason in ["unsubscribe", "bounce"] {
            let body = json!({"channel": "email", "address": format!("{reason}@example.com"), "reason": reason});
            assert_eq!(readers.post(&readers.caller, &readers.at("suppressions"), body).await.summary(), "201");
        }
        readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
        readers.work().await;
        let left = readers.mails().into_iter().find(|mail| mail.0.starts_with("left")).unwrap().1;
        readers.app.unsubscribe(readers.workspace, left, UnsubscribeMethod::OneClick).await.unwrap();

        let store = MortalStore::immortal(readers.store.clone());
        let app = readers.another_process_on(store.clone());
        let names = ["new", "member", "left", "known", "refusing", "unsubscribe", "bounce"];
        // The second time all of them exist already.
        for (turn, name) in names.iter().chain(&names).enumerate() {
            let answers = vec![("email".to_owned(), format!("{name}@example.com"))];
            let post = FormPost { answers, ..FormPost::default() };
            let from = Reader { ip: Some(IpAddr::from([10, 0, 0, u8::try_from(turn).unwrap()])), user_agent: None };
            let before = store.commits();
            assert!(matches!(app.post_to_form(&page, &post, &from).await.unwrap(), Posted::Taken));
            assert_eq!(store.commits() - before, 1, "{opt_in} {name} {turn}");
        }
    }
}
