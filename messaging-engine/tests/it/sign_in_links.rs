//! Contract section 2.3: tickets, passwords that people set themselves, and the sessions they see.

use std::time::Duration;

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply};

const ANYBODY: Caller = Caller::Anonymous;
const ANOTHER: &str = "a battery staple";

async fn redeem(bed: &Bed, url: &str, more: Value) -> Reply {
    let mut body = json!({"ticket": url.split_once("#ticket=").expect("a link with a ticket").1});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    bed.post(&ANYBODY, "/auth/redeem", body).await
}

async fn link(bed: &Bed, email: &str) -> String {
    admin::login_link(&bed.app, email).await.unwrap().url.into_inner()
}

async fn login(bed: &Bed, email: &str, password: &str) -> Reply {
    bed.post(&ANYBODY, "/auth/login", json!({"email": email, "password": password})).await
}

async fn ticket(bed: &Bed, by: &Caller, workspace: WorkspaceId, user: &str) -> Reply {
    let target = format!("/workspaces/{workspace}/members/{user}/ticket");
    bed.call(Call::new(by, Method::POST, &target)).await
}

#[tokio::test]
async fn a_link_signs_in_once_and_for_ten_minutes() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let url = link(&bed, "Ann@Example.com").await;
    let first = redeem(&bed, &url, json!({})).await;
    assert_eq!(first.summary(), "200");
    assert_eq!(first["user"]["email"], "ann@example.com");
    assert!(bed.app.authenticate(first["token"].as_str().unwrap()).await.is_ok());
    assert_eq!(redeem(&bed, &url, json!({})).await.summary(), "410 link_expired");

    let url = link(&bed, "ann@example.com").await;
    bed.clock.advance(Duration::from_mins(10) - Duration::from_millis(1));
    let kept = link(&bed, "ann@example.com").await;
    assert_eq!(redeem(&bed, &url, json!({})).await.summary(), "200", "until the last millisecond");
    bed.clock.advance(Duration::from_mins(10));
    assert_eq!(redeem(&bed, &kept, json!({})).await.summary(), "410 link_expired");
    assert_eq!(redeem(&bed, "#ticket=mt_unknown", json!({})).await.summary(), "410 link_expired");
    assert!(admin::login_link(&bed.app, "nobody@example.com").await.is_err());
}

#[tokio::test]
async fn of_two_who_redeem_a_link_at_once_one_gets_in() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let url = link(&bed, "ann@example.com").await;
    let replies = futures_util::future::join_all((0..8).map(|_| redeem(&bed, &url, json!({})))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.summary() == "410 link_expired").count(), 7);
}

#[tokio::test]
async fn only_the_digest_of_a_ticket_is_kept() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let url = link(&bed, "ann@example.com").await;
    let text = url.split_once("#ticket=").unwrap().1;
    let digest = messaging_core::domain::security::digest::Digest::of(text);
    let stored = bed.store.ticket(&digest).await.unwrap().unwrap();
    assert!(!serde_json::to_string(&stored).unwrap().contains(&text[3..]));
}

#[tokio::test]
async fn a_new_member_sets_a_password_by_the_ticket_of_an_admin() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let target = format!("/workspaces/{workspace}/members");
    let added = bed.post(&owner, &target, json!({"email": "new@example.com", "role": "editor"})).await;
    let user = added["user_id"].as_str().unwrap().to_owned();
    let made = ticket(&bed, &owner, workspace, &user).await;
    assert_eq!((made.summary().as_str(), &made["expires_at"]), ("201", &json!("2026-02-03T09:15:00.000Z")));
    let url = made["url"].as_str().unwrap();
    bed.clock.advance(Duration::from_hours(71));

    for (password, fault) in [("short", "too_short"), ("QWERTY123456", "not_allowed")] {
        let refused = redeem(&bed, url, json!({"password": password})).await;
        assert_eq!(refused.summary(), format!("422 /password {fault}"), "{password}");
    }
    let other = ticket(&bed, &owner, workspace, &user).await["url"].as_str().unwrap().to_owned();
    let session = redeem(&bed, url, json!({"password": ANOTHER})).await;
    assert_eq!(session.summary(), "200");
    assert!(bed.app.authenticate(session["token"].as_str().unwrap()).await.is_ok());
    assert_eq!(login(&bed, "new@example.com", ANOTHER).await.summary(), "200");
    assert_eq!(redeem(&bed, &other, json!({})).await.summary(), "410 link_expired", "a password voids the others");
    assert_eq!(ticket(&bed, &owner, workspace, "usr_01JB3Q8Z5N6W7X8Y9ZABCDEFGH").await.summary(), "404 not_found");
}

#[tokio::test]
async fn who_came_by_a_ticket_is_told_that_a_password_is_missing() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let target = format!("/workspaces/{workspace}/members");
    let added = bed.post(&owner, &target, json!({"email": "new@example.com", "role": "viewer"})).await;
    let made = ticket(&bed, &owner, workspace, added["user_id"].as_str().unwrap()).await;
    let session = redeem(&bed, made["url"].as_str().unwrap(), json!({})).await;
    let caller = bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap();
    assert_eq!(bed.get(&caller, "/auth/me").await["has_password"], false);
    let set = bed.post(&caller, "/auth/password", json!({"current": null, "password": ANOTHER})).await;
    assert_eq!(set.summary(), "204");
    let caller = bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap();
    assert_eq!(bed.get(&caller, "/auth/me").await["has_password"], true);
}

#[tokio::test]
async fn whoever_is_removed_leaves_their_tickets() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.user("ann@example.com").await;
    let path = format!("/workspaces/{workspace}/members");
    let ann = bed.post(&owner, &path, json!({"email": "ann@example.com", "role": "viewer"})).await;
    let ann = ann["user_id"].as_str().unwrap();
    let made = ticket(&bed, &owner, workspace, ann).await;
    assert_eq!(bed.delete(&owner, &format!("{path}/{ann}")).await.summary(), "204");
    assert_eq!(redeem(&bed, made["url"].as_str().unwrap(), json!({})).await.summary(), "410 link_expired");
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let sign_in = async |password| login(&bed, "ann@example.com", password).await["token"].as_str().unwrap().to_owned();
    let (mine, other) = (sign_in(PASSWORD).await, sign_in(PASSWORD).await);
    let session = bed.app.authenticate(&mine).await.unwrap();
    let set = async |body: Value| bed.post(&session, "/auth/password", body).await.summary();
    assert_eq!(set(json!({"password": ANOTHER})).await, "422 /current required");
    assert_eq!(set(json!({"current": PASSWORD, "password": "short"})).await, "422 /password too_short");
    assert_eq!(set(json!({"current": "wrong horse", "password": ANOTHER})).await, "401 invalid_credentials");
    assert!(bed.app.authenticate(&other).await.is_ok());
    assert_eq!(set(json!({"current": PASSWORD, "password": ANOTHER})).await, "204");
    assert!(bed.app.authenticate(&mine).await.is_ok(), "the session that set it goes on");
    assert_eq!(bed.app.authenticate(&other).await.unwrap_err().code(), "invalid_credentials");
    assert_eq!(login(&bed, "ann@example.com", PASSWORD).await.summary(), "401 invalid_credentials");
    assert_eq!(login(&bed, "ann@example.com", ANOTHER).await.summary(), "200");
}

#[tokio::test]
async fn guesses_at_the_current_password_are_counted() {
    let bed = Bed::start();
    bed.user("ann@example.com").await;
    let token = login(&bed, "ann@example.com", PASSWORD).await["token"].as_str().unwrap().to_owned();
    let session = bed.app.authenticate(&token).await.unwrap();
    let guess = json!({"current": "wrong horse", "password": ANOTHER});
    for _ in 0..10 {
        assert_eq!(bed.post(&session, "/auth/password", guess.clone()).await.summary(), "401 invalid_credentials");
    }
    let right = json!({"current": PASSWORD, "password": ANOTHER});
    assert_eq!(bed.post(&session, "/auth/password", right).await.summary(), "429 rate_limited");
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions() {
    let bed = Bed::start();
    for email in ["ann@example.com", "bob@example.com"] {
        bed.user(email).await;
    }
    let open = async |email: &str, from: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        let reply = bed.call(Call::new(&ANYBODY, Method::POST, "/auth/login").body(&body).from(from)).await;
        reply["token"].as_str().unwrap().to_owned()
    };
    let (first, second) = (open("ann@example.com", "192.0.2.1").await, open("ann@example.com", "192.0.2.2").await);
    let bobs = open("bob@example.com", "192.0.2.3").await;
    let (ann, bob) = (bed.app.authenticate(&second).await.unwrap(), bed.app.authenticate(&bobs).await.unwrap());
    let listed = bed.get(&ann, "/auth/sessions").await;
    let rows: Vec<_> = listed["data"].as_array().unwrap().iter().map(|row| (&row["ip"], &row["current"])).collect();
    assert_eq!(rows, [(&json!("192.0.2.2"), &json!(true)), (&json!("192.0.2.1"), &json!(false))]);
    let older = format!("/auth/sessions/{}", listed["data"][1]["id"].as_str().unwrap());
    assert_eq!(bed.delete(&bob, &older).await.summary(), "404 not_found");
    assert!(bed.app.authenticate(&first).await.is_ok());
    assert_eq!(bed.delete(&ann, &older).await.summary(), "204");
    assert_eq!(bed.app.authenticate(&first).await.unwrap_err().code(), "invalid_credentials");
    assert_eq!(bed.get(&ann, "/auth/sessions").await["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn all_other_sessions_end_at_once_however_many_there_are() {
    let bed = Bed::start();
    for email in ["ann@example.com", "bob@example.com"] {
        bed.user(email).await;
    }
    let open = async |email: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        let reply = bed.call(Call::new(&ANYBODY, Method::POST, "/auth/login").body(&body)).await;
        reply["token"].as_str().unwrap().to_owned()
    };
    let (mine, others, bobs) = (
        open("ann@example.com").await,
        [open("ann@example.com").await, open("ann@example.com").await],
        open("bob@example.com").await,
    );
    let ann = bed.app.authenticate(&mine).await.unwrap();
    // More than a page shows.
    assert!(bed.get(&ann, "/auth/sessions?limit=1").await["next_cursor"].is_string());
    assert_eq!(bed.delete(&ann, "/auth/sessions").await.summary(), "204");
    for token in &others {
        assert_eq!(bed.app.authenticate(token).await.unwrap_err().code(), "invalid_credentials");
    }
    let ann = bed.app.authenticate(&mine).await.unwrap();
    assert_eq!(bed.get(&ann, "/auth/sessions").await["data"].as_array().unwrap().len(), 1);
    assert!(bed.app.authenticate(&bobs).await.is_ok());
    assert_eq!(
        bed.post(&ann, "/auth/login", json!({"email": "ann@example.com", "password": PASSWORD})).await.summary(),
        "200"
    );
}

#[tokio::test]
async fn the_operator_sees_users_and_workspaces_page_by_page() {
    let (bed, workspace, _) = Bed::with_owner().await;
    bed.user("ann@example.com").await;
    let page = messaging_core::input::PageQuery::of(Some(1), None);
    let users = admin::list_users(&bed.app, &page).await.unwrap();
    assert_eq!(users.data[0].email, "ann@example.com");
    let next = messaging_core::input::PageQuery::of(Some(1), users.next_cursor.clone());
    assert_eq!(admin::list_users(&bed.app, &next).await.unwrap().data[0].email, "owner@acme.com");
    assert_eq!(admin::list_workspaces(&bed.app, &page).await.unwrap().data[0].id, workspace);
    assert!(admin::list_workspaces(&bed.app, &next).await.is_err(), "a cursor of another listing");
}
